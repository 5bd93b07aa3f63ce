// The slow work of attempts, on worker threads: carries out the state machine's
// actions that involve files, processes or the server. One task at a time per attempt,
// except that the clearing of a lost shepherd's attempt does not wait for a checkpoint;
// every task ends with an event, posted to the reactor thread through `events`. A task
// that throws an unexpected exception is repeated after a pause: without its event
// the attempt would never end.
#ifndef SUBLET_CLIENT_ATTEMPTS_TASKS_H_
#define SUBLET_CLIENT_ATTEMPTS_TASKS_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/files.h"
#include "client/attempts/eviction_notes.h"
#include "client/attempts/order_desk.h"
#include "client/attempts/reporter.h"
#include "client/attempts/slot_shepherds.h"
#include "client/attempts/work.h"
#include "client/mover/mover.h"
#include "client/staging/pace.h"
#include "client/staging/staging.h"
#include "client/workers.h"
#include "protocol/attempt.h"

namespace sublet::client {

using WorkPtr = std::shared_ptr<AttemptWork>;

// Called on the workers' threads.
struct TaskEvents {
  // By start_at_once(), and by begin() if the shepherd has ended, before shepherd_started or
  // shepherd_failed.
  std::function<void(const WorkPtr&)> starting;
  // Else by begin(): both of them at once, because each would wake the reactor.
  std::function<void(const WorkPtr&, const GivenAttempt&)> next_began;
  std::function<void(const WorkPtr&)> staged;
  std::function<void(const WorkPtr&, protocol::EndCode, const std::string&)> staging_failed;
  std::function<void(const WorkPtr&, const GivenAttempt&)> shepherd_started;
  std::function<void(const WorkPtr&, protocol::EndCode, const std::string&)> shepherd_failed;
  // kKillTenant and kRecordEnd are done, as far as they were asked for.
  std::function<void(const WorkPtr&)> cleared;
  std::function<void(const WorkPtr&, uint64_t handed_in)> checkpoint_done;
  std::function<void(const WorkPtr&)> handed_in;
  std::function<void(const WorkPtr&)> ended;
  std::function<void(const WorkPtr&)> vanished;
  std::function<void(const WorkPtr&)> still_alive;
  std::function<void(const WorkPtr&)> removed;
};

struct TaskThreads {
  // Work that an owner may be waiting for: killing, checking for an end. Never waits
  // for the server.
  Workers& local;
  // Work for jobs that run or are about to.
  Workers& workers;
  // Starts shepherds, which inherit the normal priority of this thread, and frees the slots of
  // attempts that have ended; of those that left nothing to send it also prepares the report. It
  // does not queue behind the staging of others, and never waits for the server.
  Workers& starts;
  // Uploads, which continue while the owner is present: at low priority and `pace`.
  Workers& uploads;
  // What ended attempts have left: may take long, and nobody waits for it.
  Workers& removals;
  Pace& pace;

  // The server is back, or a task must stop.
  void hurry() const {
    workers.hurry();
    uploads.hurry();
  }
};

class AttemptTasks : public NextAttempts {
 public:
  AttemptTasks(const TaskThreads& threads, Files& files, ServerCalls& server, OrderDesk& desk,
               Reporter& reporter, InputCache& cache, const JobSettings& settings,
               std::string shepherd_program, std::vector<std::string> mover_command,
               TaskEvents events);

  // Runs the slow actions among `actions`, one after the other, lowest bit first.
  // `end` and `reason` are for kRecordEnd. Any thread.
  void perform(const WorkPtr& work, uint32_t actions, protocol::EndCode end, std::string reason);
  static bool has_slow(uint32_t actions);
  // Starts an attempt for which nothing is to be fetched, and which nobody knows of yet, without
  // a turn of the reactor and of another thread: its slot waits. A thread of workers.
  void start_at_once(std::shared_ptr<const Assignment> assignment);
  // For those that the desk hands over. Any thread of workers.
  std::shared_ptr<HandedAttempt> hand_over(std::shared_ptr<const Assignment> what) override;
  bool take_back(HandedAttempt& handed) override;
  void renew(HandedAttempt& handed, int64_t lease_ns) override;
  void begin(HandedAttempt& handed) override;

  // Frees its slot: it has ended, but what follows has to wait. Any thread.
  void release(const WorkPtr& work);

  // Removes what clients that were stopped or killed have discarded and not removed. Once, at the
  // start.
  void empty_trash();

  void hurry() { threads_.hurry(); }
  // This process ends: what is being removed by another is not waited for.
  void stop_waiting() { stopping_ = true; }

  // The monitor's frame CAUSE, for `sublet owner history`. Any thread.
  void note_cause(const sublet_frame& frame) { evictions_.note_cause(frame); }

  // Checks for an exit record and a living shepherd; results in the event ended,
  // vanished or still_alive; or shepherd_started, again, if it had not come to its turn with a
  // shepherd that has ended.
  void check_end(const WorkPtr& work);

  // What an attempt's folder contains. Also used at the start, by the main thread.
  static protocol::FolderFacts inspect(const Files& files, const std::string& folder);

 private:
  WorkPtr work_of(std::shared_ptr<const Assignment> assignment) const;
  void post(Workers& pool, const WorkPtr& work, std::function<void()> task, int64_t delay_ms = 0,
            int64_t pause_ms = 0);
  // Repeats it in `pool` after an unexpected exception.
  std::function<void()> guarded(Workers& pool, const WorkPtr& work, std::function<void()> task,
                                int64_t pause_ms = 0);
  void run(const WorkPtr& work, uint32_t step, protocol::EndCode end, const std::string& reason);
  void kill_tenant(const WorkPtr& work);
  void record_end(const WorkPtr& work, protocol::EndCode end, const std::string& reason);
  void do_stage(const WorkPtr& work);
  void do_start(const WorkPtr& work);
  // Writes it for its shepherd. Throws OsError.
  void give_order(const AttemptWork& work);
  // The same, and its shepherd is told.
  GivenAttempt give_to_shepherd(const AttemptWork& work);
  void started(const WorkPtr& work, const GivenAttempt& given);
  bool has_not_begun(AttemptWork& work);
  void start_again(const WorkPtr& work);
  void do_checkpoint(const WorkPtr& work);
  // Releases the slot before anything is uploaded.
  void close_and_hand_in(const WorkPtr& work);
  bool hand_in_at_once(const WorkPtr& work);
  void do_hand_in(const WorkPtr& work);
  void do_remove(const WorkPtr& work);
  // Several at once, because each alone would wake the reactor.
  void tell_removed(const WorkPtr& work);
  void tell_all_removed();
  // Removes its folder.
  void discard(const AttemptWork& work);
  // For `sublet owner history`, if the attempt had to leave.
  void note_eviction(const WorkPtr& work);
  // Reports to the desk, once, whether this machine could start the program.
  void note_health(const WorkPtr& work);
  // How much is in its folder now.
  void note_disk_use(AttemptWork& work) const;
  bool is_soon_reported(AttemptWork& work) const;
  // Here if it is little, else demoted like a job.
  void remove_discarded(const std::string& folder, uint64_t bytes);
  // Closes the folder to the job's account, then releases the slot. True: orders wait for one, and
  // start_ahead() is left to the caller.
  bool seal(const WorkPtr& work);
  void make_room(const WorkPtr& work);
  void again(Workers& pool, const WorkPtr& work, const std::string& why,
             std::function<void()> task);

  const TaskThreads threads_;
  Files& files_;
  ServerCalls& server_;
  OrderDesk& desk_;
  Reporter& reporter_;
  InputCache& cache_;
  const JobSettings settings_;
  const std::string shepherd_program_;
  SlotShepherds shepherds_;
  const MoverSettings mover_settings_;
  const TaskEvents events_;
  EvictionNotes evictions_;
  std::atomic<bool> stopping_{false};
  std::mutex removed_mutex_;
  std::vector<WorkPtr> removed_;  // whose event is yet to come
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_TASKS_H_
