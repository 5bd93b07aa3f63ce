// The name of an output as written by a user (idl/types.idl, OutputFile): a file,
// a folder with its contents ("results/"), or a pattern ("run-*/x?.png").
// Each byte of invalid UTF-8 counts as one character. Values; pure functions.
#ifndef SUBLET_JOB_OUTPUT_NAME_H_
#define SUBLET_JOB_OUTPUT_NAME_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sublet {

class OutputName {
 public:
  static constexpr size_t kDeepest = 64;    // parts between slashes
  static constexpr size_t kLongest = 4096;  // octets

  // Throws std::invalid_argument with an explanation: the name leaves the job's
  // folder, is too long or too deep, or is that of a stream; an unclosed bracket; a
  // backslash before a character other than * ? [ ] - ! ^ and itself.
  explicit OutputName(std::string_view text);

  // Whether it names a single file: file(), relative to the job's folder.
  bool is_file() const;
  std::string file() const;
  // Whether it names a folder, or a pattern of folders, with their contents.
  bool is_folder() const { return folder_; }

  size_t depth() const { return parts_.size(); }
  // Whether the part at this depth is a plain name, not a pattern; and that name.
  bool is_literal(size_t depth) const { return !parts_[depth].pattern; }
  const std::string& literal(size_t depth) const { return parts_[depth].literal; }
  // Whether the name of a file or folder matches the part at this depth. Takes time
  // at most proportional to the product of both lengths.
  bool fits(size_t depth, std::string_view name) const;
  // Whether a file, relative to the job's folder, belongs to this output. Never
  // "stdout" and "stderr", which are the job's streams.
  bool covers(std::string_view file) const;

 private:
  struct Token {
    enum class Kind { kCharacter, kAny, kRun, kSet };
    Kind kind = Kind::kCharacter;
    bool negated = false;
    // First and last, inclusive; for kCharacter: the character twice.
    std::vector<std::pair<std::string, std::string>> ranges;
    bool takes(std::string_view character) const;
  };
  struct Part {
    bool pattern = false;
    std::string literal;
    std::vector<Token> tokens;
    size_t least = 0;  // minimum number of characters matched
  };
  static Part read_part(std::string_view text);
  static Token read_set(std::string_view text, size_t* at);
  static bool matches(const Part& part, std::string_view name);

  std::vector<Part> parts_;
  bool folder_ = false;
};

// OutputName::covers; false for an invalid name.
bool covers(std::string_view output, std::string_view file);
// The text with its special characters quoted, so that it matches itself.
std::string quote_output(std::string_view text);

}  // namespace sublet

#endif  // SUBLET_JOB_OUTPUT_NAME_H_
