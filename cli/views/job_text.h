// Makes a job's output safe for a terminal or for JSON. It may contain anything: escape
// sequences that overwrite the screen or type on the user's behalf, bytes that are not
// UTF-8. One object for each stream.
#ifndef SUBLET_CLI_VIEWS_JOB_TEXT_H_
#define SUBLET_CLI_VIEWS_JOB_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace sublet::cli {

// Buffers a character that is split between two pieces.
class WholeCharacters {
 public:
  std::string feed(std::string_view piece);
  // Returns the buffered bytes of an incomplete character.
  std::string finish();

 private:
  std::string rest_;
};

// For a terminal, control characters other than newline, tab and carriage return, and bytes
// that are not UTF-8, are written as \x1b, \u202e (as in escape_for_terminal, but a backslash
// is unchanged). Not for a terminal: the bytes are unchanged.
class JobText {
 public:
  explicit JobText(bool for_terminal) : for_terminal_(for_terminal) {}
  std::string feed(std::string_view piece);
  std::string finish();

 private:
  const bool for_terminal_;
  WholeCharacters characters_;
};

// Removes all but the last `count` lines; a last line without a newline counts.
void keep_last_lines(std::string& text, uint64_t count);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_JOB_TEXT_H_
