// The commit pipeline: one queue of work, one committer, many pieces of work to
// a transaction (rule 2). Work runs on the committer, one piece at a
// time: it applies events to the brain and adds rows. Nothing of it is told to
// anybody (answer, decision, query result) before the transaction that covers
// it is on disk. If a commit fails, the brain is discarded and rebuilt from the
// store, and everyone who waited gets Refusal kUnavailable.
//
// Threads: perform() from any thread but the committer's; it blocks until the
// commit. run_once() is the whole engine and may be driven by one thread in
// virtual time; start() gives it a thread of its own.
#ifndef SUBLET_SERVER_COMMIT_PIPELINE_H_
#define SUBLET_SERVER_COMMIT_PIPELINE_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "scheduling/pool.h"
#include "server/commit/changes.h"
#include "server/commit/store.h"

namespace sublet::server {

class Pipeline;

// What a piece of work may do, while it runs.
class Turn {
 public:
  // Applies to the brain; records go into this transaction, decisions to the
  // listener after the commit.
  scheduling::Outcome apply(const scheduling::Event& event);
  const scheduling::Pool& pool() const;
  // Rows of the server's own.
  Changes& changes();
  // The instant of this piece of work.
  Micros now() const;
  // The answer given to this request id before, or nothing. Throws Refusal
  // (kConflict, "request.reused") when the arguments differ.
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
  size_t queue_limit = 100'000;          // pieces of work that may wait
  size_t group_limit = 1024;             // pieces in one transaction
};

class Pipeline {
 public:
  // Told on the committer, after a commit: what to carry out, and that history
  // has grown. Must not block nor call back into the pipeline but through
  // post(). `restarted`: the brain was rebuilt, earlier decisions are void.
  struct Listener {
    std::function<void(const std::vector<scheduling::Decision>&)> decided;
    std::function<void(uint64_t last_change)> grown;
    // The commit failed: running jobs must be able to end, so make room.
    std::function<void(const std::string& why)> failed;
    // The committer turns: at least once a second, and between pieces of work.
    std::function<void()> beat;
  };

  // Loads the brain from the store. Store and clock outlive the pipeline.
  // Throws StoreError.
  Pipeline(const PipelineSettings& settings, Store& store, const Clock& clock, Listener listener);
  ~Pipeline();

  // Sentences about rows that were left out while loading.
  const std::vector<std::string>& damage() const { return damage_; }

  void start();
  // What waits is refused (kUnavailable, "server.stopping").
  void stop();

  // Runs `work` in a turn and returns when it is on disk. Throws the Refusal that
  // the work threw (before its first apply), or Refusal kUnavailable when the
  // queue is full, the commit failed or the server stops. Anything else that the
  // work throws breaks the brain: the group is refused, the brain rebuilt.
  void perform(std::function<void(Turn&)> work);
  // The same, without waiting; `done` (may be empty) is told on the committer
  // whether it was committed.
  void post(std::function<void(Turn&)> work, std::function<void(bool)> done = {});

  // One group: what waits now, in one transaction; then what is due by time.
  // Returns false when there was nothing to do.
  bool run_once();
  // When run_once has something to do at the latest, if nothing is posted.
  Micros next_due() const;

  uint64_t performed() const { return performed_; }

 private:
  friend class Turn;
  struct Work {
    std::function<void(Turn&)> run;
    std::function<void(bool)> done;
  };

  void load();
  bool reload();
  void enqueue(Work work);
  void run_group(std::vector<Work>& group);
  void apply_due(Turn& turn);
  void commit_group(std::vector<Work>& group);
  void loop();
  Micros tick_now();

  const PipelineSettings settings_;
  Store& store_;
  const Clock& clock_;
  const Listener listener_;

  // The committer's own.
  std::unique_ptr<scheduling::Pool> pool_;
  std::vector<std::string> damage_;
  Changes changes_;
  std::vector<scheduling::Decision> decisions_;
  Micros now_ = 0;       // of the brain: never runs backwards
  int64_t boot_ns_ = 0;  // when now_ was taken
  // A commit or a piece of work failed: the brain may hold what is not on disk.
  // Reload before the next group, once a second at most.
  std::atomic<bool> broken_{false};
  int64_t reloaded_ns_ = 0;

  std::atomic<uint64_t> performed_{0};

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Work> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_COMMIT_PIPELINE_H_
