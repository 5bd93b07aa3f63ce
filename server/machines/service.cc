#include "server/machines/service.h"

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "base/log.h"
#include "base/random.h"
#include "job/output_name.h"
#include "job/stop_when.h"
#include "protocol/frame.h"
#include "scheduling/fair_share.h"
#include "server/commit/crash_point.h"
#include "server/page_limit.h"
#include "server/refusal.h"

namespace sublet::server {

using scheduling::AttemptKey;
using scheduling::MachineId;
using scheduling::Verdict;

namespace {

constexpr uint32_t kMostSlots = 4096;
constexpr uint32_t kMostCores = 4096;

// A machine whose disk is full, say, takes no jobs although its owner is away.
scheduling::MachineReported reported(const SessionInfo& session, const ReportedState& state) {
  const bool owner_away = !state.away && state.reason == SUBLET_PRESENCE_QUIET;
  const uint32_t ahead = session.serves_ahead ? state.ahead : 0;
  return {session.machine, state.away, state.memory_free, state.disk_free,
          state.speed,     state.load, owner_away,        ahead};
}

Refusal conflict(const char* code, const std::string& message, const std::string& advice,
                 const std::string& subject) {
  return Refusal(Refusal::Kind::kConflict, code, message, advice, subject);
}

}  // namespace

MachineService::MachineService(Pipeline& pipeline, Archive& archive, Sessions& sessions,
                               Access& access, Dispatcher& dispatcher)
    : pipeline_(pipeline),
      archive_(archive),
      sessions_(sessions),
      access_(access),
      dispatcher_(dispatcher) {}

void MachineService::check_facts(const MachineFacts& facts) const {
  if (facts.name.empty() || facts.name.size() > 255)
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "a machine's name has 1 to 255 octets",
                  "Set it with --name.", "machine");
  for (const std::string* text : {&facts.os, &facts.architecture, &facts.version})
    if (text->size() > 255)
      throw Refusal(Refusal::Kind::kInvalid, "field.invalid",
                    "a machine's os, architecture and version have at most 255 octets each",
                    "Report shorter ones.", facts.name);
  if (facts.slots < 1 || facts.slots > kMostSlots)
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "a machine has 1 to 4,096 slots",
                  "Set another number with --slots.", facts.name);
  if (facts.cores < 1 || facts.cores > kMostCores)
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "a machine has 1 to 4,096 cores",
                  "Report the number of cores.", facts.name);
  if (const std::string problem = facts.resources.problem(); !problem.empty())
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "what the machine offers: " + problem,
                  "Correct its setting `resources`.", facts.name);
}

// A machine's certificate is valid only for the machine with its name.
void MachineService::check_member(const Caller& caller, const MachineFacts& facts) const {
  if (!caller.role || caller.machine == facts.name) return;
  throw Refusal(Refusal::Kind::kNotPermitted, code_of(Exclusion::kWrongName),
                "the certificate is for the machine " + caller.machine + ", not " + facts.name,
                "Start the client without --name, or join under that name.", facts.name);
}

void MachineService::check_secret(const Caller& caller, MachineId machine,
                                  const std::string& secret) {
  auto row = archive_.credential(machine);
  // A machine registered by a member belongs to it: no other member or local client
  // can take it over, and a member cannot take over a local client's machine.
  const bool bound = caller.role || (row && row->uid >= Peer::kFirstMember);
  const bool good = row && row->secret_digest == hex(digest_of(secret));
  if (good && (!bound || row->uid == caller.uid)) return;
  throw Refusal(
      Refusal::Kind::kNotPermitted, "machine.unknown",
      "machine " + std::to_string(machine) + " is not known in this pool, or its secret is wrong",
      "If this workstation was in another pool, give its client an empty state folder.",
      "machine " + std::to_string(machine));
}

// A restarted client may take over its machine, but a client with a copy of the state
// folder must not. So the current holder is probed, on the dispatcher's threads, since a
// servant must not make remote calls inside an upcall.
void MachineService::check_not_live(MachineId machine) {
  auto session = sessions_.of_machine(machine);
  if (!session || !session->attached) return;
  const std::string key = session->key;
  {
    std::lock_guard lock(mutex_);
    Probe& probe = probes_[key];
    if (!probe.pending && !probe.alive) return;
    if (!probe.pending) {
      probe.pending = true;
      dispatcher_.probe(machine, [this, key](bool alive) {
        std::lock_guard probe_lock(mutex_);
        probes_[key] = Probe{false, alive};
        if (probes_.size() > 100'000) probes_.clear();
      });
    }
  }
  throw conflict("machine.live",
                 "machine " + std::to_string(machine) + " (" + session->name +
                     ") is in use by another client: " + session->holder,
                 "If that client has just ended, try again in a moment; two clients cannot share "
                 "a state folder.",
                 session->name);
}

// A client without the machine's state folder does not know the jobs that its predecessor
// may have left running; their leases must expire first.
void MachineService::check_left_nothing(const scheduling::Pool& pool, MachineId machine) {
  const auto view = pool.machine(machine);
  if (!view || view->running.empty()) return;
  throw conflict("machine.live",
                 "machine " + std::to_string(machine) + " (" + view->record.name +
                     ") may still run jobs of a client whose state folder this one does not have",
                 "Start the client with that folder, or wait: their leases end soon.",
                 view->record.name);
}

Joined MachineService::join(const Caller& caller, MachineId machine, const std::string& secret,
                            const MachineFacts& facts) {
  check_facts(facts);
  check_member(caller, facts);
  Joined joined;
  if (secret.size() != 32)
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid",
                  "a machine's secret must have 32 octets", "Generate a random one.", "secret");
  const std::string digest = hex(digest_of(secret));
  if (machine == 0) {
    if (!caller.role) access_.require_administrator(caller, "adding a machine");
    machine = archive_.machine_with(digest);  // the reply to its first join was lost
  }
  // A member that lost its state folder is still the same machine.
  const bool new_secret = machine == 0 && caller.role;
  if (new_secret) machine = archive_.machine_of(caller.uid);
  if (machine != 0) {
    if (!new_secret) check_secret(caller, machine, secret);
    check_not_live(machine);
  }
  const std::string holder = facts.holder + " of " + caller.user;
  std::string hidden;  // one of what it offers, of which the pool has licences
  pipeline_.perform([&](Turn& turn) {
    auto named = turn.pool().machine_named(facts.name);
    if (named && *named != machine) {
      auto view = turn.pool().machine(*named);
      if (machine != 0 || !view || view->record.state != scheduling::MachineState::kGone)
        throw conflict("machine.name", "this pool already has a machine called " + facts.name,
                       "Choose another name with --name.", facts.name);
    }
    if (new_secret) check_left_nothing(turn.pool(), machine);
    auto answer = turn.apply(scheduling::MachineJoined{
                                 machine, facts.name, facts.os, facts.architecture, facts.cores,
                                 facts.slots, facts.memory, facts.disk, facts.resources.text()})
                      .answer;
    if (!answer.accepted)
      throw Refusal(Refusal::Kind::kNotFound, "machine.unknown",
                    "machine " + std::to_string(machine) + " is not registered",
                    "Give its client an empty state folder.", facts.name);
    for (const scheduling::LicenceView& licence : turn.pool().licences())
      if (facts.resources.has(licence.name)) hidden = licence.name;
    joined.now = turn.now();
    const bool new_machine = machine == 0;
    if (new_machine) machine = answer.machine;
    if (new_machine || new_secret)
      turn.changes().credentials[machine] = CredentialRow{machine, digest, caller.uid};
    // In the same turn, so that the newest session matches the brain's newest registration.
    joined.session =
        sessions_.open(machine, caller.uid, facts.name, holder, facts.version, facts.serves_ahead);
  });
  dispatcher_.detach(machine);
  log(Severity::info) << "machine " << machine << " " << facts.name << " joined: " << facts.slots
                      << (facts.slots == 1 ? " slot, " : " slots, ") << facts.os << " "
                      << facts.architecture << ", " << holder;
  if (!hidden.empty())
    log(Severity::warning) << "machine " << facts.name << " offers " << hidden
                           << ", of which the pool has licences: jobs that ask for it get those";
  return joined;
}

void MachineService::attach(const std::string& session, const Caller& caller,
                            std::shared_ptr<Workstation> workstation) {
  const SessionInfo info = sessions_.find(session, caller);
  sessions_.set_attached(session);
  dispatcher_.attach(info.machine, std::move(workstation));
}

void MachineService::report(const std::string& session, const Caller& caller,
                            const ReportedState& state) {
  const SessionInfo info = sessions_.find(session, caller);
  sessions_.set_report(info.machine, state);
  // Until the first renewal (the adoption) the brain does not know what runs there.
  if (!info.renewed) return;
  pipeline_.perform([&](Turn& turn) { turn.apply(reported(info, state)); });
}

void MachineService::expel(uint64_t uid) {
  if (auto info = sessions_.of_caller(uid)) end(*info);
}

void MachineService::withdraw(const std::string& session, const Caller& caller) {
  end(sessions_.find(session, caller));
}

void MachineService::end(const SessionInfo& info) {
  bool ended = false;
  pipeline_.perform([&](Turn& turn) {
    // In this turn: a session that waited here while the machine joined anew must not end
    // the new one.
    ended = sessions_.close(info.key);
    if (ended) turn.apply(scheduling::MachineWithdrew{info.machine});
  });
  if (!ended) return;
  if (!sessions_.of_machine(info.machine)) dispatcher_.detach(info.machine);
  log(Severity::info) << "machine " << info.machine << " " << info.name << " has left";
}

Verdicts MachineService::started(const std::string& session, const Caller& caller,
                                 const std::vector<ReportedStart>& starts) {
  const SessionInfo info = sessions_.find(session, caller);
  Verdicts verdicts;
  pipeline_.perform([&](Turn& turn) {
    verdicts.clear();
    for (const auto& [key, ran] : starts) {
      const auto answer = turn.apply(scheduling::AttemptStarted{key, info.machine, ran}).answer;
      verdicts.emplace_back(
          key, answer.verdicts.empty() ? Verdict::kSuperseded : answer.verdicts.front().second);
    }
  });
  return verdicts;
}

Renewal MachineService::renew(const std::string& session, const Caller& caller,
                              const ReportedState& state,
                              const std::vector<ReportedAttempt>& attempts) {
  const SessionInfo info = sessions_.find(session, caller);
  sessions_.set_report(info.machine, state);
  scheduling::Renewed event;
  event.machine = info.machine;
  event.says_waits = info.serves_ahead;
  for (const auto& a : attempts)
    event.attempts.push_back({a.key, a.state, a.delivered, a.status.memory, a.status.disk,
                              info.serves_ahead && a.waits});
  event.report = reported(info, state);
  Renewal renewal;
  renewal.machine = info.machine;
  pipeline_.perform([&](Turn& turn) {
    // In this turn, so that a renewal of an ended registration does not lose orders given
    // under the next one (protocol/lease.h, W4).
    event.first = sessions_.take_first_renewal(session);
    renewal.verdicts = turn.apply(event).answer.verdicts;
    renewal.now = turn.now();
  });
  const Verdicts& verdicts = renewal.verdicts;
  for (const auto& a : attempts) {
    const bool counts = std::find(verdicts.begin(), verdicts.end(),
                                  std::pair(a.key, Verdict::kCounts)) != verdicts.end();
    if (counts) sessions_.set_status(a.key, a.status);
  }
  return renewal;
}

std::optional<MachineService::Names> MachineService::outputs_here(const ReportedEnd& end) {
  Names names;
  if (end.outputs.empty()) return names;
  const auto sent = archive_.sent_files(end.event.key);
  for (uint64_t id : end.outputs) {
    const auto file = sent.find(id);
    if (file == sent.end()) return std::nullopt;
    if (file->second.kind == FileKind::kOutput) names.insert(file->second.name);
  }
  return names;
}

bool MachineService::has_required(const ReportedEnd& end, const Names& outputs) {
  if (end.event.ended != scheduling::EndReason::kDone) return true;
  auto spec = archive_.spec(end.event.key.job);
  return !spec || std::all_of(spec->outputs.begin(), spec->outputs.end(), [&](const auto& output) {
    return !output.required || outputs.count(output.name) ||
           std::any_of(outputs.begin(), outputs.end(),
                       [&](const auto& name) { return covers(output.name, name); });
  });
}

std::string MachineService::left_output(const ReportedEnd& end, const Names& outputs) {
  const JobId job = end.event.key.job;
  if (end.event.ended != scheduling::EndReason::kDone || outputs.empty()) return "";
  const std::string awaited = archive_.awaited_output(job);
  if (awaited.empty()) return "";
  const auto place = archive_.spec_place(job);
  return place ? left_of(awaited, *place->range, place->offset, outputs) : "";
}

scheduling::JobRange MachineService::alike(const ReportedEnd& end) {
  if (!end.memory_short) return {0, 0};
  const JobId job = end.event.key.job;
  const auto place = archive_.spec_place(job);
  return place ? scheduling::JobRange(job - place->offset, place->range->count) : job;
}

Verdicts MachineService::ended(const std::string& session, const Caller& caller,
                               const std::vector<ReportedEnd>& ends) {
  const SessionInfo info = sessions_.find(session, caller);
  crash_point("report");
  std::vector<bool> complete;
  std::vector<std::string> left;
  std::vector<scheduling::JobRange> with_its_description;
  for (const auto& end : ends) {
    const auto outputs = outputs_here(end);
    complete.push_back(outputs && has_required(end, *outputs));
    left.push_back(complete.back() ? left_output(end, *outputs) : "");
    with_its_description.push_back(alike(end));
  }
  Verdicts verdicts;
  pipeline_.perform([&](Turn& turn) {
    verdicts.clear();
    const auto machine = turn.pool().machine(info.machine);
    const uint32_t cores = machine ? machine->record.cores : 1;
    for (size_t i = 0; i < ends.size(); ++i) {
      const ReportedEnd& end = ends[i];
      const auto* attempt = turn.pool().attempt(end.event.key.job);
      const bool live = attempt && attempt->key == end.event.key &&
                        attempt->state != scheduling::AttemptState::kEnded;
      if (live && !complete[i]) {
        verdicts.emplace_back(end.event.key, Verdict::kLater);
        continue;
      }
      scheduling::AttemptEnded event = end.event;
      event.machine = info.machine;
      event.left = left[i];
      event.alike = with_its_description[i];
      if (live) scheduling::limit_cost(event, attempt->decided, cores, turn.now());
      auto answer = turn.apply(event).answer;
      const Verdict verdict =
          answer.verdicts.empty() ? Verdict::kSuperseded : answer.verdicts.front().second;
      // If the end counted for the brain, it is recorded: for the client that is kKnown.
      verdicts.emplace_back(event.key, verdict == Verdict::kCounts ? Verdict::kKnown : verdict);
      if (verdict != Verdict::kCounts) continue;
      turn.changes().ends.push_back(end.row);
      const bool keeps_outputs =
          event.ended == scheduling::EndReason::kDone || scheduling::is_failure(event.ended);
      if (!keeps_outputs) continue;
      for (uint64_t file : end.outputs) turn.changes().counted_files.push_back({file, event.key});
    }
  });
  for (const auto& [key, verdict] : verdicts) sessions_.forget_status(key);
  crash_point("reported");
  return verdicts;
}

std::vector<scheduling::MachineView> MachineService::list(MachineId after, uint32_t limit) {
  check_limit(limit);
  std::vector<scheduling::MachineView> machines;
  pipeline_.perform([&](Turn& turn) { machines = turn.pool().machines(); });
  std::sort(machines.begin(), machines.end(),
            [](const auto& a, const auto& b) { return a.record.id < b.record.id; });
  auto first = std::find_if(machines.begin(), machines.end(),
                            [after](const auto& v) { return v.record.id > after; });
  machines.erase(machines.begin(), first);
  if (machines.size() > limit) machines.resize(limit);
  return machines;
}

}  // namespace sublet::server
