#include "server/servants/translate.h"

#include <charconv>
#include <limits>
#include <sstream>

#include "base/hash.h"
#include "base/text.h"
#include "job/at_most.h"
#include "job/idl/eviction.h"
#include "job/stop_when.h"
#include "server/refusal.h"
#include "server/servants/served.h"

namespace sublet::server {

namespace v1 = Sublet::v1;
using scheduling::AttemptKey;

namespace {

// The brain's numbers are the interface's.
template <typename Value>
constexpr bool same(Value brains, CORBA::ULong interfaces) {
  return static_cast<CORBA::ULong>(brains) == interfaces;
}
static_assert(same(scheduling::AttemptState::kOrdered, v1::ATTEMPT_ORDERED) &&
              same(scheduling::AttemptState::kStaging, v1::ATTEMPT_STAGING) &&
              same(scheduling::AttemptState::kRunning, v1::ATTEMPT_RUNNING) &&
              same(scheduling::AttemptState::kLeaving, v1::ATTEMPT_LEAVING) &&
              same(scheduling::AttemptState::kEnded, v1::ATTEMPT_ENDED) &&
              same(scheduling::AttemptState::kSuspended, v1::ATTEMPT_SUSPENDED) &&
              same(scheduling::AttemptState::kDelivering, v1::ATTEMPT_DELIVERING));
static_assert(same(scheduling::EndReason::kNone, v1::END_NONE) &&
              same(scheduling::EndReason::kDone, v1::END_DONE) &&
              same(scheduling::EndReason::kExit, v1::END_EXIT) &&
              same(scheduling::EndReason::kSignal, v1::END_SIGNAL) &&
              same(scheduling::EndReason::kStart, v1::END_START) &&
              same(scheduling::EndReason::kStaging, v1::END_STAGING) &&
              same(scheduling::EndReason::kOutput, v1::END_OUTPUT) &&
              same(scheduling::EndReason::kLimit, v1::END_LIMIT) &&
              same(scheduling::EndReason::kOwner, v1::END_OWNER) &&
              same(scheduling::EndReason::kBlind, v1::END_BLIND) &&
              same(scheduling::EndReason::kLease, v1::END_LEASE) &&
              same(scheduling::EndReason::kPreempted, v1::END_PREEMPTED) &&
              same(scheduling::EndReason::kDrained, v1::END_DRAINED) &&
              same(scheduling::EndReason::kRefused, v1::END_REFUSED) &&
              same(scheduling::EndReason::kLost, v1::END_LOST) &&
              same(scheduling::EndReason::kRemoved, v1::END_REMOVED) &&
              same(scheduling::EndReason::kHeld, v1::END_HELD) &&
              same(scheduling::EndReason::kSuperseded, v1::END_SUPERSEDED) &&
              same(scheduling::EndReason::kAdministrator, v1::END_ADMINISTRATOR) &&
              same(scheduling::EndReason::kSaved, v1::END_SAVED));
static_assert(same(scheduling::MachineState::kIdle, v1::MACHINE_IDLE) &&
              same(scheduling::MachineState::kBusy, v1::MACHINE_BUSY) &&
              same(scheduling::MachineState::kSilent, v1::MACHINE_SILENT) &&
              same(scheduling::MachineState::kGone, v1::MACHINE_GONE));
static_assert(same(scheduling::LeaveReason::kPreempt, v1::LEAVE_PREEMPT) &&
              same(scheduling::LeaveReason::kRemoved, v1::LEAVE_REMOVED) &&
              same(scheduling::LeaveReason::kSuperseded, v1::LEAVE_SUPERSEDED) &&
              same(scheduling::LeaveReason::kHeld, v1::LEAVE_HELD) &&
              same(scheduling::LeaveReason::kAdministrator, v1::LEAVE_ADMINISTRATOR) &&
              same(scheduling::LeaveReason::kUnstarted, v1::LEAVE_UNSTARTED));
static_assert(same(scheduling::Verdict::kCounts, v1::VERDICT_COUNTS) &&
              same(scheduling::Verdict::kSuperseded, v1::VERDICT_SUPERSEDED) &&
              same(scheduling::Verdict::kKnown, v1::VERDICT_KNOWN) &&
              same(scheduling::Verdict::kLater, v1::VERDICT_LATER));

// Stored text may contain any bytes; strings in the interface are UTF-8.
CORBA::String_var text(const std::string& s) { return CORBA::string_dup(to_utf8(s).c_str()); }

AttemptKey key(const v1::AttemptKey& k) { return {k.job, k.attempt}; }

v1::AttemptKey idl_key(const AttemptKey& k) {
  v1::AttemptKey out;
  out.job = k.job;
  out.attempt = k.attempt;
  return out;
}

}  // namespace

BatchRequest from_idl(const v1::BatchDescription& d) {
  require_served("BatchDescription", d.more);
  require_unset(d.from.pool.length() > 0 || d.from.job > 0 || d.from.more.length() > 0,
                "BatchDescription.from");
  return refusing([&] {
    const Details more = sublet::from_idl(d.more);
    return BatchRequest{d.name.in(), d.submit_host.in(), read_stop_when(more), read_on_never(more),
                        read_at_most(more)};
  });
}

JobDescription submitted(const v1::JobDescription& job, const std::string& subject) {
  refusing([&] { check_served(job, subject); });
  return sublet::from_idl(job);
}

std::vector<Axis> submitted(const v1::Axes& axes, const std::string& subject) {
  refusing([&] { check_served(axes, subject); });
  return sublet::from_idl(axes);
}

namespace {
bool is_yes(const std::string& name, const std::string& value) {
  if (value != "yes" && value != "no")
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid",
                  "`" + name + "` of a filter must be yes or no", "Write yes or no.", name);
  return value == "yes";
}

Micros instant_from(const std::string& name, const std::string& value) {
  Micros instant = 0;
  const char* end = value.data() + value.size();
  const auto [last, error] = std::from_chars(value.data(), end, instant);
  if (error != std::errc() || last != end || instant < 0)
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid",
                  "`" + name + "` of a filter must be an instant",
                  "Write the microseconds since 1970 as a number.", name);
  return instant;
}

void read_detail(const std::string& name, const std::string& value, JobQuery& query) {
  if (name == "name")
    query.name = value;
  else if (name == "since")
    query.since = instant_from(name, value);
  else if (name == "newest_first")
    query.newest_first = is_yes(name, value);
  else if (name == "runs")
    query.runs = is_yes(name, value);
  else if (name == "stopped")
    query.stopped = is_yes(name, value) ? JobQuery::Stopped::kOnly : JobQuery::Stopped::kWithout;
}
}  // namespace

JobQuery from_idl(const v1::JobFilter& filter) {
  JobQuery query = listed(filter);
  if (!query.name.empty() || query.since != 0 || query.newest_first)
    throw Refusal(Refusal::Kind::kInvalid, "filter.list_only",
                  "`name`, `since` and `newest_first` of a filter are for lists only",
                  "List the jobs, then give their ids.", "filter");
  return query;
}

JobQuery listed(const v1::JobFilter& filter) {
  if (filter.ids.length() > 500)
    throw Refusal(Refusal::Kind::kLimitExceeded, "filter.ids", "more than 500 id ranges",
                  "Split the call.", "filter");
  require_served("JobFilter", filter.more);
  JobQuery query;
  for (CORBA::ULong i = 0; i < filter.ids.length(); ++i)
    query.ids.emplace_back(filter.ids[i].first, filter.ids[i].count);
  query.batch = filter.batch;
  query.user = filter.user.in();
  if (filter.states.length() > 100)
    throw Refusal(Refusal::Kind::kLimitExceeded, "filter.states", "more than 100 states",
                  "Name each state once.", "filter");
  for (CORBA::ULong i = 0; i < filter.states.length(); ++i)
    query.states.push_back(static_cast<uint32_t>(
        std::min<uint64_t>(filter.states[i], std::numeric_limits<uint32_t>::max())));
  query.unfinished_only = filter.unfinished_only;
  for (CORBA::ULong i = 0; i < filter.more.length(); ++i)
    read_detail(filter.more[i].name.in(), filter.more[i].value.in(), query);
  return query;
}

void to_idl(const JobRow& row, const std::string& machine, int32_t progress, v1::JobSummary& out) {
  const auto& job = row.job;
  out = v1::JobSummary{};
  out.id = job.id;
  out.batch = job.batch;
  out.index = job.index;
  // A database of an older server may have longer ones.
  out.name = text(row.name.substr(0, v1::NAME_LIMIT));
  out.user = text(job.user);
  out.state = static_cast<CORBA::ULong>(job.state);
  out.attempts = job.attempts;
  out.machine = text(machine);
  // In the books, "new" is a job to which nothing has happened yet.
  if (job.reason != "new") out.reason = text(job.reason);
  out.submitted = job.submitted;
  out.changed = job.changed;
  out.progress_ppm = progress;
  out.cpu_kept = job.cpu_kept / 1000;
  out.cpu_lost = job.cpu_lost / 1000;
  out.evictions = job.evictions;
  if (job.count > 1) add_detail(out.more, "count", std::to_string(job.count));
  if (job.priority != 0) add_detail(out.more, "priority", std::to_string(job.priority));
}

void to_idl(const AttemptRow& row, v1::AttemptInfo& out) {
  const auto& a = row.attempt;
  out = v1::AttemptInfo{};
  out.number = a.key.attempt;
  out.machine = a.machine;
  out.machine_name = text(row.machine_name);
  out.state = static_cast<CORBA::ULong>(a.state);
  out.ended = static_cast<CORBA::ULong>(a.ended);
  out.reason = text(a.reason.text());
  out.decided = a.decided;
  out.started = a.started;
  out.finished = a.finished;
  out.exit_status = row.end.exit_status;
  out.signal = row.end.signal;
  out.cpu = a.cpu / 1000;
  out.cpu_lost = a.cpu_lost / 1000;
  out.memory_peak = row.end.memory_peak;
  out.generation = a.generation;
  out.checkpoint_bytes = row.end.checkpoint_bytes;
  out.resumed_ppm = row.end.resumed_ppm;
  out.progress_ppm = row.end.progress_ppm;
  out.quiesce_us = row.end.steps.gone;
  sublet::to_idl(row.end.steps, out.steps);
  if (row.end.processes_peak > 0)
    add_detail(out.more, "processes_peak", std::to_string(row.end.processes_peak));
  if (row.end.disk_peak > 0) add_detail(out.more, "disk_peak", std::to_string(row.end.disk_peak));
  if (row.end.network_bytes >= 0)
    add_detail(out.more, "network_bytes", std::to_string(row.end.network_bytes));
  if (a.preempted_for != 0) add_detail(out.more, "preempted_for", std::to_string(a.preempted_for));
}

void to_idl(const JobOutputs& outputs, v1::OutputInfos& out) {
  out.length(outputs.files.size());
  for (size_t i = 0; i < outputs.files.size(); ++i) {
    const FileRow& file = outputs.files[i];
    v1::OutputInfo& info = out[i];
    info = v1::OutputInfo{};
    info.kind = static_cast<CORBA::ULong>(file.kind);
    to_octets(file.kind == FileKind::kStdout   ? "stdout"
              : file.kind == FileKind::kStderr ? "stderr"
                                               : file.name,
              info.name);
    info.size = file.size;
    to_octets(hex_decode(file.digest).value_or(""), info.content_digest);
    info.cut = (file.kind == FileKind::kStdout && outputs.end.stdout_cut) ||
               (file.kind == FileKind::kStderr && outputs.end.stderr_cut);
  }
}

void to_idl(const scheduling::ChangeRecord& r, v1::Change& out) {
  out = v1::Change{};
  out.number = r.number;
  out.at = r.at;
  out.job = r.job;
  out.batch = r.batch;
  out.state = static_cast<CORBA::ULong>(r.state);
  out.attempt = r.attempt;
  out.ended = static_cast<CORBA::ULong>(r.ended);
  if (r.count == 1) return;
  out.more.length(1);
  out.more[0].name = "count";
  out.more[0].value = std::to_string(r.count).c_str();
}

namespace {
bool has_name(const v1::Names& names, std::string_view name) {
  for (CORBA::ULong i = 0; i < names.length(); ++i)
    if (names[i].in() == name) return true;
  return false;
}
}  // namespace

MachineFacts from_idl(const v1::MachineDescription& d) {
  require_served("MachineDescription", d.more);
  for (CORBA::ULong i = 0; i < d.resources.length(); ++i) {
    require_unset(d.resources[i].instances.length() > 0, "Resource.instances");
    require_served("Resource", d.resources[i].more);
  }
  MachineFacts facts;
  facts.name = d.name.in();
  facts.os = d.os.in();
  facts.architecture = d.architecture.in();
  facts.version = d.version.in();
  facts.cores = d.cores;
  facts.slots = d.slots;
  facts.memory = d.memory;
  facts.disk = d.disk;
  facts.resources = sublet::from_idl(d.resources);
  facts.serves_ahead =
      has_name(d.capabilities, "RunOrder.ahead") && has_name(d.capabilities, "AttemptStatus.waits");
  for (CORBA::ULong i = 0; i < d.more.length(); ++i)
    if (std::string(d.more[i].name.in()) == "pid")
      facts.holder = "pid " + std::string(d.more[i].value.in()).substr(0, 20);
  return facts;
}

namespace {
// At most as many as an administrator would give a machine's slots; 0: it takes none.
uint32_t ahead_of(const v1::MachineReport& r) {
  constexpr uint32_t kMost = 64;
  for (CORBA::ULong i = 0; i < r.more.length(); ++i) {
    if (r.more[i].name.in() != std::string_view("ahead")) continue;
    const std::string_view text = r.more[i].value.in();
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && number <= kMost) return number;
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid",
                  "a machine takes from 0 to 64 orders ahead", "Report such a number, or none.",
                  "ahead");
  }
  return 0;
}

// The number of that name, which is positive, or may be 0; 0: there is none.
double number_of(const v1::MachineReport& r, const std::string& name, bool may_be_0) {
  constexpr double kMost = 1e6;
  for (CORBA::ULong i = 0; i < r.more.length(); ++i) {
    if (r.more[i].name.in() != name) continue;
    const std::string_view text = r.more[i].value.in();
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && number <= kMost &&
        (number > 0 || (may_be_0 && number == 0)))
      return number;
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid",
                  "a machine's " + name + " is a number " + (may_be_0 ? "from 0" : "above 0") +
                      " to 1,000,000",
                  "Report such a number, or none.", name);
  }
  return 0;
}
}  // namespace

ReportedState from_idl(const v1::MachineReport& r) {
  require_served("MachineReport", r.more);
  require_unset(r.free.length() > 0, "MachineReport.free");
  ReportedState state;
  state.away = r.away;
  state.reason = r.reason;
  state.owner_cpu = r.owner_cpu;
  state.input_idle_ms = r.input_idle;
  state.slots_free = r.slots_free;
  state.memory_free = r.memory_free;
  state.disk_free = r.disk_free;
  state.speed = number_of(r, "speed", false);
  state.load = number_of(r, "load", true);
  state.ahead = ahead_of(r);
  return state;
}

namespace {
// The users in a text, separated by white space.
std::set<std::string> users_in(const char* text, size_t most, const std::string& subject) {
  std::set<std::string> users;
  std::istringstream words(text);
  for (std::string user; words >> user;) {
    if (user.size() > Logins::kLongestName || users.size() >= most)
      throw Refusal(Refusal::Kind::kLimitExceeded, "logins.limit",
                    "too many users, or too long a name",
                    "At most " + std::to_string(most) + " users, each of at most " +
                        std::to_string(Logins::kLongestName) + " octets.",
                    subject);
    users.insert(user);
  }
  return users;
}
}  // namespace

std::optional<LoginsReport> logins_of(const v1::MachineReport& r) {
  std::optional<LoginsReport> logins;
  for (CORBA::ULong i = 0; i < r.more.length(); ++i) {
    const std::string name = r.more[i].name.in();
    const char* value = r.more[i].value.in();
    if (!name.starts_with("logins_")) continue;
    if (!logins) logins.emplace();
    if (name == "logins_asked") logins->asked = users_in(value, Logins::kMostAsked, name);
    if (name == "logins_here") logins->here = users_in(value, Logins::kMostWanted, name);
  }
  return logins;
}

void to_idl(const LoginsAnswer& logins, v1::Details& more) {
  std::string wanted, known;
  for (const std::string& user : logins.wanted) wanted += user + "\n";
  for (const auto& [user, logged_in] : logins.logged_in)
    known += user + (logged_in ? " 1\n" : " 0\n");
  add_detail(more, "logins_wanted", wanted);
  add_detail(more, "logins", known);
}

namespace {
// A decimal number, or `otherwise` if there is none.
int64_t number_in(const v1::Details& more, std::string_view name, int64_t otherwise) {
  for (CORBA::ULong i = 0; i < more.length(); ++i) {
    if (more[i].name.in() != name) continue;
    const std::string_view text = more[i].value.in();
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < 0)
      throw Refusal(Refusal::Kind::kInvalid, "field.invalid",
                    std::string(name) + " must be a number from 0 to 2^63 - 1",
                    "Send it in decimal digits.", std::string(name));
    return number;
  }
  return otherwise;
}

// At most kMessage bytes of it, and no part of a character.
std::string message_in(const v1::Details& more) {
  constexpr size_t kMessage = 480;  // of 160 bytes, none of which is UTF-8
  for (CORBA::ULong i = 0; i < more.length(); ++i) {
    if (std::string_view(more[i].name.in()) != "message") continue;
    std::string message = to_utf8(more[i].value.in());
    if (message.size() <= kMessage) return message;
    size_t end = kMessage;
    while (end > 0 && (message[end] & 0xc0) == 0x80) --end;
    return message.substr(0, end);
  }
  return "";
}
}  // namespace

ReportedAttempt from_idl(const v1::AttemptStatus& s) {
  require_served("AttemptStatus", s.more);
  ReportedAttempt attempt;
  attempt.key = key(s.key);
  const bool held = s.state >= v1::ATTEMPT_STAGING && s.state <= v1::ATTEMPT_DELIVERING &&
                    s.state != v1::ATTEMPT_ENDED;
  if (!held)
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid",
                  "an attempt's state must be 2, 3, 4, 6 or 7",
                  "List only attempts that this machine has.", "state");
  attempt.state = static_cast<scheduling::AttemptState>(s.state);
  attempt.delivered = s.delivered;
  attempt.status.cpu_ms = s.cpu;
  attempt.status.memory = s.memory;
  attempt.waits = number_in(s.more, "waits", 0) != 0;
  attempt.status.disk = static_cast<uint64_t>(number_in(s.more, "disk", 0));
  attempt.status.progress_ppm = s.progress_ppm;
  attempt.status.generation = s.generation;
  attempt.status.at_risk_ms = number_in(s.more, "at_risk_ms", -1);
  attempt.status.message = message_in(s.more);
  return attempt;
}

ReportedStart from_idl(const v1::StartReport& r) {
  require_served("StartReport", r.more);
  const int64_t ran_ms = number_in(r.more, "ran_ms", 0);
  return {key(r.key), std::min(ran_ms, INT64_MAX / 1000) * 1000};
}

ReportedEnd from_idl(const v1::EndReport& r) {
  require_served("EndReport", r.more);
  const bool known = (r.ended >= v1::END_DONE && r.ended <= v1::END_LIMIT) ||
                     (r.ended >= v1::END_OWNER && r.ended <= v1::END_SAVED);
  if (!known)
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "an unknown end reason",
                  "Use one of END_....", "ended");
  ReportedEnd end;
  end.event.key = key(r.key);
  end.event.ended = static_cast<scheduling::EndReason>(r.ended);
  end.event.reason = std::string(r.reason.in()).substr(0, 2000);
  end.event.cpu = std::max<int64_t>(0, r.cpu_us);
  end.event.cpu_saved = std::min<int64_t>(r.cpu_saved_us, end.event.cpu);
  end.event.wall = std::clamp<int64_t>(r.wall, 0, INT64_MAX / 1000) * 1000;
  end.event.staging = std::min<int64_t>(number_in(r.more, "staging", 0), INT64_MAX / 1000) * 1000;
  end.event.started = r.started > 0;
  // Of a job that is done it is of no use to the brain.
  if (r.ended != v1::END_DONE) end.event.memory_peak = r.memory_peak;
  end.row.key = end.event.key;
  end.row.exit_status = r.exit_status;
  end.row.signal = r.signal;
  end.row.memory_peak = r.memory_peak;
  end.row.processes_peak = static_cast<uint64_t>(number_in(r.more, "processes_peak", 0));
  end.row.disk_peak = static_cast<uint64_t>(number_in(r.more, "disk_peak", 0));
  end.row.network_bytes = number_in(r.more, "network_bytes", -1);
  end.memory_short = number_in(r.more, "memory_short", 0) != 0;
  end.row.checkpoint_bytes = r.checkpoint_bytes;
  end.row.resumed_ppm = r.resumed_ppm;
  end.row.progress_ppm = r.progress_ppm;
  end.row.steps = sublet::from_idl(r.steps);
  end.row.steps.gone = r.quiesce_us;
  if (!plausible(end.row.steps)) end.row.steps = {};
  end.row.stdout_cut = r.stdout_cut;
  end.row.stderr_cut = r.stderr_cut;
  if (r.outputs.length() > 10'000)
    throw Refusal(Refusal::Kind::kLimitExceeded, "field.too_many", "more than 10,000 outputs",
                  "Pack them into an archive.", "outputs");
  for (CORBA::ULong i = 0; i < r.outputs.length(); ++i) end.outputs.push_back(r.outputs[i]);
  return end;
}

void to_idl(const Verdicts& verdicts, v1::Verdicts& out) {
  out.length(verdicts.size());
  for (size_t i = 0; i < verdicts.size(); ++i) {
    out[i].key = idl_key(verdicts[i].first);
    out[i].value = static_cast<CORBA::ULong>(verdicts[i].second);
  }
}

void to_idl(const scheduling::MachineView& view, const std::optional<ReportedState>& state,
            bool with_attempts, v1::MachineInfo& out) {
  const auto& r = view.record;
  out = v1::MachineInfo{};
  out.number = r.id;
  out.description.name = text(r.name);
  out.description.os = text(r.os);
  out.description.architecture = text(r.architecture);
  out.description.cores = r.cores;
  out.description.slots = r.slots;
  out.description.memory = r.memory;
  out.description.disk = r.disk;
  rules::NamedAmounts named = rules::NamedAmounts::stored(r.resources);
  sublet::to_idl(named, out.description.resources);
  named.take(view.named_reserved);
  sublet::to_idl(named, out.report.free);
  if (r.speed > 0) add_detail(out.description.more, "speed", plain_number(r.speed));
  out.report.away = view.away;
  out.report.memory_free = view.memory_free;
  out.report.disk_free = view.disk_free;
  out.report.reason = state ? state->reason : 0;
  out.report.owner_cpu = state ? state->owner_cpu : 0;
  out.report.input_idle = state ? state->input_idle_ms : -1;
  out.report.slots_free =
      static_cast<CORBA::ULong>(view.places - std::min(view.places, view.places_taken()));
  out.state = static_cast<CORBA::ULong>(r.state);
  out.requesting = view.requesting;
  out.state_since = r.state_since;
  out.draining = r.draining;
  out.heard = view.last_contact;
  add_detail(out.more, "attempts", std::to_string(view.running.size()));
  const scheduling::MachineFailures& failures = r.failures;
  if (failures.count > 0) {
    add_detail(out.more, "failures", std::to_string(failures.count));
    add_detail(out.more, "failure", failures.reason);
  }
  if (failures.rests_until > 0)
    add_detail(out.more, "rests_until", std::to_string(failures.rests_until));
  if (!with_attempts) return;
  out.running.length(view.running.size());
  for (size_t i = 0; i < view.running.size(); ++i) out.running[i] = idl_key(view.running[i]);
}

FilePlace served_place(const v1::FilePlace& place) {
  require_served("FilePlace", place.more);
  if (place.kind < v1::FILE_INPUT || place.kind > v1::FILE_STDERR)
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "an unknown kind of file",
                  "Use one of FILE_....", "kind");
  return sublet::from_idl(place);
}

}  // namespace sublet::server
