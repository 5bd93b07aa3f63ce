// Writes JSON incrementally into a string. The result is always valid UTF-8 (invalid
// bytes become U+FFFD); calls in an invalid order throw std::logic_error. Not
// thread-safe.
#ifndef SUBLET_BASE_JSON_H_
#define SUBLET_BASE_JSON_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sublet {

class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  // The shortest form that reads back as the same number; null if not finite.
  JsonWriter& value(double number);
  template <std::integral T>
  JsonWriter& value(T number) {
    if constexpr (std::same_as<T, bool>) {
      return literal(number ? "true" : "false");
    } else if constexpr (std::signed_integral<T>) {
      return literal(std::to_string(static_cast<int64_t>(number)));
    } else {
      return literal(std::to_string(static_cast<uint64_t>(number)));
    }
  }
  JsonWriter& null() { return literal("null"); }
  template <typename T>
  JsonWriter& field(std::string_view name, const T& v) {
    return key(name).value(v);
  }

  // The finished text; throws std::logic_error if an object or array is still open.
  const std::string& str() const;

 private:
  enum class Level : uint8_t { object_key, object_value, array };
  JsonWriter& literal(std::string_view text);
  void open(char bracket, Level level);
  void close(char bracket, Level level);
  void before_value();
  void quoted(std::string_view text);

  std::string out_;
  std::vector<Level> levels_;
  bool first_ = true;  // the innermost level is empty
};

}  // namespace sublet

#endif  // SUBLET_BASE_JSON_H_
