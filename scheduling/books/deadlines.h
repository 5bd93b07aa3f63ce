// Deadlines: what must be looked at again at which instant, soonest first. Equal instants
// are ordered by kind and id, so that equal histories give equal outcomes.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_BOOKS_DEADLINES_H_
#define SUBLET_SCHEDULING_BOOKS_DEADLINES_H_

#include <optional>
#include <tuple>

#include "scheduling/indexed_heap.h"
#include "scheduling/types.h"

namespace sublet::scheduling {

// Something with a deadline: an attempt (its lease), a machine (silence, end of a pause)
// or a job (end of its back-off, or its user's instant; among deadlines of its own).
struct Timed {
  enum class Kind : uint32_t { kAttempt, kMachine, kJob };
  Micros due = 0;
  size_t due_position = kNowhere;
  Kind due_kind = Kind::kAttempt;
  uint64_t due_id = 0;
};

class Deadlines {
 public:
  // Sets, moves or (with `due` 0) removes a deadline.
  void set(Timed& timed, Micros due) {
    const bool known = timed.due_position != kNowhere;
    if (due == 0) {
      if (known) heap_.erase(timed.due_position);
    } else if (!known) {
      timed.due = due;
      heap_.push(&timed);
    } else if (timed.due != due) {
      timed.due = due;
      heap_.changed(timed.due_position);
    }
  }
  std::optional<Micros> next() const {
    return heap_.empty() ? std::nullopt : std::optional(heap_.top()->due);
  }
  // The soonest that has been reached; null: none. It stays until it is set anew.
  Timed* reached(Micros now) const {
    return heap_.empty() || heap_.top()->due > now ? nullptr : heap_.top();
  }

 private:
  struct Order {
    static bool before(const Timed* a, const Timed* b) {
      return std::tie(a->due, a->due_kind, a->due_id) < std::tie(b->due, b->due_kind, b->due_id);
    }
    static void moved(Timed* timed, size_t position) { timed->due_position = position; }
  };
  IndexedHeap<Timed*, Order> heap_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_BOOKS_DEADLINES_H_
