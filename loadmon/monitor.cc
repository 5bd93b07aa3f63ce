#include "loadmon/monitor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "attempt/cgroup_use.h"
#include "attempt/traffic.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/local_socket.h"
#include "base/log.h"
#include "base/os_error.h"
#include "loadmon/cgroups.h"

namespace sublet::loadmon {
namespace {
constexpr int64_t kMs = 1'000'000;
// Work due within this time is done now, so that heartbeats and samples share a wake-up.
constexpr int64_t kTogether = 10 * kMs;
// Without connections the owner is watched only so that the idle time has already begun
// when the first listener connects.
constexpr int64_t kSampleAlone = 5000 * kMs;
// Heartbeat to a client without jobs, which reports the owner's load.
constexpr int64_t kBeatToClient = 10'000 * kMs;
constexpr int kBacklog = 128;
// The reactor watches none with a higher number; all that it watches are opened at the start.
constexpr size_t kMostDescriptors = 1024;
// It has one thread: the reactor's queue for others would take 32 kB, locked in memory.
constexpr int kNoNotifications = 1;

int64_t boot_now() { return system_clock().boot_ns(); }

// Ensures one monitor per socket by locking SOCKET.lock. Throws OsError (EADDRINUSE), which
// names the process that holds it.
UniqueFd lock_socket(const std::string& socket) {
  const std::string path = socket + ".lock";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) throw OsError(errno, "open", path);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    char pid[16] = "";
    const ssize_t got = pread(fd.get(), pid, sizeof pid - 1, 0);
    const std::string who(pid, static_cast<size_t>(std::max<ssize_t>(got, 0)));
    throw OsError(EADDRINUSE, "listen on", socket,
                  "process " + who + " is already its load monitor");
  }
  const std::string pid = std::to_string(getpid());
  if (ftruncate(fd.get(), 0) != 0 || pwrite(fd.get(), pid.data(), pid.size(), 0) < 0)
    throw OsError(errno, "write", path);
  return fd;
}

UniqueFd end_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  UniqueFd fd(signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd.valid()) throw OsError(errno, "watch", "signals");
  return fd;
}

// The reactor's own timers are not used: they follow the wall clock, which may be set, and
// stop during suspend.
UniqueFd boot_timer() {
  UniqueFd fd(timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!fd.valid()) throw OsError(errno, "create", "a timer");
  return fd;
}

const char* words(sublet_presence_reason reason) {
  switch (reason) {
    case SUBLET_PRESENCE_CPU:
      return "CPU use";
    case SUBLET_PRESENCE_LOAD:
      return "load";
    case SUBLET_PRESENCE_INPUT:
      return "input";
    case SUBLET_PRESENCE_SCRIPT:
      return "simulated";
    case SUBLET_PRESENCE_BLIND:
      return "assumed, because something could not be observed";
    case SUBLET_PRESENCE_QUIET:
      return "quiet for long enough";
    case SUBLET_PRESENCE_PAUSED:
      return "said so with `sublet owner pause`";
    case SUBLET_PRESENCE_UNSEEN:
      return "assumed, because nothing shows the input of a graphical session; start sublet-agent "
             "there, or run the client as root";
    case SUBLET_PRESENCE_MEDIA:
      return "sound, an open camera, or a program that keeps the screen on or fills it";
    case SUBLET_PRESENCE_SLEEP:
      return "assumed, because the machine is about to sleep";
    default:
      return "not quiet for long enough";
  }
}
JobUse use_of(const Attempt& attempt) {
  JobUse use;
  if (!attempt.cpu_cgroup.empty()) {
    const int64_t cpu_us = cgroup_usage_us(attempt.cpu_cgroup);
    use.cpu_ms = cpu_us < 0 ? -1 : (cpu_us - attempt.cpu_before_us) / 1000;
  }
  if (!attempt.memory_cgroup.empty())
    use.memory = cgroup_memory_used(attempt.memory_cgroup.c_str());
  if (!attempt.cgroup.empty()) {
    std::vector<pid_t> members;
    append_cgroup_members(attempt.cgroup, &members);
    use.processes = static_cast<int64_t>(members.size());
    use.network = traffic_of(attempt.cgroup.c_str());
  }
  return use;
}

}  // namespace

Monitor::Monitor(
    const MonitorOptions& options,
    const std::function<Senses(const JobsHere&, const Describe&, OwnersRules&)>& make_senses,
    const std::function<std::unique_ptr<OwnersRules>(const JobsHere&)>& make_rules)
    : options_(options),
      lock_(lock_socket(options.socket)),
      listener_(listen_local(SocketKind::seqpacket, options.socket, 0600, kBacklog, true)),
      timer_(boot_timer()),
      signals_(end_signals()),
      reactor_(new ACE_Dev_Poll_Reactor(kMostDescriptors, true, nullptr, nullptr, kNoNotifications),
               true),
      watch_(options.rule, [this] { changed(); }),
      folder_(options.attempts, options.save_deadline_ms, &attempts_),
      meter_([this] { watch_.notice_events(boot_now()); }),
      burden_(options.linger_slowdown, options.root),
      listeners_(&attempts_, options.most_connections,
                 {.now = boot_now,
                  .current = [this] { return frame(watch_.verdict_at(boot_now())); },
                  .find_attempt =
                      [this](uint64_t job, uint32_t attempt) {
                        return folder_.find(job, attempt, boot_now());
                      },
                  .shepherd_left = [this](Attempt* attempt) { shepherd_left(attempt); },
                  .changed =
                      [this] {
                        alone_since_ = boot_now();
                        set_timer(next_step(alone_since_));
                      }}),
      alone_since_(boot_now()) {
  watch(listener_.get(), [this] { accept_all(); });
  watch(listeners_.handle(), [this] { listeners_.read_all(); });
  watch(signals_.get(), [this] { stop_ = true; });
  watch(timer_.get(), [this] {
    uint64_t times;
    if (read(timer_.get(), &times, sizeof times) > 0) timer_at_ = 0;
    step();
  });
  const JobsHere jobs = {.processes = [this] { return folder_.processes(); },
                         .daemons = [this] { return listeners_.pids(); },
                         .attempts = [this] { return attempts_here(); },
                         .use =
                             [this](uint64_t job, uint32_t attempt) {
                               const Attempt* one = attempts_.find(job, attempt);
                               return one ? use_of(*one) : JobUse{};
                             }};
  auto rules = make_rules(jobs);
  Senses senses = make_senses(
      jobs, [this] { return watch_.describe(); }, *rules);
  rules->refresh(boot_now());
  watch_.use(std::move(senses), std::move(rules));
  for (size_t i = 0; i < watch_.senses().size(); ++i) {
    const int handle = watch_.senses()[i]->handle();
    if (handle < 0) continue;
    watch(handle, [this, i] {
      notice(i);
      set_timer(next_step(boot_now()));
    });
  }
}

Monitor::~Monitor() {
  for (const auto& readable : readables_)
    reactor_.remove_handler(readable.get(),
                            ACE_Event_Handler::READ_MASK | ACE_Event_Handler::DONT_CALL);
}

void Monitor::watch(int fd, std::function<void()> ready) {
  readables_.push_back(std::make_unique<Readable>(fd, std::move(ready)));
  if (reactor_.register_handler(readables_.back().get(), ACE_Event_Handler::READ_MASK) != 0)
    throw OsError(errno, "watch", "a descriptor");
}

int Monitor::run() {
  watch_.log_absences();
  take_sample();
  step();
  while (!stop_) {
    if (reactor_.handle_events() < 0 && errno != EINTR) {
      log(Severity::error) << "cannot wait for events: " << strerror(errno);
      return 1;
    }
  }
  if (exit_status_ != 0) return exit_status_;
  log(Severity::info) << "stopped; " << listeners_.count() << " connections were closed";
  return 0;
}

void Monitor::accept_all() {
  try {
    for (;;) {
      UniqueFd fd = accept_local(listener_.get(), true);
      if (!fd.valid()) return;
      const PeerCredentials peer = peer_credentials(fd.get());
      if (peer.uid != 0 && peer.uid != geteuid()) {
        log(Severity::warning) << "refused process " << peer.pid << " of user id " << peer.uid
                               << ": only root and this account may connect";
        continue;
      }
      listeners_.add(std::move(fd), peer.pid);
    }
  } catch (const OsError& error) {
    log(Severity::warning) << error.what();
  }
}

JobsEffect Monitor::meter_jobs(int64_t now) {
  if (!options_.measures_jobs) return {};
  std::vector<pid_t> daemons = listeners_.pids();
  daemons.push_back(getpid());
  return meter_.update(daemons, folder_.to_meter(), watch_.uses_load(), now);
}

void Monitor::notice(size_t sense) { watch_.notice(sense, boot_now()); }

void Monitor::take_sample() {
  watch_.notice_events(boot_now());
  const bool jobs_stay = attempts_.anyone_stays();
  burden_.watch(jobs_stay, attempts_.anyone_lingers());
  watch_.note_jobs_that_stay(jobs_stay, burden_.is_too_heavy());
  const JobsEffect jobs = meter_jobs(boot_now());
  watch_.sample(boot_now(), jobs);
  sampled_at_ = watch_.seen().instant;
}

void Monitor::changed() {
  const sublet_frame news = frame(watch_.verdict());
  reported_at_ = watch_.seen().instant;
  if (watch_.verdict().state != SUBLET_PRESENCE_AWAY) {
    listeners_.evict(news, reported_at_);
    listeners_.explain(cause_frame(news));
    // All listeners have been notified; now there is time to prepare for killing the jobs
    // of those that do not answer.
    folder_.prepare_all();
    attempts_.enforce(boot_now());
    log(Severity::info) << cause(news);
  } else {
    listeners_.tell(news);
    if (news.reason == SUBLET_PRESENCE_SETTLING)
      log(Severity::info) << "the owner has gone: jobs that stayed go on";
    else if (news.reason == SUBLET_PRESENCE_WITHHELD)
      log(Severity::info) << cause(news);
    else
      log(Severity::info) << "the machine is idle: " << words(watch_.verdict().reason);
  }
}

sublet_frame Monitor::cause_frame(const sublet_frame& news) const noexcept {
  sublet_frame frame = {};
  frame.magic = SUBLET_FRAME_MAGIC;
  frame.kind = SUBLET_FRAME_CAUSE;
  frame.sequence = news.sequence;
  frame.instant = news.instant;
  watch_.seen().place_of(watch_.verdict().reason).put(&frame);
  return frame;
}

std::string Monitor::cause(const sublet_frame& news) const {
  const protocol::PresenceSample& seen = watch_.seen();
  if (news.reason == SUBLET_PRESENCE_RULE || news.reason == SUBLET_PRESENCE_WITHHELD) {
    std::string text;
    for (const std::string& reason : watch_.rules_against())
      text += (text.empty() ? "" : "; ") + reason;
    const bool more = news.reason == SUBLET_PRESENCE_WITHHELD;
    return (more ? "no more jobs by " : "no jobs by ") + (text.empty() ? "a rule" : text);
  }
  std::string text =
      news.state == SUBLET_PRESENCE_BURDENED ? "jobs that stayed slow the owner down; " : "";
  text += std::string("the owner is here: ") + words(watch_.verdict().reason);
  std::string by = news.reason == SUBLET_PRESENCE_INPUT   ? seen.input_by
                   : news.reason == SUBLET_PRESENCE_MEDIA ? seen.attends_by
                                                          : "";
  const protocol::Place place = seen.place_of(watch_.verdict().reason);
  if (!by.empty() && !place.empty()) by += ", ";
  by += place.text();
  if (!by.empty()) text += " (" + by + ")";
  if (news.reason == SUBLET_PRESENCE_CPU) {
    char cores[32];
    snprintf(cores, sizeof cores, " of %.2f cores", news.arg[0] / 1000.0);
    text += cores;
  }
  return text;
}

sublet_frame Monitor::frame(const protocol::PresenceVerdict& verdict) {
  const protocol::PresenceSample& seen = watch_.seen();
  sublet_frame frame = {};
  frame.magic = SUBLET_FRAME_MAGIC;
  frame.kind = SUBLET_FRAME_PRESENCE;
  frame.sequence = ++sequence_;
  frame.state = verdict.burdened ? SUBLET_PRESENCE_BURDENED : verdict.state;
  frame.reason = verdict.reason;
  frame.instant = seen.instant;
  frame.arg[0] = static_cast<int64_t>(std::max(0.0, seen.cpu) * 1000);
  frame.arg[1] = seen.input_age_ms;
  frame.arg[2] = verdict.ms_until_idle;
  frame.arg[3] = seen.load[0] < 0 ? -1 : std::llround(seen.load[0] * 1000);
  return frame;
}

void Monitor::shepherd_left(Attempt* attempt) {
  attempt->attended = false;
  attempt->ended = folder_.has_ended(*attempt);
  if (attempt->ended) return;
  folder_.prepare(attempt);
  attempts_.shepherd_lost(attempt, boot_now());
}

void Monitor::find_attempts(int64_t now) {
  folder_.scan(now);
  // Found while the owner is here: their shepherds had no connection to this monitor and so
  // may be saving already. They get the time to finish.
  if (watch_.verdict().state != SUBLET_PRESENCE_AWAY) {
    for (const auto& attempt : attempts_.all()) {
      if (!attempt->attended)
        attempts_.ask(attempt.get(), frame(watch_.verdict()), now,
                      now + (attempt->save_ms + 1000) * kMs);
    }
  }
}

std::vector<std::pair<uint64_t, uint32_t>> Monitor::attempts_here() const {
  std::vector<std::pair<uint64_t, uint32_t>> here;
  for (const auto& attempt : attempts_.all())
    if (!attempt->ended) here.emplace_back(attempt->job, attempt->attempt);
  return here;
}

void Monitor::step() {
  if (boot_now() + kTogether >= sampled_at_ + sample_period()) {
    take_sample();
    find_attempts(sampled_at_);
  } else {
    watch_.notice_events(boot_now());
  }
  const int64_t now = boot_now();
  attempts_.enforce(now);
  attempts_.tidy(now);
  listeners_.close_mute(now);
  if (now + kTogether >= reported_at_ + beat_period()) {
    listeners_.tell(frame(watch_.verdict_at(now)));
    reported_at_ = now;
  }
  if (options_.alone_ms >= 0 && listeners_.count() == 0 &&
      now - alone_since_ >= options_.alone_ms * kMs) {
    log(Severity::info) << "exiting: no connections for the time set by --exit-when-alone";
    stop_ = true;
  }
  set_timer(next_step(now));
}

int64_t Monitor::sample_period() const {
  const int64_t period = options_.sample_ms * kMs;
  if (listeners_.count() == 0) return std::max(kSampleAlone, period);
  // With jobs there are heartbeats as often anyway, and it matters.
  return listeners_.needs_heartbeat() ? period / 2 : period;
}

int64_t Monitor::beat_period() const {
  return listeners_.needs_heartbeat() ? SUBLET_MONITOR_BEAT_NS : kBeatToClient;
}

int64_t Monitor::next_step(int64_t now) const {
  int64_t next = std::min(sampled_at_ + sample_period(), reported_at_ + beat_period());
  next = std::min({next, attempts_.due(), listeners_.due()});
  next = std::min(next, watch_.next_notice());
  if (options_.alone_ms >= 0 && listeners_.count() == 0)
    next = std::min(next, alone_since_ + options_.alone_ms * kMs);
  return std::max(next, now);
}

void Monitor::set_timer(int64_t at) {
  if (at == timer_at_) return;
  timer_at_ = at;
  itimerspec when = {};
  when.it_value = {.tv_sec = at / 1'000'000'000, .tv_nsec = at % 1'000'000'000};
  if (timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr) == 0) return;
  // Without its timer it would no longer act, while its listeners rely on it. So it exits:
  // the jobs leave, and the client starts another monitor.
  log(Severity::error) << "the timer failed: " << strerror(errno);
  stop_ = true;
  exit_status_ = 1;
}

}  // namespace sublet::loadmon
