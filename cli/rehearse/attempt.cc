#include "cli/rehearse/attempt.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <mutex>

#include "attempt/processes.h"
#include "base/files.h"
#include "base/process.h"
#include "checkpoint-api/sublet_status.h"
#include "cli/rehearse/outcome.h"

namespace sublet::cli {

namespace {

int64_t now_boot_us() {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * int64_t{1'000'000} + now.tv_nsec / 1000;
}

int64_t micros(const timeval& time) { return time.tv_sec * int64_t{1'000'000} + time.tv_usec; }

// The process that runs now, for stop_all().
std::mutex& running_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
pid_t running = 0;

UniqueFd open_or_throw(const std::string& path, int flags) {
  UniqueFd fd(open(path.c_str(), flags | O_CLOEXEC, 0600));
  if (!fd.valid()) throw FileError(errno, "open", path);
  return fd;
}

// Of a process that is stopped: whether nobody has it open for writing.
bool is_whole(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file.valid() || fcntl(file.get(), F_SETLEASE, F_RDLCK) != 0) return false;
  fcntl(file.get(), F_SETLEASE, F_UNLCK);
  return true;
}

class Attempt {
 public:
  Attempt(const Rehearsed& program, const AttemptFolder& folder, const AttemptOrder& order)
      : program_(program), folder_(folder), order_(order) {}

  AttemptEnded run() {
    start();
    if (!wait_for_request()) return ended();
    ask();
    if (order_.kill_after_write_us) wait_for_write();
    if (!waited_until(asked_us_ + program_.deadline_ms * 1000)) kill();
    return ended();
  }

 private:
  void start();
  // False: it has ended before.
  bool wait_for_request();
  int leave_signal() const;
  void ask();
  void wait_for_write();
  void kill();
  bool waited_until(int64_t until_us);
  void find_listed(bool only_whole);
  void reap();
  void remove_the_rest();
  void read_status();
  AttemptEnded ended();
  protocol::ExitFacts facts() const;

  const Rehearsed& program_;
  const AttemptFolder& folder_;
  const AttemptOrder& order_;
  SpawnedProcess process_;
  std::string status_path_;
  AttemptProcesses processes_;
  UniqueFd watch_;
  int64_t started_us_ = 0;
  int64_t asked_us_ = 0;
  bool left_ = false;
  bool files_found_ = false;
  int status_ = 0;
  AttemptEnded ended_;
};

void Attempt::start() {
  std::vector<std::string> environment = attempt_environment(program_, folder_, order_.number);
  if (order_.stop_at)
    environment.push_back("SUBLET_CHECKPOINT_STOP_AT=" + std::to_string(*order_.stop_at));
  const JobDescription& what = program_.job.what;
  std::vector<std::string> words = {find_program(program_, environment)};
  words.insert(words.end(), what.arguments.begin(), what.arguments.end());
  const UniqueFd in = open_or_throw(
      what.standard_input.empty() ? "/dev/null" : folder_.work() + "/" + what.standard_input,
      O_RDONLY);
  const UniqueFd out = open_or_throw(folder_.out(), O_WRONLY | O_CREAT | O_TRUNC);
  const UniqueFd err = open_or_throw(folder_.err(), O_WRONLY | O_CREAT | O_TRUNC);
  status_path_ = folder_.status();
  if (!processes_.open("")) throw FileError(errno, "open", "/proc");
  const std::lock_guard lock(running_mutex());
  started_us_ = now_boot_us();
  try {
    process_ = spawn(words, environment,
                     {.fds = {{in.get(), 0}, {out.get(), 1}, {err.get(), 2}},
                      .folder = folder_.work(),
                      .new_session = true});
  } catch (const OsError& error) {
    throw PoolError(ErrorKind::invalid, "rehearse.start",
                    std::string("the program cannot be started: ") + error.what(), "",
                    what.program);
  }
  running = process_.id.pid;
  processes_.set({.session = running, .status_path = status_path_.c_str()});
}

bool Attempt::waited_until(int64_t until_us) {
  for (;;) {
    const int64_t left_us = until_us - now_boot_us();
    pollfd ends = {process_.pidfd.get(), POLLIN, 0};
    const timespec wait = {std::max<int64_t>(left_us, 0) / 1'000'000,
                           std::max<int64_t>(left_us, 0) % 1'000'000 * 1000};
    if (ppoll(&ends, 1, &wait, nullptr) > 0) return true;
    if (left_us <= 0) return false;
  }
}

bool Attempt::wait_for_request() {
  if (order_.ask_after_us) return !waited_until(started_us_ + *order_.ask_after_us);
  if (waited_until(started_us_ + order_.longest_us)) return false;
  ended_.hung = true;
  kill();
  return false;
}

int Attempt::leave_signal() const {
  const uint32_t wanted = program_.job.what.own_checkpoint.signal;
  return wanted == 0 ? SIGTERM : static_cast<int>(wanted);
}

void Attempt::ask() {
  if (order_.kill_after_write_us) {
    watch_ = UniqueFd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    const bool own = program_.job.what.own_checkpoint.is_set();
    inotify_add_watch(watch_.get(), (own ? folder_.work() : folder_.checkpoint()).c_str(),
                      IN_CREATE | IN_MODIFY);
  }
  ended_.asked = true;
  asked_us_ = now_boot_us();
  ended_.handled = processes_.signal_who_handles(leave_signal(), process_.id.pid);
  if (!ended_.handled) kill();  // as in the pool: it could not save
}

// Kills it in the middle of what it writes; unless it ends before.
void Attempt::wait_for_write() {
  pollfd first[] = {{watch_.get(), POLLIN, 0}, {process_.pidfd.get(), POLLIN, 0}};
  poll(first, 2, static_cast<int>(program_.deadline_ms));
  if (first[0].revents == 0) return;
  if (waited_until(now_boot_us() + *order_.kill_after_write_us)) return;
  ended_.cut_save = true;
  kill();
}

void Attempt::find_listed(bool only_whole) {
  files_found_ = true;
  ended_.listed_files = find_files(folder_.work(), program_.job.what.own_checkpoint.files);
  for (const auto& [name, path] : ended_.listed_files)
    if (!only_whole || is_whole(path)) ended_.whole_files[name] = path;
}

// Stopped first, so that what is whole does not change any more; those that are easily found at
// once, because looking for the others takes milliseconds.
void Attempt::kill() {
  ::kill(-process_.id.pid, SIGSTOP);
  processes_.freeze();
  if (program_.job.what.own_checkpoint.is_set()) find_listed(true);
  ended_.killed = true;
  remove_the_rest();
}

void Attempt::remove_the_rest() {
  do {
    processes_.kill();
    pollfd ends = {process_.pidfd.get(), POLLIN, 0};
    poll(&ends, 1, 1);
  } while (!processes_.gone());
}

void Attempt::reap() {
  rusage usage = {};
  waited_until(INT64_MAX / 2);
  const std::lock_guard lock(running_mutex());
  while (wait4(process_.id.pid, &status_, 0, &usage) < 0 && errno == EINTR) {
  }
  running = 0;
  ended_.cpu_us = micros(usage.ru_utime) + micros(usage.ru_stime);
}

void Attempt::read_status() {
  const std::string page = system_files().read_file(status_path_, SUBLET_STATUS_BYTES);
  sublet_status status = {};
  if (page.size() >= sizeof status) memcpy(&status, page.data(), sizeof status);
  if (status.magic != SUBLET_STATUS_MAGIC) return;
  ended_.generation = status.generation;
  ended_.resumed_generation = status.resumed_generation;
  ended_.points = status.points;
  ended_.save_us = static_cast<int64_t>(status.save_ns / 1000);
  ended_.aware = status.aware != 0;
  left_ = status.left != 0;
  // At a point it asks itself.
  if (left_ && order_.stop_at) ended_.asked = true;
}

protocol::ExitFacts Attempt::facts() const {
  protocol::ExitFacts facts;
  const bool signalled = WIFSIGNALED(status_);
  facts.outcome =
      signalled ? protocol::ExitFacts::Outcome::kSignalled : protocol::ExitFacts::Outcome::kExited;
  facts.code = signalled ? WTERMSIG(status_) : WEXITSTATUS(status_);
  facts.reason = ended_.asked ? SUBLET_LEAVE_OWNER : SUBLET_LEAVE_NONE;
  facts.asked = ended_.asked;
  facts.left = left_;
  facts.killed = ended_.killed;
  facts.no_handler = !ended_.handled;
  facts.aware = ended_.aware;
  facts.says_saved = !signalled && program_.job.what.own_checkpoint.says_saved(facts.code);
  return facts;
}

AttemptEnded Attempt::ended() {
  reap();
  remove_the_rest();
  const int64_t gone = now_boot_us();
  ended_.wall_us = gone - started_us_;
  if (asked_us_ != 0) ended_.gone_us = gone - asked_us_;
  read_status();
  ended_.end = protocol::classify(facts());
  ended_.how = WIFSIGNALED(status_) ? "killed by signal " + std::to_string(WTERMSIG(status_)) +
                                          " (" + strsignal(WTERMSIG(status_)) + ")"
                                    : "exit status " + std::to_string(WEXITSTATUS(status_));
  // If it died of a signal of its own, nothing is known of its files; its handler may end it by the
  // one that asked it to leave.
  const bool by_itself =
      WIFEXITED(status_) || (ended_.handled && WTERMSIG(status_) == leave_signal());
  if (!files_found_ && by_itself && program_.job.what.own_checkpoint.is_set()) find_listed(false);
  return std::move(ended_);
}

}  // namespace

AttemptEnded run_attempt(const Rehearsed& program, const AttemptFolder& folder,
                         const AttemptOrder& order) {
  return Attempt(program, folder, order).run();
}

void stop_all() {
  running_mutex().lock();  // until this process ends: nothing may start any more
  if (running == 0) return;
  AttemptProcesses processes;
  if (!processes.open("")) return;
  processes.set({.session = running});
  do {
    processes.kill();
    poll(nullptr, 0, 1);
  } while (!processes.gone());
}

}  // namespace sublet::cli
