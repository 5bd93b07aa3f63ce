#include "job/output_name.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <tuple>

namespace sublet {
namespace {

constexpr std::string_view kSpecial = "*?[\\";
constexpr std::string_view kMayBeQuoted = "*?[]\\-!^";

[[noreturn]] void wrong(const char* what) { throw std::invalid_argument(what); }

// The first character of the text: a UTF-8 sequence, or else one byte. Compared
// bytewise, UTF-8 sequences are in the order of their code points.
std::string_view first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  size_t size = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf8 ? 4 : 1;
  if (size > text.size()) size = 1;
  for (size_t i = 1; i < size; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return text.substr(0, 1);
  return text.substr(0, size);
}

// The character at *at, where a backslash quotes the next character; advances *at.
std::string next_character(std::string_view text, size_t* at) {
  const bool quoted = text[*at] == '\\';
  if (quoted && (*at + 1 == text.size() || kMayBeQuoted.find(text[*at + 1]) == kMayBeQuoted.npos))
    wrong("a backslash may only precede * ? [ ] or a backslash");
  *at += quoted;
  std::string character(first_character(text.substr(*at)));
  *at += character.size();
  return character;
}

bool is_stream(std::string_view file) { return file == "stdout" || file == "stderr"; }

}  // namespace

bool OutputName::Token::takes(std::string_view character) const {
  if (kind == Kind::kAny) return true;
  const bool inside = std::ranges::any_of(ranges, [&](const auto& range) {
    return range.first <= character && character <= range.second;
  });
  return inside != negated;
}

// "[a-z]", "[!abc]", "[]x]": a ] directly after the opening bracket is literal.
OutputName::Token OutputName::read_set(std::string_view text, size_t* at) {
  Token token{Token::Kind::kSet, false, {}};
  ++*at;
  token.negated = *at < text.size() && (text[*at] == '!' || text[*at] == '^');
  *at += token.negated;
  for (bool first = true; *at < text.size(); first = false) {
    if (text[*at] == ']' && !first) {
      ++*at;
      return token;
    }
    std::string from = next_character(text, at);
    const bool is_range = *at + 1 < text.size() && text[*at] == '-' && text[*at + 1] != ']';
    if (is_range) ++*at;
    std::string to = is_range ? next_character(text, at) : from;
    if (to < from) wrong("a range in [...] is reversed");
    token.ranges.emplace_back(std::move(from), std::move(to));
  }
  wrong("a [ has no ] after it; write \\[ for the character itself");
}

OutputName::Part OutputName::read_part(std::string_view text) {
  Part part;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    part.pattern |= c == '*' || c == '?' || c == '[';
    if (c == '*') {
      const bool again = !part.tokens.empty() && part.tokens.back().kind == Token::Kind::kRun;
      if (!again) part.tokens.push_back({Token::Kind::kRun, false, {}});
      ++at;
      continue;
    }
    ++part.least;
    if (c == '?') {
      part.tokens.push_back({Token::Kind::kAny, false, {}});
      ++at;
    } else if (c == '[') {
      part.tokens.push_back(read_set(text, &at));
    } else {
      const std::string character = next_character(text, &at);
      part.literal += character;
      part.tokens.push_back({Token::Kind::kCharacter, false, {{character, character}}});
    }
  }
  if (part.pattern)
    part.literal.clear();
  else
    part.tokens.clear();
  return part;
}

OutputName::OutputName(std::string_view text) {
  if (text.empty()) wrong("a name is missing");
  if (text.find('\0') != std::string_view::npos) wrong("a name may not contain a NUL byte");
  if (text.front() == '/') wrong("an absolute name leaves the job's folder");
  if (text.size() > kLongest) wrong("the name is longer than 4,096 bytes");
  folder_ = text.back() == '/';
  if (folder_) text.remove_suffix(1);
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find('/', from), text.size());
    parts_.push_back(read_part(text.substr(from, to - from)));
    const Part& part = parts_.back();
    if (part.literal == "..") wrong("'..' leaves the job's folder");
    if (!part.pattern && (part.literal.empty() || part.literal == "."))
      wrong("an empty part or '.' in the name");
    from = to + 1;
  }
  if (parts_.size() > kDeepest) wrong("the name has more than 64 parts");
  if (is_file() && is_stream(file()))
    wrong("this is the name of a stream of the job, which is always kept");
}

bool OutputName::is_file() const {
  return !folder_ && std::ranges::none_of(parts_, &Part::pattern);
}

std::string OutputName::file() const {
  std::string name;
  for (const Part& part : parts_) name += (name.empty() ? "" : "/") + part.literal;
  return name;
}

bool OutputName::fits(size_t depth, std::string_view name) const {
  const Part& part = parts_[depth];
  return part.pattern ? matches(part, name) : part.literal == name;
}

// The last `*` first matches as few characters as possible, then one more after each
// mismatch.
bool OutputName::matches(const Part& part, std::string_view name) {
  const std::vector<Token>& tokens = part.tokens;
  if (name.empty() || part.least > name.size()) return false;
  if (name[0] == '.' && tokens[0].kind != Token::Kind::kCharacter) return false;
  size_t token = 0, at = 0;
  std::optional<std::pair<size_t, size_t>> run;  // after the last `*`: token, position in name
  while (at < name.size()) {
    const std::string_view character = first_character(name.substr(at));
    if (token < tokens.size() && tokens[token].kind == Token::Kind::kRun) {
      run = {++token, at};
    } else if (token < tokens.size() && tokens[token].takes(character)) {
      ++token;
      at += character.size();
    } else if (run) {
      run->second += first_character(name.substr(run->second)).size();
      std::tie(token, at) = *run;
    } else {
      return false;
    }
  }
  const bool ends_in_run = token + 1 == tokens.size() && tokens[token].kind == Token::Kind::kRun;
  return token == tokens.size() || ends_in_run;
}

bool OutputName::covers(std::string_view file) const {
  if (is_stream(file)) return false;
  for (size_t depth = 0;; ++depth) {
    const size_t slash = file.find('/');
    const std::string_view part = file.substr(0, slash);
    const bool last = slash == std::string_view::npos;
    if (part.empty() || part == "." || part == "..") return false;
    if (depth < parts_.size() && !fits(depth, part)) return false;
    if (last) return folder_ ? depth >= parts_.size() : depth + 1 == parts_.size();
    if (!folder_ && depth + 1 == parts_.size()) return false;
    file.remove_prefix(slash + 1);
  }
}

bool covers(std::string_view output, std::string_view file) {
  // Most outputs are plain file names, which can be compared without parsing.
  const bool plain = !output.ends_with('/') && output.find_first_of(kSpecial) == output.npos;
  if (plain && output != file) return false;
  try {
    return OutputName(output).covers(file);
  } catch (const std::invalid_argument&) {
    return false;
  }
}

std::string quote_output(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (kSpecial.find(c) != std::string_view::npos) quoted += '\\';
    quoted += c;
  }
  return quoted;
}

}  // namespace sublet
