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

bool has_ended(const SpawnedProcess& process, int64_t within_ns) {
  pollfd ended = {process.pidfd.get(), POLLIN, 0};
  return poll(&ended, 1, static_cast<int>(within_ns / 1'000'000)) > 0;
}

// Its exit status as from waitpid().
int reap(const SpawnedProcess& process) {
  int status = 0;
  while (waitpid(process.id.pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
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
    if (!ask_again()) return std::nullopt;
    const std::string refusal = refusal_of_settings();
    if (refusal.empty()) return asked_ ? std::nullopt : std::optional(start_one());
    complain("the load monitor refuses its settings, so no job can run here: " + refusal +
             "; it is asked again every few seconds");
  } catch (const std::exception& error) {
    complain("the load monitor cannot be started, so no job can run here: " +
             std::string(error.what()));
  }
  return std::nullopt;
}

bool MonitorStart::ask_again() {
  if (!asked_) return true;
  if (!has_ended(*asked_, 0)) return false;
  reap(*asked_);
  asked_.reset();
  return true;
}

std::string MonitorStart::refusal_of_settings() {
  std::vector<std::string> command = command_;
  command.emplace_back("--print-settings");
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw OsError(errno, "create", "a pipe");
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const UniqueFd nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!nowhere.valid()) throw OsError(errno, "open", "/dev/null");
  SpawnOptions options;
  options.fds = {{nowhere.get(), 1}, {to.get(), 2}};
  asked_ = spawn(command, environment(), options);
  to.reset();
  const std::string text = read_answer(from.get(), system_clock().boot_ns() + kAnswerNs);
  // It has closed the pipe and so ends, or hangs.
  if (!has_ended(*asked_, kAnswerNs)) {
    kill_process(asked_->id, SIGKILL);
    if (!has_ended(*asked_, kAnswerNs)) {
      complain("the load monitor's program (process " + std::to_string(asked_->id.pid) +
               ") hangs and cannot be killed, so no job can run here; is its file system there?");
      return "";
    }
  }
  const int status = reap(*asked_);
  asked_.reset();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != kExitUsage) return "";
  return escape_for_terminal(text.substr(0, text.find('\n')));
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
