#include "client/attempts/tasks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "attempt/tenant.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "client/attempts/adoption.h"
#include "client/attempts/ending.h"
#include "client/machine/disk_usage.h"
#include "client/staging/hand_in.h"

namespace sublet::client {
namespace {

using namespace protocol;

constexpr uint32_t kSlow =
    kKillTenant | kRecordEnd | kStage | kStart | kCheckpoint | kHandIn | kReport | kRemove;
constexpr uint32_t kLocal = kKillTenant | kRecordEnd;
constexpr uint32_t kSlots = kStart | kHandIn;
constexpr int kKillRounds = 200;
// Within this time the server usually knows an end, and nothing of it need be synced. All that fall
// due within as much time are looked at together.
constexpr int64_t kSyncAfterMs = 20;
// So often: removals, which nobody waits for, because each alone would wake two threads.
constexpr int64_t kRoundMs = 20;

// After the first of a round; the others are removed meanwhile.
constexpr int64_t kRemovedToldMs = 2;

int64_t until_round_ms() { return kRoundMs - system_clock().boot_ns() / 1'000'000 % kRoundMs; }
// What the removal of so much costs nobody notices; a process of its own costs a millisecond.
constexpr uint64_t kRemovedHere = 200;  // entries
constexpr uint64_t kRemovedHereBytes = 16 << 20;

struct Handed : HandedAttempt {
  Handed(WorkPtr its_work, GivenAttempt to) : work(std::move(its_work)), given(std::move(to)) {}
  const WorkPtr work;
  GivenAttempt given;
};

// Nobody is at the other end, whatever is left to read.
bool is_hung_up(const UniqueFd& socket) {
  pollfd peer = {socket.get(), POLLRDHUP, 0};
  return poll(&peer, 1, 0) == 1;
}

void pause_ms(long ms) {
  timespec pause = {0, ms * 1'000'000};
  nanosleep(&pause, nullptr);
}

// Reaps it. False: this process stops, and does not wait for it.
bool wait_for_end(const SpawnedProcess& child, const std::atomic<bool>& stop) {
  constexpr int kLookMs = 100;
  pollfd ended = {child.pidfd.get(), POLLIN, 0};
  while (waitpid(child.id.pid, nullptr, WNOHANG) == 0) {
    if (stop) return false;
    poll(&ended, 1, kLookMs);
  }
  return true;
}

}  // namespace

AttemptTasks::AttemptTasks(const TaskThreads& threads, Files& files, ServerCalls& server,
                           OrderDesk& desk, Reporter& reporter, InputCache& cache,
                           const JobSettings& settings, std::string shepherd_program,
                           std::vector<std::string> mover_command, TaskEvents events)
    : threads_(threads),
      files_(files),
      server_(server),
      desk_(desk),
      reporter_(reporter),
      cache_(cache),
      settings_(settings),
      shepherd_program_(std::move(shepherd_program)),
      shepherds_(shepherd_program_, desk.state_folder()),
      mover_settings_{std::move(mover_command), shepherd_program_, settings.cgroups},
      events_(std::move(events)),
      evictions_(files, desk.state_folder()) {}

bool AttemptTasks::has_slow(uint32_t actions) { return (actions & kSlow) != 0; }

FolderFacts AttemptTasks::inspect(const Files& files, const std::string& folder) {
  FolderFacts facts;
  facts.end_recorded = files.exists(folder + "/" + kEndFile);
  facts.exit_recorded = files.exists(folder + "/" SUBLET_EXIT_FILE);
  facts.shepherd_alive = attempt_locked(folder);
  facts.shepherd_known = facts.shepherd_alive || files.exists(folder + "/" SUBLET_RECORD_FILE);
  return facts;
}

void AttemptTasks::perform(const WorkPtr& work, uint32_t actions, EndCode end, std::string reason) {
  actions &= kSlow;
  uint32_t step = actions & (~actions + 1);  // the lowest bit
  uint32_t rest = actions & ~step;
  Workers& pool = step & kLocal        ? threads_.local
                  : step & kCheckpoint ? threads_.uploads
                  : step & kRemove     ? threads_.removals
                  : step & kSlots      ? threads_.starts
                                       : threads_.workers;
  // The slot's next attempt may run already, and the removal may take long.
  if ((step & kRemove) && !work->released) release(work);
  post(
      pool, work,
      [this, work, step, rest, end, reason = std::move(reason)] {
        // No other task of this attempt runs or is queued, but a checkpoint beside kLocal.
        work->retry_ms = 0;
        run(work, step, end, reason);
        if ((step & kLocal) != 0 && (rest & kLocal) == 0) events_.cleared(work);
        if (rest != 0) perform(work, rest, end, reason);
      },
      step & kRemove ? until_round_ms() : 0);
}

void AttemptTasks::post(Workers& pool, const WorkPtr& work, std::function<void()> task,
                        int64_t delay_ms, int64_t pause_ms) {
  pool.post(guarded(pool, work, std::move(task), pause_ms), delay_ms);
}

std::function<void()> AttemptTasks::guarded(Workers& pool, const WorkPtr& work,
                                            std::function<void()> task, int64_t pause_ms) {
  return [this, &pool, work, task = std::move(task), pause_ms] {
    try {
      task();
    } catch (const std::exception& error) {
      int64_t pause = next_pause(pause_ms);
      log(Severity::error) << work->label() << ": unexpected error, retrying in "
                           << format_duration_ms(pause) << ": " << error.what();
      post(pool, work, task, pause, pause);
    }
  };
}

void AttemptTasks::run(const WorkPtr& work, uint32_t step, EndCode end, const std::string& reason) {
  switch (step) {
    case kKillTenant:
      return kill_tenant(work);
    case kRecordEnd:
      return record_end(work, end, reason);
    case kStage:
      return do_stage(work);
    case kStart:
      do_start(work);
      return desk_.start_ahead();  // one may be next
    case kCheckpoint:
      return do_checkpoint(work);
    case kHandIn:
      return close_and_hand_in(work);
    case kReport:
      return reporter_.tell_ended(work);
    case kRemove:
      return do_remove(work);
    default:
      return;
  }
}

void AttemptTasks::again(Workers& pool, const WorkPtr& work, const std::string& why,
                         std::function<void()> task) {
  if (work->retry_ms == 0)
    log(Severity::warning) << work->label() << ": waiting for the server: " << why;
  work->retry_ms = next_pause(work->retry_ms);
  post(pool, work, std::move(task), work->retry_ms);
}

void AttemptTasks::kill_tenant(const WorkPtr& work) {
  std::string error;
  auto tenant = Tenant::open(work->folder, &error);
  if (!tenant) return;  // the record is from another boot, or there is none
  for (int i = 0; i < kKillRounds; ++i) {
    tenant->kill();
    if (tenant->gone()) {
      if (work->seen.gone == 0) work->seen.gone = system_clock().boot_ns();
      return;
    }
    pause_ms(5);
  }
  log(Severity::error) << work->label() << ": processes are left that cannot be killed";
}

void AttemptTasks::record_end(const WorkPtr& work, EndCode end, const std::string& reason) {
  EndRecord record{end, reason, system_clock().utc_us()};
  work->end = end_from_record(*work->assignment, record);
  note_seen(work->seen, system_clock(), &work->end);
  try {
    write_end(files_, work->folder, record);
  } catch (const std::exception& error) {
    // The end is reported anyway; after a restart it would be determined again.
    log(Severity::error) << work->label()
                         << ": its end could not be written to disk: " << error.what();
  }
  log(is_eviction(end) ? Severity::info : Severity::warning) << work->label() << ": " << reason;
  // An owner may wait for this thread.
  if (seal(work)) threads_.starts.post([this] { desk_.start_ahead(); });
  make_room(work);
  note_eviction(work);
}

void AttemptTasks::release(const WorkPtr& work) {
  post(threads_.starts, work, [this, work] {
    if (seal(work)) desk_.start_ahead();
  });
}

bool AttemptTasks::seal(const WorkPtr& work) {
  // The next job in this slot has the same account and must not access this folder. If the shepherd
  // has written the end, it has closed it; looking costs less.
  struct stat about;
  const bool is_closed = stat(work->folder.c_str(), &about) == 0 && (about.st_mode & 077) == 0;
  if (is_closed || chmod(work->folder.c_str(), 0700) == 0 || errno == ENOENT) {
    work->released = true;
    return desk_.free_slot(work->assignment->name);
  }
  log(Severity::error) << work->label() << ": its folder cannot be closed; the slot stays in use";
  return false;
}

void AttemptTasks::do_stage(const WorkPtr& work) {
  Mover mover(*work, server_, threads_.pace, mover_settings_);
  StagingOutcome outcome = stage(*work, server_, mover, cache_, threads_.pace);
  if (outcome.result == TaskResult::kAgain)
    return again(threads_.workers, work, outcome.reason, [this, work] { do_stage(work); });
  if (outcome.failed == kEndLost) desk_.machine_failed(outcome.reason);
  bool stopped = outcome.result == TaskResult::kStopped;
  if (stopped || outcome.failed != kEndNone) {
    // Removes the partial file now: reporting the end may wait long for the server.
    work->incoming.reset();
    return events_.staging_failed(work, outcome.failed, outcome.reason);
  }
  events_.staged(work);
}

void AttemptTasks::start_at_once(std::shared_ptr<const Assignment> assignment) {
  const WorkPtr work = work_of(std::move(assignment));
  events_.starting(work);
  guarded(threads_.starts, work, [this, work] { do_start(work); })();
}

WorkPtr AttemptTasks::work_of(std::shared_ptr<const Assignment> assignment) const {
  const std::string folder = attempt_folder(desk_.state_folder(), assignment->name);
  return std::make_shared<AttemptWork>(std::move(assignment), folder);
}

void AttemptTasks::give_order(const AttemptWork& work) {
  settings_.cgroups.hold_controllers();
  AttemptOrder order =
      make_order(work, settings_, files_.free_bytes(work.folder), server_.address());
  if (!desk_.may_be_lifted(work.assignment->name.job)) order.cpu_allowance_ms = 0;
  write_order(files_, work.folder, order);
}

std::shared_ptr<HandedAttempt> AttemptTasks::hand_over(std::shared_ptr<const Assignment> what) {
  const WorkPtr work = work_of(std::move(what));
  give_order(*work);
  return std::make_shared<Handed>(
      work, shepherds_.run_behind(work->assignment->slot, work->assignment->name));
}

bool AttemptTasks::take_back(HandedAttempt& handed) {
  return take_back_order(static_cast<Handed&>(handed).work->folder);
}

void AttemptTasks::renew(HandedAttempt& handed, int64_t lease_ns) {
  const Handed& its = static_cast<Handed&>(handed);
  its.work->lease_ns = lease_ns;
  sublet_frame frame = {};
  frame.magic = SUBLET_FRAME_MAGIC;
  frame.kind = SUBLET_FRAME_LEASE;
  frame.job = its.work->assignment->name.job;
  frame.attempt = its.work->assignment->name.attempt;
  frame.instant = lease_ns;
  send(its.given.control->get(), &frame, sizeof frame, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void AttemptTasks::begin(HandedAttempt& handed) {
  const Handed& its = static_cast<Handed&>(handed);
  if (is_hung_up(*its.given.control) && has_not_begun(*its.work)) {
    events_.starting(its.work);
    return post(threads_.starts, its.work, [this, work = its.work] {
      do_start(work);
      desk_.start_ahead();
    });
  }
  desk_.runs(its.work->assignment->name);
  events_.next_began(its.work, its.given);
}

// Its shepherd has ended before its turn came. False also if that cannot be seen.
bool AttemptTasks::has_not_begun(AttemptWork& work) {
  try {
    if (work.was_passed_over || !files_.exists(work.folder + "/" SUBLET_ORDER_FILE)) return false;
    work.was_passed_over = take_back_order(work.folder);
    return work.was_passed_over;
  } catch (const std::exception&) {
    return false;
  }
}

void AttemptTasks::do_start(const WorkPtr& work) {
  GivenAttempt given;
  try {
    given = give_to_shepherd(*work);
  } catch (const OsError& error) {
    std::string reason = std::string("It could not be started: ") + error.what();
    // An order that is too long or that a shepherd would reject is the job's fault.
    bool own = error.code() == EFBIG || error.code() == EINVAL;
    if (!own) desk_.machine_failed(reason);
    return events_.shepherd_failed(work, own ? kEndStart : kEndLost, reason);
  }
  started(work, given);
}

GivenAttempt AttemptTasks::give_to_shepherd(const AttemptWork& work) {
  give_order(work);
  return shepherds_.run(work.assignment->slot, work.assignment->name);
}

void AttemptTasks::started(const WorkPtr& work, const GivenAttempt& given) {
  const bool is_new = given.is_new;
  desk_.runs(work->assignment->name);
  events_.shepherd_started(work, given);
  // The one before may have been killed between two attempts.
  if (is_new) settings_.cgroups.remove_left_over();
}

void AttemptTasks::note_health(const WorkPtr& work) {
  if (work->health_noted) return;
  work->health_noted = true;
  std::string error;
  const std::optional<AttemptExit>& exit = exit_of(*work, files_, &error);
  if (!exit) return;
  if (exit->facts.unsaved != 0) desk_.note_unsaved(work->assignment->name.job);
  if (machine_failed(*exit))
    desk_.machine_failed("a job could not be started: " + exit->step +
                         (exit->place.empty() ? "" : ": " + escape_for_terminal(exit->place)));
  else if (exit->facts.outcome != SUBLET_OUTCOME_UNSTARTED)
    desk_.machine_worked();
}

void AttemptTasks::do_checkpoint(const WorkPtr& work) {
  std::string why;
  uint64_t before = work->handed_in_generation;
  Mover mover(*work, server_, threads_.pace, mover_settings_);
  TaskResult result = hand_in_checkpoint(*work, server_, mover, settings_, threads_.pace, &why);
  work->known_digests.clear();  // the job may save again
  // Not retried: the next checkpoint will be newer.
  if (result == TaskResult::kAgain)
    log(Severity::info) << work->label() << ": checkpoint not uploaded for now: " << why;
  uint64_t now = work->handed_in_generation;
  events_.checkpoint_done(work, now > before ? now : 0);
}

void AttemptTasks::close_and_hand_in(const WorkPtr& work) {
  note_health(work);  // before the slot is free for the next order
  const bool others_wait = seal(work);
  // Before the others, so that the reactor is woken once for both.
  const bool is_handed_in = hand_in_at_once(work);
  if (others_wait) desk_.start_ahead();
  const auto sync = [this, work] {
    if (!work->over) outlive_power(files_, *work);
  };
  post(threads_.removals, work, sync, kSyncAfterMs + until_round_ms());
  if (is_handed_in) return;
  if (has_nothing_to_send(*work, files_))
    return post(threads_.workers, work, [this, work] { do_hand_in(work); });
  post(threads_.uploads, work, [this, work] {
    find_end(*work, files_);
    note_eviction(work);
    do_hand_in(work);
  });
}

// False: that is left to another thread. The slot is free already: no failure may keep it empty.
bool AttemptTasks::hand_in_at_once(const WorkPtr& work) {
  try {
    if (!has_nothing_to_send(*work, files_) || !is_soon_reported(*work)) return false;
    guarded(threads_.workers, work, [this, work] { do_hand_in(work); })();
    return true;
  } catch (const std::exception& error) {
    log(Severity::debug) << work->label() << " is not reported at once: " << error.what();
    return false;
  }
}

// Of a short job that left a few small files, and nothing to send: slots may wait for that.
bool AttemptTasks::is_soon_reported(AttemptWork& work) const {
  constexpr size_t kFewEntries = 50;
  constexpr int64_t kShortUs = 1'000'000;
  if (work.exit->facts.wall_us > kShortUs || work.short_of != Shortage::Of::kNothing) return false;
  if (const auto bytes = desk_.untouched_folder(*work.assignment, work.folder)) {
    work.is_untouched = true;
    work.disk_use = *bytes;
    return true;
  }
  // A job with this client's account may have written them itself.
  for (const char* name : {SUBLET_STDOUT_FILE, SUBLET_STDERR_FILE})
    if (files_.exists(work.folder + "/" + name)) return false;
  if (!work.disk_use) {
    const DiskUse use = disk_use(work.folder, kFewEntries);
    if (!use.is_all) return false;
    work.disk_use = use.bytes;
  }
  return *work.disk_use <= kRemovedHereBytes;
}

void AttemptTasks::note_eviction(const WorkPtr& work) {
  if (work->eviction_noted) return;
  work->eviction_noted = true;
  if (!had_to_leave(work->end.end)) return;
  // Later: what was saved is to reach the server first. And not by the threads on which an owner
  // may wait for a kill: it writes a file.
  post(threads_.workers, work, [this, note = note_of(work->end), sensed_ns = work->end.sensed_ns] {
    evictions_.add(note, sensed_ns);
  });
}

void AttemptTasks::do_hand_in(const WorkPtr& work) {
  std::string why;
  Mover mover(*work, server_, threads_.pace, mover_settings_);
  TaskResult result = hand_in(*work, server_, mover, files_, settings_, threads_.pace, &why);
  note_eviction(work);
  if (result == TaskResult::kDone) note_disk_use(*work);
  make_room(work);
  if (result == TaskResult::kAgain) {
    outlive_power(files_, *work);
    return again(threads_.uploads, work, why, [this, work] { do_hand_in(work); });
  }
  events_.handed_in(work);
}

// Only the checkpoint of an evicted job is still needed. If the disk ran low, the
// working folder is removed at once, without waiting for the end to be reported. Of a job that used
// too much itself, its outputs are still needed. At normal weight, because the owner needs the
// room.
void AttemptTasks::make_room(const WorkPtr& work) {
  const Shortage::Of of = work->shortage().of;
  // Its checkpoint is still there alone.
  if (work->assignment->job.own_checkpoint.is_set() && !work->files_packed) return;
  const bool outputs_needed = of == Shortage::Of::kDiskBound;
  if (!outputs_needed && (of != Shortage::Of::kDisk || !is_eviction(work->end.end))) return;
  // The working folder last: while it is there, the watch of the disk waits for the room.
  for (const char* name : {SUBLET_PRIVATE_FOLDER, SUBLET_WORK_FOLDER}) {
    if (outputs_needed && strcmp(name, SUBLET_WORK_FOLDER) == 0) continue;
    try {
      files_.remove_tree(work->folder + "/" + name);
    } catch (const std::exception& error) {
      log(Severity::error) << work->label() << ": " << error.what();
    }
  }
}

// After the upload, which it would delay.
void AttemptTasks::note_disk_use(AttemptWork& work) const {
  constexpr size_t kMostEntries = 10'000;
  const Shortage shortage = work.shortage();
  const bool is_known = shortage.of == Shortage::Of::kDisk;
  if (!is_known && !work.disk_use) work.disk_use = disk_usage(work.folder, kMostEntries);
  work.end.disk_peak = is_known ? shortage.used : *work.disk_use;
}

void AttemptTasks::remove_discarded(const std::string& folder, uint64_t bytes) {
  if (bytes <= kRemovedHereBytes && files_.remove_some(folder, kRemovedHere)) return;
  settings_.cgroups.hold_controllers();
  AttemptOrder order;
  settings_.cgroups.set_helper_folders(&order);
  try {
    const SpawnedProcess removal = start_removal(shepherd_program_, folder, order);
    if (!wait_for_end(removal, stopping_)) return;  // the next start removes what it leaves
  } catch (const OsError& error) {
    log(Severity::warning) << folder << " is removed at normal weight: " << error.what();
  }
  files_.remove_tree(folder);
}

void AttemptTasks::empty_trash() {
  threads_.removals.post([this] {
    const std::string trash = trash_folder(desk_.state_folder());
    const auto try_it = [](const std::function<void()>& remove) {
      try {
        remove();
      } catch (const std::exception& error) {
        log(Severity::error) << "discarded folders cannot be removed: " << error.what();
      }
    };
    std::vector<FolderEntry> entries;
    try_it([&] {
      if (files_.exists(trash)) entries = files_.list(trash);
    });
    for (const FolderEntry& entry : entries) {
      if (stopping_) return;
      const std::string folder = trash + "/" + entry.name;
      try_it([&] { remove_discarded(folder, disk_usage(folder, kRemovedHere)); });
    }
  });
}

void AttemptTasks::do_remove(const WorkPtr& work) {
  std::string error;
  const bool shepherd_ended = exit_of(*work, files_, &error).has_value();
  if (!shepherd_ended) settings_.cgroups.remove_left_over();
  try {
    const bool reused = !work->outlives_power &&
                        desk_.reuse_folder(*work->assignment, work->folder, work->is_untouched);
    if (!reused) discard(*work);
  } catch (const std::exception& error) {
    log(Severity::error) << work->label() << ": its folder cannot be removed: " << error.what();
  }
  desk_.forget(work->assignment->name);
  tell_removed(work);
}

void AttemptTasks::tell_removed(const WorkPtr& work) {
  std::lock_guard lock(removed_mutex_);
  if (removed_.empty()) threads_.removals.post([this] { tell_all_removed(); }, kRemovedToldMs);
  removed_.push_back(work);
}

void AttemptTasks::tell_all_removed() {
  std::vector<WorkPtr> removed;
  {
    std::lock_guard lock(removed_mutex_);
    removed.swap(removed_);
  }
  for (const WorkPtr& work : removed) events_.removed(work);
}

void AttemptTasks::discard(const AttemptWork& work) {
  // Renamed first, so that a client killed meanwhile leaves no half-removed attempt.
  // Not synced: after a power failure the whole folder may be back.
  std::string trash = trash_folder(folder_of(folder_of(work.folder)));
  files_.make_folders(trash, 0700);
  std::string thrown_away = trash + work.folder.substr(work.folder.rfind('/')) + "." +
                            std::to_string(system_clock().utc_us());
  if (rename(work.folder.c_str(), thrown_away.c_str()) != 0 && errno != ENOENT)
    throw FileError(errno, "discard", work.folder);
  const uint64_t bytes = work.end.disk_peak;
  remove_discarded(thrown_away, bytes > 0 ? bytes : disk_usage(thrown_away, kRemovedHere));
}

void AttemptTasks::check_end(const WorkPtr& work) {
  post(threads_.local, work, [this, work, restarts = work->restarts.load()] {
    if (work->restarts != restarts) return;  // it was asked of another shepherd
    FolderFacts facts = inspect(files_, work->folder);
    if (facts.exit_recorded) return events_.ended(work);
    if (facts.shepherd_alive) return events_.still_alive(work);
    // It may have ended between the two checks above.
    if (inspect(files_, work->folder).exit_recorded) return events_.ended(work);
    const bool leaves = work->leave_reason != SUBLET_LEAVE_NONE;
    if (!leaves && !facts.shepherd_known && has_not_begun(*work)) return start_again(work);
    events_.vanished(work);
  });
}

void AttemptTasks::start_again(const WorkPtr& work) {
  ++work->restarts;
  log(Severity::info) << work->label() << " is given to another shepherd: the slot's has ended";
  post(threads_.starts, work, [this, work] {
    try {
      started(work, give_to_shepherd(*work));
      desk_.start_ahead();
    } catch (const OsError& error) {
      desk_.machine_failed(std::string("a job could not be started: ") + error.what());
      log(Severity::error) << work->label() << ": " << error.what();
      events_.vanished(work);
    }
  });
}

}  // namespace sublet::client
