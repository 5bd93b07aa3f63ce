// Text that does not change and that many records have in common: its copies share it, and one that
// is empty takes 16 bytes.
//
// Different threads may use different copies at the same time; a single copy may be used by one
// thread at a time.
#ifndef SUBLET_SCHEDULING_SHARED_STRING_H_
#define SUBLET_SCHEDULING_SHARED_STRING_H_

#include <compare>
#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace sublet::scheduling {

class SharedString {
 public:
  SharedString() = default;
  SharedString(std::string text) {
    if (!text.empty()) text_ = std::make_shared<const std::string>(std::move(text));
  }
  SharedString(std::string_view text) : SharedString(std::string(text)) {}
  SharedString(const char* text) : SharedString(std::string(text)) {}

  const std::string& str() const {
    static const std::string kEmpty;
    return text_ ? *text_ : kEmpty;
  }
  operator std::string_view() const { return str(); }
  bool empty() const { return !text_; }
  // Shares the text of `same` from now on; the two must be equal.
  void share(const SharedString& same) { text_ = same.text_; }

  friend bool operator==(const SharedString& a, const SharedString& b) {
    return a.text_ == b.text_ || a.str() == b.str();
  }
  template <std::convertible_to<std::string_view> Text>
  friend bool operator==(const SharedString& a, const Text& b) {
    return a.str() == std::string_view(b);
  }
  friend std::strong_ordering operator<=>(const SharedString& a, const SharedString& b) {
    return a.text_ == b.text_ ? std::strong_ordering::equal : a.str() <=> b.str();
  }
  friend std::string operator+(const SharedString& a, std::string_view b) {
    return a.str() + std::string(b);
  }
  friend std::string operator+(std::string_view a, const SharedString& b) {
    return std::string(a) + b.str();
  }

 private:
  std::shared_ptr<const std::string> text_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_SHARED_STRING_H_
