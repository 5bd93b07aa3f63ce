#include "cli/rehearse/parting.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "cli/checkpoint/difference.h"

namespace sublet::cli {

namespace {

using Steady = std::chrono::steady_clock;

// The two sides of the comparison, and which point of the one is which of the other.
class Sides {
 public:
  Sides(Runner& runner, uint64_t points, uint64_t at) : runner_(runner), at_(at) {
    const std::optional<Carried> state = runner_.run_to_point({}, at_).state;
    if (!state) return;
    from_ = *state;
    const uint64_t left = runner_.run_to_point(from_, 0).points;
    align();
    last_ = std::min(left, points + 1 - first_);
  }

  // The number of points that both pass after the interruption; 0: they cannot be compared.
  uint64_t last() const { return last_; }
  // The number in the undisturbed run of the resumed run's n-th point, from 1.
  uint64_t number(uint64_t n) const { return first_ - 1 + n; }
  // What differs there; "": nothing. nullopt: one of them did not get there.
  std::optional<std::string> difference(uint64_t n) {
    const State& whole = reached({}, number(n), undisturbed_);
    const State& resumed = reached(from_, n, resumed_);
    if (!whole || !resumed) return std::nullopt;
    const CheckpointFile a(whole->checkpoint()), b(resumed->checkpoint());
    return difference_text(compare(a, b), a, b);
  }

 private:
  // A resumed run passes the point at which it was saved again, or begins with the next one: that
  // of the two with which it has more in common.
  void align() {
    first_ = at_ + 1;
    const auto next = difference(1);
    first_ = at_;
    const auto again = difference(1);
    const auto lines = [](const std::optional<std::string>& text) {
      return text ? std::count(text->begin(), text->end(), '\n') : INT64_MAX;
    };
    first_ = lines(again) < lines(next) ? at_ : at_ + 1;
  }

  using State = std::optional<Carried>;
  using States = std::map<uint64_t, State>;
  const State& reached(const Carried& from, uint64_t point, States& known) {
    const auto [at, is_new] = known.try_emplace(point);
    if (is_new) at->second = runner_.run_to_point(from, point).state;
    return at->second;
  }

  Runner& runner_;
  const uint64_t at_;
  States undisturbed_, resumed_;  // by the number of the point
  Carried from_;
  uint64_t first_ = 0;  // the resumed run's first point in the numbers of the undisturbed one
  uint64_t last_ = 0;
};

}  // namespace

uint64_t last_same(uint64_t low, uint64_t high, const std::function<bool(uint64_t)>& same,
                   const std::function<bool()>& enough, uint64_t* next) {
  while (high - low > 1 && !enough()) {
    const uint64_t middle = low + (high - low) / 2;
    (same(middle) ? low : high) = middle;
  }
  *next = high;
  return low;
}

Parting find_parting(Runner& runner, uint64_t points, uint64_t at, int64_t most_us) {
  const auto end = Steady::now() + std::chrono::microseconds(most_us);
  Sides sides(runner, points, at);
  Parting parting;
  parting.interrupted_at = at;
  if (sides.last() == 0) return parting;
  std::string what;  // of the first point known at which they differ
  const auto same = [&](uint64_t n) {
    const std::optional<std::string> difference = sides.difference(n);
    if (!difference || difference->empty()) return true;
    what = *difference;
    return false;
  };
  if (!same(1)) {
    parting.other = sides.number(1);
  } else if (same(sides.last())) {
    parting.same = sides.number(sides.last());
  } else {
    uint64_t next = 0;
    parting.same = sides.number(last_same(
        1, sides.last(), same, [&] { return Steady::now() > end; }, &next));
    parting.other = sides.number(next);
  }
  parting.what = what;
  return parting;
}

std::string parting_text(const Parting& parting, uint64_t points) {
  const std::string at = "interrupted at point " + std::to_string(parting.interrupted_at) + " of " +
                         std::to_string(points) + ", ";
  if (parting.other == 0 && parting.same == 0)
    return at + "it cannot be compared at its later points";
  if (parting.other == 0)
    return at + "what it saves is the same up to point " + std::to_string(parting.same) +
           ": what differs is not among the saved variables";
  std::string text =
      parting.same == 0
          ? at + "it differs at point " + std::to_string(parting.other) + ", its first"
          : at + "the runs part between the points " + std::to_string(parting.same) + " and " +
                std::to_string(parting.other);
  text += ":\n" + parting.what;
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace sublet::cli
