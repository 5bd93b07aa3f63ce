#include "client/machine/disk_watch.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "client/machine/disk_usage.h"

namespace sublet::client {
namespace {

constexpr int64_t kMs = 1'000'000;

}  // namespace

DiskWatch::DiskWatch(const DiskSettings& settings, const Files& files, OrderDesk& desk,
                     std::function<void(const AttemptName&, const Shortage&)> name,
                     std::function<void()> changed, std::function<void(uint64_t)> make_room)
    : settings_(settings),
      files_(files),
      desk_(desk),
      name_(std::move(name)),
      changed_(std::move(changed)),
      make_room_(std::move(make_room)),
      bounds_(files, settings.state_folder),
      thread_(std::make_unique<Workers>(1)) {}

void DiskWatch::stop() { thread_->stop(); }

void DiskWatch::start() {
  thread_->post([this] { work(); });
}

void DiskWatch::attempt_came() {
  if (idle_.exchange(false)) thread_->hurry();
}

void DiskWatch::work() {
  idle_ = true;  // before the scan, so that an attempt that arrives during it is noticed
  int64_t due_ms = settings_.period_ms;
  try {
    due_ms = scan(system_clock().boot_ns());
  } catch (const FileError& error) {
    log(Severity::error) << "the disk cannot be watched: " << error.what();
  }
  bool far = due_ms > settings_.period_ms;
  if (!far) idle_ = false;
  thread_->post([this] { work(); }, due_ms);
  if (far && !idle_) thread_->hurry();
}

int64_t DiskWatch::scan(int64_t now_ns) {
  std::vector<AttemptName> here = list_attempts(files_, settings_.state_folder);
  std::erase_if(named_, [&](const auto& name) { return !std::ranges::binary_search(here, name); });
  uint64_t free = files_.free_bytes(settings_.state_folder);
  if (free < settings_.reserve) {
    make_room_(settings_.reserve + settings_.reserve / 4 - free);
    free = files_.free_bytes(settings_.state_folder);
  }
  set_low(free);
  if (free >= settings_.reserve)
    leaving_.reset();
  else
    choose(here, free, now_ns);
  for (const auto& [name, shortage] : bounds_.exceeded(here, free, now_ns)) name_(name, shortage);
  desk_.set_disk_in_use(bounds_.used());
  int64_t due_ms = next_ms(free, now_ns);
  if (!here.empty() || low_) return due_ms;
  last_ns_ = 0;
  return std::max(kIdleMs, settings_.period_ms);
}

// The disk stays "low" until a quarter more than the reserve is free, so that jobs are
// not accepted and sent away in turns.
void DiskWatch::set_low(uint64_t free) {
  bool low = free < settings_.reserve + (low_ ? settings_.reserve / 4 : 0);
  if (low == low_) return;
  low_ = low;
  desk_.set_disk_low(low);
  changed_();
  log(low ? Severity::warning : Severity::info)
      << "the disk " << (low ? "is nearly full" : "has room again") << ": " << format_bytes(free)
      << " free, " << format_bytes(settings_.reserve) << " are reserved for the owner";
}

// Half of the time until, at the current rate, the reserve would be reached.
int64_t DiskWatch::next_ms(uint64_t free, int64_t now_ns) {
  int64_t due_ms = leaving_ ? kShortestMs : settings_.period_ms;
  if (!low_ && last_ns_ != 0 && free < last_free_) {
    double left = static_cast<double>(free - settings_.reserve);
    double used = static_cast<double>(last_free_ - free);
    double elapsed_ms = static_cast<double>(now_ns - last_ns_) / kMs;
    due_ms = static_cast<int64_t>(std::min(left / used * elapsed_ms / 2, 1e9));
  }
  last_free_ = free;
  last_ns_ = now_ns;
  return std::clamp(due_ms, std::min(kShortestMs, settings_.period_ms), settings_.period_ms);
}

// An ended attempt only hands in its results; it cannot leave any sooner.
bool DiskWatch::has_ended(const std::string& folder) const {
  return files_.exists(folder + "/" SUBLET_EXIT_FILE) || files_.exists(folder + "/" + kEndFile);
}

bool DiskWatch::has_made_room(const AttemptName& name) const {
  return !files_.exists(attempt_folder(settings_.state_folder, name) + "/" SUBLET_WORK_FOLDER);
}

void DiskWatch::choose(const std::vector<AttemptName>& here, uint64_t free, int64_t now_ns) {
  if (leaving_ && !has_made_room(leaving_->name) && now_ns < leaving_->until_ns) {
    if (leaving_->killed || free >= settings_.reserve / 4) return;
    leaving_->killed = true;
    return name_(leaving_->name, {});
  }
  leaving_.reset();
  Shortage most;
  AttemptName who;
  for (const AttemptName& name : here) {
    std::string folder = attempt_folder(settings_.state_folder, name);
    if (named_.contains(name) || has_ended(folder)) continue;
    uint64_t used = disk_usage(folder);
    if (used > most.used) {
      most = {Shortage::Of::kDisk, used, free};
      who = name;
    }
  }
  if (most.used == 0) return;
  named_.insert(who);
  leaving_ = {who, now_ns + settings_.leave_ms * kMs, false};
  desk_.note_disk_use(who.job, most.used);
  name_(who, most);
}

}  // namespace sublet::client
