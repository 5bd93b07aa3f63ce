#include "client/daemon.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <future>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/service_notify.h"
#include "base/start_up_memory.h"
#include "base/text.h"
#include "client/attempts/adoption.h"
#include "client/attempts/attempts.h"
#include "client/attempts/slot_accounts.h"
#include "client/link/corba_server.h"
#include "client/link/session_keeper.h"
#include "client/machine/disk_watch.h"
#include "client/machine/idle_history.h"
#include "client/machine/machine.h"
#include "client/machine/memory_pressure.h"
#include "client/machine/memory_watch.h"
#include "client/machine/missing_walls.h"
#include "client/machine/monitor_link.h"
#include "client/machine/pool_logins.h"
#include "client/machine/speed.h"
#include "client/setting_up.h"
#include "client/staging/input_cache.h"

namespace sublet::client {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr size_t kLocalThreads = 2;
constexpr int kUploadNice = 19;
// After the start and after the last job: the calls to the server that follow either are over.
constexpr int64_t kUntilRest_ns = 5'000 * kMs;

int64_t now_ns() { return system_clock().boot_ns(); }

class Daemon {
 public:
  explicit Daemon(const ClientSettings& settings);
  ~Daemon();
  int run();

 private:
  KeeperHooks keeper_hooks();
  std::function<void(pid_t)> child_started();
  void say_hello();
  void adopt();

  void on_presence(const sublet_frame& frame);
  void on_blind();
  void give_back_ahead();
  void on_signal(int signal);
  void on_tick();
  void after_round();
  void rest_if_due(int64_t now);
  void set_timer();
  bool held(std::vector<HeldAttempt>* out);
  MachineState machine_state();
  bool watches_memory() const { return attempts_.tenants_since_ns() != kNever || memory_.is_low(); }
  void watch_memory(int64_t now);
  void on_joined(const Joined& joined);

  const ClientSettings settings_;
  ServiceNotify manager_ = ServiceNotify::from_environment();  // before every thread
  const std::string state_;
  const FolderLock lock_;
  MachineFacts facts_;
  const SlotAccounts accounts_;
  const WallsTrial walls_;
  AttemptCgroups cgroups_;
  const NetworkRules network_;
  MachineIdentity identity_;
  PublicPresence presence_;
  bool presence_known_ = false;
  IdleHistory idle_;
  OwnersPresence owners_;    // by the monitor's last word
  bool owner_gone_ = false;  // by the monitor's last word; not `away`: what stayed may go on

  InputCache cache_;
  Loop loop_;  // before every thread: it blocks the signals that they inherit
  OrderDesk desk_;
  Workers workers_;
  Workers starts_;
  Workers uploads_;
  Workers local_;  // for work that must not queue behind uploads
  Workers removals_;
  Pace pace_;
  SessionKeeper* keeper_raw_ = nullptr;
  Attempts attempts_;
  std::unique_ptr<CorbaServer> server_;
  std::unique_ptr<Reporter> reporter_;
  std::unique_ptr<AttemptTasks> tasks_;
  std::unique_ptr<SessionKeeper> keeper_;
  MonitorLink monitor_;
  DiskWatch disk_;
  MemoryWatch memory_;
  MemoryPressure pressure_;
  SpeedWatch speed_;                    // after keeper_, which it tells
  std::unique_ptr<PoolLogins> logins_;  // null: not wanted

  std::atomic<bool> stopping_{false};  // the loop ends or has ended
  std::atomic<bool> draining_{false};
  bool hasty_ = false;  // a second signal
  int64_t drain_until_ns_ = kNever;
  bool worked_ = true;            // there was an attempt, or the start
  int64_t rests_at_ns_ = kNever;  // when that will have been over for kUntilRest_ns
};

Daemon::Daemon(const ClientSettings& settings)
    : settings_(settings),
      state_(make_state_folder(settings.state_folder)),
      lock_(state_),
      facts_(facts_of(settings, state_)),
      accounts_(reserve_accounts(settings, facts_.slots, state_)),
      walls_(try_walls()),
      cgroups_(AttemptCgroups::of_machine("c" + hex(digest_of(state_)).substr(0, 12),
                                          walls_.possible())),
      network_(network_rules(settings, cgroups_, walls_)),
      identity_(ensure_identity(system_files(), state_)),
      idle_(system_files(), state_ + "/idle-history"),
      cache_(system_files(), {state_ + "/cache", settings.input_cache, settings.disk_reserve}),
      desk_(
          desk_settings(settings, state_, facts_, accounts_, network_), system_files(), presence_,
          [this](std::shared_ptr<const Assignment> a, bool from_ahead) {
            disk_.attempt_came();
            if (from_ahead && !has_to_fetch(*a)) return tasks_->start_at_once(std::move(a));
            loop_.post([this, a = std::move(a)] {
              attempts_.accept(a);
              desk_.taken_over(a->name);
            });
          },
          [this](std::vector<VacateOrder> orders) {
            loop_.post([this, orders = std::move(orders)] {
              for (const auto& order : orders) attempts_.vacate(order.name, order.reason);
            });
          }),
      workers_(static_cast<size_t>(settings.workers), 0, DiskPriority::kIdle),
      starts_(1, 0, DiskPriority::kIdle),
      uploads_(static_cast<size_t>(settings.workers), kUploadNice, DiskPriority::kIdle),
      local_(kLocalThreads),
      removals_(1, 0, DiskPriority::kIdle),
      pace_(settings.upload_cpu, presence_.away),
      attempts_(
          loop_, local_,
          {state_, settings.checkpoint_interval_ms, settings.save_deadline_ms,
           settings.save_deadline_most_ms, static_cast<sublet_leaving>(settings.leaving)},
          [this] { keeper_raw_->something_changed(); }, [this] { monitor_.accuse(now_ns()); }),
      monitor_(
          loop_, local_, monitor_settings(settings, state_),
          [this](const sublet_frame& frame) { on_presence(frame); },
          [this](const sublet_frame& frame) { tasks_->note_cause(frame); }, [this] { on_blind(); },
          child_started()),
      disk_(
          disk_settings(settings, state_), system_files(), desk_,
          [this](const AttemptName& name, const Shortage& disk) {
            loop_.post([=, this] { attempts_.leave_for_want(name, disk); });
          },
          [this] { keeper_raw_->presence_changed(); },
          [this](uint64_t bytes) { cache_.make_room(bytes); }),
      memory_(memory_settings(settings, facts_)),
      pressure_(cgroups_.unified()),
      speed_(settings.root, {.may_measure = [this] { return presence_.away.load(); },
                             .measured = [this] { keeper_raw_->something_changed(); }}) {
  set_up_places(settings, state_);
  desk_.on_slot_freed([this] { workers_.post([this] { desk_.start_ahead(); }); });
  desk_.on_given_back([this](std::shared_ptr<const Assignment> a, const std::string& why) {
    reporter_->tell_refused(std::move(a), why);
  });
  desk_.give_way([this] { return cache_.bytes(); },
                 [this](uint64_t bytes) { cache_.make_room(bytes); });
  server_ = std::make_unique<CorbaServer>(server_place(settings, state_), desk_,
                                          [this] { keeper_raw_->session_ended(); });
  keeper_ = std::make_unique<SessionKeeper>(*server_, facts_, identity_, settings.server_socket,
                                            keeper_hooks());
  keeper_raw_ = keeper_.get();
  reporter_ = std::make_unique<Reporter>(
      *server_,
      [this](const AttemptName& name, uint32_t verdict, bool of_end) {
        loop_.post([=, this] {
          attempts_.answered(name, verdict, of_end);
          if (of_end && verdict != kVerdictLater) desk_.returned(name);
        });
      },
      [](AttemptWork& work) { outlive_power(system_files(), work); },
      [this] { return desk_.has_ahead(); });
  TaskEvents events = attempts_.events();
  events.starting = [this](const WorkPtr& work) {
    loop_.post([this, work] {
      attempts_.accept_starting(work);
      desk_.taken_over(work->assignment->name);
    });
  };
  events.next_began = [this](const WorkPtr& work, const GivenAttempt& given) {
    loop_.post([=, this] {
      attempts_.accept_started(work, given);
      desk_.taken_over(work->assignment->name);
    });
  };
  tasks_ = std::make_unique<AttemptTasks>(
      TaskThreads{local_, workers_, starts_, uploads_, removals_, pace_}, system_files(), *server_,
      desk_, *reporter_, cache_,
      job_settings(settings, state_, facts_, cgroups_, walls_, network_,
                   [this] { return idle_.mean_s(now_ns()); }),
      shepherd_program(settings), mover_command(), std::move(events));
  check_walls(settings, walls_);
  check_traffic(settings, cgroups_);
  attempts_.connect(tasks_.get(), reporter_.get());
  // With accounts of their own, but without walls, only the mode of its folder would keep the next
  // one from the one that runs.
  if (walls_.possible() || geteuid() != 0) desk_.on_next(*tasks_);
  if (settings.pool_logins) logins_ = std::make_unique<PoolLogins>(state_);
}

Daemon::~Daemon() {
  stopping_ = true;
  keeper_->stop(false);
  reporter_->stop();
  attempts_.stop_work();
  disk_.stop();
  workers_.stop();
  starts_.stop();
  uploads_.stop();
  local_.stop();
  removals_.stop();
  server_->close();
  if (attempts_.tenants_since_ns() == kNever) cgroups_.release_controllers();
}

std::function<void(pid_t)> Daemon::child_started() {
  return [this](pid_t pid) { loop_.post([this, pid] { attempts_.child_started(pid); }); };
}

KeeperHooks Daemon::keeper_hooks() {
  KeeperHooks hooks;
  hooks.held = [this](std::vector<HeldAttempt>* out) { return held(out); };
  hooks.state = [this] { return machine_state(); };
  hooks.renewed = [this](int64_t sent_ns, const Renewed& renewed) {
    desk_.set_server_clock(renewed.server_time_us, sent_ns);
    desk_.renewed(sent_ns, renewed.lease_ms, renewed.verdicts);
    loop_.post([=, this] { attempts_.renewed(sent_ns, renewed.lease_ms, renewed.verdicts); });
    if (logins_) logins_->exchange(renewed.logins);
  };
  hooks.joined = [this](const Joined& joined) { on_joined(joined); };
  return hooks;
}

void Daemon::say_hello() {
  log(Severity::info) << "'" << facts_.name << "': " << facts_.os << " " << facts_.architecture
                      << ", " << facts_.cores << " cores, " << format_bytes(facts_.memory)
                      << " of memory, " << facts_.slots << " slots, state in " << state_;
  if (geteuid() != 0)
    log(Severity::warning) << "not root: jobs run under this account and can access its files"
                           << (walls_.possible() ? ", but for those in home folders" : "")
                           << "; a client run by root gives each slot its own account";
  for (const auto& missing : cgroups_.missing()) log(Severity::info) << missing;
  for (const auto& missing : missing_walls(walls_)) log(Severity::warning) << missing;
}

void Daemon::adopt() {
  for (auto& one : adopt_attempts(system_files(), state_)) {
    bool ended = one.facts.end_recorded || one.facts.exit_recorded;
    desk_.adopt(*one.assignment, !ended);
    attempts_.adopt(std::move(one.assignment), one.facts);
  }
  cgroups_.remove_left_over();
  tasks_->empty_trash();
}

void Daemon::on_joined(const Joined& joined) {
  desk_.set_server_clock(joined.server_time_us, joined.asked_ns);
  if (joined.identity != identity_) {
    identity_ = joined.identity;
    try {
      write_identity(system_files(), state_, identity_);
    } catch (const std::exception& error) {
      log(Severity::error) << "this machine's identity could not be written to disk: "
                           << error.what();
    }
  }
  tasks_->hurry();
  reporter_->hurry();
}

// The owner's return: the frames to the shepherds are sent first, everything else follows.
void Daemon::on_presence(const sublet_frame& frame) {
  // What stayed may go on before new jobs may come.
  const bool gone = frame.state == SUBLET_PRESENCE_AWAY;
  const bool away = sublet_jobs_may_come(frame.state, frame.reason);
  const bool was_away = presence_.away.exchange(away);
  if (idle_.note(away, now_ns())) local_.post([this] { idle_.store(); });
  const OwnersPresence owners = {static_cast<sublet_presence>(frame.state),
                                 static_cast<sublet_presence_reason>(frame.reason), frame.instant};
  const bool told_before =
      presence_known_ && !owner_gone_ && owners_.is_strict() >= owners.is_strict();
  if (!gone && !told_before) {
    bool blind = frame.reason == SUBLET_PRESENCE_BLIND;
    attempts_.evict(blind ? SUBLET_LEAVE_BLIND : SUBLET_LEAVE_OWNER, owners, now_ns());
  }
  if (was_away && !away) give_back_ahead();
  owner_gone_ = gone;
  owners_ = owners;
  bool changed = away != was_away || !presence_known_ || frame.reason != presence_.reason.load();
  presence_known_ = true;
  presence_.reason = frame.reason;
  presence_.owner_cpu_milli = frame.arg[0];
  presence_.input_idle_ms = frame.arg[1];
  if (gone) attempts_.owner_away();
  if (changed) keeper_->presence_changed();
  if (away != was_away)
    log(Severity::info) << (away   ? "the owner is away: jobs may run"
                            : gone ? "no more jobs may come"
                                   : "the owner is here");
  set_timer();
}

// None of them starts from now on, by the desk's own look; so there is no haste.
void Daemon::give_back_ahead() {
  workers_.post([this] { desk_.give_back_ahead("the owner is here"); });
}

void Daemon::on_blind() {
  presence_.away = false;
  idle_.note(false, now_ns());
  owners_ = {SUBLET_PRESENCE_ACTIVE, SUBLET_PRESENCE_BLIND, now_ns()};
  attempts_.evict(SUBLET_LEAVE_BLIND, owners_, now_ns());
  give_back_ahead();
  presence_known_ = true;
  owner_gone_ = false;
  presence_.reason = SUBLET_PRESENCE_BLIND;
  keeper_->presence_changed();
  set_timer();
}

void Daemon::on_signal(int signal) {
  if (signal == SIGCHLD) return attempts_.reap_children();
  if (draining_) {
    hasty_ = true;
    log(Severity::warning) << "second stop signal: exiting at once; shepherds keep running";
    return loop_.stop();
  }
  draining_ = true;
  desk_.drain();
  tasks_->stop_waiting();
  drain_until_ns_ = now_ns() + settings_.drain_ms * kMs;
  log(Severity::info) << "stopping: jobs are asked to leave";
  attempts_.vacate_all(SUBLET_LEAVE_DRAIN);
  workers_.post([this] { desk_.give_back_ahead("this client is stopping"); });
  keeper_->presence_changed();
  on_tick();
}

void Daemon::on_tick() {
  int64_t now = now_ns();
  attempts_.tick(now);
  monitor_.tick(now);
  monitor_.check_silence(attempts_.tenants_since_ns(), now);
  manager_.alive(now);
  watch_memory(now);
  rest_if_due(now);
  if (now >= drain_until_ns_) {
    log(Severity::warning)
        << "not everything has been reported; the rest is kept for the next start";
    loop_.stop();
  }
  set_timer();
}

void Daemon::after_round() {
  const bool works = !attempts_.empty();
  if (draining_ && !works && !desk_.is_returning()) loop_.stop();
  if (works != worked_) rests_at_ns_ = works ? kNever : now_ns() + kUntilRest_ns;
  worked_ = works;
  set_timer();
}

// After the owner's frames: it reads files of /proc and of control groups, which wait for no disk.
void Daemon::watch_memory(int64_t now) {
  if (!watches_memory() || now < memory_.next_due()) return;
  const bool was_low = memory_.is_low();
  const uint64_t available = memory_free();
  const auto named = memory_.look(now, available, pressure_.look(now), attempts_.tenants());
  if (memory_.is_tight()) attempts_.ask_tenants();  // for the next look
  desk_.set_memory_low(memory_.is_low());
  if (memory_.is_low() != was_low) keeper_->presence_changed();
  if (!named) return;
  desk_.note_memory_use(named->name.job, named->used);
  const auto of = named->waited ? Shortage::Of::kMemoryWaits : Shortage::Of::kMemory;
  attempts_.leave_for_want(named->name, {of, named->used, available});
}

void Daemon::rest_if_due(int64_t now) {
  if (now < rests_at_ns_) return;
  rests_at_ns_ = kNever;
  release_start_up_memory();
}

void Daemon::set_timer() {
  const int64_t tenants_since = attempts_.tenants_since_ns();
  int64_t due =
      std::min({attempts_.next_due(), monitor_.next_due(tenants_since), drain_until_ns_,
                rests_at_ns_, manager_.next_due(), watches_memory() ? memory_.next_due() : kNever});
  loop_.wake_at(due);
}

bool Daemon::held(std::vector<HeldAttempt>* out) {
  bool asked = true;
  *out = all_held(desk_, [&]() -> std::vector<HeldAttempt> {
    auto promise = std::make_shared<std::promise<std::vector<HeldAttempt>>>();
    auto future = promise->get_future();
    loop_.post([this, promise] { promise->set_value(attempts_.held()); });
    while (future.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready)
      if (stopping_) {
        asked = false;
        return {};
      }
    return future.get();
  });
  return asked;
}

MachineState Daemon::machine_state() {
  MachineState state;
  // A machine that accepts nothing, because it is stopping or disk or memory is nearly used up,
  // reports its owner as present, so that it is not sent orders only to refuse them.
  state.memory_free = memory_free();
  state.away =
      presence_.away && !draining_ && !desk_.disk_low() && !desk_.lacks_memory(state.memory_free);
  state.reason = presence_.reason;
  state.owner_cpu = static_cast<double>(presence_.owner_cpu_milli) / 1000;
  state.input_idle_ms = presence_.input_idle_ms;
  state.slots_free = desk_.slots_free();
  state.ahead = ahead_of(settings_, facts_.slots);
  try {
    // The cache is emptied if an order needs its space.
    state.disk_free = system_files().free_bytes(state_) + cache_.bytes();
  } catch (const FileError&) {  // unknown: report 0
  }
  state.speed = speed_.look(now_ns(), state.slots_free == facts_.slots);
  state.load = load_average(settings_.root);
  if (logins_) state.logins = logins_->report();
  return state;
}

int Daemon::run() {
  say_hello();
  loop_.on_tick([this] { on_tick(); });
  loop_.on_signal([this](int signal) { on_signal(signal); });
  loop_.on_round([this] { after_round(); });
  adopt();
  monitor_.start(now_ns());
  disk_.start();
  set_timer();
  keeper_->start();
  // Ready as soon as the loop runs: the server may be unreachable for long, but the
  // owner is watched for regardless.
  loop_.post([this] { manager_.ready(now_ns()); });
  loop_.run();
  stopping_ = true;
  keeper_->stop(!hasty_ && attempts_.empty());
  log(Severity::info) << "stopped";
  return 0;
}

}  // namespace

int run_client(const ClientSettings& settings) { return Daemon(settings).run(); }

}  // namespace sublet::client
