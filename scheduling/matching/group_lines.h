// The lines of one group, in the order in which a machine serves them if users are served by their
// jobs, and else in the order of the users' numbers (matching/user_queue.h has that of their keys).
// They stand in chunks, each with a bound of what its jobs need: a search skips the chunks whose
// bound does not fit. Each entry repeats what a search compares: without the copies most of the
// time is spent on cache misses.
//
// The lines are not owned; their key, number and bound may not change while they are here, except
// the bound through `refresh`. Private to the brain.
#ifndef SUBLET_SCHEDULING_MATCHING_GROUP_LINES_H_
#define SUBLET_SCHEDULING_MATCHING_GROUP_LINES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "scheduling/matching/user_line.h"

namespace sublet::scheduling {

class GroupLines {
 public:
  bool empty() const { return first_ == chunks_.size(); }
  // Of all lines; only when not empty.
  const UserBound& bound() const { return bound_; }

  // The line is not here.
  void add(UserLine& line);
  // The line is here.
  void take(UserLine& line);
  // The line's bound has changed.
  void refresh(UserLine& line);

  // In order, of the lines whose bound `may`, until `visit` returns false.
  template <typename May, typename Visit>
  void walk(May may, Visit visit) const {
    if (empty() || !may(bound_)) return;
    for (size_t chunk = first_; chunk < chunks_.size(); ++chunk) {
      if (!may(chunks_[chunk].bound)) continue;
      for (const Entry& entry : *chunks_[chunk].entries)
        if (may(entry.bound) && !visit(*entry.line)) return;
    }
  }

 private:
  struct Entry {
    UserKey key;
    uint64_t number = 0;
    UserLine* line = nullptr;
    UserBound bound;
  };
  // A vector with free slots at its front too, so that inserting and erasing there is cheap: by
  // job, the line that is served is mostly the first.
  class Entries {
   public:
    const Entry* begin() const { return slots_.data() + begin_; }
    const Entry* end() const { return slots_.data() + slots_.size(); }
    size_t size() const { return slots_.size() - begin_; }
    bool empty() const { return size() == 0; }
    Entry& operator[](size_t i) { return slots_[begin_ + i]; }
    const Entry& operator[](size_t i) const { return slots_[begin_ + i]; }
    const Entry& front() const { return slots_[begin_]; }
    const Entry& back() const { return slots_.back(); }
    void reserve(size_t most) { slots_.reserve(most); }
    void clear();
    void push_back(const Entry& entry) { slots_.push_back(entry); }
    void insert(size_t place, const Entry& entry);
    void erase(size_t place);
    // Moves the entries of `other` from this place on to the end of this one.
    void take_end(Entries& other, size_t place);

   private:
    std::vector<Entry> slots_;
    size_t begin_ = 0;  // the slots before this one are free
  };
  // Of kMost entries at most, and of one at least unless it is before `first_`.
  struct Chunk {
    UserKey key;  // those of its first entry
    uint64_t number = 0;
    UserBound bound;  // of all entries
    std::unique_ptr<Entries> entries;
  };
  struct Position {
    size_t chunk = 0;
    size_t entry = 0;
  };
  static constexpr size_t kMost = 32;

  static Entry entry_of(UserLine& line) { return {line.key, line.number, &line, line.of_jobs}; }
  // By the keys and numbers; of equal ones, by the lines.
  static bool before(const Entry& a, const Entry& b);
  static Chunk chunk_of(std::unique_ptr<Entries> entries);
  std::unique_ptr<Entries> no_entries();
  static void note_front(Chunk& chunk);
  // Where the line stands or would be added; not when empty.
  Position find(UserLine& line) const;
  void add_first(UserLine& line);
  void split(size_t chunk);
  void erase(size_t chunk);
  void merge_next(size_t chunk);

  std::vector<Chunk> chunks_;
  // Those before this one are gone: by job, lines mostly leave at the front and come back at the
  // end.
  size_t first_ = 0;
  UserBound bound_;  // only when not empty
  std::vector<std::unique_ptr<Entries>> spare_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_GROUP_LINES_H_
