#include "client/machine/speed.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace sublet::client {
namespace {

constexpr int64_t kTogetherNs = 30'000'000;
constexpr double kUnit = 1e9;  // operations a second

int64_t thread_cpu_ns() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// The first number in the file; 0: there is none.
double number_in(const std::string& path) {
  std::ifstream in(path);
  double number = 0;
  in >> number;
  return number > 0 ? number : 0;
}

}  // namespace

int64_t perform_piece() {
  constexpr size_t kValues = 256;
  static volatile double seed = 0.5;  // unknown to the compiler
  std::array<double, kValues> factors, terms;
  for (size_t i = 0; i < kValues; ++i) {
    factors[i] = seed + static_cast<double>(i) / kValues;
    terms[i] = 1.5 - factors[i];
  }
  const int64_t begun = thread_cpu_ns();
  double sum = 0;
  for (size_t round = 0; round < kPieceOperations / kValues; ++round)
    for (size_t i = 0; i < kValues; ++i) sum += factors[i] * terms[i];
  const int64_t took = thread_cpu_ns() - begun;
  if (sum < 0) seed = sum;  // never, but so the sum is needed
  return took;
}

double speed_by(const std::function<int64_t()>& piece, const std::function<bool()>& goes_on) {
  int64_t fastest = std::numeric_limits<int64_t>::max();
  for (int64_t spent = 0; spent < kTogetherNs;) {
    if (!goes_on()) return 0;
    // A clock that stands still must not keep it here.
    const int64_t took = std::max<int64_t>(piece(), 1000);
    fastest = std::min(fastest, took);
    spent += took;
  }
  return static_cast<double>(kPieceOperations) / static_cast<double>(fastest) * 1e9 / kUnit;
}

double load_average(const std::string& root) { return number_in(root + "/proc/loadavg"); }

SpeedWatch::SpeedWatch(const std::string& root, Hooks hooks) : hooks_(std::move(hooks)) {
  if (root.empty()) return;
  speed_ = number_in(root + "/speed");
  if (speed_ > 0) due_ns_ = std::numeric_limits<int64_t>::max();
}

SpeedWatch::~SpeedWatch() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

double SpeedWatch::look(int64_t now_ns, bool quiet) {
  if (fresh_.exchange(false)) {
    due_ns_ = now_ns + kEveryNs;
    log(Severity::debug) << "this machine's speed is " << plain_number(speed_);
  }
  if (now_ns >= due_ns_ && quiet && !busy_ && hooks_.may_measure()) {
    if (thread_.joinable()) thread_.join();
    busy_ = true;
    try {
      thread_ = std::thread([this] { measure(); });
    } catch (const std::system_error&) {  // too many threads: later
      busy_ = false;
      due_ns_ = now_ns + kEveryNs;
    }
  }
  return speed_;
}

// It takes no lock, which others would wait for as long as it gets no time.
void SpeedWatch::measure() {
  const sched_param none = {};
  sched_setscheduler(0, SCHED_IDLE, &none);  // of this thread
  const double speed =
      speed_by(hooks_.piece, [this] { return !stopping_ && hooks_.may_measure(); });
  if (speed > 0) {
    speed_ = speed;
    fresh_ = true;
  }
  busy_ = false;
  if (speed > 0) hooks_.measured();
}

}  // namespace sublet::client
