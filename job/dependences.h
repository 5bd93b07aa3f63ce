// What a job waits for (idl/types.idl, Dependences), and the checks that concern a whole batch.
// Values; pure functions.
#ifndef SUBLET_JOB_DEPENDENCES_H_
#define SUBLET_JOB_DEPENDENCES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sublet {

struct JobDescription;
struct SpecRange;

// Jobs by their ids or, of the same batch, by their index in it: the first one's and how many.
struct JobReference {
  bool of_this_batch = false;
  uint64_t first = 0;
  uint64_t count = 1;
  bool operator==(const JobReference&) const = default;
};
using JobReferences = std::vector<JobReference>;

struct Dependences {
  JobReferences after;        // these are done
  JobReferences after_any;    // these have ended, however
  JobReferences after_start;  // these have started
  bool empty() const { return size() == 0; }
  size_t size() const { return after.size() + after_any.size() + after_start.size(); }
  bool operator==(const Dependences&) const = default;
};

// The three lists with their names, in batch files and elsewhere.
using NamedReferences = std::pair<std::string_view, JobReferences*>;
std::array<NamedReferences, 3> lists_of(Dependences& dependences);
using ConstNamedReferences = std::pair<std::string_view, const JobReferences*>;
std::array<ConstNamedReferences, 3> lists_of(const Dependences& dependences);

// What becomes of jobs that can never run, because what they wait for cannot happen any more.
enum class OnNever : uint32_t { kHold = 1, kRemove = 2 };
// "hold", "remove".
std::string on_never_name(OnNever on_never);
std::optional<OnNever> on_never_named(std::string_view name);
// The detail of a batch that says so; kHold if there is none. Throws JobError.
inline constexpr std::string_view kNeverSatisfied = "never_satisfied";
OnNever read_on_never(const std::vector<std::pair<std::string, std::string>>& details);

// Lets the job wait until the jobs are done whose outputs are its inputs.
void wait_for_sources(JobDescription& job);

inline constexpr size_t kReferencesPerJob = 1000;
inline constexpr size_t kReferencesPerBatch = 200'000;

// Checks the references to jobs of this batch: that there are not too many, that each one is
// there, that no job waits for itself, and that they make no cycle, which the error names. Takes
// O((jobs + references) log jobs). Throws JobError.
void check_dependences(const std::vector<SpecRange>& specs);

}  // namespace sublet

#endif  // SUBLET_JOB_DEPENDENCES_H_
