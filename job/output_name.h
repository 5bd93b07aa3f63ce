// The name of an output, as a user writes it (idl/types.idl, OutputFile): a file,
// a folder with all that is in it ("results/"), or a pattern ("run-*/x?.png").
// Bytes that are no UTF-8 count as one character each. Values; pure functions.
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

  // Throws std::invalid_argument, whose text says what is wrong: the name leads
  // out of the job's folder, is too long or too deep, is a stream's; a bracket
  // that does not end; a backslash before anything but * ? [ ] - ! ^ and itself.
  explicit OutputName(std::string_view text);

  // It names one file: file(), relative to the job's folder.
  bool is_file() const;
  std::string file() const;
  // A folder, or a pattern of folders, and all that is in them.
  bool is_folder() const { return folder_; }

  size_t depth() const { return parts_.size(); }
  // Whether the part at this depth is no pattern, and then which name it is.
  bool is_literal(size_t depth) const { return !parts_[depth].pattern; }
  const std::string& literal(size_t depth) const { return parts_[depth].literal; }
  // Whether a file's or folder's own name matches the part at this depth. The
  // time is at most the product of both lengths.
  bool fits(size_t depth, std::string_view name) const;
  // Whether a file, relative to the job's folder, belongs to this output. Never
  // "stdout" and "stderr", which are the job's streams.
  bool covers(std::string_view file) const;

 private:
  struct Token {
    enum class Kind { kCharacter, kAny, kRun, kSet };
    Kind kind = Kind::kCharacter;
    bool negated = false;
    // From and to, both included; of a character: itself.
    std::vector<std::pair<std::string, std::string>> ranges;
    bool takes(std::string_view character) const;
  };
  struct Part {
    bool pattern = false;
    std::string literal;
    std::vector<Token> tokens;
    size_t least = 0;  // characters that it takes at least
  };
  static Part read_part(std::string_view text);
  static Token read_set(std::string_view text, size_t* at);
  static bool matches(const Part& part, std::string_view name);

  std::vector<Part> parts_;
  bool folder_ = false;
};

// OutputName::covers; false for a name that is none.
bool covers(std::string_view output, std::string_view file);
// The text as a part of an output's name that stands for itself.
std::string quote_output(std::string_view text);

}  // namespace sublet

#endif  // SUBLET_JOB_OUTPUT_NAME_H_
