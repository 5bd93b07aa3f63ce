// The volume of the unit ball in many dimensions, by the Monte Carlo method.
// usage: monte-carlo DIMENSIONS POINTS SEED [CHECKPOINT]
//
// Draws points of the cube around the ball; the part of them that lies in the ball is the part of
// the cube that the ball fills. The state is the random generator and two counts: a run that was
// interrupted goes on with the very next random number.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>

#include "checkpoint-api/sublet_checkpoint.hpp"

namespace {

constexpr char kUsage[] =
    "usage: monte-carlo DIMENSIONS POINTS SEED [CHECKPOINT]\n"
    "DIMENSIONS: 1 to 100; POINTS: how many to draw, at least 2\n";
constexpr std::uint64_t kPointsBetweenReports = 1024;

// xoshiro256** of D. Blackman and S. Vigna, seeded by splitmix64: the same numbers everywhere.
using Generator = std::array<std::uint64_t, 4>;

Generator seeded(std::uint64_t seed) {
  Generator state;
  for (std::uint64_t& word : state) {
    seed += 0x9e3779b97f4a7c15;
    word = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    word ^= word >> 31;
  }
  return state;
}

std::uint64_t rotated(std::uint64_t word, int bits) { return word << bits | word >> (64 - bits); }

std::uint64_t draw(Generator& state) {
  const std::uint64_t result = rotated(state[1] * 5, 7) * 9;
  const std::uint64_t mixed = state[1] << 17;
  state[2] ^= state[0];
  state[3] ^= state[1];
  state[1] ^= state[2];
  state[0] ^= state[3];
  state[2] ^= mixed;
  state[3] = rotated(state[3], 45);
  return result;
}

bool draws_point_in_ball(Generator& random, std::uint64_t dimensions) {
  double square = 0;
  for (std::uint64_t i = 0; i < dimensions; ++i) {
    const double x = static_cast<double>(draw(random) >> 11) * 0x1p-53;
    square += x * x;  // the ball is the same in every corner of the cube
  }
  return square < 1;
}

void report(std::uint64_t dimensions, std::uint64_t points, std::uint64_t inside) {
  const double part = static_cast<double>(inside) / static_cast<double>(points);
  const double error = std::sqrt(part * (1 - part) / static_cast<double>(points - 1));
  const double cube = std::ldexp(1.0, static_cast<int>(dimensions));
  std::printf("dimensions %llu\ninside %llu of %llu\nvolume %.6f\nstandard error %.6f\n",
              static_cast<unsigned long long>(dimensions), static_cast<unsigned long long>(inside),
              static_cast<unsigned long long>(points), cube * part, cube * error);
}

// The whole of `text`, from `least` to `most`.
bool parse(const char* text, std::uint64_t least, std::uint64_t most, std::uint64_t& number) {
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  return error == std::errc() && stop == end && number >= least && number <= most;
}

int estimate(std::uint64_t dimensions, std::uint64_t points, std::uint64_t seed, const char* path) {
  Generator random = seeded(seed);
  std::array<std::uint64_t, 3> settings = {dimensions, points, seed};
  const auto asked = settings;
  std::uint64_t drawn = 0, inside = 0;
  sublet::Checkpoint checkpoint("monte-carlo", 1);
  checkpoint.variable("settings", settings);
  checkpoint.variable("random", random);
  checkpoint.variable("drawn", drawn);
  checkpoint.variable("inside", inside);
  checkpoint.start({path, 0, 0});
  if (settings != asked) {
    std::fputs("monte-carlo: the checkpoint was made with other numbers\n", stderr);
    return 1;
  }
  while (drawn < points) {
    const std::uint64_t pause = std::min(points, drawn + kPointsBetweenReports);
    for (; drawn < pause; ++drawn) inside += draws_point_in_ball(random, dimensions);
    checkpoint.progress(drawn, points);
    checkpoint.point();  // generator and counts belong together: a safe point
  }
  report(dimensions, points, inside);
  checkpoint.finish();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t dimensions, points, seed;
  if (argc < 4 || argc > 5 || !parse(argv[1], 1, 100, dimensions) ||
      !parse(argv[2], 2, 1ull << 53, points) || !parse(argv[3], 0, UINT64_MAX, seed)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  try {
    return estimate(dimensions, points, seed, argc == 5 ? argv[4] : nullptr);
  } catch (const sublet::CheckpointRefused&) {
    return 1;  // the reason is on stderr
  } catch (const std::exception& error) {
    std::fprintf(stderr, "monte-carlo: %s\n", error.what());
    return 1;
  }
}
