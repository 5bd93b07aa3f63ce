// What the jobs of a batch wait for, when the batch is committed: checked, and told by ids.
#ifndef SUBLET_SERVER_JOBS_RELATIONS_H_
#define SUBLET_SERVER_JOBS_RELATIONS_H_

#include <set>
#include <vector>

#include "job/description.h"
#include "server/access.h"
#include "server/commit/pipeline.h"
#include "server/store/archive/archive.h"

namespace sublet::server {

// So many jobs of other batches may be named by the jobs of one batch: each is looked up.
inline constexpr uint64_t kOthersPerBatch = 10'000;

// Whether its jobs wait for jobs of other batches, whose outputs they may need.
bool waits_for_others(const SpecRange& range);
// Replaces what its jobs wait for in their own batch by ids; `first`: of the batch.
void name_by_ids(JobId first, SpecRange& range);

class Relations {
 public:
  Relations(Archive& archive, const Access& access) : archive_(archive), access_(access) {}

  // Replaces the references to this batch by ids, its first job being `first`, and notes which
  // outputs its jobs need. Throws Refusal if the references cannot be met: see Dependences and
  // InputFile in idl/types.idl. On the committer, before the batch's first event.
  void settle(Turn& turn, const Caller& caller, JobId first, std::vector<SpecRange>& specs) const;

 private:
  enum class Condition { kDone, kEnded, kStarted };
  void require_live(Turn& turn, const Caller& caller, const JobReference& jobs, Condition condition,
                    std::set<JobId>& ended) const;
  void require_ended(Turn& turn, const Caller& caller, std::set<JobId> ended,
                     Condition condition) const;
  void require(const Caller& caller, const scheduling::JobRecord& job, JobId id,
               Condition condition) const;

  Archive& archive_;
  const Access& access_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOBS_RELATIONS_H_
