#include "server/machines/sessions.h"

#include "base/random.h"
#include "server/refusal.h"

namespace sublet::server {
namespace {
[[noreturn]] void unknown() {
  throw Refusal(Refusal::Kind::kNotFound, "session.unknown",
                "this registration is not known to the server (it may have restarted)",
                "Join again.", "session");
}
}  // namespace

SessionInfo Sessions::open(scheduling::MachineId machine, uint64_t uid, const std::string& name,
                           const std::string& holder, const std::string& version,
                           bool serves_ahead) {
  SessionInfo info;
  info.key = random_bytes(16);
  info.machine = machine;
  info.uid = uid;
  info.name = name;
  info.holder = holder;
  info.version = version;
  info.serves_ahead = serves_ahead;
  std::lock_guard lock(mutex_);
  auto old = key_of_.find(machine);
  if (old != key_of_.end()) by_key_.erase(old->second);
  by_key_[info.key] = info;
  key_of_[machine] = info.key;
  return info;
}

SessionInfo Sessions::find(const std::string& key, const Caller& caller) const {
  std::lock_guard lock(mutex_);
  auto it = by_key_.find(key);
  if (it == by_key_.end() || it->second.uid != caller.uid) unknown();
  return it->second;
}

std::optional<SessionInfo> Sessions::of_caller(uint64_t uid) const {
  std::lock_guard lock(mutex_);
  for (const auto& [key, info] : by_key_)
    if (info.uid == uid) return info;
  return std::nullopt;
}

std::optional<SessionInfo> Sessions::of_machine(scheduling::MachineId machine) const {
  std::lock_guard lock(mutex_);
  auto it = key_of_.find(machine);
  if (it == key_of_.end()) return std::nullopt;
  return by_key_.at(it->second);
}

void Sessions::set_attached(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto it = by_key_.find(key);
  if (it == by_key_.end()) unknown();
  it->second.attached = true;
}

bool Sessions::take_first_renewal(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto it = by_key_.find(key);
  if (it == by_key_.end()) unknown();
  if (it->second.renewed) return false;
  it->second.renewed = true;
  return true;
}

bool Sessions::close(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto it = by_key_.find(key);
  if (it == by_key_.end()) return false;
  key_of_.erase(it->second.machine);
  reports_.erase(it->second.machine);
  by_key_.erase(it);
  return true;
}

void Sessions::set_report(scheduling::MachineId machine, const ReportedState& state) {
  std::lock_guard lock(mutex_);
  reports_[machine] = state;
}

std::optional<ReportedState> Sessions::report(scheduling::MachineId machine) const {
  std::lock_guard lock(mutex_);
  auto it = reports_.find(machine);
  if (it == reports_.end()) return std::nullopt;
  return it->second;
}

void Sessions::set_status(scheduling::AttemptKey key, const LiveStatus& status) {
  std::lock_guard lock(mutex_);
  statuses_[key] = status;
}

int32_t Sessions::progress_ppm(scheduling::AttemptKey key) const {
  std::lock_guard lock(mutex_);
  auto it = statuses_.find(key);
  return it == statuses_.end() ? -1 : it->second.progress_ppm;
}

std::optional<LiveStatus> Sessions::status(scheduling::AttemptKey key) const {
  std::lock_guard lock(mutex_);
  auto it = statuses_.find(key);
  if (it == statuses_.end()) return std::nullopt;
  return it->second;
}

void Sessions::forget_status(scheduling::AttemptKey key) {
  std::lock_guard lock(mutex_);
  statuses_.erase(key);
}

void Sessions::keep_statuses(const std::function<bool(scheduling::AttemptKey)>& wanted) {
  std::lock_guard lock(mutex_);
  std::erase_if(statuses_, [&](const auto& entry) { return !wanted(entry.first); });
}

}  // namespace sublet::server
