#include "client/attempts/attempts.h"

#include <sys/wait.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "client/attempts/ending.h"
#include "client/staging/staging.h"
#include "protocol/lease.h"

namespace sublet::client {
namespace {

using namespace protocol;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kFirstConnectNs = 1 * kMs;
// Most jobs that end at once never need a Tenant.
constexpr int64_t kTenantAfterNs = 200 * kMs;

int64_t now_ns() { return system_clock().boot_ns(); }

}  // namespace

Attempts::Attempts(Loop& loop, Workers& local, const AttemptsSettings& settings,
                   std::function<void()> changed, std::function<void()> blind)
    : loop_(loop),
      local_(local),
      settings_(settings),
      changed_(std::move(changed)),
      blind_(std::move(blind)) {}

Attempts::~Attempts() {
  for (auto& [name, entry] : entries_) drop_tenant(*entry);
}

void Attempts::connect(AttemptTasks* tasks, Reporter* reporter) {
  tasks_ = tasks;
  reporter_ = reporter;
}

Attempts::Entry* Attempts::find(const AttemptName& name) {
  auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second.get();
}

WorkPtr Attempts::work_of(std::shared_ptr<const Assignment> assignment) const {
  const std::string folder = attempt_folder(settings_.state_folder, assignment->name);
  return std::make_shared<AttemptWork>(std::move(assignment), folder);
}

Attempts::Entry& Attempts::add(WorkPtr work) {
  const AttemptName name = work->assignment->name;
  auto entry = std::make_unique<Entry>(std::move(work), settings_.checkpoint_interval_ms);
  plan_copies(*entry);
  entry->reported.name = name;
  return *(entries_[name] = std::move(entry));
}

void Attempts::plan_copies(Entry& entry) {
  const OwnCheckpoint& own = entry.work->assignment->job.own_checkpoint;
  if (!own.is_set()) return;
  const int64_t every_ms = own.every_ms > 0 ? own.every_ms : entry.work->next_copy_ms.load();
  entry.machine.copy_every(std::max(every_ms, settings_.checkpoint_interval_ms));
}

void Attempts::accept(std::shared_ptr<const Assignment> assignment) {
  if (find(assignment->name) != nullptr) return;
  Entry& entry = add(work_of(std::move(assignment)));
  const Assignment& what = *entry.work->assignment;
  log_accepted(what);
  if (may_begin(entry)) apply(entry, entry.machine.begin(has_to_fetch(what)));
}

void Attempts::accept_starting(WorkPtr work) {
  if (find(work) != nullptr) return;
  Entry& entry = add(std::move(work));
  log_accepted(*entry.work->assignment);
  constexpr bool kToFetch = false;
  entry.machine.begin(kToFetch);  // what it asks for is being done
  may_begin(entry);
}

void Attempts::accept_started(const WorkPtr& work, const GivenAttempt& given) {
  accept_starting(work);
  on_started(work, given);
}

void Attempts::log_accepted(const Assignment& what) const {
  log(Severity::info) << attempt_label(what.name) << " accepted: '" << what.job.name << "' of "
                      << what.user << ", slot " << what.slot
                      << (what.checkpoint_generation != 0
                              ? ", from checkpoint " + std::to_string(what.checkpoint_generation)
                              : "");
}

bool Attempts::may_begin(Entry& entry) {
  const sublet_leave_reason reason = evicting_ != SUBLET_LEAVE_NONE ? evicting_ : all_leave_;
  if (reason == SUBLET_LEAVE_NONE) return true;
  leave(entry, reason);
  return false;
}

void Attempts::adopt(std::shared_ptr<const Assignment> assignment, const FolderFacts& facts) {
  Entry& entry = add(work_of(std::move(assignment)));
  entry.work->adopted = true;
  uint32_t actions = entry.machine.restored(facts);
  const char* found = entry.machine.state() == AttemptState::kRunning     ? "still runs"
                      : entry.machine.state() == AttemptState::kHandingIn ? "has ended"
                                                                          : "had not started";
  log(Severity::info) << entry.work->label() << " adopted: it " << found;
  std::string reason = actions & kRecordEnd ? "Its shepherd vanished without an exit record." : "";
  apply(entry, actions, reason);
}

// ---- actions ----------------------------------------------------------------

void Attempts::send_frames(Entry& entry, uint32_t actions, int64_t now) {
  if (entry.tenancy == nullptr) return;
  if (actions & kSendKill)
    guard_.urge(*entry.tenancy, SUBLET_FRAME_KILL, entry.machine.leave_reason(), now);
  if (actions & kSendVacate)
    guard_.urge(*entry.tenancy, SUBLET_FRAME_VACATE, entry.machine.leave_reason(), now, presence_);
  if (actions & kSendLease)
    guard_.send(*entry.tenancy, SUBLET_FRAME_LEASE, 0, entry.work->lease_ns);
}

void Attempts::apply(Entry& entry, uint32_t actions, const std::string& reason) {
  int64_t now = now_ns();
  AttemptWork& work = *entry.work;
  if (actions & kConnect) make_tenant(entry);
  send_frames(entry, actions, now);
  if (actions & kKillTenant) entry.killing = true;
  drop_tenant_if_ended(entry);
  if (actions & kRemove) work.over = true;
  if (actions & kStopWork) {
    work.stop = true;
    tasks_->hurry();
  }
  if (actions & kTellStarted) {
    work.started_us = system_clock().utc_us();
    reporter_->tell_started(entry.work, work.started_us);
  }
  bool report_only = (actions & kReport) && !(actions & kRecordEnd);
  if (report_only) {
    actions &= ~uint32_t{kReport};
    reporter_->tell_ended(entry.work);
  }
  if (!AttemptTasks::has_slow(actions)) {
    const bool must_wait = !entry.machine.holds_slot() && !entry.killing && !work.released;
    if (must_wait) tasks_->release(entry.work);  // a checkpoint is being sent
    return;
  }
  if (!(actions & kStopWork)) work.stop = false;
  tasks_->perform(entry.work, actions, entry.machine.end(), reason);
}

std::string Attempts::why_left(const Entry& entry) {
  return leave_sentence(entry.machine.leave_reason(), entry.work->shortage());
}

void Attempts::leave(Entry& entry, sublet_leave_reason reason) {
  uint32_t actions = entry.machine.leave(reason);
  entry.work->leave_reason = entry.machine.leave_reason();
  apply(entry, actions, why_left(entry));
}

void Attempts::make_tenant(Entry& entry) {
  if (entry.tenancy != nullptr) return;
  const Assignment& what = *entry.work->assignment;
  entry.tenancy = guard_.add(what.name, save_deadline_of(what, settings_.save_deadline_ms,
                                                         settings_.save_deadline_most_ms));
  entry.connect_pause_ns = kFirstConnectNs;
  entry.tenancy->can_stay = sublet_can_stay(leaving_of(what, settings_.leaving));
  newest_tenant_ns_ = now_ns();
  entry.connect_due_ns = newest_tenant_ns_;
  entry.tenant_due_ns = newest_tenant_ns_ + kTenantAfterNs;
}

void Attempts::drop_tenant_if_ended(Entry& entry) {
  if (entry.machine.holds_slot()) return;
  entry.work->ended = true;
  if (!entry.killing) return drop_tenant(entry);
  // Its shepherd is gone; the guard still watches the processes that it left.
  disconnect(entry);
  entry.connect_due_ns = kNever;
}

void Attempts::drop_tenant(Entry& entry) {
  if (entry.tenancy == nullptr) return;
  disconnect(entry);
  guard_.remove(entry.tenancy);
  entry.tenancy = nullptr;
  entry.connect_due_ns = entry.tenant_due_ns = kNever;
}

// ---- the owner --------------------------------------------------------------

void Attempts::owner_away() {
  evicting_ = SUBLET_LEAVE_NONE;
  guard_.owner_away();
}

void Attempts::evict(sublet_leave_reason reason, const OwnersPresence& presence, int64_t now) {
  guard_.evict(reason, presence, now);
  // The frames are sent; the rest is bookkeeping.
  evicting_ = reason;
  presence_ = presence;
  for (auto& [name, entry] : entries_) {
    // Its shepherd was told by the monitor and has answered already.
    if (entry->machine.state() == AttemptState::kSuspended && !presence.is_strict()) continue;
    if (entry->tenancy && !entry->tenancy->tenant) entry->tenant_due_ns = now;
    uint32_t actions = entry->machine.leave(reason);
    entry->work->leave_reason = entry->machine.leave_reason();  // also if it is just being started
    apply(*entry, actions & ~uint32_t{kSendVacate}, leave_sentence(reason));
  }
}

void Attempts::vacate(const AttemptName& name, sublet_leave_reason reason) {
  Entry* entry = find(name);
  if (entry == nullptr) return;
  log(Severity::info) << entry->work->label() << " must leave: " << leave_sentence(reason);
  leave(*entry, reason);
}

void Attempts::vacate_all(sublet_leave_reason reason) {
  all_leave_ = reason;
  for (auto& [name, entry] : entries_) leave(*entry, reason);
}

void Attempts::leave_for_want(const AttemptName& name, const Shortage& shortage) {
  Entry* entry = find(name);
  if (entry == nullptr || !entry->machine.holds_slot()) return;
  AttemptWork& work = *entry->work;
  const bool over = shortage.of == Shortage::Of::kDiskBound;
  if (over && entry->machine.state() == AttemptState::kLeaving) return;  // it may be saving
  const sublet_leave_reason reason = over ? SUBLET_LEAVE_LIMIT : SUBLET_LEAVE_DRAIN;
  if (entry->tenancy && (over || work.short_of != Shortage::Of::kNothing))
    guard_.urge(*entry->tenancy, SUBLET_FRAME_KILL, reason, now_ns());
  if (work.short_of != Shortage::Of::kNothing) return;
  work.short_free = shortage.free;
  work.short_used = shortage.used;
  work.short_of = shortage.of;  // the next call kills it
  if (entry->machine.state() == AttemptState::kLeaving) return;
  log(Severity::warning) << work.label() << " must leave: " << leave_sentence(reason, shortage);
  if (!over) leave(*entry, reason);
}

void Attempts::stop_work() {
  for (auto& [name, entry] : entries_) entry->work->stop = true;
  tasks_->stop_waiting();
}

// ---- the server -------------------------------------------------------------

void Attempts::renewed(int64_t sent_ns, int64_t lease_ms,
                       const std::vector<AttemptVerdict>& verdicts) {
  const int64_t end = lease_end_ns(sent_ns, lease_ms);
  for (const auto& verdict : verdicts) {
    Entry* entry = find(verdict.name);
    if (entry == nullptr) continue;
    if (verdict.value == kVerdictCounts) {
      entry->work->lease_ns = end;  // never earlier than before: renewals are sent in sequence
      apply(*entry, entry->machine.lease_renewed());
    } else {
      answered(verdict.name, verdict.value, false);
    }
  }
}

void Attempts::answered(const AttemptName& name, uint32_t verdict, bool of_end) {
  Entry* entry = find(name);
  if (entry == nullptr) return;
  bool ended = verdict == kVerdictSuperseded || verdict == kVerdictKnown;
  if (ended) {
    bool reported = entry->machine.state() == AttemptState::kReporting;
    if (!reported || verdict == kVerdictSuperseded)
      log(Severity::info) << entry->work->label() << " no longer counts: "
                          << (verdict == kVerdictKnown
                                  ? "the server already knows its end"
                                  : "the job moved to another machine or has ended");
    uint32_t actions = entry->machine.superseded();
    entry->work->leave_reason = SUBLET_LEAVE_REPLACED;
    return apply(*entry, actions);
  }
  if (of_end && verdict == kVerdictLater) {
    entry->report_pause_ms = next_pause(entry->report_pause_ms);
    entry->report_due_ns = now_ns() + entry->report_pause_ms * kMs;
  }
}

uint64_t Attempts::delivered_by_all() const {
  uint64_t bytes = delivered_by_forgotten_;
  for (const auto& [name, entry] : entries_) bytes += entry->work->delivered;
  return bytes;
}

// An attempt that was asked to leave sends a checkpoint, which is not waited for as long, and
// one that could not be started sends nothing. While an upload waits for others to end, their
// progress is its own.
void Attempts::report_hand_in(const Entry& entry, HeldAttempt* held) const {
  using Delivery = AttemptWork::Delivery;
  const Delivery delivery = entry.work->delivery;
  const bool waits = delivery == Delivery::kNotBegun &&
                     entry.machine.state() == AttemptState::kHandingIn &&
                     entry.machine.leave_reason() == SUBLET_LEAVE_NONE;
  held->state = waits || delivery == Delivery::kOutputs ? kAttemptDelivering : kAttemptLeaving;
  held->delivered = waits ? delivered_by_all() : entry.work->delivered.load();
}

std::vector<HeldAttempt> Attempts::held() {
  std::vector<HeldAttempt> out;
  const int64_t now_us = system_clock().utc_us();
  for (auto& [name, entry] : entries_) {
    if (entry->machine.state() == AttemptState::kForgotten) continue;
    HeldAttempt one = entry->reported;
    switch (entry->machine.state()) {
      case AttemptState::kAccepted:
      case AttemptState::kStaging:
      case AttemptState::kStarting:
        one.state = kAttemptStaging;
        break;
      case AttemptState::kRunning:
        one.state = kAttemptRunning;
        break;
      case AttemptState::kSuspended:
        one.state = kAttemptSuspended;
        break;
      case AttemptState::kLeaving: {
        // The server takes no leave back.
        const bool undecided = entry->tenancy && entry->tenancy->is_undecided();
        one.state = undecided ? kAttemptRunning : kAttemptLeaving;
        break;
      }
      default:
        report_hand_in(*entry, &one);
        break;
    }
    if (one.state == kAttemptRunning || one.state == kAttemptSuspended)
      one.at_risk_ms = cpu_at_risk_ms(*entry->work, one.cpu_ms, now_us);
    else
      one.message.clear();  // it has ended, or is about to
    out.push_back(one);
    if (entry->tenancy) guard_.send(*entry->tenancy, SUBLET_FRAME_QUERY, 0, 0);
  }
  return out;
}

std::vector<TenantMemory> Attempts::tenants() const {
  std::vector<TenantMemory> out;
  for (const auto& [name, entry] : entries_) {
    const AttemptState state = entry->machine.state();
    const bool stays = state == AttemptState::kRunning || state == AttemptState::kSuspended;
    if (entry->tenancy != nullptr) out.push_back({name, entry->reported.memory, stays});
  }
  return out;
}

void Attempts::ask_tenants() {
  for (auto& [name, entry] : entries_)
    if (entry->tenancy) guard_.send(*entry->tenancy, SUBLET_FRAME_QUERY, 0, 0);
}

// ---- children and time -------------------------------------------------------

void Attempts::child_started(pid_t pid) {
  children_.push_back(pid);
  reap_children();  // SIGCHLD may have arrived before the pid was known here
}

void Attempts::reap_children() {
  std::vector<pid_t> gone;
  std::erase_if(children_, [&](pid_t pid) {
    int status = 0;
    bool ended = waitpid(pid, &status, WNOHANG) != 0;
    if (ended) gone.push_back(pid);
    return ended;
  });
  if (gone.empty()) return;
  for (auto& [name, entry] : entries_) {
    if (std::ranges::find(gone, entry->shepherd) == gone.end()) continue;
    entry->shepherd = 0;
    entry->connect_due_ns = kNever;
    entry->check_again = entry->checking;
    check_end(*entry);
  }
}

void Attempts::tick_entry(Entry& entry, int64_t now) {
  if (now >= entry.connect_due_ns) try_connect(entry, now);
  if (now >= entry.tenant_due_ns && entry.tenancy) open_tenant(entry);
  if (now >= entry.report_due_ns) {
    entry.report_due_ns = kNever;
    apply(entry, entry.machine.report_later());
  }
  if (entry.machine.checkpoint_due_ms() <= now / kMs) apply(entry, entry.machine.tick(now / kMs));
}

void Attempts::tick(int64_t now) {
  // First, because the owner is waiting.
  bool enforced = guard_.tick(now);
  for (auto& [name, entry] : entries_) tick_entry(*entry, now);
  if (!enforced) return;
  for (auto& [name, entry] : entries_)
    if (entry->tenancy && (entry->tenancy->frozen || entry->tenancy->killed))
      log(Severity::warning) << entry->work->label() << ": its shepherd did not obey in time; "
                             << (entry->tenancy->killed ? "killed" : "frozen") << " from here";
}

int64_t Attempts::next_due() const {
  int64_t due = guard_.next_due();
  for (const auto& [name, entry] : entries_) {
    due = std::min({due, entry->connect_due_ns, entry->tenant_due_ns, entry->report_due_ns});
    int64_t checkpoint = entry->machine.checkpoint_due_ms();
    if (checkpoint < kNever / kMs) due = std::min(due, checkpoint * kMs);
  }
  return due;
}

}  // namespace sublet::client
