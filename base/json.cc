#include "base/json.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "base/text.h"

namespace sublet {

JsonWriter& JsonWriter::begin_object() {
  open('{', Level::object_key);
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  close('}', Level::object_key);
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  open('[', Level::array);
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  close(']', Level::array);
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  if (levels_.empty() || levels_.back() != Level::object_key) {
    throw std::logic_error("JSON: a key outside of an object");
  }
  if (!first_) out_ += ',';
  quoted(name);
  out_ += ':';
  levels_.back() = Level::object_value;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  quoted(text);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  char digits[64];
  auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  return literal({digits, static_cast<size_t>(end - digits)});
}

JsonWriter& JsonWriter::literal(std::string_view text) {
  before_value();
  out_ += text;
  return *this;
}

const std::string& JsonWriter::str() const {
  if (!levels_.empty() || out_.empty()) throw std::logic_error("JSON: not finished");
  return out_;
}

void JsonWriter::open(char bracket, Level level) {
  before_value();
  out_ += bracket;
  levels_.push_back(level);
  first_ = true;
}

void JsonWriter::close(char bracket, Level level) {
  if (levels_.empty() || levels_.back() != level) {
    throw std::logic_error("JSON: an end without its beginning");
  }
  out_ += bracket;
  levels_.pop_back();
  first_ = false;
}

void JsonWriter::before_value() {
  if (levels_.empty()) {
    if (!out_.empty()) throw std::logic_error("JSON: a second value at the top");
  } else if (levels_.back() == Level::object_key) {
    throw std::logic_error("JSON: a value without a key");
  } else if (levels_.back() == Level::array) {
    if (!first_) out_ += ',';
  } else {
    levels_.back() = Level::object_key;
  }
  first_ = false;
}

void JsonWriter::quoted(std::string_view text) {
  const std::string valid = to_utf8(text);
  out_ += '"';
  for (char c : valid) {
    if (c == '"' || c == '\\') {
      out_ += {'\\', c};
    } else if (c == '\n') {
      out_ += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      char code[8];
      snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out_ += code;
    } else {
      out_ += c;
    }
  }
  out_ += '"';
}

}  // namespace sublet
