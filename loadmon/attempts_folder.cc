#include "loadmon/attempts_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "attempt/folder.h"
#include "attempt/tenant.h"
#include "base/files.h"
#include "base/log.h"
#include "loadmon/cgroups.h"

namespace sublet::loadmon {
namespace {
constexpr int64_t kLookOn = 10'000'000'000;

class TenantHold : public JobHold {
 public:
  explicit TenantHold(std::unique_ptr<Tenant> tenant) : tenant_(std::move(tenant)) {}
  void freeze() noexcept override { tenant_->freeze(); }
  void kill() noexcept override { tenant_->kill(); }
  bool gone() noexcept override { return tenant_->gone(); }
  bool shepherd_stopped() noexcept override { return tenant_->shepherd_stopped(); }

 private:
  std::unique_ptr<Tenant> tenant_;
};

const std::string& first_not_empty(const std::string& one, const std::string& other) {
  return one.empty() ? other : one;
}
}  // namespace

AttemptsFolder::AttemptsFolder(const std::string& folder, int64_t save_ms, Attempts* attempts)
    : folder_(folder), save_ms_(save_ms), attempts_(attempts) {}

std::string AttemptsFolder::folder_of_attempt(const Attempt& attempt) const {
  return attempt_folder(folder_of(folder_), {.job = attempt.job, .attempt = attempt.attempt});
}

bool AttemptsFolder::has_ended(const Attempt& attempt) const {
  return !folder_.empty() &&
         access((folder_of_attempt(attempt) + "/" + SUBLET_EXIT_FILE).c_str(), F_OK) == 0;
}

void AttemptsFolder::prepare_all() {
  for (const auto& attempt : attempts_->all()) prepare(attempt.get());
}

void AttemptsFolder::prepare(Attempt* attempt) {
  if (attempt->hold || folder_.empty()) return;
  const std::string folder = folder_of_attempt(*attempt);
  std::string error;
  try {
    const std::optional<AttemptRecord> record = read_record(system_files(), folder, &error);
    if (!record) return;
    std::unique_ptr<Tenant> tenant = Tenant::open(folder, &error);
    if (!tenant) return;
    attempt->hold = std::make_unique<TenantHold>(std::move(tenant));
    attempt->roots = {record->shepherd.pid, record->program.pid};
    attempt->cgroup = first_not_empty(record->cgroup_unified,
                                      first_not_empty(record->cgroup_cpu, record->cgroup_memory));
    for (const std::string& one : {record->cgroup_cpu, record->cgroup_unified})
      if (!one.empty() && cgroup_usage_us(one) >= 0) attempt->cpu_cgroup = one;
    // Only with one of version 2 are they used again.
    attempt->cpu_before_us = record->cpu_before_us;
    attempt->memory_cgroup = record->cgroup_memory;
    const std::optional<AttemptOrder> order = read_order(system_files(), folder, &error);
    if (order) {
      attempts_->set_save_deadline(attempt, order->save_deadline_ms);
      attempt->can_stay = sublet_can_stay(static_cast<sublet_leaving>(order->leaving));
    }
  } catch (const std::exception& problem) {
    log(Severity::warning) << problem.what();
  }
}

Attempt* AttemptsFolder::find(uint64_t job, uint32_t number, int64_t now) {
  Attempt* attempt = attempts_->find(job, number);
  if (attempt == nullptr) {
    attempt = attempts_->add(job, number, now);
    attempt->save_ms = save_ms_;
  }
  return attempt;
}

void AttemptsFolder::scan(int64_t now) {
  if (folder_.empty()) return;
  prepare_all();
  struct stat about;
  if (stat(folder_.c_str(), &about) != 0) return;
  const int64_t changed = about.st_mtim.tv_sec * 1'000'000'000ll + about.st_mtim.tv_nsec;
  if (changed != changed_) look_until_ = now + kLookOn;
  changed_ = changed;
  if (now > look_until_) return;
  try {
    for (const AttemptName& name : list_attempts(system_files(), folder_of(folder_))) {
      if (attempts_->find(name.job, name.attempt) != nullptr) continue;
      Attempt* attempt = find(name.job, name.attempt, now);
      attempt->ended = has_ended(*attempt);
      if (!attempt->ended) prepare(attempt);
    }
  } catch (const FileError& error) {
    log(Severity::warning) << error.what();
  }
}

std::vector<pid_t> AttemptsFolder::processes() const {
  std::vector<pid_t> pids;
  for (const auto& attempt : attempts_->all()) {
    pids.insert(pids.end(), attempt->roots.begin(), attempt->roots.end());
    if (!attempt->cgroup.empty()) append_cgroup_members(attempt->cgroup, &pids);
  }
  return pids;
}

std::vector<JobToMeter> AttemptsFolder::to_meter() const {
  std::vector<JobToMeter> jobs;
  for (const auto& attempt : attempts_->all())
    if (!attempt->roots.empty())
      jobs.push_back(
          {attempt->roots, attempt->cgroup, attempt->cpu_cgroup, attempt->cpu_before_us});
  return jobs;
}

}  // namespace sublet::loadmon
