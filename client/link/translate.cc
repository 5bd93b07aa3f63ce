#include "client/link/translate.h"

#include <unistd.h>

#include <sstream>

#include "base/octets.h"
#include "base/text.h"
#include "job/check.h"
#include "protocol/attempt.h"
#include "transport/orb.h"

namespace sublet::client {

static_assert(idl::RUN_ACCEPTED == kRunAccepted && idl::RUN_REFUSED_OWNER == kRunOwner &&
              idl::RUN_REFUSED_FULL == kRunFull && idl::RUN_REFUSED_LACKS == kRunLacks &&
              idl::RUN_REFUSED_DRAINING == kRunDraining && idl::RUN_REFUSED_OLD == kRunOld &&
              idl::RUN_REFUSED_ERROR == kRunError && idl::RUN_REFUSED_STALE == kRunStale);
static_assert(idl::ATTEMPT_STAGING == kAttemptStaging && idl::ATTEMPT_RUNNING == kAttemptRunning &&
              idl::ATTEMPT_LEAVING == kAttemptLeaving &&
              idl::ATTEMPT_SUSPENDED == kAttemptSuspended &&
              idl::ATTEMPT_DELIVERING == kAttemptDelivering);
static_assert(idl::VERDICT_COUNTS == kVerdictCounts &&
              idl::VERDICT_SUPERSEDED == kVerdictSuperseded &&
              idl::VERDICT_KNOWN == kVerdictKnown && idl::VERDICT_LATER == kVerdictLater);
static_assert(idl::END_DONE == protocol::kEndDone && idl::END_EXIT == protocol::kEndExit &&
              idl::END_SIGNAL == protocol::kEndSignal && idl::END_START == protocol::kEndStart &&
              idl::END_STAGING == protocol::kEndStaging &&
              idl::END_OUTPUT == protocol::kEndOutput && idl::END_LIMIT == protocol::kEndLimit &&
              idl::END_OWNER == protocol::kEndOwner && idl::END_BLIND == protocol::kEndBlind &&
              idl::END_LEASE == protocol::kEndLease &&
              idl::END_PREEMPTED == protocol::kEndPreempted &&
              idl::END_DRAINED == protocol::kEndDrained && idl::END_LOST == protocol::kEndLost &&
              idl::END_REMOVED == protocol::kEndRemoved && idl::END_HELD == protocol::kEndHeld &&
              idl::END_SUPERSEDED == protocol::kEndSuperseded &&
              idl::END_ADMINISTRATOR == protocol::kEndAdministrator &&
              idl::END_SAVED == protocol::kEndSaved);
static_assert(idl::LEAVE_PREEMPT == SUBLET_LEAVE_PREEMPT &&
              idl::LEAVE_REMOVED == SUBLET_LEAVE_REMOVED &&
              idl::LEAVE_SUPERSEDED == SUBLET_LEAVE_REPLACED &&
              idl::LEAVE_HELD == SUBLET_LEAVE_HELD &&
              idl::LEAVE_ADMINISTRATOR == SUBLET_LEAVE_ADMINISTRATOR);
static_assert(
    idl::PRESENCE_NONE == SUBLET_PRESENCE_NONE && idl::PRESENCE_CPU == SUBLET_PRESENCE_CPU &&
    idl::PRESENCE_LOAD == SUBLET_PRESENCE_LOAD && idl::PRESENCE_INPUT == SUBLET_PRESENCE_INPUT &&
    idl::PRESENCE_SETTLING == SUBLET_PRESENCE_SETTLING &&
    idl::PRESENCE_SCRIPT == SUBLET_PRESENCE_SCRIPT &&
    idl::PRESENCE_BLIND == SUBLET_PRESENCE_BLIND && idl::PRESENCE_QUIET == SUBLET_PRESENCE_QUIET &&
    idl::PRESENCE_PAUSED == SUBLET_PRESENCE_PAUSED &&
    idl::PRESENCE_UNSEEN == SUBLET_PRESENCE_UNSEEN &&
    idl::PRESENCE_SLEEP == SUBLET_PRESENCE_SLEEP && idl::PRESENCE_MEDIA == SUBLET_PRESENCE_MEDIA &&
    idl::PRESENCE_RULE == SUBLET_PRESENCE_RULE &&
    idl::PRESENCE_WITHHELD == SUBLET_PRESENCE_WITHHELD);

namespace {

template <typename Exception>
[[noreturn]] void rethrow(ServerError::Kind kind, const Exception& e) {
  std::string code = e.code.in();
  std::string text = e.message.in();
  std::string advice = e.advice.in();
  while (advice.ends_with('.')) advice.pop_back();
  if (!advice.empty()) text += " (" + advice + ")";
  if (code.starts_with("session.")) kind = ServerError::Kind::kSessionOver;
  throw ServerError(kind, code, text);
}

[[noreturn]] void rethrow(const CORBA::SystemException& e) {
  CallError error = describe(e);
  auto kind =
      error.kind == CallFailure::kGone ? ServerError::Kind::kSessionOver : ServerError::Kind::kAway;
  throw ServerError(kind, "", error.text);
}

}  // namespace

void guard_call(const std::function<void()>& call) {
  try {
    call();
  } catch (const idl::Invalid& e) {
    rethrow(ServerError::Kind::kRefused, e);
  } catch (const idl::NotFound& e) {
    rethrow(ServerError::Kind::kNotFound, e);
  } catch (const idl::NotPermitted& e) {
    rethrow(ServerError::Kind::kRefused, e);
  } catch (const idl::Conflict& e) {
    rethrow(ServerError::Kind::kConflict, e);
  } catch (const idl::LimitExceeded& e) {
    rethrow(ServerError::Kind::kRefused, e);
  } catch (const idl::Unavailable& e) {
    rethrow(ServerError::Kind::kAway, e);
  } catch (const CORBA::SystemException& e) {
    rethrow(e);
  }
}

idl::MachineDescription to_idl(const MachineFacts& facts) {
  idl::MachineDescription out{};
  out.name = to_utf8(facts.name).c_str();
  out.os = facts.os.c_str();
  out.architecture = facts.architecture.c_str();
  out.cores = facts.cores;
  out.slots = facts.slots;
  out.memory = facts.memory;
  out.disk = facts.disk;
  sublet::to_idl(facts.resources, out.resources);
  out.version = facts.version.c_str();
  out.capabilities.length(5);
  out.capabilities[0] = CORBA::string_dup("AttemptStatus.waits");
  out.capabilities[1] = CORBA::string_dup("JobDescription.program@");
  out.capabilities[2] = CORBA::string_dup("JobDescription.submit_folder");
  out.capabilities[3] = CORBA::string_dup("JobDescription.submit_host");
  out.capabilities[4] = CORBA::string_dup("RunOrder.ahead");
  out.more.length(1);
  out.more[0].name = CORBA::string_dup("pid");
  out.more[0].value = std::to_string(getpid()).c_str();
  return out;
}

idl::MachineReport to_idl(const MachineState& state) {
  idl::MachineReport out{};
  out.away = state.away;
  out.reason = state.reason;
  out.owner_cpu = state.owner_cpu;
  out.input_idle = state.input_idle_ms;
  out.slots_free = state.slots_free;
  out.memory_free = state.memory_free;
  out.disk_free = state.disk_free;
  return out;
}

namespace {
std::string lines_of(const std::vector<std::string>& users) {
  std::string lines;
  for (const std::string& user : users) lines += user + "\n";
  return lines;
}
}  // namespace

void add_logins(const LoginsReport& logins, idl::MachineReport& report) {
  if (!logins.takes_part) return;
  add_detail(report.more, "logins_asked", lines_of(logins.asked));
  if (logins.here_known) add_detail(report.more, "logins_here", lines_of(logins.here));
}

void add_speed(const MachineState& state, idl::MachineReport& report) {
  if (state.speed > 0) add_detail(report.more, "speed", plain_number(state.speed));
  if (state.load > 0) add_detail(report.more, "load", plain_number(state.load));
}

void add_ahead(const MachineState& state, idl::MachineReport& report) {
  if (state.ahead > 0) add_detail(report.more, "ahead", std::to_string(state.ahead));
}

LoginsAnswer logins_from(const idl::RenewAnswer& answer) {
  LoginsAnswer logins;
  for (CORBA::ULong i = 0; i < answer.more.length(); ++i) {
    const std::string_view name = answer.more[i].name.in();
    std::istringstream words(answer.more[i].value.in());
    std::string user, what;
    if (name == "logins_wanted")
      while (words >> user) logins.wanted.push_back(user);
    else if (name == "logins")
      while (words >> user >> what) logins.logged_in[user] = what == "1";
  }
  return logins;
}

idl::AttemptStatus to_idl(const HeldAttempt& held, const KeptOfStatuses& kept) {
  idl::AttemptStatus out{};
  out.key = to_idl(held.name);
  out.state = held.state;
  out.cpu = held.cpu_ms;
  out.memory = held.memory;
  out.progress_ppm = held.progress_ppm;
  out.generation = held.generation;
  out.delivered = held.delivered;
  if (kept.disk && held.disk > 0) add_detail(out.more, "disk", std::to_string(held.disk));
  if (kept.waits && held.waits) add_detail(out.more, "waits", "1");
  if (kept.at_risk && held.at_risk_ms >= 0)
    add_detail(out.more, "at_risk_ms", std::to_string(held.at_risk_ms));
  if (kept.message && !held.message.empty()) add_detail(out.more, "message", to_utf8(held.message));
  return out;
}

idl::StartReport to_idl(const AttemptStart& start, bool keeps_ran) {
  idl::StartReport out{};
  out.key = to_idl(start.name);
  out.at = start.at_us;
  if (keeps_ran) add_detail(out.more, "ran_ms", std::to_string(start.ran_ms));
  return out;
}

idl::EndReport to_idl(const AttemptEnd& end, const KeptOfEnds& kept) {
  idl::EndReport out{};
  out.key = to_idl(end.name);
  out.ended = end.end;
  out.reason = to_utf8(end.reason).c_str();
  out.exit_status = end.exit_status;
  out.signal = end.signal;
  out.started = end.started_us;
  out.finished = end.finished_us;
  out.wall = end.wall_ms;
  out.cpu_us = end.cpu_us;
  out.cpu_saved_us = end.cpu_saved_us;
  out.memory_peak = end.memory_peak;
  out.generation = end.generation;
  out.checkpoint_bytes = end.checkpoint_bytes;
  out.resumed_generation = end.resumed_generation;
  out.resumed_ppm = end.resumed_ppm;
  out.progress_ppm = end.progress_ppm;
  out.quiesce_us = end.steps.gone;
  out.stdout_cut = end.stdout_cut;
  out.stderr_cut = end.stderr_cut;
  out.outputs.length(static_cast<CORBA::ULong>(end.outputs.size()));
  for (size_t i = 0; i < end.outputs.size(); ++i)
    out.outputs[static_cast<CORBA::ULong>(i)] = end.outputs[i];
  if (kept.steps) sublet::to_idl(end.steps, out.steps);
  if (kept.peaks) {
    add_detail(out.more, "processes_peak", std::to_string(end.processes_peak));
    add_detail(out.more, "disk_peak", std::to_string(end.disk_peak));
  }
  if (kept.memory_short && end.memory_short) add_detail(out.more, "memory_short", "1");
  if (kept.network && end.network_bytes >= 0)
    add_detail(out.more, "network_bytes", std::to_string(end.network_bytes));
  if (kept.staging && end.staging_ms > 0)
    add_detail(out.more, "staging", std::to_string(end.staging_ms));
  return out;
}

RunOrder from_idl(const idl::RunOrder& order) {
  RunOrder out;
  out.what.name = from_idl(order.key);
  out.what.job = sublet::from_idl(order.what);
  out.what.user = order.user.in();
  out.what.checkpoint_generation = order.checkpoint_generation;
  out.what.checkpoint_bytes = order.checkpoint_bytes;
  out.lease_ms = order.lease;
  out.decided_us = order.decided;
  out.ahead = order.more.length() > 0;  // not_served() knows no other name
  out.not_served = not_served(order);
  return out;
}

namespace {

std::string message_of(const std::function<void()>& check) {
  try {
    check();
  } catch (const JobError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

std::string not_served(const idl::RunOrder& order) {
  const std::string subject = "job " + std::to_string(order.key.job);
  if (order.reserved.length() > 0) return subject + ": reserved resources are not served here";
  if (order.start_at != 0) return subject + ": a common start instant is not served here";
  for (CORBA::ULong i = 0; i < order.more.length(); ++i) {
    const std::string name = order.more[i].name.in();
    if (name != "ahead")
      return subject + ": `" + to_utf8(name).substr(0, 100) + "` of an order is not served here";
  }
  return message_of([&] { check_served(order.what, subject); });
}

std::string not_served(const idl::Requirements& needs) {
  return message_of([&] { check_served(needs, "these requirements"); });
}

idl::RunAnswer to_idl(const RunAnswer& answer) {
  idl::RunAnswer out{};
  out.key = to_idl(answer.name);
  out.answer = answer.answer;
  out.reason = to_utf8(answer.reason).c_str();
  return out;
}

std::vector<AttemptVerdict> from_idl(const idl::Verdicts& verdicts) {
  std::vector<AttemptVerdict> out;
  for (CORBA::ULong i = 0; i < verdicts.length(); ++i)
    out.push_back({from_idl(verdicts[i].key), static_cast<uint32_t>(verdicts[i].value)});
  return out;
}

}  // namespace sublet::client
