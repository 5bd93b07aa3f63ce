// What one apply changes. It holds the instant of the apply, the pool's counters and the
// outcome so far; each book notes in it what it changes, and adds one record for each
// subject, in its final state, at the end.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_BOOKS_CHANGES_H_
#define SUBLET_SCHEDULING_BOOKS_CHANGES_H_

#include <utility>
#include <vector>

#include "scheduling/records.h"

namespace sublet::scheduling {

class Changes {
 public:
  // Begins an apply. A `now` before the newest instant is raised to that, so the brain's
  // time never runs backwards; 0 means "not set" in records, so it is at least 1.
  void begin(Micros now);
  // The outcome. The record of the counters is its last, if they changed.
  Outcome finish();

  Micros now() const { return counters_.now; }
  Answer& answer() { return outcome_.answer; }
  template <typename AnyRecord>
  void add(AnyRecord&& record) {
    outcome_.records.emplace_back(std::forward<AnyRecord>(record));
  }
  void decide(Decision decision) { outcome_.decisions.push_back(std::move(decision)); }
  // More records are to come than usual.
  void expect(size_t records) { outcome_.records.reserve(records); }
  // All `record.count` jobs are in its state now.
  void add_change(const JobRecord& record, EndReason ended);

  // Ids are never assigned twice.
  const PoolRecord& counters() const { return counters_; }
  JobId take_job_ids(uint64_t count) {
    return std::exchange(counters_.next_job, counters_.next_job + count);
  }
  BatchId take_batch_id() { return counters_.next_batch++; }
  MachineId take_machine_id() { return counters_.next_machine++; }
  // Records a tick; returns the time since the previous one, 0 for the first.
  Micros tick();
  // Local time from now on.
  void set_utc_offset(int32_t seconds) { counters_.utc_offset = seconds; }
  void set_indices_due(Micros due) { counters_.indices_due = due; }

  // The stored counters, and those to go on with: they are stored if they differ.
  void restore(const PoolRecord& stored, const PoolRecord& raised);

 private:
  PoolRecord counters_;
  PoolRecord stored_;  // as last added to an outcome
  Outcome outcome_;
};

// The subjects that one apply has changed, each once, in the order of their first change.
// A subject has a member `bool touched`, and lives as long as the apply.
template <typename Subject>
class Touched {
 public:
  void add(Subject& subject) {
    if (!subject.touched) subjects_.push_back(&subject);
    subject.touched = true;
  }
  const std::vector<Subject*>& all() const { return subjects_; }
  void clear() {
    for (Subject* subject : subjects_) subject->touched = false;
    subjects_.clear();
  }

 private:
  std::vector<Subject*> subjects_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_BOOKS_CHANGES_H_
