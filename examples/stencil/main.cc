// How heat spreads over a square plate with a hot ring, computed by several threads.
// usage: stencil POINTS STEPS THREADS OUTPUT [CHECKPOINT]
//
// Each thread computes some rows of the plate's next state from the present one; when all have
// done that, the two change places. Every point is computed alone, so that neither the number of
// threads nor an interruption changes a bit of the result, and a run may resume with another
// number of threads.
#include <barrier>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "checkpoint-api/sublet_checkpoint.hpp"

namespace {

constexpr char kUsage[] =
    "usage: stencil POINTS STEPS THREADS OUTPUT [CHECKPOINT]\n"
    "POINTS: on an edge of the plate, 3 to 10000; STEPS: at least 1; THREADS: 1 to 256\n";
constexpr double kPart = 0.2;  // of the difference to the neighbours, in a step

struct Settings {
  std::uint64_t points, steps;
  unsigned threads;
  std::string output;
  const char* checkpoint = nullptr;
};

// The edges stay at 0 degrees; a ring around the middle begins at 100.
std::vector<double> first_plate(std::uint64_t points) {
  std::vector<double> plate(points * points);
  for (std::uint64_t y = 1; y + 1 < points; ++y) {
    for (std::uint64_t x = 1; x + 1 < points; ++x) {
      // Doubled distances from the middle, in whole numbers.
      const auto dx = static_cast<std::int64_t>(2 * x) - static_cast<std::int64_t>(points - 1);
      const auto dy = static_cast<std::int64_t>(2 * y) - static_cast<std::int64_t>(points - 1);
      const auto square = static_cast<std::uint64_t>(dx * dx + dy * dy);
      const bool ring = 16 * square >= points * points && 4 * square <= points * points;
      if (ring) plate[y * points + x] = 100;
    }
  }
  return plate;
}

void compute_rows(const double* from, double* to, std::uint64_t points, std::uint64_t first,
                  std::uint64_t last) {
  for (std::uint64_t y = first; y < last; ++y) {
    const double* row = from + y * points;
    for (std::uint64_t x = 1; x + 1 < points; ++x) {
      const double around = (row[x - 1] + row[x + 1]) + (row[x - points] + row[x + points]);
      to[y * points + x] = row[x] + kPart * (around - 4 * row[x]);
    }
  }
}

class Plate {
 public:
  explicit Plate(const Settings& settings)
      : settings_(settings),
        points_(settings.points),
        present_(first_plate(settings.points)),
        next_(present_),
        checkpoint_("stencil", 1) {
    checkpoint_.variable("points", points_);
    checkpoint_.variable("step", step_);
    checkpoint_.variable("plate", present_);
  }

  // False: it was asked to leave.
  bool run() {
    checkpoint_.start({settings_.checkpoint, 0, /*leave_by_returning=*/1});
    if (points_ != settings_.points) {
      throw std::invalid_argument("the checkpoint was made with another number of points");
    }
    if (!compute()) return false;
    write();
    checkpoint_.finish();
    return true;
  }

 private:
  bool compute() {
    checkpoint_.threads(settings_.threads);
    std::barrier step_ended(settings_.threads, [this]() noexcept { end_step(); });
    std::vector<std::jthread> others;
    try {
      for (unsigned thread = 1; thread < settings_.threads; ++thread) {
        others.emplace_back([&, thread] { work(thread, step_ended); });
      }
    } catch (const std::system_error&) {
      std::fputs("stencil: the machine permits no more threads\n", stderr);
      std::_Exit(1);  // those that it has wait for the rest
    }
    return work(0, step_ended);
  }

  template <class Barrier>
  bool work(unsigned thread, Barrier& step_ended) {
    const std::uint64_t rows = points_ - 2;
    const std::uint64_t first = 1 + rows * thread / settings_.threads;
    const std::uint64_t last = 1 + rows * (thread + 1) / settings_.threads;
    bool goes_on = true;
    while (goes_on && step_ < settings_.steps) {
      compute_rows(present_.data(), next_.data(), points_, first, last);
      step_ended.arrive_and_wait();
      // All threads are at the end of the same step: a safe point.
      if (stops_) goes_on = checkpoint_.thread_point();
    }
    checkpoint_.thread_done();
    return goes_on;
  }

  // By one thread, while the others wait in the barrier. It decides for all of them whether this
  // step ends with a point. If each looked for itself, some would wait there for others that had
  // looked before the request came, and wait for them in the next step's barrier.
  void end_step() {
    present_.swap(next_);
    ++step_;
    checkpoint_.progress(step_, settings_.steps);
    stops_ = checkpoint_.wanted();
  }

  // One line for each row, with as many digits as identify a number.
  void write() const {
    FILE* out = std::fopen(settings_.output.c_str(), "w");
    bool written = out != nullptr;
    for (std::uint64_t i = 0; i < points_ * points_ && written; ++i) {
      const char end = (i + 1) % points_ == 0 ? '\n' : ' ';
      written = std::fprintf(out, "%.17g%c", present_[i], end) > 0;
    }
    if (out != nullptr && std::fclose(out) != 0) written = false;
    if (!written) throw std::system_error(errno, std::generic_category(), settings_.output);
  }

  const Settings settings_;
  std::uint64_t points_, step_ = 0;
  std::vector<double> present_, next_;  // the edges of both stay as they are
  bool stops_ = false;
  sublet::Checkpoint checkpoint_;
};

// The whole of `text`, from `least` to `most`.
template <class T>
bool parse(const char* text, T least, T most, T& number) {
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  return error == std::errc() && stop == end && number >= least && number <= most;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (argc < 5 || argc > 6 || !parse<std::uint64_t>(argv[1], 3, 10000, settings.points) ||
      !parse<std::uint64_t>(argv[2], 1, UINT64_MAX, settings.steps) ||
      !parse(argv[3], 1u, 256u, settings.threads)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  settings.output = argv[4];
  if (argc == 6) settings.checkpoint = argv[5];
  try {
    return Plate(settings).run() ? 0 : SUBLET_EXIT_LEFT;
  } catch (const sublet::CheckpointRefused&) {
    return 1;  // the reason is on stderr
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stencil: %s\n", error.what());
    return 1;
  }
}
