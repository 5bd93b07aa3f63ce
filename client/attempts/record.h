// The format of the client's own small files in an attempt's folder: text, one "key
// value" line per value, percent-encoded; the last line has a digest of everything
// above. Truncation and damage are always detected. Pure.
#ifndef SUBLET_CLIENT_ATTEMPTS_RECORD_H_
#define SUBLET_CLIENT_ATTEMPTS_RECORD_H_

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sublet::client {

class RecordWriter {
 public:
  explicit RecordWriter(const std::string& title) : text_(title + " 1\n") {}
  // A repeated key adds to its list.
  RecordWriter& add(const char* key, std::string_view value);
  RecordWriter& add(const char* key, int64_t value) { return add(key, std::to_string(value)); }
  RecordWriter& add(const char* key, uint64_t value) { return add(key, std::to_string(value)); }
  std::string finish() const;

 private:
  std::string text_;
};

// Its text says in one sentence what is wrong with a record.
class RecordError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Every function throws RecordError.
class RecordReader {
 public:
  RecordReader(const std::string& title, std::string_view text);
  std::string text(const char* key) const;  // exactly one
  int64_t number(const char* key) const;
  uint64_t count(const char* key) const;
  const std::vector<std::string>& list(const char* key) const;  // none: empty

 private:
  std::map<std::string, std::vector<std::string>> values_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_RECORD_H_
