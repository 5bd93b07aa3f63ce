// Enters the jobs of large batches in slices. Such a batch is committed by one small transaction,
// which takes its ids and notes that it is entering (DraftRow); from then on it is certain that all
// its jobs will be there. Each slice is a transaction of its own: a piece for the brain, the rows
// of its jobs, and how far the batch is. So others' work comes between, and after a crash it goes
// on where it was. Batches take turns, so that none waits for another.
//
// A batch whose jobs wait for others is gated: only when all are entered do they begin to wait, and
// then its gate opens, so that those may be queued that wait for none. Both goes in slices, too.
//
// A thread of its own reads the parts and prepares each slice while the one before is committed.
//
// Threads: any.
#ifndef SUBLET_SERVER_JOBS_ENTERING_H_
#define SUBLET_SERVER_JOBS_ENTERING_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "server/commit/pipeline.h"
#include "server/jobs/draft.h"
#include "server/store/archive/archive.h"

namespace sublet::server {

class Entering {
 public:
  // Goes on with the batches that an earlier process has not finished.
  Entering(Pipeline& pipeline, Archive& archive, const SliceSize& size);
  ~Entering();

  // Returns when all jobs of the batch, which is committed, are entered and on disk. Throws Refusal
  // kUnavailable "batch.entering" if the server stops, or after kLongestWait.
  void finish(BatchId batch);
  static constexpr std::chrono::seconds kLongestWait{40};  // less than commands wait

  void stop();

 private:
  // How much of a gated batch whose jobs are all entered has not begun. The committer moves it.
  struct Gate {
    scheduling::JobRange jobs;
    JobId next = 0;
    bool opens = false;  // all have begun to wait for what they wait for
    EndedOthers ended;
    std::atomic<bool> is_unreadable = false;  // how others have ended, now
    std::atomic<bool> is_open = false;        // all has; any thread may look
  };
  struct Batch {
    Batch(Archive& archive, BatchRow row, const DraftRow& draft)
        : row(std::move(row)), draft(draft), reader(archive, draft) {}
    BatchRow row;
    DraftRow draft;  // behind the slices that were made
    DraftReader reader;
    std::shared_ptr<Gate> gate;  // if it has one, when all its jobs are entered
  };
  // Of the jobs of a batch, or, with a gate, of what follows.
  struct Slice {
    scheduling::Submitted event;
    std::vector<SpecRow> specs;
    std::vector<FeedRow> feeds;
    DraftRow after;
    std::shared_ptr<Gate> gate;
    bool is_last = false;
  };
  using Batches = std::deque<std::unique_ptr<Batch>>;

  void loop();
  // Waits until there is one. None: it stops.
  std::optional<Slice> next_slice();
  // The next of the batch whose turn it is, if there is one.
  std::optional<Slice> slice_now();
  Slice make_slice(Batch& batch);
  Slice make_gate_slice(Batch& batch);
  // Adds descriptions until the slice is full, or the batch at its end.
  void fill(Batch& batch, Slice& slice, EventJobs& jobs);
  // Prepares the next slice meanwhile. False: one of the two failed.
  bool commit(Slice slice, std::optional<Slice>& following);
  std::future<bool> post(Slice slice);
  static void enter(Turn& turn, Slice& slice);
  void begin(Turn& turn, const Slice& slice);
  // None: it is not known yet.
  std::optional<std::vector<scheduling::LostDependence>> lost(
      Turn& turn, Gate& gate, const scheduling::RelationsBegun& event);
  // After a while, reads anew how far each batch is: nothing is known of a slice that failed.
  void begin_again();
  void load();
  // Batches whose gate would stay closed: it is not known any more that they are entering.
  void add_lost(std::set<BatchId>& unfinished, Batches& waiting);

  Pipeline& pipeline_;
  Archive& archive_;
  const SliceSize size_;
  int unreadable_ = 0;  // so many times since a gate was opened; of the committer

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<BatchId> unfinished_;
  // Of the unfinished ones, those with jobs of which no slice was made, or with a gate.
  Batches waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOBS_ENTERING_H_
