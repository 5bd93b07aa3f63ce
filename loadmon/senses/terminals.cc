#include "loadmon/senses/terminals.h"

#include <dirent.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/os_error.h"

namespace sublet::loadmon {
namespace {
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kRest = 1'000 * kMs;
constexpr int64_t kPauseInFlood = 10 * kMs;
// Between looks at the jobs' processes, and how many times longer than a look took.
constexpr int64_t kBetweenLooks = 100 * kMs;
constexpr int64_t kShareOfTime = 20;
// Looking at a hundred terminals costs more than all other senses together.
constexpr int64_t kTimesEvery = 2'000 * kMs;
// Access times are updated in steps of 8 s.
constexpr int64_t kJustRead_s = 9;
constexpr int64_t kStep_us = 20'000;
constexpr int kMostReads = 16;  // of 4 KiB of events at a time
constexpr size_t kMostTerminals = 4096;

bool digits_only(const char* text) { return *text != 0 && text[strspn(text, "0123456789")] == 0; }

// A terminal by its name in /dev: "tty", "tty1", "ttyS0", "hvc0"; /dev/pts has other names.
bool may_be_terminal(const std::string& name) {
  return name.starts_with("tty") || (name.starts_with("hvc") && digits_only(name.c_str() + 3));
}

// /dev/tty: the terminal of the process that opens it, whichever that is.
bool is_any(const std::string& path) { return path.ends_with("/tty"); }

bool is_pseudo(const std::string& path) { return path.find("/pts/") != std::string::npos; }

bool is_console(const std::string& path) {
  return digits_only(path.c_str() + path.rfind('/') + 1 + strlen("tty"));
}

bool describe(const std::string& path, struct stat* about) {
  return lstat(path.c_str(), about) == 0 && S_ISCHR(about->st_mode);
}

// A serial line belongs to the group of modems, readable and writable, until somebody can log in
// there: getty and login take it from the group. A receiver that sends on its own is no owner.
bool is_owners(const std::string& path) {
  struct stat about;
  return is_pseudo(path) || is_console(path) ||
         (describe(path, &about) && (about.st_mode & S_IRGRP) == 0);
}

int64_t utc_s() {
  timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  return wall.tv_sec;
}

template <typename Function>
void for_each_name(const std::string& folder, Function function) {
  const std::unique_ptr<DIR, int (*)(DIR*)> names(opendir(folder.c_str()), closedir);
  if (!names) return;
  while (const dirent* entry = readdir(names.get())) function(std::string(entry->d_name));
}
}  // namespace

Terminals::Terminals(const std::string& root, std::function<JobTerminals()> jobs)
    : dev_(root + "/dev"),
      find_jobs_(std::move(jobs)),
      inotify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (!inotify_.valid())
    throw OsError(errno, "watch", "terminals", "raise fs.inotify.max_user_instances");
  if (!events_.add(inotify_.get())) throw OsError(errno, "watch", "terminals");
  look_for_terminals();
}

void Terminals::look_for_terminals() {
  error_ = 0;
  constexpr uint32_t kNames = IN_CREATE | IN_DELETE | IN_ATTRIB | IN_ONLYDIR;
  // A container may have neither folder; then there is nothing to see.
  dev_watch_ = inotify_add_watch(inotify_.get(), dev_.c_str(), kNames);
  pts_watch_ = inotify_add_watch(inotify_.get(), (dev_ + "/pts").c_str(), kNames);
  unwatched_.clear();
  for_each_name(dev_, [this](const std::string& name) {
    if (may_be_terminal(name)) add(dev_ + "/" + name);
  });
  for_each_name(dev_ + "/pts", [this](const std::string& name) {
    if (digits_only(name.c_str())) add(dev_ + "/pts/" + name);
  });
}

Terminals::Terminal* Terminals::add(const std::string& path) {
  struct stat about;
  if (of_jobs_.contains(path) || !describe(path, &about)) return nullptr;
  if (watched_.size() + unwatched_.size() >= kMostTerminals) {
    error_ = ENOSPC;
    return nullptr;
  }
  const int watch = inotify_add_watch(inotify_.get(), path.c_str(), IN_ACCESS | IN_DONT_FOLLOW);
  if (watch < 0) {
    if (errno == ENOSPC || errno == ENOMEM) error_ = errno;
    unwatched_.insert(path);
    return nullptr;
  }
  unwatched_.erase(path);
  Terminal& terminal = watched_[watch];
  if (terminal.path != path) {
    terminal = {path, !is_pseudo(path), false, about.st_ctim};
    undecided_ = undecided_ || is_pseudo(path);
  }
  return &terminal;
}

bool Terminals::sample(int64_t now, const JobsEffect& /*jobs*/, protocol::PresenceSample* sample) {
  drain(now);
  if (lost_) {
    lost_ = false;
    watched_.clear();
    of_jobs_.clear();
    look_for_terminals();
    seen(now, "");
  }
  if (undecided_) decide(now);
  if (times_at_ == 0 || now - times_at_ >= kTimesEvery) look_at_times(now, times_at_ == 0);
  fill(now, sample);
  return error_ == 0;
}

bool Terminals::notice(int64_t now, protocol::PresenceSample* sample) {
  drain(now);
  if (heard_) decide(now);
  fill(now, sample);
  return error_ == 0;
}

void Terminals::drain(int64_t now) {
  events_.wake(now);
  alignas(inotify_event) char events[4096];
  for (int reads = 0; reads < kMostReads; ++reads) {
    const ssize_t got = read(inotify_.get(), events, sizeof events);
    if (got <= 0) return;
    for (const char* at = events; at < events + got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof *event + event->len;
      take(*event, now);
    }
  }
  // So many names come and go only on purpose.
  if (events_.rests_until() == 0) events_.rest(now + kPauseInFlood);
}

void Terminals::take(const inotify_event& event, int64_t now) {
  if (event.mask & IN_Q_OVERFLOW) {
    lost_ = true;
  } else if (event.wd == dev_watch_ || event.wd == pts_watch_) {
    take_name(event, now);
  } else if (const auto terminal = watched_.find(event.wd); terminal != watched_.end()) {
    if (event.mask & IN_ACCESS) heard(terminal->second, now);
    if (event.mask & IN_IGNORED) watched_.erase(terminal);
  }
}

void Terminals::take_name(const inotify_event& event, int64_t now) {
  if (event.len == 0) return;
  const bool pseudo = event.wd == pts_watch_;
  if (!(pseudo ? digits_only(event.name) : may_be_terminal(event.name))) return;
  const std::string path = dev_ + (pseudo ? "/pts/" : "/") + event.name;
  if (event.mask & IN_DELETE) {
    of_jobs_.erase(path);
    unwatched_.erase(path);
    return;
  }
  Terminal* terminal = add(path);
  // Whoever opens a terminal is here.
  if (terminal != nullptr && pseudo && (event.mask & IN_CREATE)) heard(*terminal, now);
}

void Terminals::heard(Terminal& terminal, int64_t now) {
  if (!terminal.owners) {
    terminal.heard = heard_ = true;
    return;
  }
  if (is_any(terminal.path) ? of_jobs_.empty() || any_was_just_read() : is_owners(terminal.path))
    seen(now, terminal.path);
}

void Terminals::decide(int64_t now) {
  if (now < decide_at_) return;
  undecided_ = heard_ = false;
  const int64_t began = system_clock().boot_ns();
  const int64_t began_utc_us = system_clock().utc_us();
  const JobTerminals jobs = find_jobs_();
  // A job that opens terminals all the time must not keep the monitor busy.
  const int64_t cost = system_clock().boot_ns() - began;
  decide_at_ = now + std::max(kBetweenLooks, kShareOfTime * cost);
  for (auto terminal = watched_.begin(); terminal != watched_.end();) {
    const auto next = std::next(terminal);
    Terminal& one = terminal->second;
    const Whose whose = one.owners ? Whose::owners : this->whose(one, jobs, began_utc_us);
    if (whose == Whose::another) {
      undecided_ = true;
      heard_ = heard_ || one.heard;
    } else if (whose == Whose::owners) {
      if (one.heard) seen(now, one.path);
      one.owners = true;
      one.heard = false;
    } else {
      if (whose == Whose::jobs) of_jobs_.insert(one.path);
      inotify_rm_watch(inotify_.get(), terminal->first);
      watched_.erase(terminal);
    }
    terminal = next;
  }
}

Terminals::Whose Terminals::whose(Terminal& terminal, const JobTerminals& jobs,
                                  int64_t began_utc_us) const {
  struct stat about;
  if (!describe(terminal.path, &about)) return Whose::nobodys;
  const char* number = terminal.path.c_str() + terminal.path.rfind('/') + 1;
  if (jobs.contain(static_cast<uint32_t>(strtoul(number, nullptr, 10)), about.st_uid))
    return Whose::jobs;
  // Where a job closes one terminal and opens the next, the look may have come in between. The
  // kernel's time stamps have steps of up to 10 ms.
  const timespec before = std::exchange(terminal.changed, about.st_ctim);
  const bool same =
      before.tv_sec == about.st_ctim.tv_sec && before.tv_nsec == about.st_ctim.tv_nsec;
  const int64_t age_us =
      began_utc_us - about.st_ctim.tv_sec * 1'000'000 - about.st_ctim.tv_nsec / 1'000;
  // A time in the future: the clock was set back.
  return same && (age_us > kStep_us || age_us < -kStep_us) ? Whose::owners : Whose::another;
}

bool Terminals::any_was_just_read() const {
  const int64_t since = utc_s() - kJustRead_s;
  return std::any_of(watched_.begin(), watched_.end(), [&](const auto& entry) {
    const Terminal& terminal = entry.second;
    struct stat about;
    return terminal.owners && !is_any(terminal.path) && describe(terminal.path, &about) &&
           about.st_atim.tv_sec >= since;
  });
}

// Of the terminals that cannot be watched; at the start of all, since what was typed before is
// not reported any more.
void Terminals::look_at_times(int64_t now, bool all) {
  times_at_ = now;
  int64_t youngest = 0;
  const std::string* place = nullptr;
  const auto look = [&](const std::string& path) {
    struct stat about;
    if (is_any(path) || !is_owners(path) || !describe(path, &about)) return;
    if (about.st_atim.tv_sec <= youngest) return;
    youngest = about.st_atim.tv_sec;
    place = &path;
  };
  for (const std::string& path : unwatched_) look(path);
  if (all)
    for (const auto& [watch, terminal] : watched_) look(terminal.path);
  if (youngest == 0) return;
  // A time in the future (the clock was set back) counts as a key just now.
  const int64_t age_s = std::max<int64_t>(0, utc_s() - youngest);
  const int64_t read_at = now - age_s * 1'000 * kMs;
  if (read_at <= seen_at_) return;
  seen_at_ = read_at;
  seen_in_ = place_of(*place);
}

protocol::Place Terminals::place_of(const std::string& path) const {
  return protocol::Place(std::string_view(path).substr(std::min(path.size(), dev_.size() + 1)));
}

void Terminals::seen(int64_t now, const std::string& path) {
  seen_at_ = now;
  seen_in_ = place_of(path);
  events_.rest(now + kRest);
}

void Terminals::fill(int64_t now, protocol::PresenceSample* sample) const {
  if (seen_at_ != kUnseen) note_input(now, seen_at_, "terminals", seen_in_, sample);
}

std::string Terminals::problem() const {
  if (error_ == 0) return "";
  return OsError(error_, "watch", "a terminal", "raise fs.inotify.max_user_watches").what();
}

std::string Terminals::absence() const {
  if (watched_.empty() && unwatched_.empty()) return "there are none in " + dev_;
  if (unwatched_.empty()) return "";
  return std::to_string(unwatched_.size()) + " terminals, such as " + *unwatched_.begin() +
         ", may not be read, so keys there are seen only after up to 10 s; run the client as root";
}

int64_t Terminals::next_notice(int64_t now) const {
  const int64_t decide = heard_ ? std::max(now, decide_at_) : kNever;
  // The rest after a key ends with a sample.
  const bool flood = events_.rests_until() != 0 && seen_at_ + kRest != events_.rests_until();
  return flood ? std::min(decide, events_.rests_until()) : decide;
}

}  // namespace sublet::loadmon
