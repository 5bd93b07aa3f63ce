// The shepherd's main loop: passes frames, ends of children and deadlines to the state
// machine and carries out its actions.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>

#include "client/shepherd/shepherd.h"
#include "client/shepherd/slot.h"

namespace sublet::shepherd {
namespace {

// How often a refused change of the weight is retried, and how often new sessions of a
// job without a cgroup are searched for.
constexpr int64_t kPendingRefreshNs = 20'000'000;
constexpr int64_t kRefreshNs = 1'000'000'000;
// The same while such a job leaves: it may create sessions, or change their weight, just then.
// Each search costs about 3 ms.
constexpr int64_t kLeavingRefreshNs = 50'000'000;
// Handlers are looked for this soon after the start, then at doubling intervals up to
// kRefreshNs: what is known is never older than half the job's life or that and a heartbeat.
constexpr int64_t kFirstLookNs = 20'000'000;
// Most programs leave no processes behind: then the first of their namespace ends within this time,
// and there is nothing to kill.
constexpr int64_t kEmptyNs = 2'000'000;
// Of killing, in which the first process may wait for those that were killed.
constexpr int kPatientRounds = 2;
// The same if it is to serve other attempts: beside busy programs its answer may take longer.
constexpr int kRoundsInRoom = 8;
// Of a look at the files in which a job, now frozen, has saved its state.
constexpr int64_t kLookNs = 20'000'000;
// Children reaped before the monitor's socket is read again: a job may create them
// faster than they can be reaped.
constexpr int kReapedInARow = 64;

void add(struct rusage* sum, const struct rusage& more) {
  timeradd(&sum->ru_utime, &more.ru_utime, &sum->ru_utime);
  timeradd(&sum->ru_stime, &more.ru_stime, &sum->ru_stime);
  if (more.ru_maxrss > sum->ru_maxrss) sum->ru_maxrss = more.ru_maxrss;
  sum->ru_nvcsw += more.ru_nvcsw;
  sum->ru_nivcsw += more.ru_nivcsw;
}

}  // namespace

sublet_frame Shepherd::new_frame(sublet_frame_kind kind) const {
  sublet_frame frame = {};
  frame.magic = SUBLET_FRAME_MAGIC;
  frame.kind = static_cast<uint16_t>(kind);
  frame.job = static_cast<uint64_t>(order_.job);
  frame.attempt = static_cast<uint32_t>(order_.attempt);
  frame.state = machine_.state();
  frame.reason = machine_.reason();
  return frame;
}

sublet_frame Shepherd::status_frame() {
  sublet_frame frame = new_frame(SUBLET_FRAME_STATUS);
  frame.instant = boot_now();
  frame.arg[0] = cpu_us_;
  frame.arg[1] = use_.memory_bytes;
  frame.arg[2] = static_cast<int64_t>(seen_.generation);
  frame.arg[3] = seen_.magic ? seen_.progress_ppm : -1;
  return frame;
}

// Once: what the job does afterwards, the client sees by the times of the files.
void Shepherd::look_at_files() {
  if (order_.own_file_count == 0 || looked_at_files_) return;
  looked_at_files_ = true;
  whole_.look(folder_, order_, boot_now() + kLookNs);
}

// Whether a process other than the main program handles SIGTERM was found out before: a job
// may have hundreds. The main program and the page are one short read each. A handler that
// was installed since is missed: the job is killed at once and loses what it has not saved.
protocol::TermAnswer Shepherd::term_answer() {
  look_at_status();
  if (seen_.aware) return protocol::TermAnswer::kStatusPage;
  bool handled = handler_found_ || processes_.handles(launch_.pid(), leave_signal());
  return handled ? protocol::TermAnswer::kHandler : protocol::TermAnswer::kNone;
}

uint32_t Shepherd::requests_seen() const {
  return seen_.version == 1 ? seen_.wants_seen : seen_.leave_seen;
}

// A program that uses the checkpoint API is asked by its signal, whatever its description says.
int Shepherd::leave_signal() const {
  return seen_.aware || order_.save_signal == 0 ? SIGTERM : static_cast<int>(order_.save_signal);
}

// False if there is no handler to ask.
bool Shepherd::ask_to_leave() {
  look_at_status();
  requests_before_ = requests_seen();
  generation_before_ = seen_.generation;
  // Before the first is asked: it may have saved when the last is.
  const int64_t now = boot_now();
  term_handled_ = processes_.signal_who_handles(leave_signal(), launch_.pid());
  if (term_handled_) steps_.save_asked = now;
  return term_handled_;
}

// A more urgent cause begins anew, and a job whose lease came back does not leave.
void Shepherd::note_leave(int64_t now) {
  if (machine_.leave_detected_ns() == steps_.sensed) return;
  steps_ = {};
  steps_.sensed = machine_.leave_detected_ns();
  steps_.told = now;
}

void Shepherd::act(uint32_t actions, int64_t now) {
  using namespace protocol;
  note_leave(now);
  if (actions & kActFreeze) processes_.freeze();
  if (actions & kActAssess) act(machine_.assessed(term_answer(), now), now);
  // Until its handler has answered it is lifted for a moment only.
  const bool briefly = (actions & kActKill) || machine_.awaiting_handler();
  if (actions & kActLift)
    lift_refused_ = !(briefly ? weight_.hasten(processes_) : weight_.lift(processes_));
  if (actions & kActTerminate && !ask_to_leave()) {
    // What was found has changed since.
    if (machine_.leaving_for_owner()) return act(machine_.assessed(TermAnswer::kNone, now), now);
    // It dies of the signal, perhaps while it writes.
    if (order_.own_file_count > 0) {
      processes_.freeze();
      look_at_files();
    }
    if (!main_gone_) ::kill(-launch_.pid(), leave_signal());
    if (order_.own_file_count > 0) {
      processes_.thaw();
      launch_.continue_init();
    }
  }
  if (actions & kActDemote) weight_.demote(processes_);
  if (actions & kActThaw) {
    processes_.thaw();
    launch_.continue_init();
  }
  if (actions & (kActFreeze | kActDemote) && steps_.demoted == 0 && !main_gone_)
    steps_.demoted = boot_now();
  // The kernel accepts a change of an autogroup only ten times a second: retry soon.
  if (actions & (kActLift | kActDemote))
    next_refresh_ns_ = std::min(next_refresh_ns_, now + refresh_interval_ns());
  if (machine_.counting_cpu() && (actions & kActLift) && !rations_) {
    processes_.start_counting();
    rations_ = machine_.rationed();
  }
  if (actions & kActSave) {
    look_at_status();
    if (seen_.aware) processes_.signal_who_handles(SIGUSR1, launch_.pid());
  }
  if (actions & (kActSave | kActLift | kActTerminate | kActKill)) bounds_.open_up();
  if (actions & kActKill) {
    if (room_is_empty_) slot_.room().spoil();
    look_at_files();
    processes_.kill();
    // A child still waiting for go() may have no cgroup or session of its own yet.
    if (!main_gone_) ::kill(launch_.pid(), SIGKILL);
    // At first it waits for those that were killed, whose CPU time is counted so.
    if (rounds_++ < (launch_.is_in_room() ? kRoundsInRoom : kPatientRounds))
      launch_.dismiss_init(main_gone_);
    else
      launch_.kill_init();
  }
  if (actions & kActStart) {
    launch_.go();
    next_refresh_ns_ = now + refresh_interval_ns();
    look_interval_ns_ = kFirstLookNs;
    next_look_ns_ = now + look_interval_ns_;
  }
  if (actions & kActStatus) control_.send_all(status_frame());
  if (actions & kActWriteExit) {
    all_gone_ = true;
    ended_ns_ = now;
  }
}

void Shepherd::answer(int socket, const sublet_frame& asked, uint32_t actions) {
  if (actions & protocol::kActAck) {
    sublet_frame frame = new_frame(SUBLET_FRAME_ACK);
    frame.sequence = asked.sequence;
    frame.instant = boot_now();
    send_frame(socket, frame);
  }
  if (asked.kind == SUBLET_FRAME_QUERY) {
    look_at_status();
    // Scanning /proc is too slow to do during an eviction.
    if (machine_.runs()) {
      cpu_us_ = processes_.cpu_ns() / 1000;
      measure();
      look_for_handlers(boot_now());
    }
    if (asked.arg[0] == 1) tell_message(socket);
    sublet_frame frame = status_frame();
    frame.sequence = asked.sequence;
    send_frame(socket, frame);
  }
}

void Shepherd::read_monitor() {
  sublet_frame frame;
  for (;;) {
    Received received = receive_frame(slot_.monitor(), &frame);
    if (received == Received::nothing) return;
    int64_t now = boot_now();
    if (received == Received::lost) {
      slot_.lose_monitor();
      act(machine_.monitor_lost(now), now);
      return;
    }
    const bool ran = machine_.runs();
    uint32_t actions = machine_.monitor_frame(frame, now);
    const bool suspended = ran && !machine_.runs();
    if (suspended || machine_.leave_detected_ns() != steps_.sensed) sensed_ = frame.reason;
    act(actions, now);
    answer(slot_.monitor(), frame, actions);
  }
}

void Shepherd::read_control(int i) {
  sublet_frame frame;
  for (;;) {
    int socket = control_.connection(i);
    Received received = receive_frame(socket, &frame);
    if (received == Received::nothing) return;
    if (received == Received::lost) {
      control_.drop(i);
      return;
    }
    if (frame.job != static_cast<uint64_t>(order_.job) ||
        frame.attempt != static_cast<uint32_t>(order_.attempt))
      continue;
    int64_t now = boot_now();
    uint32_t actions = machine_.control_frame(frame, now);
    // The only limit that the client watches. A job that had ended already has not exceeded it.
    if (frame.reason == SUBLET_LEAVE_LIMIT && actions & protocol::kActKill)
      limit_ = SUBLET_LIMIT_DISK;
    // answer() sends the STATUS for a query, with its sequence number.
    act(frame.kind == SUBLET_FRAME_QUERY ? 0 : actions, now);
    answer(socket, frame, actions);
  }
}

void Shepherd::read_launch() {
  if (!launch_.read_failure(&failure_)) return;
  int64_t now = boot_now();
  act(machine_.start_failed(now), now);
}

void Shepherd::read_signals() {
  struct signalfd_siginfo info;
  while (read(slot_.signals(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo == SIGCHLD) continue;
    // A service manager or administrator who ends the shepherd wants the job to leave.
    slot_.stop();
    sublet_frame leave = {};
    leave.kind = SUBLET_FRAME_VACATE;
    leave.reason = SUBLET_LEAVE_DRAIN;
    int64_t now = boot_now();
    act(machine_.control_frame(leave, now), now);
  }
}

bool Shepherd::killed_by_others() const {
  timeval used;
  timeradd(&usage_.ru_utime, &usage_.ru_stime, &used);
  const bool out_of_time = order_.limit_cpu_s > 0 && used.tv_sec >= order_.limit_cpu_s;
  return WIFSIGNALED(main_status_) && WTERMSIG(main_status_) == SIGKILL && !out_of_time &&
         !bounds_.memory_ran_out();
}

void Shepherd::reap() {
  bool main_just_gone = false, nobody_left = false;
  more_to_reap_ = true;
  for (int i = 0; i < kReapedInARow; ++i) {
    int status;
    struct rusage used;
    pid_t pid = wait4(-1, &status, WNOHANG, &used);
    if (pid <= 0) {
      more_to_reap_ = false;
      nobody_left = pid < 0 && errno == ECHILD;
      break;
    }
    if (WIFSTOPPED(status)) {
      let_go(pid, WSTOPSIG(status));
      continue;
    }
    if (slot_.room().lose_server(pid)) continue;
    const bool of_room = pid == launch_.init() && launch_.is_in_room();
    // What that one has waited for is of all attempts until now.
    if (!of_room) add(&usage_, used);
    if (pid == launch_.init()) forget_init();
    if (pid != launch_.pid()) continue;
    main_gone_ = main_just_gone = true;
    main_status_ = status;
    // Perhaps while it wrote: unless it was looked at before, none is whole. But a handler may end
    // its program by the signal that it handles.
    if (WIFSIGNALED(status) && !(term_handled_ && WTERMSIG(status) == leave_signal()))
      looked_at_files_ = true;
  }
  if (main_just_gone) read_launch();
  int64_t now = boot_now();
  if (nobody_left && !looked_at_files_) {
    looked_at_files_ = true;
    whole_.all_are();
  }
  const uint32_t actions = main_just_gone ? machine_.main_exited(killed_by_others(), now) : 0;
  if (main_just_gone && has_left_nothing()) {
    act(machine_.all_gone(now), now);
  } else if (main_just_gone && launch_.init() > 0) {
    launch_.dismiss_init(true);
    kill_left_ = actions;
    empty_by_ns_ = now + kEmptyNs;
  } else if (!nobody_left) {
    act(actions, now);
  }
  if (nobody_left) act(machine_.all_gone(now), now);
}

// Of a room. Most programs never have another process: the first one need not be asked then.
bool Shepherd::has_left_nothing() {
  return launch_.is_in_room() && bounds_.had_one_process() && processes_.gone() &&
         slot_.room().is_left_clean();
}

// The first process of a room knows its own children only.
void Shepherd::look_who_is_left() {
  if (!processes_.gone()) return;
  const int64_t now = boot_now();
  empty_by_ns_ = INT64_MAX;
  act(machine_.all_gone(now), now);
}

void Shepherd::forget_init() {
  launch_.forget_init();
  slot_.room().lose();
  identify();
}

void Shepherd::look_at_status() {
  sublet_status page;
  // Read, never mapped: truncating a mapped page would kill the shepherd (SIGBUS).
  if (pread(status_, &page, sizeof page, 0) != static_cast<ssize_t>(sizeof page)) return;
  if (page.magic != SUBLET_STATUS_MAGIC) return;
  if (page.version < 1 || page.version > SUBLET_STATUS_VERSION) return;
  if (page.progress_ppm < 0 || page.progress_ppm > 1000000) page.progress_ppm = -1;
  if (page.resumed_progress_ppm < 0 || page.resumed_progress_ppm > 1000000)
    page.resumed_progress_ppm = -1;
  bool saved = page.generation != seen_.generation;
  seen_ = page;
  if (saved) control_.send_all(status_frame());
}

// The program may be writing it: only what has the same even count before and after is whole.
void Shepherd::tell_message(int socket) {
  constexpr auto kCount = static_cast<off_t>(offsetof(sublet_status, message_count));
  constexpr auto kText = static_cast<off_t>(offsetof(sublet_status, message));
  if (!seen_.magic || seen_.message_count == 0) return;
  struct {
    sublet_frame frame;
    char text[SUBLET_MESSAGE_BYTES];
  } message = {new_frame(SUBLET_FRAME_MESSAGE), {}};
  uint32_t before = 0, after = 1;
  const bool read = pread(status_, &before, sizeof before, kCount) == sizeof before &&
                    pread(status_, message.text, sizeof message.text, kText) ==
                        static_cast<ssize_t>(sizeof message.text) &&
                    pread(status_, &after, sizeof after, kCount) == sizeof after;
  if (!read || before != after || before % 2 != 0) return;
  const size_t length = strnlen(message.text, sizeof message.text);
  send(socket, &message, sizeof message.frame + length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Without a cgroup a search of /proc, which gives up at news from the monitor.
void Shepherd::measure() {
  const bool by_cgroup = bounds_.counts_memory() && bounds_.counts_processes();
  const int64_t most = has_own_account() ? INT64_MAX : sublet_process_limit(&order_);
  if (!by_cgroup && !processes_.measure(slot_.monitor(), most, &use_)) return;
  counts_over_ = !bounds_.counts_processes() && use_.threads > most ? counts_over_ + 1 : 0;
  if (bounds_.counts_memory()) use_.memory_bytes = bounds_.memory_used();
  give_room();
  awaits_growth_ = true;
  if (bounds_.counts_processes()) use_.threads = bounds_.most_processes();
  peak_.memory_bytes = std::max(peak_.memory_bytes, use_.memory_bytes);
  peak_.threads = std::max(peak_.threads, use_.threads);
}

void Shepherd::give_room() {
  struct sysinfo machine;
  if (sysinfo(&machine) != 0) return;
  const bool soon = bounds_.give_room({static_cast<int64_t>(machine.totalram) * machine.mem_unit,
                                       static_cast<int64_t>(machine.freeram) * machine.mem_unit});
  next_room_ns_ = soon ? boot_now() + kFirstLookNs : INT64_MAX;
}

// A count is no snapshot: processes may end and others begin meanwhile, so that it takes two in a
// row. An account of its own is bounded by the kernel.
bool Shepherd::has_too_many_processes() const {
  return bounds_.counts_processes() ? bounds_.processes_ran_out() : counts_over_ >= 2;
}

bool Shepherd::has_own_account() const { return order_.uid >= 0 && order_.uid != geteuid(); }

void Shepherd::check_limits(int64_t now) {
  if (!machine_.runs()) return;
  measure();
  if (order_.limit_cpu_s > 0 && processes_.cpu_ns() / 1000000000 >= order_.limit_cpu_s)
    limit_ = SUBLET_LIMIT_CPU;
  // The kernel may have killed one process of several, whose work the others wait for.
  const int64_t memory = sublet_memory_limit(&order_);
  if (bounds_.counts_memory() ? bounds_.memory_ran_out()
                              : memory > 0 && use_.memory_bytes > memory &&
                                    processes_.proportional_bytes(slot_.monitor()) > memory)
    limit_ = SUBLET_LIMIT_MEMORY;
  if (has_too_many_processes()) limit_ = SUBLET_LIMIT_PROCESSES;
  if (limit_ != SUBLET_LIMIT_NONE) act(machine_.over_limit(now), now);
}

void Shepherd::look_for_handlers(int64_t now) {
  // If the monitor interrupts it, it is repeated at the next event.
  if (!processes_.anyone_handles(leave_signal(), launch_.pid(), slot_.monitor(), &handler_found_))
    return;
  look_interval_ns_ = std::min(2 * look_interval_ns_, kRefreshNs);
  next_look_ns_ = now + look_interval_ns_;
}

int64_t Shepherd::refresh_interval_ns() const {
  if (weight_.pending()) return kPendingRefreshNs;
  return machine_.leaving_for_owner() && !weight_.by_cgroup() ? kLeavingRefreshNs : kRefreshNs;
}

// Periodic work that no event triggers.
void Shepherd::look_after(int64_t now) {
  if (now >= empty_by_ns_) {
    empty_by_ns_ = INT64_MAX;
    act(kill_left_, now);
  }
  if (machine_.awaiting_handler()) {
    look_at_status();
    if (requests_seen() != requests_before_) {
      act(machine_.handler_ran(now), now);
      if (machine_.counting_cpu()) weight_.lift(processes_);  // from now on like the owner's
    }
  }
  if (machine_.counting_cpu() && !lift_refused_)
    act(machine_.cpu_used(processes_.counted_ns(), now), now);
  if (machine_.runs() && now >= next_room_ns_) give_room();
  if (machine_.runs() && now >= next_look_ns_) {
    if (!start_told_) control_.send_all(status_frame());
    start_told_ = true;
    if (bounds_.counts_memory()) measure();
    look_for_handlers(now);
  }
  if (!machine_.started() || now < next_refresh_ns_) return;
  weight_.refresh(processes_);
  if (lift_refused_ && !weight_.pending()) {
    lift_refused_ = false;
    if (!rations_) processes_.start_counting();
  }
  check_limits(now);
  if (machine_.runs()) look_at_status();
  next_refresh_ns_ = now + refresh_interval_ns();
}

void Shepherd::set_timer() {
  int64_t next = std::min(machine_.next_instant(), empty_by_ns_);
  // Otherwise the monitor's heartbeats wake us often enough.
  bool soon = machine_.started() && refresh_interval_ns() < SUBLET_MONITOR_BEAT_NS;
  if (soon) next = std::min(next, next_refresh_ns_);
  if (machine_.runs()) next = std::min(next, next_room_ns_);
  soon = machine_.runs() && look_interval_ns_ < SUBLET_MONITOR_BEAT_NS;
  if (soon) next = std::min(next, next_look_ns_);
  if (next == timer_set_ns_) return;
  timer_set_ns_ = next;
  struct itimerspec when = {};
  if (next != INT64_MAX) {
    if (next < 1) next = 1;  // 0 would disarm it
    when.it_value.tv_sec = next / 1000000000;
    when.it_value.tv_nsec = next % 1000000000;
  }
  timerfd_settime(slot_.timer(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void Shepherd::wait_for_news(pollfd* fds, int count) {
  set_timer();
  while (poll(fds, static_cast<nfds_t>(count), more_to_reap_ ? 0 : -1) < 0 && errno == EINTR) {
  }
  uint64_t ticks;
  if (fds[1].revents && read(slot_.timer(), &ticks, sizeof ticks) > 0) timer_set_ns_ = -1;
}

void Shepherd::loop() {
  constexpr int kFixed = 10;
  while (!all_gone_) {
    pollfd fds[kFixed + Control::kConnections] = {};
    int count = 0;
    for (int fd : {slot_.monitor(), slot_.timer(), slot_.signals(), slot_.listener(),
                   output_.poll_fd(0), output_.poll_fd(1)})
      fds[count++] = {fd, POLLIN, 0};
    fds[count++] = {awaits_growth_ ? bounds_.used_up() : -1, POLLPRI, 0};
    fds[count++] = {slot_.room().poll_fd(), POLLIN, 0};
    fds[count++] = {slot_.link(), POLLIN, 0};
    fds[count++] = {slot_.next_connection(), POLLRDHUP, 0};
    for (int i = 0; i < Control::kConnections; ++i)
      fds[count++] = {control_.connection(i), POLLIN, 0};
    wait_for_news(fds, count);
    // The owner's presence comes before everything else.
    if (fds[0].revents) read_monitor();
    if (fds[2].revents) read_signals();
    if (fds[2].revents || more_to_reap_) reap();
    if (fds[7].revents && slot_.room().is_empty()) room_is_empty_ = true;
    if (room_is_empty_) look_who_is_left();
    for (int i = 0; i < Control::kConnections; ++i)
      if (fds[kFixed + i].revents) read_control(i);
    if (fds[3].revents) control_.accept(slot_.listener());
    for (int i = 0; i < 2; ++i) {
      if (fds[4 + i].revents && !(fds[4 + i].revents & POLLIN)) output_.ended(i);
    }
    if ((fds[4].revents | fds[5].revents) & POLLIN) output_.start();
    if (fds[6].revents && machine_.runs()) {
      awaits_growth_ = false;  // until the next measure(): it may be copies of files without end
      give_room();
    }
    int64_t now = boot_now();
    act(machine_.tick(now), now);
    look_after(now);
    if (fds[8].revents) slot_.take_order();
    if (fds[9].revents) slot_.drop_order();
  }
}

}  // namespace sublet::shepherd
