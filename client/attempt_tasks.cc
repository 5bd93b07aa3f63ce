#include "client/attempt_tasks.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include <cerrno>

#include "base/clock.h"
#include "base/log.h"
#include "base/tenant.h"
#include "base/text.h"
#include "client/ending.h"
#include "client/hand_in.h"

namespace sublet::client {
namespace {

using namespace protocol;

constexpr uint32_t kSlow =
    kKillTenant | kRecordEnd | kStage | kStart | kCheckpoint | kHandIn | kReport | kRemove;
constexpr int kKillRounds = 200;

// A shepherd holds the lock of its order file for as long as it lives.
bool order_locked(const std::string& folder) {
  UniqueFd fd(open((folder + "/" SUBLET_ORDER_FILE).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return false;
  return flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

void pause_ms(long ms) {
  timespec pause = {0, ms * 1'000'000};
  nanosleep(&pause, nullptr);
}

}  // namespace

AttemptTasks::AttemptTasks(Workers& workers, Files& files, ServerCalls& server, OrderDesk& desk,
                           Reporter& reporter, const JobSettings& settings,
                           std::string shepherd_program, TaskEvents events)
    : workers_(workers),
      files_(files),
      server_(server),
      desk_(desk),
      reporter_(reporter),
      settings_(settings),
      shepherd_program_(std::move(shepherd_program)),
      events_(std::move(events)) {}

bool AttemptTasks::has_slow(uint32_t actions) { return (actions & kSlow) != 0; }

FolderFacts AttemptTasks::look(const Files& files, const std::string& folder) {
  FolderFacts facts;
  facts.end_recorded = files.exists(folder + "/" + kEndFile);
  facts.exit_recorded = files.exists(folder + "/" SUBLET_EXIT_FILE);
  facts.shepherd_alive = order_locked(folder);
  facts.shepherd_known = facts.shepherd_alive || files.exists(folder + "/" SUBLET_RECORD_FILE);
  return facts;
}

void AttemptTasks::perform(const WorkPtr& work, uint32_t actions, EndCode end, std::string reason) {
  work->retry_ms = 0;
  workers_.post(
      [this, work, actions, end, reason = std::move(reason)] { run(work, actions, end, reason); });
}

void AttemptTasks::run(const WorkPtr& work, uint32_t actions, EndCode end,
                       const std::string& reason) {
  if (actions & kKillTenant) kill_tenant(work);
  if (actions & kRecordEnd) record_end(work, end, reason);
  if (actions & kStage) do_stage(work);
  if (actions & kStart) do_start(work);
  if (actions & kCheckpoint) do_checkpoint(work);
  if (actions & kHandIn) do_hand_in(work);
  if (actions & kReport) reporter_.tell_ended(work);
  if (actions & kRemove) do_remove(work);
}

void AttemptTasks::again(const WorkPtr& work, const std::string& why, std::function<void()> task) {
  if (work->retry_ms == 0)
    log(Severity::warning) << work->label() << ": waiting for the server: " << why;
  work->retry_ms = next_pause(work->retry_ms);
  workers_.post(std::move(task), work->retry_ms);
}

void AttemptTasks::kill_tenant(const WorkPtr& work) {
  std::string error;
  auto tenant = Tenant::open(work->folder, &error);
  if (!tenant) return;  // of another boot, or it never ran
  for (int i = 0; i < kKillRounds; ++i) {
    tenant->kill();
    if (tenant->gone()) return;
    pause_ms(5);
  }
  log(Severity::error) << work->label() << ": processes are left that cannot be killed";
}

void AttemptTasks::record_end(const WorkPtr& work, EndCode end, const std::string& reason) {
  EndRecord record{end, reason, system_clock().utc_us()};
  work->end = end_from_record(*work->assignment, record);
  try {
    write_end(files_, work->folder, record);
  } catch (const std::exception& error) {
    // Reported all the same; after a restart it would be found out anew.
    log(Severity::error) << work->label() << ": its end is not on disk: " << error.what();
  }
  log(is_eviction(end) ? Severity::info : Severity::warning) << work->label() << ": " << reason;
  seal(work);
}

void AttemptTasks::seal(const WorkPtr& work) {
  // The next job in this slot has the same account: it must not get in here.
  if (chmod(work->folder.c_str(), 0700) != 0 && errno != ENOENT)
    log(Severity::error) << work->label() << ": its folder cannot be closed; the slot stays taken";
  else
    desk_.release_slot(work->assignment->name);
}

void AttemptTasks::do_stage(const WorkPtr& work) {
  StagingOutcome outcome = stage(*work, server_);
  if (outcome.result == TaskResult::kAgain)
    return again(work, outcome.reason, [this, work] { do_stage(work); });
  bool stopped = outcome.result == TaskResult::kStopped;
  if (stopped || outcome.failed != kEndNone)
    return events_.staging_failed(work, outcome.failed, outcome.reason);
  events_.staged(work);
}

void AttemptTasks::do_start(const WorkPtr& work) {
  try {
    AttemptOrder order = make_order(*work, settings_);
    if (order.program.empty())
      return events_.shepherd_failed(work, "The program '" +
                                               escape_for_terminal(work->assignment->program) +
                                               "' is in no folder of PATH on this machine.");
    write_order(files_, work->folder, order);
    SpawnedProcess shepherd = start_shepherd(shepherd_program_, work->folder);
    events_.shepherd_started(work, shepherd.id.pid);
  } catch (const std::exception& error) {
    events_.shepherd_failed(work, std::string("It could not be started: ") + error.what());
  }
}

void AttemptTasks::do_checkpoint(const WorkPtr& work) {
  std::string why;
  uint64_t before = work->handed_in_generation;
  TaskResult result = hand_in_checkpoint(*work, server_, &why);
  // Not worth waiting for: the next one will be newer.
  if (result == TaskResult::kAgain)
    log(Severity::info) << work->label() << ": checkpoint not handed in now: " << why;
  uint64_t now = work->handed_in_generation;
  events_.checkpoint_over(work, now > before ? now : 0);
}

void AttemptTasks::do_hand_in(const WorkPtr& work) {
  seal(work);
  std::string why;
  TaskResult result = hand_in(*work, server_, files_, settings_, &why);
  if (result == TaskResult::kAgain) return again(work, why, [this, work] { do_hand_in(work); });
  events_.handed_in(work);
}

void AttemptTasks::do_remove(const WorkPtr& work) {
  try {
    files_.remove_tree(work->folder);
  } catch (const std::exception& error) {
    log(Severity::error) << work->label() << ": its folder cannot be removed: " << error.what();
  }
  desk_.forget(work->assignment->name);
  events_.removed(work);
}

void AttemptTasks::check_end(const WorkPtr& work) {
  workers_.post([this, work] {
    FolderFacts facts = look(files_, work->folder);
    if (facts.exit_recorded) return events_.ended(work);
    if (facts.shepherd_alive) return events_.still_alive(work);
    // It may have ended between the two looks.
    if (look(files_, work->folder).exit_recorded) return events_.ended(work);
    events_.vanished(work);
  });
}

}  // namespace sublet::client
