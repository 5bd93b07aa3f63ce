// A sentence for people: text, or what makes it of the facts when somebody reads it. One is kept
// for each attempt, and few are read.
//
// Copies of one sentence may be used by several threads; each of them by one at a time.
#ifndef SUBLET_SCHEDULING_SENTENCE_H_
#define SUBLET_SCHEDULING_SENTENCE_H_

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#include <concepts>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

namespace sublet::scheduling {

class Sentence {
 public:
  Sentence() = default;
  Sentence(std::string text) {
    if (!text.empty()) parts_ = new Said([text = std::move(text)] { return text; });
  }
  Sentence(const char* text) : Sentence(std::string(text)) {}
  // `words()` is the text, which is not empty. It is called when somebody reads it, on any thread
  // and at any later time: it holds copies of the facts, and no pointers or references.
  template <typename Words>
  requires std::is_invocable_r_v<std::string, const Words&> Sentence(Words words)
      : parts_(new Said<Words>(std::move(words))) {}

  std::string text() const { return parts_ ? parts_->text() : ""; }
  bool empty() const { return !parts_; }

  friend bool operator==(const Sentence& a, const Sentence& b) {
    return a.parts_ == b.parts_ || a.text() == b.text();
  }
  friend std::ostream& operator<<(std::ostream& out, const Sentence& s) { return out << s.text(); }

 private:
  struct Parts : boost::intrusive_ref_counter<Parts> {
    virtual ~Parts() = default;
    virtual std::string text() const = 0;
  };
  template <typename Words>
  struct Said : Parts {
    explicit Said(Words w) : words(std::move(w)) {}
    std::string text() const override { return words(); }
    const Words words;
  };
  boost::intrusive_ptr<const Parts> parts_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_SENTENCE_H_
