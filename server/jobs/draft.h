// The jobs of an open or committed batch, read from its stored parts: one description at a time,
// because all of them may need more memory than the server should use.
//
// Threads: any, one at a time; not the committer, unless a batch is small.
#ifndef SUBLET_SERVER_JOBS_DRAFT_H_
#define SUBLET_SERVER_JOBS_DRAFT_H_

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "job/description.h"
#include "scheduling/events/events.h"
#include "server/commit/changes.h"
#include "server/jobs/relations.h"
#include "server/store/archive/archive.h"

namespace sublet::server {

// So much of a batch is entered at a time, so that others' work comes between.
struct SliceSize {
  size_t entries = 250;   // of the brain: jobs that are equal for it are one
  size_t ranges = 1'000;  // descriptions
  size_t bytes = 1 << 20;
  bool is_full(size_t made, size_t descriptions, size_t octets) const {
    return made >= entries || descriptions >= ranges || octets >= bytes;
  }
};

// Reads the descriptions of a batch in the order of its appends.
class DraftReader {
 public:
  // From this description of this part on; there are `parts` parts.
  DraftReader(Archive& archive, const DraftRow& draft);

  // Null: there are no more. Valid until the next call. Throws Refusal "batch.gap" or
  // "batch.damaged" if the next part is not there, or not what was stored.
  SpecRange* next();
  // After a Refusal: goes on behind the part that it concerns. Its jobs, if that is known and none
  // of them was read before, else 0.
  uint64_t skip_part();
  bool at_end() const { return range_ == specs_.size() && part_ == parts_; }
  // Of the next description.
  uint32_t part() const { return range_ == specs_.size() ? part_ : part_ - 1; }
  uint64_t range() const { return range_ == specs_.size() ? 0 : range_; }

 private:
  void read_part();

  Archive& archive_;
  const BatchId batch_;
  const uint64_t parts_;
  uint32_t part_;  // the next to read
  uint64_t skip_;  // of its descriptions
  size_t range_ = 0;
  std::vector<SpecRange> specs_;  // of the part read last
};

// What the brain is told of jobs, a description at a time.
class EventJobs {
 public:
  // `with_programs`: these are the first jobs of their batch.
  EventJobs(const std::string& user, bool with_programs)
      : user_(user), with_programs_(with_programs) {}
  // Its jobs follow those before; what equals these for the brain becomes one entry with them.
  void add(const SpecRange& range);
  size_t entries() const { return jobs_.size(); }
  uint64_t count() const { return count_; }
  std::vector<scheduling::Submitted::Job> take() { return std::move(jobs_); }

 private:
  const std::string user_;
  const bool with_programs_;
  std::vector<scheduling::Submitted::Job> jobs_;
  uint64_t count_ = 0;
};

// The row of a description whose first job is this one.
SpecRow spec_row(const SpecRange& range, JobId first);

// Different requirements of jobs, with the name of a job that has them.
using AskedNeeds = std::vector<std::pair<scheduling::Requirements, std::string>>;
// So many of a batch are looked at: each costs a look at every machine.
inline constexpr size_t kNeedsLookedAt = 64;
// Adds what the job needs, unless it is to wait for a machine that suits it.
void note_needs(const JobDescription& job, AskedNeeds& needs);

// What the decision to commit a batch depends on.
struct Contents {
  DraftRow draft;  // as of which this is
  // All jobs, if they are entered at once: there are few of them, or some need outputs of other
  // batches' jobs.
  std::vector<SpecRange> specs;
  bool in_slices = false;
  bool gated = false;  // in slices, and some wait for others
  OtherJobs others;    // those of other batches for which they wait
  std::set<std::string> hours;
  AskedNeeds needs;
};

// Reads and checks an open batch. Throws Refusal if it cannot be committed as it is.
Contents read_contents(Archive& archive, const BatchRow& batch, const SliceSize& slice);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOBS_DRAFT_H_
