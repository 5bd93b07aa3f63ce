// Named amounts: "gpu=2, matlab=1". What the owner of a machine offers besides cores, memory and
// disk, what the pool has licences of, and what a job asks of both: one form, said once.
#ifndef SUBLET_RULES_NAMED_AMOUNTS_H_
#define SUBLET_RULES_NAMED_AMOUNTS_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sublet::rules {

constexpr size_t kMostNames = 32;
constexpr size_t kLongestName = 32;  // octets
constexpr uint64_t kMostOfOne = 1'000'000;

// what(): what is wrong with a text of named amounts, and what is allowed.
class AmountError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// By name, ascending. An amount of 0 is kept: it says that there is none, and of what.
class NamedAmounts {
 public:
  using Pair = std::pair<std::string, uint64_t>;

  NamedAmounts() = default;
  // Not checked.
  explicit NamedAmounts(std::vector<Pair> pairs);
  // "NAME=AMOUNT" each, separated by commas, white space or both. Throws AmountError.
  static NamedAmounts parse(std::string_view text);
  // The same of a stored text; one that is damaged is `damaged`, and empty.
  static NamedAmounts stored(std::string_view text, bool* damaged = nullptr);

  // Why these are no valid amounts: a name, a name twice, an amount, or too many; "": they are.
  std::string problem() const;
  // "gpu=2 matlab=1": parse() gives the same.
  std::string text() const;

  bool empty() const { return pairs_.empty(); }
  size_t size() const { return pairs_.size(); }
  auto begin() const { return pairs_.begin(); }
  auto end() const { return pairs_.end(); }
  bool has(std::string_view name) const;
  uint64_t of(std::string_view name) const;  // 0: there is none
  // Whether `room` has as much of each.
  bool within(const NamedAmounts& room) const;

  void set(const std::string& name, uint64_t amount);
  // What is left, or nothing; names of which 0 are left are forgotten.
  void add(const NamedAmounts& more);
  void take(const NamedAmounts& less);
  void forget_zeros();

  bool operator==(const NamedAmounts&) const = default;

 private:
  std::vector<Pair> pairs_;
};

// The larger of each name; of one that only one has, that.
NamedAmounts most(const NamedAmounts& a, const NamedAmounts& b);

}  // namespace sublet::rules

#endif  // SUBLET_RULES_NAMED_AMOUNTS_H_
