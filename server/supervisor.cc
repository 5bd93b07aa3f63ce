#include "server/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <optional>
#include <stdexcept>

#include "base/clock.h"
#include "base/local_socket.h"
#include "base/log.h"
#include "base/options/arguments.h"
#include "base/os_error.h"
#include "base/process.h"

namespace sublet::server {
namespace {

constexpr int kInstantDeaths = 5;       // consecutive ones, then the supervisor gives up
constexpr int64_t kInstantMs = 10'000;  // a death within this time of the start is instant
constexpr int64_t kCheckEveryMs = 200;
constexpr int64_t kAskEveryMs = 3'000;
constexpr int64_t kRetryMs = 5'000;  // after the server exited with an error
constexpr int64_t kSpinMs = 60'000;  // longest time of full CPU use without requests

volatile sig_atomic_t g_stop = 0;
volatile sig_atomic_t g_child = 0;

void on_stop(int signal) {
  g_stop = 1;
  if (g_child > 0) kill(g_child, signal);
}

int64_t now_ns() { return system_clock().boot_ns(); }
int64_t now_ms() { return now_ns() / 1'000'000; }

VitalSigns* map_page(int fd) {
  void* page = mmap(nullptr, sizeof(VitalSigns), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) throw OsError(errno, "share memory with", "the supervisor");
  return static_cast<VitalSigns*>(page);
}

// Sends the server a GIOP LocateRequest for the object JobScheduler, the smallest
// request an ORB answers, and waits for the first byte of the reply.
class Question {
 public:
  explicit Question(const std::string& socket) : asked_ms_(now_ms()) {
    static const unsigned char kLocate[] = {
        'G', 'I', 'O', 'P', 1,   0,   1,   3,
        20,  0,   0,   0,                      // header, little-endian, 20 bytes follow
        1,   0,   0,   0,   12,  0,   0,   0,  // request id, length of the key
        'J', 'o', 'b', 'S', 'c', 'h', 'e', 'd',
        'u', 'l', 'e', 'r'};
    try {
      fd_ = connect_local(SocketKind::stream, socket, true);
    } catch (const std::exception&) {
      return;
    }
    if (send(fd_.get(), kLocate, sizeof kLocate, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof kLocate)
      fd_.reset();
  }

  // std::nullopt: not yet known.
  std::optional<bool> answered() {
    if (!fd_.valid()) return false;
    char byte;
    const ssize_t n = recv(fd_.get(), &byte, 1, MSG_DONTWAIT);
    if (n > 0) return true;
    if (n == 0 || errno != EAGAIN) return false;
    return std::nullopt;
  }
  int64_t age_ms() const { return now_ms() - asked_ms_; }

 private:
  UniqueFd fd_;
  int64_t asked_ms_;
};

// Watches one child process.
class Watch {
 public:
  Watch(const SupervisorSettings& settings, pid_t pid, VitalSigns* signs)
      : settings_(settings), pid_(pid), signs_(signs), born_ms_(now_ms()), lively_ms_(born_ms_) {}

  // The reason why the child must be killed, if any.
  std::optional<std::string> reason_to_kill() {
    const int64_t now = now_ms();
    if (!signs_->serving) {
      // Loading a large database may take up to ten watchdog periods.
      if (now - born_ms_ > 10 * settings_.watchdog_ms) return "it did not finish starting in time";
      lively_ms_ = now;
      return std::nullopt;
    }
    if (signs_->beats != beats_) {
      beats_ = signs_->beats;
      beat_ms_ = now;
    }
    ask(now);
    if (beat_ms_ && now - beat_ms_ > settings_.watchdog_ms)
      return "it no longer commits anything to its database";
    if (now - lively_ms_ > settings_.watchdog_ms) return "it does not answer";
    if (spins(now)) return "it uses the CPU although there are no requests";
    return std::nullopt;
  }

  int64_t life_ms() const { return now_ms() - born_ms_; }

 private:
  void ask(int64_t now) {
    if (!question_ && now - asked_ms_ >= kAskEveryMs) {
      question_.emplace(settings_.socket);
      asked_ms_ = now;
    }
    if (!question_) return;
    const auto answer = question_->answered();
    if (answer == true) lively_ms_ = now;
    if (answer || question_->age_ms() > kAskEveryMs) question_.reset();
  }

  bool spins(int64_t now) {
    const auto usage = process_usage(pid_);
    if (!usage) return false;
    if (signs_->performed != performed_ || usage->cpu_us - cpu_us_ < (now - spin_ms_) * 900) {
      performed_ = signs_->performed;
      cpu_us_ = usage->cpu_us;
      spin_ms_ = now;
      return false;
    }
    return now - spin_ms_ > kSpinMs;
  }

  const SupervisorSettings& settings_;
  const pid_t pid_;
  VitalSigns* const signs_;
  const int64_t born_ms_;
  int64_t lively_ms_;
  uint64_t beats_ = 0;
  int64_t beat_ms_ = 0;
  int64_t asked_ms_ = 0;
  std::optional<Question> question_;
  uint64_t performed_ = 0;
  int64_t cpu_us_ = 0;
  int64_t spin_ms_ = 0;
};

std::string death(int status) {
  if (WIFSIGNALED(status))
    return std::string("died of signal ") + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

std::vector<std::string> environment() {
  std::vector<std::string> all;
  for (char** e = environ; *e; ++e) all.emplace_back(*e);
  return all;
}

SpawnedProcess start(std::vector<std::string> command, int page) {
  constexpr int kPageInChild = 3;
  command.push_back("--supervised");
  command.push_back(std::to_string(kPageInChild));
  SpawnOptions options;
  options.fds = {{page, kPageInChild}};
  return spawn(command, environment(), options);
}

// Returns early on a stop signal.
void pause(int64_t ms, ServiceNotify& manager) {
  const int64_t until = now_ms() + ms;
  while (!g_stop && now_ms() < until) {
    poll(nullptr, 0, 100);
    manager.alive(now_ns());
  }
}

// Waits for the child's end, and kills it if `watch` demands it.
int await_end(const SpawnedProcess& child, const VitalSigns& signs, Watch& watch,
              ServiceNotify& manager) {
  int status = 0;
  bool killed = false;
  while (waitpid(child.id.pid, &status, WNOHANG) == 0) {
    pollfd end{child.pidfd.get(), POLLIN, 0};
    poll(&end, 1, kCheckEveryMs);
    if (signs.serving) manager.ready(now_ns());
    manager.alive(now_ns());
    if (killed || g_stop) continue;
    if (auto why = watch.reason_to_kill()) {
      log_write(Severity::error, "killing the server: " + *why);
      kill(child.id.pid, SIGKILL);
      killed = true;
    }
  }
  return status;
}

}  // namespace

VitalSigns* supervised(int fd) {
  VitalSigns* signs = map_page(fd);
  // Without the supervisor nothing would restart this process.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() == 1) throw std::runtime_error("the supervisor is gone");
  return signs;
}

int supervise(const SupervisorSettings& settings, const std::vector<std::string>& command,
              ServiceNotify& manager) {
  struct sigaction action = {};
  action.sa_handler = on_stop;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  UniqueFd page(memfd_create("sublet-vital-signs", MFD_CLOEXEC));
  if (!page.valid() || ftruncate(page.get(), sizeof(VitalSigns)) != 0)
    throw OsError(errno, "share memory with", "the server");
  VitalSigns* signs = map_page(page.get());
  uint32_t life = 0;
  for (int instant = 0;;) {
    new (signs) VitalSigns;
    signs->life = ++life;
    const SpawnedProcess child = start(command, page.get());
    const pid_t pid = child.id.pid;
    g_child = pid;
    if (g_stop) kill(pid, SIGTERM);
    Watch watch(settings, pid, signs);
    const int status = await_end(child, *signs, watch, manager);
    g_child = 0;
    const bool in_order = WIFEXITED(status);
    // If the very first start fails, the administrator must act; a later one may fail
    // only because the disk is full for a while, and is retried.
    const bool never_served = !signs->serving && life == 1;
    const bool settings_are_wrong = in_order && WEXITSTATUS(status) == kExitUsage;
    if (in_order && (g_stop || never_served || settings_are_wrong || WEXITSTATUS(status) == 0))
      return WEXITSTATUS(status);
    if (g_stop) return 1;
    log_write(Severity::error, "the server " + death(status));
    if (in_order) {
      instant = 0;
      pause(kRetryMs, manager);
      continue;
    }
    instant = watch.life_ms() < kInstantMs ? instant + 1 : 0;
    if (instant >= kInstantDeaths) {
      log_write(Severity::error, "the server died " + std::to_string(instant) +
                                     " times, each within 10 s of its start: giving up; see the "
                                     "lines above for the reason");
      return 1;
    }
    pause(restart_pause_ms(instant), manager);
  }
}

}  // namespace sublet::server
