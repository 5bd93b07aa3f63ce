#include "base/options/toml_problem.h"

#include <algorithm>

#include "base/text.h"

namespace sublet {
namespace {

constexpr size_t kLongestWord = 60;  // of the text, in bytes

// What toml++ was reading (its scope ends in this), part of what it says, and our sentence: %w
// is the word at the place of the error, %q what toml++ quotes.
struct Phrase {
  const char* scope;
  const char* reason;
  const char* sentence;
};

// The first that fits is used. "" fits everything.
constexpr Phrase kPhrases[] = {
    {"", "invalid utf-8", "the text is not UTF-8"},
    {"", "after '\\r'", "a carriage return stands alone; end lines with LF or CR LF"},
    {"", "nested value depth", "lists or tables are nested too deeply"},
    {"", "dotted key-value pair", "'%w' adds to a key that has a value already"},
    {"", "existing inline table", "%q cannot be added to a table that was written in { }"},
    {"", "as array-of-tables", "%q is defined already, and not with [[NAME]]"},
    {"", "existing array", "%q is defined already, as a list"},
    {"", "cannot redefine", "%q is defined twice"},
    {"comment", "", "a control character stands in a comment"},
    {"string", "end-of-file", "the closing quote of a string is missing"},
    {"string", "escape sequence",
     "a backslash in \"...\" begins an escape; double it, or write the string in '...'"},
    {"string", "", "a control character stands in a string; write it as an escape in \"...\""},
    {"unicode scalar sequence", "",
     "an escape with u needs 4 hexadecimal digits of a character, one with U 8"},
    {"boolean", "", "'%w' is not a value; write true or false, or put a string in quotes"},
    {"integer", "leading zeroes", "'%w': a number may not begin with 0"},
    {"integer", "64 bits", "the number '%w' is too large or too small"},
    {"floating-point", "interpreted", "the number '%w' is too large or too small"},
    {"integer", "", "'%w' is not a number; a string needs quotes"},
    {"floating-point", "", "'%w' is not a number; a string needs quotes"},
    {"date", "", "'%w' is not a date; a string needs quotes"},
    {"date-time", "", "'%w' is not a date and time; a string needs quotes"},
    {"offset", "", "'%w' is not a date and time; a string needs quotes"},
    {"time", "", "'%w' is not a time; a string needs quotes"},
    {"value", "control character", "a control character stands where a value should be"},
    {"value", "too long", "'%w' is too long for a number; a string needs quotes"},
    {"value", "", "'%w' is not a value; a string needs quotes"},
    {"key", "multi-line", "a key may not be written in triple quotes"},
    {"key", "end-of-file", "part of a key is missing"},
    {"key", "", "part of a key is missing before '%w'"},
    {"table header", "expected ']'",
     "the header of a table is not closed; write [NAME] or [[NAME]]"},
    {"table header", "end-of-file",
     "the header of a table is not closed; write [NAME] or [[NAME]]"},
    {"table header", "blank", "the header has no name; write [NAME] or [[NAME]]"},
    {"table header", "", "'%w' follows the header of a table; begin a new line"},
    {"key-value pair", "comment or whitespace",
     "'%w' follows a value; begin a new line, or put a string in quotes"},
    {"key-value pair", "'='", "'=' is missing after a key; write KEY = VALUE"},
    {"key-value pair", "", "the value of a key is missing; write KEY = VALUE"},
    {"array", "end-of-file", "the ']' of a list is missing"},
    {"array", "saw comma", "a value is missing before ',' in a list"},
    {"array", "", "',' or ']' is missing before '%w' in a list"},
    {"inline table", "end-of-file", "the '}' of a table is missing"},
    {"inline table", "dangling comma", "a ',' stands before the '}' of a table"},
    {"inline table", "saw comma", "KEY = VALUE is missing before ',' in a table in { }"},
    {"inline table", "saw '\\n'", "a table in { } must end on the line that it begins on"},
    {"inline table", "comma or closing", "',' or '}' is missing before '%w' in a table"},
    {"inline table", "", "'%w' cannot begin a key in a table in { }"},
    {"root table", "", "'%w' cannot begin a line; write KEY = VALUE, [NAME] or [[NAME]]"},
};
constexpr const char* kUnknown = "this is not valid TOML";

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Where in the text that is; its end if it is beyond.
size_t offset_of(std::string_view text, uint32_t line, uint32_t column) {
  size_t at = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
  for (; line > 1 && at < text.size(); --line) at = std::min(text.find('\n', at), text.size()) + 1;
  for (; column > 1 && at < text.size(); --column) do
      ++at;
    while (at < text.size() && continues(text[at]));
  return std::min(at, text.size());
}

// The word there, with what of it is before; or the one character that stands there between
// words.
std::string word_at(std::string_view text, size_t at) {
  static constexpr std::string_view kEnds = " \t\r\n,=[]{}#\"'";
  size_t begin = at;
  while (begin > 0 && kEnds.find(text[begin - 1]) == kEnds.npos) --begin;
  size_t end = std::min(text.find_first_of(kEnds, at), text.size());
  if (at < text.size() && end == at) {
    begin = at;
    ++end;
  }
  std::string_view word = text.substr(begin, end - begin);
  if (word.size() <= kLongestWord) return escape_for_terminal(word);
  size_t cut = kLongestWord;
  while (cut > 0 && continues(word[cut])) --cut;
  return escape_for_terminal(word.substr(0, cut)) + "...";
}

// "'x'" of: cannot redefine existing table 'x' as array-of-tables
std::string quoted_in(std::string_view reason) {
  const size_t from = reason.find('\''), to = reason.rfind('\'');
  // toml++ garbles names that are written in quotes.
  const std::string_view name = from == to ? "" : reason.substr(from + 1, to - from - 1);
  if (name.empty() || name.find_first_of("\"'") != name.npos) return "this name";
  return "'" + escape_for_terminal(name) + "'";
}

void replace(std::string* in, std::string_view what, const std::string& by) {
  if (const size_t at = in->find(what); at != in->npos) in->replace(at, what.size(), by);
}

}  // namespace

std::string toml_problem(std::string_view text, uint32_t line, uint32_t column,
                         std::string_view said) {
  static constexpr std::string_view kHead = "Error while parsing ";
  std::string_view scope, reason = said;
  if (const size_t colon = said.find(": "); said.starts_with(kHead) && colon != said.npos) {
    scope = said.substr(kHead.size(), colon - kHead.size());
    reason = said.substr(colon + 2);
  }
  const size_t at = offset_of(text, line, column);
  if (scope.ends_with("string") && at < text.size() && (text[at] == '\n' || text[at] == '\r'))
    reason = "end-of-file";  // of its line, where a string in single quotes must end, too
  for (const Phrase& phrase : kPhrases) {
    if (!scope.ends_with(phrase.scope) || reason.find(phrase.reason) == reason.npos) continue;
    std::string sentence = phrase.sentence;
    // No sentence has both, so that what one of them brings in is not taken for the other.
    replace(&sentence, "%q", quoted_in(reason));
    if (sentence == phrase.sentence) replace(&sentence, "%w", word_at(text, at));
    return sentence;
  }
  return kUnknown;
}

}  // namespace sublet
