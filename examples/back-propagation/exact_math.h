// Arithmetic with bit-identical results on every machine with IEEE 754 doubles: only
// + - * / and conversions, whose rounding the standard defines. The C library's exp
// differs between versions. Compile with -ffp-contract=off.
#ifndef SUBLET_EXAMPLES_BACK_PROPAGATION_EXACT_MATH_H_
#define SUBLET_EXAMPLES_BACK_PROPAGATION_EXACT_MATH_H_

#include <bit>
#include <cfloat>
#include <cstdint>
#include <limits>

static_assert(FLT_EVAL_METHOD == 0, "doubles must not be computed with excess precision");
static_assert(std::numeric_limits<double>::is_iec559);

namespace sublet::letters {

// e to the x for |x| <= 700, within a few units in the last place.
inline double exact_exp(double x) {
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2High =
      0.693147180369123816490;  // its last 32 bits are zero, so k * it is exact
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  const double scaled = x * kLog2E;
  const auto k = static_cast<std::int64_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double r = (x - static_cast<double>(k) * kLn2High) - static_cast<double>(k) * kLn2Low;
  // Taylor series for |r| <= ln 2 / 2; the first omitted term is below 2^-57.
  double sum = 1.0 / 6227020800.0;
  constexpr double kReciprocalFactorials[] = {1.0 / 479001600.0,
                                              1.0 / 39916800.0,
                                              1.0 / 3628800.0,
                                              1.0 / 362880.0,
                                              1.0 / 40320.0,
                                              1.0 / 5040.0,
                                              1.0 / 720.0,
                                              1.0 / 120.0,
                                              1.0 / 24.0,
                                              1.0 / 6.0,
                                              1.0 / 2.0,
                                              1.0,
                                              1.0};
  for (const double coefficient : kReciprocalFactorials) sum = sum * r + coefficient;
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

inline double sigmoid(double x) {
  if (x > 40) x = 40;
  if (x < -40) x = -40;
  return 1.0 / (1.0 + exact_exp(-x));
}

// xoshiro256** (D. Blackman and S. Vigna, public domain), seeded by splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15u;
      std::uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }

  std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // 0 to bound - 1; bound from 1 to 2^32.
  std::uint64_t below(std::uint64_t bound) { return ((next() >> 32) * bound) >> 32; }

  // At least -1, below 1; a multiple of 2^-52.
  double symmetric() { return static_cast<double>(next() >> 11) * 0x1p-52 - 1.0; }

  std::uint64_t (&state())[4] { return state_; }

 private:
  std::uint64_t state_[4];
};

}  // namespace sublet::letters

#endif  // SUBLET_EXAMPLES_BACK_PROPAGATION_EXACT_MATH_H_
