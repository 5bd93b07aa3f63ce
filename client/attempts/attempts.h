// All attempts of this client. Feeds events from shepherds, workers, server and
// monitor to each attempt's state machine and carries out its quick actions (frames);
// slow ones are passed to AttemptTasks. Reactor thread only; never blocks.
#ifndef SUBLET_CLIENT_ATTEMPTS_ATTEMPTS_H_
#define SUBLET_CLIENT_ATTEMPTS_ATTEMPTS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/attempts/owner_guard.h"
#include "client/attempts/reporter.h"
#include "client/attempts/tasks.h"
#include "client/loop.h"
#include "client/machine/memory_watch.h"
#include "protocol/attempt.h"

namespace sublet::client {

struct AttemptsSettings {
  std::string state_folder;
  int64_t checkpoint_interval_ms = 30'000;
  int64_t save_deadline_ms = 2'000;  // for jobs that specify none
  int64_t save_deadline_most_ms = 10'000;
  sublet_leaving leaving = SUBLET_LEAVING_SAVE;  // the owner's wish
};

class Attempts {
 public:
  // changed: something to report to the server soon (a slot, a checkpoint).
  // blind: a shepherd found the load monitor failing, while it seemed to work here.
  // `local`: threads that never wait for the server.
  Attempts(Loop& loop, Workers& local, const AttemptsSettings& settings,
           std::function<void()> changed, std::function<void()> blind);
  ~Attempts();
  // Handlers for the results of tasks; they post to the reactor thread.
  TaskEvents events();
  // To be called before the first attempt is added.
  void connect(AttemptTasks* tasks, Reporter* reporter);

  void accept(std::shared_ptr<const Assignment> assignment);
  // The same, but its shepherd is being started already: an event of tasks follows.
  void accept_starting(WorkPtr work);
  // The same, and its shepherd has begun with it.
  void accept_started(const WorkPtr& work, const GivenAttempt& given);
  void adopt(std::shared_ptr<const Assignment> assignment, const protocol::FolderFacts& facts);

  // The owner is back: frames first, then bookkeeping.
  void evict(sublet_leave_reason reason, const OwnersPresence& presence, int64_t now);
  void owner_away();
  void vacate(const AttemptName& name, sublet_leave_reason reason);
  void vacate_all(sublet_leave_reason reason);
  // Disk space or memory is low and this attempt uses the most: it must leave, and a second call
  // kills it. Or it uses more of the disk than it may: it is killed, unless it is leaving.
  void leave_for_want(const AttemptName& name, const Shortage& shortage);
  // Stops all slow work as soon as possible, because this process exits.
  void stop_work();

  void renewed(int64_t sent_ns, int64_t lease_ms, const std::vector<AttemptVerdict>& verdicts);
  void answered(const AttemptName& name, uint32_t verdict, bool of_end);
  // The attempts to name in the renewal about to be sent. Also queries the shepherds,
  // whose answers are used by the next one.
  std::vector<HeldAttempt> held();

  // Those whose processes may be there, with the memory that each used when it was last asked.
  std::vector<TenantMemory> tenants() const;
  // Queries their shepherds.
  void ask_tenants();

  void child_started(pid_t pid);
  void reap_children();
  void tick(int64_t now);
  int64_t next_due() const;

  bool empty() const { return entries_.empty(); }
  // Since when processes of an attempt may exist, counted from the newest tenancy, and the
  // monitor must send heartbeats; kNever: there are none.
  int64_t tenants_since_ns() const { return guard_.empty() ? kNever : newest_tenant_ns_; }

 private:
  struct Entry {
    Entry(WorkPtr w, int64_t interval_ms)
        : work(std::move(w)), machine(interval_ms, work->held_generation) {}
    WorkPtr work;
    protocol::AttemptMachine machine;
    Tenancy* tenancy = nullptr;
    pid_t shepherd = 0;  // our child, its slot's; 0: adopted, not started, or reaped
    int64_t connect_due_ns = kNever;
    int64_t connect_pause_ns = 0;
    int connects = 0;
    int64_t tenant_due_ns = kNever;  // when its record is read
    int64_t report_due_ns = kNever;
    int64_t report_pause_ms = 0;
    bool checking = false;     // check_end is under way
    bool check_again = false;  // it may have come too early, if it says that it is alive
    int restarts = 0;          // AttemptWork::restarts, of the shepherd that it has
    bool killing = false;      // processes left by a lost shepherd are being killed
    bool seen_running = false;
    HeldAttempt reported;  // the shepherd's last report
  };

  Entry* find(const AttemptName& name);
  Entry* find(const WorkPtr& work) { return find(work->assignment->name); }
  Entry& add(WorkPtr work);
  WorkPtr work_of(std::shared_ptr<const Assignment> assignment) const;
  void log_accepted(const Assignment& what) const;
  // Whether it may begin; else it leaves.
  bool may_begin(Entry& entry);
  // Carries out the actions of a state machine. `reason` is for kRecordEnd.
  void apply(Entry& entry, uint32_t actions, const std::string& reason = "");
  void send_frames(Entry& entry, uint32_t actions, int64_t now);
  void leave(Entry& entry, sublet_leave_reason reason);
  static std::string why_left(const Entry& entry);
  uint64_t delivered_by_all() const;
  void report_hand_in(const Entry& entry, HeldAttempt* held) const;
  void make_tenant(Entry& entry);
  // Unless its processes may still be there.
  void drop_tenant_if_ended(Entry& entry);
  void drop_tenant(Entry& entry);

  void try_connect(Entry& entry, int64_t now);
  void connected(Entry& entry, UniqueFd socket, int64_t now);
  void read_control(const AttemptName& name);
  void on_frame(Entry& entry, const sublet_frame& frame);
  void note_shepherds_state(Entry& entry, const sublet_frame& frame);
  void disconnect(Entry& entry);
  void check_end(Entry& entry);
  void open_tenant(Entry& entry);
  void tenant_opened(const WorkPtr& work, const std::shared_ptr<Tenant>& tenant);
  void tick_entry(Entry& entry, int64_t now);

  void on_staged(const WorkPtr& work);
  void on_staging_failed(const WorkPtr& work, protocol::EndCode end, const std::string& reason);
  void on_started(const WorkPtr& work, const GivenAttempt& given);
  void on_start_failed(const WorkPtr& work, protocol::EndCode end, const std::string& reason);
  void on_cleared(const WorkPtr& work);
  // When its own files are to be copied next, if it has any.
  void plan_copies(Entry& entry);
  void on_checkpoint_done(const WorkPtr& work, uint64_t generation);
  void on_handed_in(const WorkPtr& work);
  void on_still_alive(const WorkPtr& work);
  static void keep_seen(Entry& entry);
  void on_ended(const WorkPtr& work);
  void on_vanished(const WorkPtr& work);
  void on_removed(const WorkPtr& work);

  Loop& loop_;
  Workers& local_;
  const AttemptsSettings settings_;
  const std::function<void()> changed_;
  const std::function<void()> blind_;
  AttemptTasks* tasks_ = nullptr;
  Reporter* reporter_ = nullptr;
  OwnerGuard guard_;
  std::map<AttemptName, std::unique_ptr<Entry>> entries_;
  uint64_t delivered_by_forgotten_ = 0;  // attempts
  std::vector<pid_t> children_;
  int64_t newest_tenant_ns_ = 0;
  sublet_leave_reason evicting_ = SUBLET_LEAVE_NONE;   // another value while the owner is here
  sublet_leave_reason all_leave_ = SUBLET_LEAVE_NONE;  // of vacate_all(): for those that come late
  OwnersPresence presence_;                            // while the owner is here
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_ATTEMPTS_H_
