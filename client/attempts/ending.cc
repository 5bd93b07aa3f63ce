#include "client/attempts/ending.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace sublet::client {
namespace {

constexpr int64_t kMostSeconds = INT64_MAX / 1000;

std::string memory_sentence(const Assignment& what, const std::string& bound) {
  if (memory_bound(what.job) != 0)
    return "It used all of its memory limit (" + bound +
           "). If it needs more, say how much with --memory and --memory-limit.";
  return "It used all of its slot's part of this machine's memory (" + bound +
         "). Say with --memory how much it needs.";
}

std::string disk_sentence(uint64_t used, const std::string& bound) {
  return "It used " +
         (used == 0 ? "more than " + bound + " of this machine's disk"
                    : format_bytes(used) + " of this machine's disk; it may use " + bound) +
         ". Say with --disk how much it needs.";
}

// facts.bound is 0 if the record is of an older shepherd.
std::string limit_sentence(const Assignment& what, const sublet_exit& facts,
                           const Shortage& shortage) {
  const bool seconds = facts.limit == SUBLET_LIMIT_CPU || facts.limit == SUBLET_LIMIT_WALL;
  const std::string bound = facts.bound <= 0 ? "not known"
                            : seconds
                                ? format_duration_ms(std::min(facts.bound, kMostSeconds) * 1000)
                                : format_bytes(static_cast<uint64_t>(facts.bound));
  switch (facts.limit) {
    case SUBLET_LIMIT_CPU:
      return "It exceeded its CPU time limit (" + bound + "). --cpu-limit gives it more.";
    case SUBLET_LIMIT_WALL:
      return "It exceeded its running time limit (" + bound + "). --wall-limit gives it more.";
    case SUBLET_LIMIT_MEMORY:
      return memory_sentence(what, bound);
    case SUBLET_LIMIT_FILE:
      return "It exceeded its file size limit (" + bound + ").";
    case SUBLET_LIMIT_DISK:
      return disk_sentence(shortage.of == Shortage::Of::kDiskBound ? shortage.used : 0, bound);
    case SUBLET_LIMIT_PROCESSES:
      return "It reached its limit of " + std::to_string(facts.bound) +
             " processes and threads. --processes-limit gives it more.";
    default:
      return "It exceeded one of its limits.";
  }
}

std::string start_sentence(const Assignment& what, const AttemptExit& exit) {
  std::string program = "The program '" + escape_for_terminal(what.job.program) + "' ";
  bool looked_for =
      exit.step == SUBLET_STEP_EXEC && what.job.program.find('/') == std::string::npos;
  if (looked_for && exit.facts.code == ENOENT)
    return program + "is in no folder of PATH on this machine.";
  return program + "could not be started: " + exit.step + ": " +
         std::strerror(static_cast<int>(exit.facts.code)) + ".";
}

std::string machine_sentence(const AttemptExit& exit) {
  return "The machine could not start it: " + exit.step + ": " +
         (exit.place.empty() ? "" : escape_for_terminal(exit.place) + ": ") +
         std::strerror(static_cast<int>(exit.facts.code)) + ".";
}

std::string shortage_sentence(const Shortage& shortage) {
  const bool disk = shortage.of == Shortage::Of::kDisk;
  const bool waits = shortage.of == Shortage::Of::kMemoryWaits;
  return std::string(disk    ? "The machine's disk was nearly full"
                     : waits ? "Other programs on the machine waited for memory"
                             : "The machine's memory was nearly used up") +
         " (" + format_bytes(shortage.free) + " left); of its jobs, this one used the most (" +
         format_bytes(shortage.used) + ").";
}

std::string sentence(const Assignment& what, const AttemptExit& exit, uint32_t end,
                     const Shortage& shortage) {
  const sublet_exit& facts = exit.facts;
  switch (end) {
    case protocol::kEndDone:
      return "";
    case protocol::kEndStart:
      return start_sentence(what, exit);
    case protocol::kEndExit:
      return "The program ended with exit status " + std::to_string(facts.code) + ".";
    case protocol::kEndSaved:
      return "It ended with exit status " + std::to_string(facts.code) + ", to be run again.";
    case protocol::kEndSignal:
      return "The program was killed by signal " + std::to_string(facts.code) + " (" +
             strsignal(static_cast<int>(facts.code)) + ").";
    case protocol::kEndLimit:
      return limit_sentence(what, facts, shortage);
    default:
      break;
  }
  std::string text = leave_sentence(static_cast<sublet_leave_reason>(facts.reason), shortage);
  if (facts.save_errno != 0)
    text +=
        " Its last save failed: " + std::string(std::strerror(static_cast<int>(facts.save_errno))) +
        ".";
  return text;
}

// Converts CLOCK_BOOTTIME to UTC; 0 if unknown or from another boot.
int64_t to_utc(int64_t boot_ns, const Clock& clock, bool same_boot) {
  if (boot_ns == 0 || !same_boot) return 0;
  return clock.utc_us() - (clock.boot_ns() - boot_ns) / 1000;
}

bool is_of_memory(const Shortage& shortage) {
  return shortage.of == Shortage::Of::kMemory || shortage.of == Shortage::Of::kMemoryWaits;
}

}  // namespace

std::string leave_sentence(sublet_leave_reason reason, const Shortage& shortage) {
  if (reason == SUBLET_LEAVE_DRAIN && shortage.of != Shortage::Of::kNothing)
    return shortage_sentence(shortage);
  if (reason == SUBLET_LEAVE_LIMIT && shortage.of == Shortage::Of::kDiskBound)
    return disk_sentence(shortage.used, format_bytes(shortage.free));
  switch (reason) {
    case SUBLET_LEAVE_OWNER:
      return "The owner came back.";
    case SUBLET_LEAVE_BLIND:
      return "The load monitor failed, so the owner was assumed back.";
    case SUBLET_LEAVE_LEASE:
      return "The machine lost contact with the server.";
    case SUBLET_LEAVE_PREEMPT:
      return "It gave way to another job.";
    case SUBLET_LEAVE_REMOVED:
      return "The job was removed.";
    case SUBLET_LEAVE_DRAIN:
      return "The client was stopped.";
    case SUBLET_LEAVE_LIMIT:
      return "It exceeded one of its limits.";
    case SUBLET_LEAVE_REPLACED:
      return "The job moved to another machine.";
    case SUBLET_LEAVE_HELD:
      return "The job was held.";
    case SUBLET_LEAVE_ADMINISTRATOR:
      return "An administrator wanted the machine empty.";
    case SUBLET_LEAVE_NONE:
      break;
  }
  return "Its processes vanished.";
}

protocol::EvictionSteps steps_of(const sublet_exit& facts) {
  const auto us = [](int64_t ns) { return ns < 0 ? -1 : ns / 1000; };
  return {.told = us(facts.told_ns),
          .demoted = us(facts.demoted_ns),
          .save_asked = us(facts.save_asked_ns),
          .saved = us(facts.checkpointed_ns),
          .gone = us(facts.quiesce_ns)};
}

bool machine_failed(const AttemptExit& exit) {
  bool own = exit.step == "exec" || exit.step == "chdir" || exit.step == "limits";
  return exit.facts.outcome == SUBLET_OUTCOME_FAILED && !own;
}

protocol::ExitFacts exit_facts(const AttemptExit& exit) {
  using Outcome = protocol::ExitFacts::Outcome;
  protocol::ExitFacts facts;
  switch (exit.facts.outcome) {
    case SUBLET_OUTCOME_SIGNALLED:
      facts.outcome = Outcome::kSignalled;
      break;
    case SUBLET_OUTCOME_FAILED:
      facts.outcome = Outcome::kFailed;
      break;
    case SUBLET_OUTCOME_UNSTARTED:
      facts.outcome = Outcome::kUnstarted;
      break;
    default:
      facts.outcome = Outcome::kExited;
      break;
  }
  facts.code = exit.facts.code;
  facts.own_step = !machine_failed(exit);
  facts.over_limit = exit.facts.limit != SUBLET_LIMIT_NONE;
  facts.reason = static_cast<sublet_leave_reason>(exit.facts.reason);
  facts.asked = exit.facts.asked != 0;
  facts.left = exit.facts.left != 0;
  facts.killed = exit.facts.killed != 0;
  facts.no_handler = exit.facts.no_handler != 0;
  facts.aware = exit.facts.aware != 0;
  return facts;
}

int64_t cpu_at_checkpoint(const AttemptExit& exit, uint64_t reported, int64_t reported_cpu_us) {
  const sublet_exit& facts = exit.facts;
  if (facts.generation <= facts.resumed_generation || facts.saved_ns == 0) return -1;
  int64_t cpu = facts.cpu_user_us + facts.cpu_system_us;
  if (facts.left != 0) return cpu;  // it saved and ended
  if (reported == static_cast<uint64_t>(facts.generation)) return std::min(reported_cpu_us, cpu);
  // CPU time at the save was not reported: assume it was used evenly.
  double whole = static_cast<double>(facts.ended_ns - facts.started_ns);
  double part = static_cast<double>(facts.saved_ns - facts.started_ns);
  if (whole <= 0) return cpu;
  return static_cast<int64_t>(static_cast<double>(cpu) * std::clamp(part / whole, 0.0, 1.0));
}

int64_t cpu_of_files(int64_t cpu_us, int64_t changed_us, int64_t started_us, int64_t now_us) {
  if (now_us <= started_us) return 0;
  const auto part =
      static_cast<double>(changed_us - started_us) / static_cast<double>(now_us - started_us);
  return static_cast<int64_t>(static_cast<double>(cpu_us) * std::clamp(part, 0.0, 1.0));
}

int64_t cpu_at_risk_ms(const AttemptWork& work, int64_t cpu_ms, int64_t now_us) {
  if (work.adopted) return -1;
  int64_t kept_ms = work.stored_cpu_us / 1000;
  const int64_t files_us = work.stored_files_us;
  if (files_us > 0) kept_ms = cpu_of_files(cpu_ms, files_us, work.started_us, now_us);
  return std::max<int64_t>(0, cpu_ms - kept_ms);
}

AttemptEnd end_from_exit(const Assignment& what, const AttemptExit& exit, const Shortage& shortage,
                         const Clock& clock, const std::string& boot) {
  const sublet_exit& facts = exit.facts;
  AttemptEnd end;
  end.name = what.name;
  protocol::ExitFacts ended = exit_facts(exit);
  ended.says_saved =
      facts.outcome == SUBLET_OUTCOME_EXITED && what.job.own_checkpoint.says_saved(facts.code);
  end.end = protocol::classify(ended);
  end.reason = sentence(what, exit, end.end, shortage);
  if (machine_failed(exit)) end.reason = machine_sentence(exit);
  if (facts.outcome == SUBLET_OUTCOME_EXITED) end.exit_status = static_cast<int32_t>(facts.code);
  if (facts.outcome == SUBLET_OUTCOME_SIGNALLED) end.signal = static_cast<int32_t>(facts.code);
  bool same_boot = exit.boot_id == boot;
  end.started_us = to_utc(facts.started_ns, clock, same_boot);
  end.finished_us = to_utc(facts.ended_ns, clock, same_boot);
  end.wall_ms = std::max<int64_t>(0, facts.wall_us / 1000 - facts.frozen_ms);
  if (end.started_us > 0 && what.accepted_us > 0)
    end.staging_ms = std::max<int64_t>(0, end.started_us - what.accepted_us) / 1000;
  end.cpu_us = facts.cpu_user_us + facts.cpu_system_us;
  end.processes_peak = static_cast<uint64_t>(std::max<int64_t>(0, facts.processes_peak));
  end.network_bytes = facts.network_bytes;
  end.memory_peak = static_cast<uint64_t>(std::max<int64_t>(0, facts.memory_peak));
  end.memory_short = end.end == protocol::kEndDrained && is_of_memory(shortage);
  end.resumed_generation = static_cast<uint64_t>(facts.resumed_generation);
  end.resumed_ppm = facts.resumed_generation > 0
                        ? static_cast<int32_t>(std::max<int64_t>(0, facts.resumed_progress_ppm))
                        : -1;
  end.progress_ppm = static_cast<int32_t>(facts.progress_ppm);
  end.steps = steps_of(facts);
  end.sensed = static_cast<uint32_t>(facts.sensed);
  if (same_boot && facts.quiesce_ns >= 0) end.sensed_ns = facts.ended_ns - facts.quiesce_ns;
  end.stdout_cut = facts.stdout_dropped > 0;
  end.stderr_cut = facts.stderr_dropped > 0;
  return end;
}

protocol::EvictionNote note_of(const AttemptEnd& end) {
  protocol::EvictionNote note;
  note.at_us = end.finished_us - std::max<int64_t>(0, end.steps.gone);
  note.job = end.name.job;
  note.attempt = end.name.attempt;
  note.ended = static_cast<protocol::EndCode>(end.end);
  note.sensed = end.sensed;
  if (plausible(end.steps)) note.steps = end.steps;
  return note;
}

AttemptEnd end_from_record(const Assignment& what, const EndRecord& record) {
  AttemptEnd end;
  end.name = what.name;
  end.end = record.end;
  end.reason = record.reason;
  end.finished_us = record.at_us;
  return end;
}

void note_seen(const SeenEviction& seen, const Clock& clock, AttemptEnd* end) {
  if (seen.sensed == 0 || seen.gone < seen.sensed || !protocol::had_to_leave(end->end)) return;
  end->sensed = seen.reason;
  end->sensed_ns = seen.sensed;
  end->finished_us = to_utc(seen.gone, clock, true);
  end->steps = {.gone = (seen.gone - seen.sensed) / 1000};
  if (seen.frozen >= seen.sensed && seen.frozen <= seen.gone)
    end->steps.demoted = (seen.frozen - seen.sensed) / 1000;
}

}  // namespace sublet::client
