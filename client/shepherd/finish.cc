// The shepherd's last phase: the exit record.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "client/shepherd/shepherd.h"
#include "client/shepherd/slot.h"
#include "client/shepherd/walls/places.h"

namespace sublet::shepherd {
namespace {

int64_t micros(const struct timeval& time) { return time.tv_sec * 1000000ll + time.tv_usec; }

// The job may write any values here; the record must not hold negative sizes.
int64_t clamp(uint64_t number) {
  return number > INT64_MAX ? INT64_MAX : static_cast<int64_t>(number);
}

}  // namespace

void Shepherd::fill_outcome(sublet_exit* end) const {
  end->job = order_.job;
  end->attempt = order_.attempt;
  end->boot_id = slot_.boot_id().text;
  end->step = failure_.step;
  end->place = failure_.place;
  end->reason = machine_.reason();
  end->asked = machine_.leave_detected_ns() > 0;
  end->killed = machine_.killed();
  end->no_handler = !term_handled_;
  end->limit = limit_;
  if (*failure_.step) {
    end->outcome = SUBLET_OUTCOME_FAILED;
    end->code = failure_.error;
  } else if (!machine_.started()) {
    end->outcome = SUBLET_OUTCOME_UNSTARTED;
  } else if (WIFSIGNALED(main_status_)) {
    end->outcome = SUBLET_OUTCOME_SIGNALLED;
    end->code = WTERMSIG(main_status_);
  } else {
    end->outcome = SUBLET_OUTCOME_EXITED;
    end->code = WEXITSTATUS(main_status_);
  }
}

// A program may also give up because the kernel has killed another of its processes, or created
// none.
int64_t Shepherd::limit_of_its_death(const sublet_exit& end) const {
  const bool signalled = end.outcome == SUBLET_OUTCOME_SIGNALLED;
  if (signalled && end.code == SIGXCPU) return SUBLET_LIMIT_CPU;
  if (signalled && end.code == SIGXFSZ) return SUBLET_LIMIT_FILE;
  const bool failed =
      signalled ? end.code == SIGKILL : end.outcome == SUBLET_OUTCOME_EXITED && end.code != 0;
  if (!failed || end.killed) return SUBLET_LIMIT_NONE;
  if (bounds_.memory_ran_out()) return SUBLET_LIMIT_MEMORY;
  return bounds_.processes_ran_out() ? SUBLET_LIMIT_PROCESSES : SUBLET_LIMIT_NONE;
}

int64_t Shepherd::bound_of(int64_t limit) const {
  switch (limit) {
    case SUBLET_LIMIT_CPU:
      return order_.limit_cpu_s;
    case SUBLET_LIMIT_WALL:
      return order_.limit_wall_s;
    case SUBLET_LIMIT_MEMORY:
      return sublet_memory_limit(&order_);
    case SUBLET_LIMIT_FILE:
      return order_.limit_file;
    case SUBLET_LIMIT_DISK:
      return order_.limit_disk;
    case SUBLET_LIMIT_PROCESSES:
      return sublet_process_limit(&order_);
    default:
      return 0;
  }
}

void Shepherd::fill_usage(sublet_exit* end) {
  end->cpu_user_us = micros(usage_.ru_utime);
  end->cpu_system_us = micros(usage_.ru_stime);
  end->memory_peak = std::max<int64_t>(peak_.memory_bytes, usage_.ru_maxrss * 1024);
  end->processes_peak = std::max(peak_.threads, bounds_.most_processes());
  end->network_bytes = order_.no_network ? 0 : slot_.cgroups().traffic();
  end->switches_voluntary = usage_.ru_nvcsw;
  end->switches_forced = usage_.ru_nivcsw;
  end->started_ns = machine_.started_ns();
  end->ended_ns = ended_ns_;
  end->wall_us = machine_.started() ? (ended_ns_ - machine_.started_ns()) / 1000 : 0;
  end->frozen_ms = machine_.frozen_ns() / 1000000;
  // Also of children that were never waited for, or by a first process that was killed: with a
  // cgroup all of it, else what had been seen.
  const int64_t all_ns = *order_.cgroup_unified ? processes_.cpu_ns() : processes_.seen_cpu_ns();
  const int64_t more = all_ns / 1000 - end->cpu_user_us - end->cpu_system_us;
  if (more > 0) end->cpu_user_us += more;
  end->stdout_bytes = output_.kept(0);
  end->stderr_bytes = output_.kept(1);
  end->stdout_dropped = output_.dropped(0);
  end->stderr_dropped = output_.dropped(1);
}

void Shepherd::fill_checkpoint(sublet_exit* end) {
  end->progress_ppm = end->resumed_progress_ppm = -1;
  look_at_status();
  if (!seen_.magic) return;
  end->unsaved = term_handled_ && requests_seen() != requests_before_ &&
                 seen_.generation == generation_before_;
  end->aware = seen_.aware != 0;
  end->left = seen_.left != 0;
  end->generation = clamp(seen_.generation);
  end->checkpoint_bytes = clamp(seen_.checkpoint_bytes);
  end->saved_ns = clamp(seen_.saved_boot_ns);
  end->save_errno = seen_.save_failed_errno;
  end->progress_ppm = seen_.progress_ppm;
  end->resumed_generation = clamp(seen_.resumed_generation);
  end->resumed_progress_ppm = seen_.resumed_progress_ppm;
}

void Shepherd::fill_steps(sublet_exit* end) const {
  end->told_ns = end->demoted_ns = end->save_asked_ns = end->checkpointed_ns = -1;
  end->quiesce_ns = -1;
  if (steps_.sensed == 0) return;
  const auto after = [this](int64_t step) { return step == 0 ? -1 : step - steps_.sensed; };
  end->sensed = sensed_;
  end->told_ns = after(steps_.told);
  end->demoted_ns = after(steps_.demoted);
  end->save_asked_ns = after(steps_.save_asked);
  end->quiesce_ns = after(ended_ns_);
  // The job may write anything there.
  const bool saved = seen_.magic && seen_.generation != generation_before_ &&
                     end->saved_ns >= steps_.save_asked && end->saved_ns <= ended_ns_;
  if (steps_.save_asked != 0 && saved) end->checkpointed_ns = after(end->saved_ns);
}

bool Shepherd::write_exit(const sublet_exit& end) {
  size_t size = sublet_format_print(&sublet_exit_format, &end, out_, sizeof out_);
  return size <= sizeof out_ && write_atomically(folder_, SUBLET_EXIT_FILE, out_, size, exit_file_);
}

int Shepherd::conclude(const sublet_exit& end) {
  slot_.stop_listening();
  // The slot's next job has the same account, and may begin before the client has read this.
  const bool written = fchmod(folder_, 0700) == 0 && write_exit(end);
  bool told = false;
  const bool by_itself = end.outcome == SUBLET_OUTCOME_EXITED && !end.asked && !end.killed &&
                         end.reason == SUBLET_LEAVE_NONE;
  slot_.note_end(end.asked || end.killed || end.reason != SUBLET_LEAVE_NONE);
  if (written) {
    const sublet_frame ended = new_frame(SUBLET_FRAME_ENDED);
    control_.send_all(ended);
    told = slot_.tell_end(ended, by_itself);
  }
  // Removing them may take longer than the monitor waits for an answer.
  if (!slot_.cgroups().leave(told && by_itself)) slot_.say_owed_end();
  return written ? kDone : kNoRecord;
}

int Shepherd::finish() {
  output_.finish();
  if (order_.own_file_count > 0) {
    if (!looked_at_files_) whole_.all_are();
    whole_.write(folder_);  // without it none is whole
  }
  // The child's end may have been noticed before its failure report was read.
  launch_.read_failure(&failure_);
  sublet_exit end = {};
  if (limit_ == SUBLET_LIMIT_NONE && machine_.reason() == SUBLET_LEAVE_LIMIT)
    limit_ = SUBLET_LIMIT_WALL;
  fill_outcome(&end);
  fill_usage(&end);
  fill_checkpoint(&end);
  fill_steps(&end);
  if (end.limit == SUBLET_LIMIT_NONE) end.limit = limit_of_its_death(end);
  if (end.limit != SUBLET_LIMIT_NONE && end.reason == SUBLET_LEAVE_NONE)
    end.reason = SUBLET_LEAVE_LIMIT;
  end.bound = bound_of(end.limit);
  // Before writing the record: after that the client may give the user id to another job.
  if (geteuid() == 0 && order_.uid > 0 && !order_.walls) temporary_folders_.sweep(order_.uid);
  slot_.room().leave(slot_.kept());
  return conclude(end);
}

int Shepherd::end_before_start(const char* step, int error) {
  // A child that exists already is waiting for go().
  for (const pid_t child : {launch_.pid(), launch_.init()}) {
    if (child <= 0) continue;
    ::kill(child, SIGKILL);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (launch_.init() > 0) slot_.room().lose();
  slot_.room().leave(slot_.kept());
  sublet_exit end = {};
  failure_.error = error;
  strncpy(failure_.step, step, sizeof failure_.step - 1);
  fill_outcome(&end);
  end.progress_ppm = end.resumed_progress_ppm = -1;
  end.ended_ns = ended_ns_ = boot_now();
  fill_steps(&end);
  // No job starts without the monitor's consent; that is not the job's fault.
  if (strcmp(step, "monitor") == 0) {
    end.outcome = SUBLET_OUTCOME_UNSTARTED;
    end.reason = SUBLET_LEAVE_BLIND;
  }
  return conclude(end);
}

}  // namespace sublet::shepherd
