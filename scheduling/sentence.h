// A sentence for people: text, or a function that makes the text from facts. Each placement has
// one; its text is made when its row is written or when a query reads it.
//
// Different threads may use different copies at the same time; a single copy may be used by one
// thread at a time.
#ifndef SUBLET_SCHEDULING_SENTENCE_H_
#define SUBLET_SCHEDULING_SENTENCE_H_

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace sublet::scheduling {

class Sentence {
 public:
  Sentence() = default;
  Sentence(std::string text) {
    if (!text.empty()) *this = Sentence([text = std::move(text)] { return text; });
  }
  Sentence(const char* text) : Sentence(std::string(text)) {}
  // `words()` returns the text, which must not be empty. It may be called at any later time, on any
  // thread, so it must hold copies of the facts, not pointers or references.
  template <typename Words>
  requires std::is_invocable_r_v<std::string, const Words&> Sentence(Words words)
      : parts_(std::make_shared<const Said<Words>>(std::move(words))) {}

  std::string text() const { return parts_ ? parts_->text() : ""; }
  bool empty() const { return !parts_; }

  friend bool operator==(const Sentence& a, const Sentence& b) {
    return a.parts_ == b.parts_ || a.text() == b.text();
  }

 private:
  struct Parts {
    virtual ~Parts() = default;
    virtual std::string text() const = 0;
  };
  template <typename Words>
  struct Said : Parts {
    explicit Said(Words w) : words(std::move(w)) {}
    std::string text() const override { return words(); }
    const Words words;
  };
  std::shared_ptr<const Parts> parts_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_SENTENCE_H_
