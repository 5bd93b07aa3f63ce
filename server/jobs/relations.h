// What the jobs of a batch wait for, when the batch is committed: checked, and told by ids.
#ifndef SUBLET_SERVER_JOBS_RELATIONS_H_
#define SUBLET_SERVER_JOBS_RELATIONS_H_

#include <array>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "job/description.h"
#include "server/access.h"
#include "server/commit/pipeline.h"
#include "server/question_gate.h"
#include "server/store/archive/archive.h"

namespace sublet::server {

// So many jobs of other batches may be named by the jobs of one batch: each is looked up.
inline constexpr uint64_t kOthersPerBatch = 10'000;

// Replaces what its jobs wait for in their own batch by ids; `first`: of the batch.
void name_by_ids(JobId first, SpecRange& range);

// The jobs of other batches for which those of one batch wait.
class OtherJobs {
 public:
  enum class Condition { kDone, kEnded, kStarted };
  static constexpr size_t kConditions = 3;

  // Adds those for which the jobs of the range wait. Throws Refusal "relation.too_many".
  void add(const SpecRange& range);
  const std::set<scheduling::JobRange>& of(Condition condition) const {
    return ranges_[static_cast<size_t>(condition)];
  }
  // Those that have ended, and so that they may be waited for on this condition.
  std::set<JobId>& ended(Condition condition) { return ended_[static_cast<size_t>(condition)]; }
  const std::set<JobId>& ended(Condition condition) const {
    return ended_[static_cast<size_t>(condition)];
  }

 private:
  std::array<std::set<scheduling::JobRange>, kConditions> ranges_;
  std::array<std::set<JobId>, kConditions> ended_;
  uint64_t jobs_ = 0;
};

// How jobs of other batches have ended for which those of a committed batch wait. On the committer.
class EndedOthers {
 public:
  // Which of these dependences are lost. None: that is not known yet, because only some of the jobs
  // are looked up at a time. In another turn more is. If that fails throws StoreError; or, with
  // `even_so`, a job that cannot be read counts as removed: who needs it is not to run without it.
  std::optional<std::vector<scheduling::LostDependence>> lost(
      Turn& turn, Archive& archive, const std::vector<scheduling::UnclearDependence>& unclear,
      bool even_so);
  static constexpr size_t kAtATime = 100;

 private:
  struct End {
    scheduling::JobState as = scheduling::JobState::kRemoved;
    bool had_started = false;
  };
  void look_up(Turn& turn, Archive& archive, const std::set<JobId>& jobs);
  void look_up_singly(Turn& turn, Archive& archive, const std::set<JobId>& jobs);
  JobId first_lost(const scheduling::UnclearDependence& unclear) const;

  std::map<JobId, End> known_;  // once known it does not change
};

class Relations {
 public:
  Relations(Archive& archive, const Access& access) : archive_(archive), access_(access) {}

  // Notes which of the others have ended: that does not change any more, so that the committer need
  // not look them up. They are looked up as a question of the caller's. Throws Refusal like
  // settle() or QuestionGate. Before that, not on the committer.
  void find_ended(Pipeline& pipeline, QuestionGate& questions, const Caller& caller,
                  OtherJobs& others) const;
  // Replaces the references to this batch by ids, its first job being `first`, and notes which
  // outputs its jobs need; `others`: all those for which they wait. Throws Refusal if the
  // references cannot be met: see Dependences and InputFile in idl/types.idl. On the committer,
  // before the batch's first event.
  void settle(Turn& turn, const Caller& caller, JobId first, std::vector<SpecRange>& specs,
              const OtherJobs& others) const;
  // The part of this that concerns other batches' jobs. The same.
  void require(Turn& turn, const Caller& caller, const OtherJobs& others) const;

 private:
  using Condition = OtherJobs::Condition;
  void require_live(Turn& turn, const Caller& caller, const scheduling::JobRange& jobs,
                    Condition condition, std::set<JobId>& ended) const;
  // `changed`: what a turn has changed since the last commit.
  void require_ended(const Caller& caller, const std::set<JobId>& ended, Condition condition,
                     const std::map<JobId, scheduling::JobRecord>& changed) const;
  void require(const Caller& caller, const scheduling::JobRecord& job, JobId id,
               Condition condition) const;

  Archive& archive_;
  const Access& access_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOBS_RELATIONS_H_
