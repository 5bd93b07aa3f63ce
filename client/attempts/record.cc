#include "client/attempts/record.h"

#include <charconv>

#include "base/hash.h"
#include "base/text.h"

namespace sublet::client {
namespace {

constexpr std::string_view kSum = "sum ";

template <typename T>
T parse_integer(const char* key, const std::string& text) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    throw RecordError(std::string("'") + key + "' is not a number in range: '" + text + "'");
  return value;
}

}  // namespace

RecordWriter& RecordWriter::add(const char* key, std::string_view value) {
  text_ += key;
  text_ += ' ';
  text_ += percent_encode(value);
  text_ += '\n';
  return *this;
}

std::string RecordWriter::finish() const {
  return text_ + std::string(kSum) + hex(digest_of(text_)) + "\n";
}

RecordReader::RecordReader(const std::string& title, std::string_view text) {
  size_t sum = text.rfind(kSum);
  if (sum == std::string_view::npos || sum == 0 || text[sum - 1] != '\n')
    throw RecordError("it is not complete");
  std::string_view body = text.substr(0, sum);
  if (text.substr(sum) != std::string(kSum) + hex(digest_of(body)) + "\n")
    throw RecordError("its checksum is wrong");
  std::string first = title + " 1\n";
  if (!body.starts_with(first)) throw RecordError("it is not a '" + title + " 1' file");
  body.remove_prefix(first.size());
  while (!body.empty()) {
    std::string_view line = body.substr(0, body.find('\n'));
    body.remove_prefix(line.size() + 1);
    size_t space = line.find(' ');
    if (space == std::string_view::npos) throw RecordError("a line has no value");
    auto value = percent_decode(line.substr(space + 1));
    if (!value) throw RecordError("a value is not percent-encoded");
    values_[std::string(line.substr(0, space))].push_back(std::move(*value));
  }
}

std::string RecordReader::text(const char* key) const {
  const auto& all = list(key);
  if (all.size() != 1) throw RecordError(std::string("it does not have exactly one '") + key + "'");
  return all[0];
}

int64_t RecordReader::number(const char* key) const {
  return parse_integer<int64_t>(key, text(key));
}

uint64_t RecordReader::count(const char* key) const {
  return parse_integer<uint64_t>(key, text(key));
}

const std::vector<std::string>& RecordReader::list(const char* key) const {
  static const std::vector<std::string> none;
  auto found = values_.find(key);
  return found == values_.end() ? none : found->second;
}

}  // namespace sublet::client
