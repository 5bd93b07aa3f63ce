// Text that does not change and that many records have in common: its copies share it, and one that
// is empty takes 8 bytes.
//
// Copies of one text may be used by several threads; each of them by one at a time.
#ifndef SUBLET_SCHEDULING_SHARED_STRING_H_
#define SUBLET_SCHEDULING_SHARED_STRING_H_

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#include <compare>
#include <concepts>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace sublet::scheduling {

class SharedString {
 public:
  SharedString() = default;
  SharedString(std::string text) {
    if (!text.empty()) held_ = new Held(std::move(text));
  }
  SharedString(std::string_view text) : SharedString(std::string(text)) {}
  SharedString(const char* text) : SharedString(std::string(text)) {}

  const std::string& str() const {
    static const std::string kEmpty;
    return held_ ? held_->text : kEmpty;
  }
  operator std::string_view() const { return str(); }
  bool empty() const { return !held_; }
  // Shares that text from now on, which must be the same.
  void share(const SharedString& same) { held_ = same.held_; }

  friend bool operator==(const SharedString& a, const SharedString& b) {
    return a.held_ == b.held_ || a.str() == b.str();
  }
  template <std::convertible_to<std::string_view> Text>
  friend bool operator==(const SharedString& a, const Text& b) {
    return a.str() == std::string_view(b);
  }
  friend std::strong_ordering operator<=>(const SharedString& a, const SharedString& b) {
    return a.held_ == b.held_ ? std::strong_ordering::equal : a.str() <=> b.str();
  }
  friend std::string operator+(const SharedString& a, std::string_view b) {
    return a.str() + std::string(b);
  }
  friend std::string operator+(std::string_view a, const SharedString& b) {
    return std::string(a) + b.str();
  }
  friend std::ostream& operator<<(std::ostream& out, const SharedString& text) {
    return out << text.str();
  }

 private:
  struct Held : boost::intrusive_ref_counter<Held> {
    explicit Held(std::string t) : text(std::move(t)) {}
    const std::string text;
  };
  boost::intrusive_ptr<const Held> held_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_SHARED_STRING_H_
