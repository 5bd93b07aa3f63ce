// Inputs of a batch that are outputs of other jobs, when the batch is committed: checked, told
// by ids, and noted.
#ifndef SUBLET_SERVER_JOBS_SOURCES_H_
#define SUBLET_SERVER_JOBS_SOURCES_H_

#include <vector>

#include "job/description.h"
#include "server/commit/pipeline.h"
#include "server/store/archive/archive.h"

namespace sublet::server {

// Refuses inputs that the jobs of the batch which should leave them do not leave.
void check_sources_within(const std::vector<SpecRange>& specs);

// Tells the sources of `range` by ids, those of its own batch too, whose first job is `first`, and
// notes which outputs feed its jobs, the first of which is `consumer`.
void note_feeds(JobId first, JobId consumer, SpecRange& range, std::vector<FeedRow>& feeds);

// Replaces the jobs of this batch that leave inputs by their ids, its first job being `first`, and
// notes which outputs the batch needs. The jobs must exist (Relations). Throws Refusal if one does
// not leave such an output, or if it is kept no longer. On the committer; asks the database a few
// questions about each job of another batch, however many of its outputs are named.
void settle_sources(Turn& turn, Archive& archive, JobId first, std::vector<SpecRange>& specs);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOBS_SOURCES_H_
