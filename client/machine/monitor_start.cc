#include "client/machine/monitor_start.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/options/arguments.h"
#include "base/process.h"
#include "base/text.h"

namespace sublet::client {
namespace {

constexpr int64_t kAnswerNs = 2'000'000'000;
constexpr size_t kLongestAnswer = 4096;

const std::vector<std::string>& environment() {
  static const std::vector<std::string> kAll = {"PATH=/usr/local/bin:/usr/bin:/bin",
                                                "LANG=C.UTF-8"};
  return kAll;
}

// What the process writes, up to a limit, until all have closed the pipe or the time is over.
std::string read_answer(int pipe, int64_t until_ns) {
  std::string text;
  while (text.size() < kLongestAnswer) {
    const int64_t left_ms = (until_ns - system_clock().boot_ns()) / 1'000'000;
    pollfd ready = {pipe, POLLIN, 0};
    if (left_ms <= 0 || poll(&ready, 1, static_cast<int>(left_ms)) == 0) break;
    char part[512];
    const ssize_t got = read(pipe, part, sizeof part);
    if (got == 0 || (got < 0 && errno != EINTR)) break;
    if (got > 0) text.append(part, static_cast<size_t>(got));
  }
  return text;
}

// What the program says against its settings; "": nothing, or it does not answer. Throws
// OsError.
std::string refusal_of(std::vector<std::string> command) {
  command.emplace_back("--print-settings");
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw OsError(errno, "create", "a pipe");
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const UniqueFd nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!nowhere.valid()) throw OsError(errno, "open", "/dev/null");
  SpawnOptions options;
  options.fds = {{nowhere.get(), 1}, {to.get(), 2}};
  const SpawnedProcess process = spawn(command, environment(), options);
  to.reset();
  const std::string text = read_answer(from.get(), system_clock().boot_ns() + kAnswerNs);
  // It has closed the pipe and so ends, or hangs.
  pollfd ended = {process.pidfd.get(), POLLIN, 0};
  if (poll(&ended, 1, static_cast<int>(kAnswerNs / 1'000'000)) <= 0)
    kill_process(process.id, SIGKILL);
  int status = 0;
  while (waitpid(process.id.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != kExitUsage) return "";
  return escape_for_terminal(text.substr(0, text.find('\n')));
}

}  // namespace

MonitorStart::MonitorStart(std::vector<std::string> command, std::string socket)
    : command_(std::move(command)), socket_(std::move(socket)) {}

std::optional<pid_t> MonitorStart::start(bool in_vain) {
  const std::unique_lock only(one_at_a_time_, std::try_to_lock);
  if (!only) return std::nullopt;  // a program that hangs is being asked
  if (!in_vain) {
    complaint_.clear();
    started_ = said_in_vain_ = false;
  }
  try {
    const std::string refusal = refusal_of(command_);
    if (refusal.empty()) return start_one();
    complain("the load monitor refuses its settings, so no job can run here: " + refusal +
             "; it is asked again every few seconds");
  } catch (const std::exception& error) {
    complain("the load monitor cannot be started, so no job can run here: " +
             std::string(error.what()));
  }
  return std::nullopt;
}

void MonitorStart::complain(const std::string& what) {
  if (what != complaint_) log(Severity::error) << what;
  complaint_ = what;
}

pid_t MonitorStart::start_one() {
  if (started_ && !said_in_vain_) {
    said_in_vain_ = true;
    log(Severity::error) << "no load monitor answers at " << socket_
                         << ", so no job can run here; see its own message above, or run "
                         << command_.front() << "; it is started again and again";
  }
  SpawnOptions options;
  options.new_session = true;
  const SpawnedProcess monitor = spawn(command_, environment(), options);
  log(started_ ? Severity::debug : Severity::info)
      << "load monitor started, pid " << monitor.id.pid;
  started_ = true;
  complaint_.clear();
  return monitor.id.pid;
}

}  // namespace sublet::client
