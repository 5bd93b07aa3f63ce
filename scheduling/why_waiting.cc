// Why a job waits, in one true sentence.
#include <algorithm>
#include <functional>

#include "scheduling/sentences.h"
#include "scheduling/state.h"

namespace sublet::scheduling {
namespace {

using Machines = std::vector<const Machine*>;

Machines only(const Machines& machines, const std::function<bool(const Machine&)>& keep) {
  Machines kept;
  for (const Machine* m : machines) {
    if (keep(*m)) kept.push_back(m);
  }
  return kept;
}

// Narrows the machines by one requirement after the other; when none is left,
// `missing` names the requirement that did it.
Machines fitting(const Machines& all, const Requirements& needs, std::string& missing) {
  struct Step {
    bool asked;
    std::string what;
    std::function<uint64_t(const Machine&)> size;  // empty: nothing to measure
    std::function<bool(const Machine&)> fits;
    std::function<std::string(uint64_t)> text;
  };
  const auto plain = [](uint64_t n) { return std::to_string(n); };
  const auto cores = [](const Machine& m) { return uint64_t{m.kind->slot_cores}; };
  const auto disk = [](const Machine& m) { return m.disk_free; };
  const Step steps[] = {
      {!needs.os.empty(), "runs " + needs.os, nullptr,
       [&](const Machine& m) { return m.record.os == needs.os; }, nullptr},
      {!needs.architecture.empty(), "is " + needs.architecture, nullptr,
       [&](const Machine& m) { return m.record.architecture == needs.architecture; }, nullptr},
      {needs.cores > 0, "has " + counted(needs.cores, "core") + " for one job", cores,
       [&](const Machine& m) { return needs.cores <= m.kind->slot_cores; }, plain},
      {needs.memory > 0, "has " + bytes_text(needs.memory) + " of memory", memory_offered,
       [&](const Machine& m) { return needs.memory <= memory_offered(m); }, bytes_text},
      {needs.disk > 0, "has " + bytes_text(needs.disk) + " of disk", disk,
       [&](const Machine& m) { return needs.disk <= m.disk_free; }, bytes_text},
  };
  Machines left = all;
  for (const Step& step : steps) {
    if (!step.asked) continue;
    Machines next = only(left, step.fits);
    if (next.empty()) {
      missing = left.size() == all.size()
                    ? "no machine "
                    : "none of the " + counted(left.size(), "machine") + " that fit otherwise ";
      missing += step.what;
      if (!step.size) return next;
      uint64_t largest = 0;
      for (const Machine* m : left) largest = std::max(largest, step.size(*m));
      missing += " (largest: " + step.text(largest) + ")";
      return next;
    }
    left = std::move(next);
  }
  return left;
}

// "4 machines fit, all with their owners"; mixed: "…: 1 with its owner, 3 at work".
std::string none_idle(const Machines& fit) {
  uint64_t silent = 0, owners = 0, full = 0, paused = 0;
  for (const Machine* m : fit) {
    if (m->silent) {
      ++silent;
    } else if (!m->away) {
      ++owners;
    } else if (m->running.size() >= m->record.slots) {
      ++full;
    } else {
      ++paused;
    }
  }
  std::string text = counted(fit.size(), "machine") + (fit.size() == 1 ? " fits" : " fit");
  const std::pair<uint64_t, const char*> parts[] = {{owners, "with their owners"},
                                                    {full, "at work"},
                                                    {silent, "not heard of"},
                                                    {paused, "pausing after a refusal"}};
  const char* separator = ": ";
  for (const auto& [count, what] : parts) {
    if (count == 0) continue;
    if (count == fit.size()) return text + ", " + (count == 1 ? "" : "all ") + what;
    text += separator + std::to_string(count) + " " + what;
    separator = ", ";
  }
  return text;
}

bool ahead(const Job& a, const Job& b, const Drift& drift) {
  const auto entry = [&](const Job& j) {
    return QueueEntry{drift.order(j.record.share_priority, j.record.share_priority_at), j.record.id,
                      nullptr, j.record.priority};
  };
  const QueueEntry x = entry(a), y = entry(b);
  if (a.user == b.user) return QueueOrder::before(x, y);
  return std::tie(x.order, a.host->turn, x.id) < std::tie(y.order, b.host->turn, y.id);
}

// Waiting jobs that come before this one on a machine that fits both. Looks at
// the whole queue: for people who ask, not for decisions.
uint64_t count_ahead(const Pool::State& s, const Job& job, const Machines& fit) {
  uint64_t count = 0;
  for (const auto& [needs, group] : s.queue.groups()) {
    const bool shares_machine = std::any_of(fit.begin(), fit.end(), [&](const Machine* m) {
      return suits(*m->kind, group->needs) && has_room(*m, group->needs);
    });
    if (!shares_machine) continue;
    for (const Bucket* bucket : group->open) {
      for (const QueueEntry& entry : bucket->heap.entries()) {
        count += entry.job != &job && ahead(*entry.job, job, s.drift);
      }
    }
  }
  return count;
}

}  // namespace

std::string Pool::why_waiting(JobId id, Micros) const {
  const State& s = *state_;
  const Job* job = s.live_job(id);
  if (job == nullptr) return "job " + std::to_string(id) + " is not live";
  const Attempt* attempt = state_->live_attempt(id);
  const std::string where = attempt == nullptr
                                ? ""
                                : "attempt " + std::to_string(attempt->record.key.attempt) +
                                      " on " + attempt->machine->record.name;
  if (job->record.state == JobState::kHeld) {
    return attempt == nullptr ? "held until it is released"
                              : "held until it is released; " + where + " has not ended yet";
  }
  if (job->record.state != JobState::kWaiting) return "it does not wait: " + where + " has it";
  if (attempt != nullptr) return "its " + where + " has not ended yet";
  Machines all;
  for (const auto& [machine_id, m] : s.machines) {
    if (m.record.state != MachineState::kGone) all.push_back(&m);
  }
  if (all.empty()) return "no machine is in the pool";
  std::string missing;
  const Machines fit = fitting(all, job->record.needs, missing);
  if (fit.empty()) return missing;
  std::string text = none_idle(fit);
  const uint64_t before = count_ahead(s, *job, fit);
  if (before > 0) {
    text += "; " + counted(before, "job") + " with better priority " +
            (before == 1 ? "waits" : "wait") + " for the same machines";
  }
  return text;
}

}  // namespace sublet::scheduling
