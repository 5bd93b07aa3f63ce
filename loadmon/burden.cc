#include "loadmon/burden.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/clock.h"
#include "base/os_error.h"

namespace sublet::loadmon {
namespace {
constexpr int kPeriodMs = 1000;
constexpr int64_t kBurstNs = 10'000'000;
// Fewer rounds say little.
constexpr size_t kFewest = 2;

int64_t cpu_time_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// The text of a small file of the kernel's; empty if it cannot be read.
std::string text_of(const std::string& path) {
  char text[256];
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t size = fd.valid() ? read(fd.get(), text, sizeof text - 1) : -1;
  return std::string(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
}

// For how long this thread has waited for a CPU so far, ns; -1: the kernel does not say.
long long waited_ns() {
  long long ran = 0, waited = -1;
  if (sscanf(text_of("/proc/thread-self/schedstat").c_str(), "%lld %lld", &ran, &waited) != 2)
    return -1;
  return waited;
}

// For how long some program has waited for memory so far, µs; -1: not known.
long long memory_waited_us(const std::string& pressure_file) {
  const std::string text = text_of(pressure_file);
  const size_t at = text.find("total=");
  long long total = -1;
  if (!text.starts_with("some ") || at == std::string::npos ||
      sscanf(text.c_str() + at, "total=%lld", &total) != 1)
    return -1;
  return total;
}
}  // namespace

Burden::Burden(double bound, const std::string& root)
    : bound_(bound),
      pressure_file_(root + "/proc/pressure/memory"),
      wake_up_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_up_.valid()) throw OsError(errno, "create", "an event");
}

Burden::~Burden() {
  stop_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
}

void Burden::wake() const {
  // Fails only if it has not been read for long.
  eventfd_write(wake_up_.get(), 1);
}

void Burden::watch(bool jobs_stay, bool jobs_linger) {
  const bool more = jobs_linger && !jobs_linger_;
  jobs_linger_ = jobs_linger;
  if (jobs_stay == is_wanted(turn_) && !(jobs_stay && more)) return;
  turn_ += jobs_stay == is_wanted(turn_) ? 2 : 1;
  if (jobs_stay && !start()) found_too_heavy_ = turn_.load();
  wake();
}

// Without a thread nothing is measured; the monitor goes on.
bool Burden::start() try {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  return true;
} catch (const std::system_error&) {
  return false;
}

uint32_t Burden::next_round() {
  pollfd event = {wake_up_.get(), POLLIN, 0};
  for (uint32_t turn = turn_;; turn = turn_) {
    const bool woken = poll(&event, 1, is_wanted(turn) ? kPeriodMs : -1) > 0;
    if (stop_ || (!woken && turn == turn_)) return turn;
    eventfd_t times;
    eventfd_read(wake_up_.get(), &times);
    count_ = 0;
    memory_us_ = -1;
  }
}

void Burden::run() {
  // The monitor's own thread has more weight than the owner's programs.
  const sched_param none = {};
  sched_setscheduler(0, SCHED_OTHER, &none);
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 0);
  for (uint32_t turn = next_round(); !stop_; turn = next_round()) {
    Round round;
    if (!measure(&round)) round.waited = 1;
    rounds_[count_++ % kRounds] = round;
    if (is_heavy())
      found_too_heavy_ = turn;
    else if (found_too_heavy_ == turn)
      found_too_heavy_ = 0;
  }
}

bool Burden::measure(Round* round) {
  measure_memory(round);
  return !jobs_linger_ || measure_cpu(round);
}

void Burden::measure_memory(Round* round) {
  const long long memory = memory_waited_us(pressure_file_);
  const int64_t now = system_clock().boot_ns() / 1000;
  if (memory >= 0 && memory_us_ >= 0 && now > memory_at_us_)
    round->memory =
        static_cast<double>(memory - memory_us_) / static_cast<double>(now - memory_at_us_);
  memory_us_ = memory;
  memory_at_us_ = now;
}

bool Burden::measure_cpu(Round* round) const {
  const long long before = waited_ns();
  for (const int64_t end = cpu_time_ns() + kBurstNs; cpu_time_ns() < end;) {
  }
  const long long after = waited_ns();
  if (before < 0 || after < before) return false;
  const auto waited = static_cast<double>(after - before);
  round->waited = waited / (waited + kBurstNs);
  return true;
}

bool Burden::is_heavy() const {
  const size_t known = std::min(count_, kRounds);
  if (known < kFewest) return false;
  Round mean;
  for (size_t i = 0; i < known; ++i) {
    mean.waited += rounds_[i].waited / static_cast<double>(known);
    mean.memory += rounds_[i].memory / static_cast<double>(known);
  }
  return mean.waited > bound_ || mean.memory > bound_;
}

}  // namespace sublet::loadmon
