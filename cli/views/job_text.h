// A job's text on its way to a terminal or into JSON. What a job writes may
// hold anything: escape sequences that rewrite what stands there or type on the
// user's behalf, bytes that are no UTF-8. One object for each stream.
#ifndef SUBLET_CLI_VIEWS_JOB_TEXT_H_
#define SUBLET_CLI_VIEWS_JOB_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace sublet::cli {

// Holds back a character that is split between two pieces.
class WholeCharacters {
 public:
  std::string feed(std::string_view piece);
  // What was held back, and will not be completed.
  std::string finish();

 private:
  std::string rest_;
};

// For a terminal control characters other than newline, tab and carriage return
// become \x1b, \u202e (as escape_for_terminal writes them, but a backslash stays
// one), and so do bytes that are no UTF-8. Not for a terminal: the same bytes.
class JobText {
 public:
  explicit JobText(bool for_terminal) : for_terminal_(for_terminal) {}
  std::string feed(std::string_view piece);
  std::string finish();

 private:
  const bool for_terminal_;
  WholeCharacters characters_;
};

// Cut at the front to its last `count` lines; one without a newline at the end
// is a line, too.
void keep_last_lines(std::string& text, uint64_t count);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_JOB_TEXT_H_
