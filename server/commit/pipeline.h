// The commit pipeline: one queue of work items, one committer, and many items per
// transaction (rule 2). Items run on the committer, one at a time: they apply
// events to the brain and add rows. No result (answer, decision, query result) is
// visible to anybody before the transaction that contains it is on disk. If a
// commit fails, the brain is discarded and rebuilt from the store, and all waiting
// callers get Refusal kUnavailable: "server.memory" if an allocation failed, which says nothing of
// the disk, else "server.disk".
//
// Threads: perform() from any thread except the committer; it blocks until the
// commit. ask() from any thread except the committer; it runs on the caller's. run_once() does all
// the work, and tests may call it from one thread in virtual time; start() runs it on a thread of
// its own.
#ifndef SUBLET_SERVER_COMMIT_PIPELINE_H_
#define SUBLET_SERVER_COMMIT_PIPELINE_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "scheduling/pool.h"
#include "server/commit/changes.h"
#include "server/commit/store.h"

namespace sublet::server {

class Pipeline;

// What a work item may do while it runs.
class Turn {
 public:
  // Applies the event to the brain; its records are added to this transaction, its
  // decisions are passed to the listener after the commit.
  scheduling::Outcome apply(const scheduling::Event& event);
  // Applies the Alarm Sender's tick.
  void tick();
  const scheduling::Pool& pool() const;
  // For rows of the server that are not the brain's.
  Changes& changes();
  // The instant of this work item.
  Micros now() const;
  // The earlier answer to this request id, if any. Throws Refusal (kConflict,
  // "request.reused") if the arguments differ.
  std::optional<std::string> answered(const std::string& key, const std::string& digest);
  void remember(const std::string& key, const std::string& digest, const std::string& answer);

 private:
  friend class Pipeline;
  explicit Turn(Pipeline* pipeline) : pipeline_(pipeline) {}
  Pipeline* pipeline_;
};

struct PipelineSettings {
  scheduling::Parameters policies;
  std::map<std::string, double> shares;  // per user, from the configuration
  size_t queue_limit = 100'000;          // work items that may wait
  size_t group_limit = 1024;             // work items in one transaction
};

class Pipeline {
 public:
  // Called on the committer. Must not block, and may call only post() of the
  // pipeline. After a commit: `decided` with the decisions to carry out, `grown` when
  // there are new state changes, of these users' jobs.
  struct Listener {
    std::function<void(const std::vector<scheduling::Decision>&)> decided;
    std::function<void(uint64_t last_change, const std::set<std::string>& users)> grown;
    // A commit failed: free disk space, so that running jobs can end.
    std::function<void(const std::string& why)> failed;
    // An allocation failed.
    std::function<void()> short_of_memory;
    // The committer is alive: at least once a second, and between work items.
    std::function<void()> beat;
  };

  // Loads the brain from the store. Store and clock outlive the pipeline.
  // Throws StoreError.
  Pipeline(const PipelineSettings& settings, Store& store, const Clock& clock, Listener listener);
  ~Pipeline();

  // Messages about rows that were skipped while loading.
  const std::vector<std::string>& damage() const { return damage_; }

  void start();
  // Refuses new work (kUnavailable, "server.stopping") and finishes waiting work; without
  // start(), waiting work is refused, too.
  void stop();

  // Runs `work` in a turn and returns when its changes are on disk. Throws the Refusal
  // that the work threw (only allowed before its first apply), or Refusal kUnavailable
  // if the queue is full, the commit failed or the server is stopping. If an allocation of the work
  // fails before it has asked for anything that it may change, it alone is refused. Any other
  // exception of the work invalidates the brain: the whole group is refused and the brain rebuilt.
  void perform(std::function<void(Turn&)> work);
  // The same, but alone in its transaction; `committed` is called on the committer after the
  // commit, while the brain and the database are as this work left them.
  void perform_alone(std::function<void(Turn&)> work, std::function<void()> committed);
  // The same as perform(), without waiting; `done` (may be empty) is called on the committer with
  // whether the work was committed.
  void post(std::function<void(Turn&)> work, std::function<void(bool)> done = {});
  // The same; it is committed with what comes next, or after kMostDelayNs. For what nobody waits
  // for.
  void post_with_next(std::function<void(Turn&)> work);
  static constexpr int64_t kMostDelayNs = 5'000'000;

  using Question = std::function<void(const scheduling::Pool&, Micros now)>;
  // Calls `question` on this thread with the brain as it is between two groups, and the present
  // instant; returns when all that it saw is on disk. If that failed, the question is put again, on
  // the committer, when the brain has been rebuilt; throws Refusal kUnavailable if it cannot be.
  // Before a group the committer waits for one question at most, however many are asked: so a
  // question must not take long. While the committer writes to disk, it waits for none.
  void ask(const Question& question);

  // Runs one group: the work that is waiting and the timed events that are due, in one
  // transaction. Returns false if no work was waiting.
  bool run_once();
  // When run_once must be called next, if nothing is posted before.
  Micros next_due() const;

  uint64_t performed() const { return performed_; }

 private:
  friend class Turn;
  enum class Fate { kCommitted, kLost, kOutOfMemory };
  struct Work {
    std::function<void(Turn&)> run;
    std::function<void(Fate)> done;
    bool alone = false;
    Fate fate = Fate::kCommitted;  // that of its group, unless it failed alone
  };

  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  void load();
  void perform(std::function<void(Turn&)> work, std::function<void()> committed, bool alone);
  std::vector<Work> next_group();
  bool reload();
  // due_ns: until then it waits for others; CLOCK_BOOTTIME.
  void enqueue(Work work, int64_t due_ns = 0);
  void run_group(std::vector<Work>& group);
  void run(Work& work, Turn& turn);
  static void settle(std::vector<Work>& group, Fate fate);
  void apply_due(Turn& turn);
  void commit_group(std::vector<Work>& group);
  Fate commit_changes();
  Fate note_failure(const std::exception& e);
  void loop();
  // False: the brain is to be rebuilt, or what the question saw is not on disk.
  bool ask_between_groups(const Question& question);
  std::unique_lock<std::mutex> take_brain();
  Micros present() const;
  Micros tick_now();
  int32_t utc_offset() const { return clock_.utc_offset_s(now_); }

  const PipelineSettings settings_;
  Store& store_;
  const Clock& clock_;
  const Listener listener_;

  // The committer holds brain_ while it changes the brain or its time, and one question at a time
  // while it asks. Who waits for brain_ holds next_, so that no question overtakes the committer.
  std::mutex questions_;
  std::mutex next_;
  std::mutex brain_;
  uint64_t applied_ = 0;  // groups that the brain has seen; guarded by brain_

  // Changed by the committer only.
  std::unique_ptr<scheduling::Pool> pool_;
  std::vector<std::string> damage_;
  Changes changes_;
  std::vector<scheduling::Decision> decisions_;
  Micros now_ = 0;       // the brain's time: never runs backwards
  int64_t boot_ns_ = 0;  // monotonic time of the last update of now_
  // A commit or a work item failed: the brain may differ from the database. Reload
  // before the next group, at most once a second.
  std::atomic<bool> broken_{false};
  Fate broken_by_ = Fate::kLost;
  bool work_changes_ = false;  // the present work item has asked for what it may change
  int64_t reloaded_ns_ = 0;

  std::atomic<uint64_t> performed_{0};

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Work> queue_;
  int64_t due_ns_ = kNever;  // when the first of it is due
  uint64_t settled_ = 0;     // groups, whether their commit succeeded or not
  uint64_t lost_ = 0;        // the newest of those whose commit failed
  std::condition_variable group_settled_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_COMMIT_PIPELINE_H_
