// A job that used more memory than it asks for asks for that much the next time, so that it is
// not sent to the next machine that has as little.
//
// - The job itself, whenever it goes back to the queue: evicted or retried. An attempt that uses
//   less does not make it ask for less again.
// - The jobs with its description, if they wait or are held, and have no attempt that has yet to
//   leave, only if it left because its
//   machine's memory ran short (AttemptEnded::alike): that one element of an array has used more
//   than its user said, where there was enough, is no reason to keep the others off machines.
//   Those at work are raised by their own ends.
// - Never to more than a machine could have: see memory_to_ask.
//
// JobRecord::needs is what the pool asks of a machine; what the user asked for is in the job's
// description, which is not changed.
#include <algorithm>

#include "scheduling/state.h"

namespace sublet::scheduling {
namespace {

// So many records are looked at for one end; jobs in one record, as the part of an array that has
// not run, count once. What that leaves out of a large array in pieces is raised by its own ends.
constexpr uint64_t kMostAlike = 256;

// A peak may be more than there is: without a cgroup, pages that processes share count for each.
// The job must not wait for a machine that does not exist, so it asks for no more than its machine
// offered when it was sent there, with which it ran; or than half of that machine's memory, if
// that is more or the other is not known, as clients do (OrderDesk::note_memory_use).
uint64_t memory_to_ask(const Attempt& attempt, uint64_t peak) {
  const uint64_t all = attempt.machine->record.memory;
  return std::min(peak, std::clamp(attempt.memory_offered, all / 2, all));
}

}  // namespace

void Pool::State::note_growth(Job& job, const Attempt& attempt, const End& end) {
  const uint64_t memory = memory_to_ask(attempt, end.memory_peak);
  jobs.ask_memory(job, memory);
  note_growth_of_alike(end.alike, job.record.id, memory);
}

// O(kMostAlike * log jobs).
void Pool::State::note_growth_of_alike(const JobRange& alike, JobId grown, uint64_t memory) {
  if (grown < alike.first || grown - alike.first >= alike.count) return;
  const JobId end = alike.first + std::min(alike.count, changes.counters().next_job - alike.first);
  const auto asks_less = [&](const Job& job) {
    const JobState state = job.record.state;
    return !is_final(state) && !is_at_work(state) && attempts.find(job.record.id) == nullptr &&
           job.record.needs.memory < memory;
  };
  // A record may have jobs of other descriptions, which are equal for the brain.
  Job* across = jobs.with(alike.first);
  if (across != nullptr && across->record.id < alike.first && asks_less(*across))
    jobs.split(*across, alike.first - across->record.id);
  uint64_t left = kMostAlike;
  for (auto it = jobs.arrays().lower_bound(alike.first);
       it != jobs.arrays().end() && it->first < end && left > 0; --left) {
    Job& job = *it->second;
    ++it;  // a split may remove its entry
    if (!asks_less(job)) continue;
    if (job.record.count > end - job.record.id) jobs.split(job, end - job.record.id);
    jobs.ask_memory(job, memory);
  }
  const auto raise_single = [&](JobId id, JobId until) {
    for (; id < until && left > 0; --left) {
      Job* job = jobs.with(id);
      if (job != nullptr && job->record.count == 1 && asks_less(*job))
        jobs.ask_memory(*job, memory);
      id = job == nullptr ? id + 1 : job->record.id + job->record.count;
    }
  };
  raise_single(grown + 1, end);
  raise_single(alike.first, grown);
}

}  // namespace sublet::scheduling
