// The Job Scheduler without the ORB: submits, controls and watches jobs. Uses the
// brain through the pipeline, and reads committed state from the archive.
//
// Threads: any.
#ifndef SUBLET_SERVER_JOBS_SERVICE_H_
#define SUBLET_SERVER_JOBS_SERVICE_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "job/stop_when.h"
#include "server/access.h"
#include "server/commit/pipeline.h"
#include "server/jobs/draft.h"
#include "server/jobs/entering.h"
#include "server/jobs/start_forecast.h"
#include "server/machines/sessions.h"
#include "server/question_gate.h"
#include "server/store/archive/archive.h"

namespace sublet::server {

struct BatchRequest {
  std::string name;
  std::string submit_host;
  StopWhen stop_when = {};
  OnNever on_never = OnNever::kHold;
  uint64_t at_most = 0;  // 0: any number
};

// The outputs of a job, in the order of upload; all from one attempt, whose end says
// which of them were truncated.
struct JobOutputs {
  std::vector<FileRow> files;
  EndRow end;
};

// The number of attempts and outputs that show() returns.
inline constexpr uint32_t kShown = 40;

struct JobDetails {
  JobRow row;
  std::string machine_name;
  JobDescription spec;
  std::vector<AttemptRow> attempts;  // the newest kShown, oldest first
  JobOutputs outputs;                // the first kShown
  scheduling::Forecast forecast;     // of a waiting job, else empty
  std::string promised;              // the machine on which a place is promised to it, if any
  Micros outputs_removed = 0;        // when they were removed; 0: they were not
  // Of one that is at work, as its machine last told.
  std::optional<LiveStatus> live;
};

struct ControlResult {
  uint64_t changed = 0;
  uint64_t unchanged = 0;
};

struct ChangeList {
  std::vector<scheduling::ChangeRecord> items;
  uint64_t last = 0;
  bool gap = false;
};

struct JobSettings {
  // Records that one call of control may affect (a waiting array, or list of jobs with the same
  // requirements, is one record).
  size_t most_controlled = 1'000'000;
  SliceSize slice = {};  // of large batches
  // Throws Refusal if the user may not append so many bytes more (none: anybody may). On the
  // committer.
  std::function<void(const std::string& user, uint64_t bytes)> check_room = {};
};

class JobService {
 public:
  // `may_submit` throws Refusal while there is no disk space for new jobs.
  JobService(Pipeline& pipeline, Archive& archive, Sessions& sessions, Access& access,
             QuestionGate& questions, std::function<void()> may_submit,
             const JobSettings& settings = {});

  // request: the caller's 16 octets.
  BatchId open_batch(const Caller& caller, const std::string& request, const BatchRequest& batch);
  // The name of a job of an append in refusals.
  static std::string appended(size_t index, uint32_t number) {
    return "job " + std::to_string(index) + " of append " + std::to_string(number);
  }
  // Sets the counts of sweeps.
  void append(const Caller& caller, BatchId batch, uint32_t number, std::vector<SpecRange> specs);
  std::pair<JobId, uint64_t> commit_batch(const Caller& caller, const std::string& request,
                                          BatchId batch);
  void discard_batch(const Caller& caller, BatchId batch);
  JobId submit(const Caller& caller, const std::string& request, const std::string& host,
               const JobDescription& spec);

  enum class Action { kRemove, kHold, kRelease, kSetPriority };
  struct Act {
    Act(Action action, int32_t priority = 0) : action(action), priority(priority) {}
    Action action;
    int32_t priority;  // of kSetPriority
  };
  ControlResult control(const Caller& caller, const std::string& request, const Act& act,
                        const JobQuery& query);

  // These are questions: they wait for the caller's turn, and throw what QuestionGate::ask throws.
  JobPage list(const Caller& caller, const JobQuery& query, JobId after, uint32_t limit);
  std::vector<std::pair<uint32_t, uint64_t>> count(const Caller& caller, const JobQuery& query);
  JobDetails show(const Caller& caller, JobId job);
  // At most `limit` of those after the attempt number or file id `after`.
  std::vector<AttemptRow> attempts(const Caller& caller, JobId job, uint64_t after, uint32_t limit);
  JobOutputs outputs(const Caller& caller, JobId job, uint64_t after, uint32_t limit);
  // Waits up to hold_ms for the first change; returns at once if too many calls wait.
  ChangeList changes_since(const Caller& caller, uint64_t since, int64_t hold_ms);

  // The progress of the job's current attempt in ppm; -1: unknown.
  int32_t progress(const scheduling::JobRecord& job) const;

  // There are new changes of these users' jobs: wakes the calls that wait for them. Called by the
  // committer.
  void grown(uint64_t last_change, const std::set<std::string>& users);
  void stop();

 private:
  // The state in this turn: uncommitted changes, else committed rows. (The committer is
  // the only writer, so the archive is up to date for it.)
  BatchRow batch_in(Turn& turn, const Caller& caller, BatchId id);
  DraftRow draft_in(Turn& turn, BatchId id);
  void check_room(Turn& turn, const std::string& user, uint64_t bytes);
  Contents contents_of(const Caller& caller, BatchId id);
  void check_limited_batches(Turn& turn, const BatchRow& batch);
  void check_hours(Turn& turn, const std::string& user, std::set<std::string> hours,
                   const std::string& subject);
  void settle_relations(Turn& turn, const Caller& caller, std::vector<SpecRange>& specs,
                        const OtherJobs& others);
  JobId enter(Turn& turn, const BatchRow& batch, const std::vector<SpecRange>& specs);
  JobId reserve(Turn& turn, const BatchRow& batch, const Contents& contents);
  struct Committed {
    JobId first = 0;
    uint64_t count = 0;
    bool is_entered = false;  // all its jobs are
  };
  bool try_commit(const Caller& caller, const std::string& request, BatchId id,
                  Committed& committed);
  void commit_in(Turn& turn, const Caller& caller, BatchRow batch, Contents contents,
                 Committed& committed);
  void require_name(const Caller& caller) const;
  // Throws Refusal unless the job exists and the caller may see its details.
  JobRow own_job(const Caller& caller, JobId id);
  JobOutputs outputs_of(const JobRow& row, uint64_t after, uint32_t limit);
  std::vector<scheduling::JobRange> reach(const Caller& caller, JobQuery query, uint64_t* reached);
  static void require_entered(const DraftRow& draft);
  // What the archive knows of the job.
  JobDetails details_of(const Caller& caller, JobId id, std::optional<uint64_t>& memory_asked);
  // What the brain says of an unfinished one.
  void add_outlook(const Caller& caller, JobDetails& details, std::optional<uint64_t> memory_asked);
  ChangeList read_changes(const std::string& user, uint64_t since);

  Pipeline& pipeline_;
  Archive& archive_;
  Sessions& sessions_;
  Access& access_;
  QuestionGate& questions_;
  const std::function<void()> may_submit_;
  const JobSettings settings_;
  Entering entering_;

  // Calls that wait for one user's changes, or for everybody's.
  struct Watch {
    std::condition_variable grown;
    uint64_t times = 0;  // that there were new ones
    uint32_t waiting = 0;
  };
  // Waits for new ones. False: there are none, or the server stops.
  std::optional<LiveStatus> live(const scheduling::JobRecord& job) const;
  bool wait_for_changes(std::unique_lock<std::mutex>& lock, const std::string& user,
                        std::chrono::steady_clock::time_point until);

  std::mutex mutex_;
  std::map<std::string, Watch> watches_;  // by user; "": everybody's
  uint64_t last_change_ = 0;
  uint32_t waiting_ = 0;
  bool stopping_ = false;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOBS_SERVICE_H_
