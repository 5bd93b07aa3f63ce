// The hours book: the hours at which live jobs may be started (Requirements::hours), each once
// however many jobs name them, and whether they are open now. Jobs that were started go on when
// they close.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_BOOKS_HOURS_BOOK_H_
#define SUBLET_SCHEDULING_BOOKS_HOURS_BOOK_H_

#include <map>
#include <optional>
#include <string>

#include "rules/hours.h"
#include "scheduling/books/changes.h"
#include "scheduling/books/deadlines.h"

namespace sublet::scheduling {

// Its deadline is when they open or close.
struct OpenHours : Timed {
  std::string text;
  std::optional<rules::Hours> hours;  // none: the stored text is damaged, they are never open
  bool open = false;
  uint64_t demands = 0;
};

class HoursBook {
 public:
  // `changes` knows the time.
  explicit HoursBook(const Changes& changes) : changes_(changes) {}

  // One more demand names them. Null: "", any time.
  const OpenHours* enter(const std::string& text);
  // One fewer; may be null. Those that nobody names are forgotten.
  void leave(const OpenHours* hours);

  // Opens and closes them by the present time. Constant time, unless some do.
  void update();
  std::optional<Micros> next_change() const { return due_.next(); }
  // Some have opened since the jobs that name them were looked at.
  bool have_opened() const { return opened_; }
  void note_searched() { opened_ = false; }

  // How long until they open; none: they are open, or never open.
  std::optional<Micros> opens_in(const OpenHours& hours, Micros now) const;
  // Since when they are open, if they are; 0: always.
  Micros open_since(const OpenHours& hours) const;

 private:
  int32_t offset() const { return changes_.counters().utc_offset; }
  void follow_local_time();
  // True: they have opened.
  bool settle(OpenHours& hours);

  const Changes& changes_;
  std::map<std::string, OpenHours> hours_;
  Deadlines due_;
  int32_t offset_ = 0;  // by which they were opened and closed
  bool opened_ = false;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_BOOKS_HOURS_BOOK_H_
