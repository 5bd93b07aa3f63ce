// For the brain's tests: a pool with a clock set by the test, and the records that a
// store would hold, checked as they are written.
#ifndef SUBLET_SCHEDULING_POOL_TESTING_H_
#define SUBLET_SCHEDULING_POOL_TESTING_H_

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduling/pool.h"

namespace sublet::scheduling::testing {

inline constexpr Micros kSecond = 1'000'000;
inline constexpr Micros kStart = 1'700'000'000 * kSecond;

// All fields as text: equal texts mean equal values.
std::string text_of(const Record& record);
std::string text_of(const Outcome& outcome);

// What a store holds after the records. Throws std::logic_error when the records
// violate an invariant: the same subject twice in one outcome, an end recorded
// twice, a gap in the changes, used other than kept + lost, ...
class Books {
 public:
  // `damaged`: a checkpoint was damaged, so a generation may decrease.
  void write(const Outcome& outcome, bool damaged = false);
  Snapshot snapshot() const;

  std::map<JobId, JobRecord> rows;  // as written: an array may be one row
  std::map<JobId, JobRecord> jobs;  // one entry for each job
  std::map<AttemptKey, AttemptRecord> attempts;
  std::map<MachineId, MachineRecord> machines;
  std::map<std::string, UserRecord> users;
  std::map<AttemptKey, UseRecord> uses;
  std::vector<ChangeRecord> changes;
  std::map<BatchId, BatchRecord> batches;
  std::map<JobId, RelationRecord> relations;  // by their first job
  std::map<MachineId, AbsenceRecord> absences;
  std::map<std::tuple<uint64_t, std::string, int32_t>, ProgramRecord> programs;
  PoolRecord pool;
  std::optional<PolicyRecord> policy;
};

// With the policy "fair-share-1998".
inline Parameters as_in_1998() {
  Parameters parameters;
  parameters.job_policy = "fair-share-1998";
  return parameters;
}

class TestPool {
 public:
  // Opens batch 1, which all jobs belong to.
  explicit TestPool(const Parameters& parameters = Parameters()) : pool(parameters) {
    apply(BatchOpened());
  }

  // Applies at `now`, writes `books` and returns (and keeps) the outcome.
  const Outcome& apply(const Event& event);
  void pass(Micros span) { now += span; }
  // Advances to the next deadline and applies TimePassed; false: there is none.
  bool to_next_deadline();

  // Adds a machine, which reports its owner away if `away`.
  MachineId join(const std::string& name, uint32_t slots = 1, bool away = true);
  MachineId join(const MachineJoined& event, bool away = true);
  void report(MachineId machine, bool away, uint64_t memory_free = 0);
  JobId submit(const std::string& user, size_t count = 1, Submitted::Job job = {},
               const std::string& host = "desk");
  // The job's live attempt is accepted and started.
  void start(JobId job);
  // The job's live attempt ends.
  const Outcome& end(JobId job, EndReason ended, Micros cpu = 0, Micros saved = -1);
  const Outcome& renew(JobId job, AttemptState state = AttemptState::kRunning);

  AttemptKey key(JobId job) const;        // of the live attempt
  MachineId machine_of(JobId job) const;  // of the live attempt; 0: none
  // Includes final jobs.
  const JobRecord& record(JobId job) const { return books.jobs.at(job); }
  JobState state(JobId job) const { return record(job).state; }

  Pool pool;
  Books books;
  Micros now = kStart;
  Outcome last;
};

}  // namespace sublet::scheduling::testing

#endif  // SUBLET_SCHEDULING_POOL_TESTING_H_
