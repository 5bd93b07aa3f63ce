#include "cli/views/jobs.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "cli/names.h"
#include "protocol/attempt.h"

namespace sublet::cli {

namespace {

// "" for 0, so that an empty column is omitted.
std::string some(uint64_t n) { return n == 0 ? "" : std::to_string(n); }
std::string some_ms(int64_t ms) { return ms == 0 ? "" : format_duration_ms(ms); }
std::string priority_text(int32_t priority) {
  return priority == 0 ? "" : std::to_string(priority);
}
std::string some_bytes(uint64_t bytes) { return bytes == 0 ? "" : format_bytes(bytes); }

std::string shell_word(const std::string& word) {
  static const std::string kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+{}";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string how_ended(const AttemptInfo& a) {
  std::string out = protocol::end_name(a.ended);
  if (a.ended == 2) out += " " + std::to_string(a.exit_status);
  if (a.ended == 3) out += " " + std::to_string(a.signal);
  return out;
}

std::string attempts_table(const std::vector<AttemptInfo>& attempts, int64_t now, size_t width,
                           bool colour) {
  std::vector<Column> columns = {
      {"TRY", true, 3, 9},       {"MACHINE", false, 4, 7}, {"STATE", false, 5, 8},
      {"ENDED BY", false, 6, 8}, {"AGO", true, 3, 4},      {"RAN", true, 3, 2},
      {"CPU", true, 3, 5},       {"KEPT", true, 3, 2},     {"LOST", true, 3, 3},
      {"FROM", true, 3, 2},      {"TO", true, 3, 3},       {"CHECKPOINT", true, 5, 1},
      {"MEMORY", true, 5, 1},    {"PROCS", true, 3, 1},    {"DISK", true, 5, 1},
      {"NETWORK", true, 5, 1},   {"LEFT IN", true, 4, 1},  {"REASON", false, 8, 0}};
  std::vector<Row> rows;
  for (const AttemptInfo& a : attempts) {
    bool over = a.ended != 0;
    rows.push_back(
        {{std::to_string(a.number), a.machine_name, attempt_state_name(a.state), how_ended(a),
          age(over ? a.finished_us : a.decided_us, now),
          a.started_us == 0 ? "" : age(a.started_us, over ? a.finished_us : now), some_ms(a.cpu_ms),
          some_ms(a.cpu_ms - a.cpu_lost_ms), some_ms(a.cpu_lost_ms), percent(a.resumed_ppm),
          percent(a.progress_ppm), some_bytes(a.checkpoint_bytes), some_bytes(a.memory_peak),
          a.processes_peak == 0 ? "" : std::to_string(a.processes_peak), some_bytes(a.disk_peak),
          a.network_bytes < 0 ? "" : format_bytes(static_cast<uint64_t>(a.network_bytes)),
          a.steps.gone < 0 ? "" : format_duration_ms((a.steps.gone + 999) / 1000), a.reason},
         over ? (a.ended == 1 ? Colour::none : Colour::dim) : Colour::green});
  }
  return list_table(columns, rows, width, colour);
}

std::string outputs_table(const std::vector<OutputInfo>& outputs, size_t width, bool colour) {
  std::vector<Row> rows;
  for (const OutputInfo& o : outputs)
    rows.push_back({{o.name, format_bytes(o.size), o.cut ? "cut" : "", hex(o.digest)},
                    o.cut ? Colour::yellow : Colour::none});
  return list_table(
      {{"OUTPUT", false, 6, 3}, {"SIZE", true, 5, 2}, {"", false, 3, 2}, {"DIGEST", false, 8, 0}},
      rows, width, colour);
}

// The reason of a done job tells its last attempt's number: jobs that were evicted more often
// would have lines of their own.
bool any_reason(uint32_t state) { return state == kWaiting || state == kDone; }

bool alike(const JobSummary& a, const JobSummary& b) {
  return a.batch != 0 && a.batch == b.batch && a.name == b.name && a.user == b.user &&
         a.priority == b.priority && a.state == b.state && a.state != kPlaced &&
         a.state != kRunning && a.state != kSuspended && a.state != kDelivering &&
         (any_reason(a.state) || a.reason == b.reason);
}

// "name: value" lines with values made safe to show; empty ones are omitted.
std::string facts(const std::vector<std::pair<std::string, std::string>>& all, size_t width) {
  std::string out;
  for (const auto& [name, value] : all) {
    if (value.empty()) continue;
    std::string line = fit(name, 11) + escape_for_terminal(value);
    if (width > 0 && display_width(line) > width) line = fit(line, width);
    out += line + "\n";
  }
  return out;
}

void write_attempt(JsonWriter& json, const AttemptInfo& a) {
  json.begin_object();
  json.field("number", a.number).field("machine", a.machine).field("machine_name", a.machine_name);
  json.field("state", attempt_state_name(a.state)).field("ended", protocol::end_name(a.ended));
  json.field("ended_code", a.ended).field("reason", a.reason);
  json.field("decided_us", a.decided_us).field("started_us", a.started_us);
  json.field("finished_us", a.finished_us);
  json.field("exit_status", a.exit_status).field("signal", a.signal);
  json.field("cpu_ms", a.cpu_ms).field("cpu_kept_ms", a.cpu_ms - a.cpu_lost_ms);
  json.field("cpu_lost_ms", a.cpu_lost_ms);
  json.field("memory_peak", a.memory_peak).field("processes_peak", a.processes_peak);
  json.field("disk_peak", a.disk_peak).field("network_bytes", a.network_bytes);
  json.field("preempted_for", a.preempted_for);
  json.field("generation", a.generation);
  json.field("checkpoint_bytes", a.checkpoint_bytes);
  json.field("resumed_ppm", a.resumed_ppm).field("progress_ppm", a.progress_ppm);
  json.field("quiesce_us", a.steps.gone).field("told_us", a.steps.told);
  json.field("demoted_us", a.steps.demoted).field("save_asked_us", a.steps.save_asked);
  json.field("saved_us", a.steps.saved);
  json.end_object();
}

void write_strings(JsonWriter& json, const char* name, const std::vector<std::string>& all) {
  json.key(name).begin_array();
  for (const std::string& s : all) json.value(s);
  json.end_array();
}

void write_input(JsonWriter& json, const InputFile& input) {
  json.begin_object().field("name", input.name).field("executable", input.executable);
  if (input.source.is_set()) {
    json.key("source").begin_object().field("of_this_batch", input.source.of_this_batch);
    json.field("job", input.source.job).field("output", input.source.name).end_object();
  }
  json.end_object();
}

// "state-*.npz, best.ckpt, every 10 min, asked by SIGUSR1, exit status 3"
std::string own_checkpoint_line(const OwnCheckpoint& own) {
  std::string line;
  const auto add = [&line](const std::string& text) { line += (line.empty() ? "" : ", ") + text; };
  for (const std::string& file : own.files) add(file);
  if (own.every_ms != 0) add("every " + format_duration_ms(own.every_ms));
  if (own.signal != 0) add("asked by SIG" + signal_name(own.signal));
  for (const uint32_t code : own.exit_codes) add("exit status " + std::to_string(code));
  return line;
}

void write_own_checkpoint(JsonWriter& json, const OwnCheckpoint& own) {
  json.key("checkpoint").begin_object();
  write_strings(json, "files", own.files);
  json.field("every_ms", own.every_ms).field("signal", signal_name(own.signal));
  json.key("exit_codes").begin_array();
  for (const uint32_t code : own.exit_codes) json.value(code);
  json.end_array().end_object();
}

void write_references(JsonWriter& json, const Dependences& waits_for) {
  if (waits_for.empty()) return;
  json.key("waits_for").begin_object();
  for (const auto& [name, list] : lists_of(waits_for)) {
    json.key(std::string(name)).begin_array();
    for (const JobReference& jobs : *list)
      json.begin_object()
          .field("of_this_batch", jobs.of_this_batch)
          .field("first", jobs.first)
          .field("count", jobs.count)
          .end_object();
    json.end_array();
  }
  json.end_object();
}

void write_summary_fields(JsonWriter& json, const JobSummary& job) {
  json.field("id", job.id).field("batch", job.batch).field("index", job.index);
  json.field("name", job.name).field("user", job.user);
  json.field("state", job_state_name(job.state)).field("attempts", job.attempts);
  json.field("machine", job.machine).field("reason", job.reason);
  json.field("submitted_us", job.submitted_us).field("changed_us", job.changed_us);
  json.field("progress_ppm", job.progress_ppm);
  json.field("cpu_kept_ms", job.cpu_kept_ms).field("cpu_lost_ms", job.cpu_lost_ms);
  json.field("evictions", job.evictions).field("priority", job.priority);
}

bool adjacent(const JobSummary& a, const JobSummary& b) {
  return a.id + a.count == b.id || b.id + b.count == a.id;
}

}  // namespace

Colour state_colour(uint32_t state) {
  switch (state) {
    case kRunning:
    case kDelivering:
      return Colour::green;
    case kSuspended:
    case kHeld:
      return Colour::yellow;
    case kFailed:
      return Colour::red;
    case kRemoved:
      return Colour::dim;
    default:
      return Colour::none;
  }
}

std::vector<JobSummary> joined(const std::vector<JobSummary>& jobs) {
  std::vector<JobSummary> out;
  for (const JobSummary& job : jobs) {
    if (out.empty() || !adjacent(out.back(), job) || !alike(out.back(), job)) {
      out.push_back(job);
      continue;
    }
    JobSummary& all = out.back();
    all.id = std::min(all.id, job.id);
    all.count += job.count;
    all.progress_ppm = std::min(all.progress_ppm, job.progress_ppm);
    all.changed_us = std::max(all.changed_us, job.changed_us);
    all.cpu_kept_ms += job.cpu_kept_ms;
    all.cpu_lost_ms += job.cpu_lost_ms;
    all.evictions += job.evictions;
    if (all.machine != job.machine) all.machine.clear();
    if (all.reason != job.reason) all.reason.clear();
  }
  return out;
}

std::string jobs_table(const std::vector<JobSummary>& jobs, int64_t now, size_t width,
                       bool colour) {
  std::vector<Column> columns = {
      {"ID", true, 20, 10},   {"JOBS", true, 4, 8},     {"NAME", false, 6, 7},
      {"USER", false, 4, 5},  {"PRIORITY", true, 4, 3}, {"STATE", false, 7, 9},
      {"DONE", true, 4, 6},   {"FOR", true, 3, 4},      {"MACHINE", false, 5, 5},
      {"CPU", true, 3, 3},    {"LOST", true, 3, 1},     {"EVICTED", true, 3, 2},
      {"REASON", false, 8, 0}};
  std::vector<Row> rows;
  for (const JobSummary& j : jobs)
    rows.push_back({{format_ids({{j.id, j.count}}), j.count > 1 ? std::to_string(j.count) : "",
                     j.name, j.user, priority_text(j.priority), job_state_name(j.state),
                     percent(j.progress_ppm), age(j.changed_us, now), j.machine,
                     some_ms(j.cpu_kept_ms), some_ms(j.cpu_lost_ms), some(j.evictions), j.reason},
                    state_colour(j.state)});
  return list_table(columns, rows, width, colour);
}

std::string job_story(const JobDetail& job, int64_t now, size_t width, bool colour) {
  const JobSummary& s = job.summary;
  std::string state = job_state_name(s.state) + " for " + age(s.changed_us, now);
  if (!s.machine.empty()) state += (is_final(s.state) ? ", last on " : ", on ") + s.machine;
  std::string inputs;
  for (const InputFile& f : job.description.inputs) inputs += (inputs.empty() ? "" : ", ") + f.name;
  std::string out = facts(
      {{"job", std::to_string(s.id) + (s.name.empty() ? "" : " " + s.name)},
       {"state", state},
       {"reason", s.reason},
       {"starts", job.forecast},
       {"promised", job.promised.empty() ? "" : "a place on " + job.promised},
       {"user", s.user},
       {"batch",
        s.batch == 0 ? "" : std::to_string(s.batch) + ", index " + std::to_string(s.index)},
       {"command", command_line(job.description)},
       {"programs", programs_line(job.description)},
       {"inputs", inputs},
       {"stdin", job.description.standard_input},
       {"checkpoint", own_checkpoint_line(job.description.own_checkpoint)},
       {"leaving", leaving_name(job.description.leaving)},
       {"network", network_name(job.description.network)},
       {"after", waits_for_line(job.description.waits_for)},
       {"hours", job.description.hours},
       {"not before",
        job.description.not_before_us == 0 ? "" : format_instant(job.description.not_before_us)},
       {"submitted", age(s.submitted_us, now) + " ago (" + format_instant(s.submitted_us) + ")"},
       {"progress", percent(s.progress_ppm)},
       {"message", job.message},
       {"at risk", job.at_risk_ms <= 0 ? ""
                                       : format_duration_ms(job.at_risk_ms) +
                                             " of CPU that no checkpoint on the server holds"},
       {"CPU", format_duration_ms(s.cpu_kept_ms) + " kept, " + format_duration_ms(s.cpu_lost_ms) +
                   " lost"},
       {"evictions", some(s.evictions)},
       {"priority", priority_text(s.priority)},
       {"memory", some_bytes(job.description.needs.memory)},
       {"outputs", job.outputs_removed_us == 0
                       ? ""
                       : "removed from the server " + age(job.outputs_removed_us, now) + " ago"}},
      width);
  if (!job.attempts.empty()) out += "\n" + attempts_table(job.attempts, now, width, colour);
  if (!job.outputs.empty()) out += "\n" + outputs_table(job.outputs, width, colour);
  return out;
}

std::string why_line(const JobSummary& run, int64_t now) {
  std::string line = (run.count > 1 ? "jobs " : "job ") + format_ids({{run.id, run.count}});
  if (!run.name.empty()) line += " " + run.name;
  line += ": " + job_state_name(run.state);
  if (is_final(run.state)) {
    line += " " + age(run.changed_us, now) + " ago";
    if (!run.machine.empty()) line += " on " + run.machine;
  } else {
    line += " for " + age(run.changed_us, now);
  }
  if (run.reason.empty()) return escape_for_terminal(line);
  if (run.count > 1 && !is_final(run.state)) line += "; job " + std::to_string(run.id);
  constexpr std::string_view kHeldBecause = "held: ";
  const bool repeats = run.state == kHeld && run.reason.starts_with(kHeldBecause);
  return escape_for_terminal(line + ": " + run.reason.substr(repeats ? kHeldBecause.size() : 0));
}

std::string counts_line(const JobCounts& c) {
  std::string out = counted(c.total(), "job") + ":";
  bool first = true;
  auto add = [&](uint64_t n, const char* what) {
    if (n == 0) return;
    out += (first ? " " : ", ") + std::to_string(n) + " " + what;
    first = false;
  };
  add(c.done, "done");
  add(c.failed, "failed");
  add(c.removed, "removed");
  add(c.running, "running");
  add(c.suspended, "suspended");
  add(c.delivering, "delivering");
  add(c.waiting + c.placed, "waiting");
  add(c.held, "held");
  add(c.other, "in another state");
  return out;
}

std::string graph_table(const std::vector<GraphLine>& lines, size_t width, bool colour) {
  std::vector<Row> rows;
  for (const auto& [run, description] : lines)
    rows.push_back(
        {{format_ids({{run.id, run.count}}), run.count > 1 ? std::to_string(run.count) : "",
          run.name, job_state_name(run.state), waits_for_line(description.waits_for)},
         state_colour(run.state)});
  return list_table({{"ID", true, 20, 5},
                     {"JOBS", true, 4, 2},
                     {"NAME", false, 6, 3},
                     {"STATE", false, 7, 4},
                     {"AFTER", false, 8, 1}},
                    rows, width, colour);
}

void write_json(JsonWriter& json, const GraphLine& line) {
  json.begin_object().field("id", line.run.id).field("count", line.run.count);
  json.field("name", line.run.name).field("state", job_state_name(line.run.state));
  write_references(json, line.description.waits_for);
  json.end_object();
}

void write_json(JsonWriter& json, const JobSummary& job) {
  json.begin_object();
  write_summary_fields(json, job);
  json.end_object();
}

void write_run(JsonWriter& json, const JobSummary& run) {
  json.begin_object();
  write_summary_fields(json, run);
  json.field("count", run.count).end_object();
}

void write_json(JsonWriter& json, const JobDetail& job) {
  json.begin_object();
  write_summary_fields(json, job.summary);
  json.key("description");
  write_json(json, job.description);
  json.key("attempt_list").begin_array();
  for (const AttemptInfo& a : job.attempts) write_attempt(json, a);
  json.end_array().key("outputs").begin_array();
  for (const OutputInfo& o : job.outputs) {
    json.begin_object().field("name", o.name).field("size", o.size);
    json.field("digest", hex(o.digest)).field("cut", o.cut).end_object();
  }
  json.end_array();
  json.field("forecast", job.forecast).field("starts_at_us", job.starts_at_us);
  json.field("promised", job.promised);
  json.field("outputs_removed_us", job.outputs_removed_us);
  json.field("message", job.message).field("at_risk_ms", job.at_risk_ms);
  json.end_object();
}

void write_json(JsonWriter& json, const JobCounts& c) {
  json.begin_object();
  json.field("waiting", c.waiting).field("placed", c.placed).field("running", c.running);
  json.field("suspended", c.suspended).field("delivering", c.delivering).field("held", c.held);
  json.field("done", c.done).field("failed", c.failed);
  json.field("removed", c.removed);
  json.end_object();
}

void write_json(JsonWriter& json, const JobDescription& job) {
  json.begin_object();
  json.field("name", job.name).field("program", job.program);
  if (!job.programs.empty()) {
    json.key("programs").begin_object();
    for (const auto& [platform, program] : job.programs) json.field(platform, program);
    json.end_object();
  }
  write_strings(json, "arguments", job.arguments);
  write_strings(json, "environment", job.environment);
  json.key("inputs").begin_array();
  for (const InputFile& f : job.inputs) write_input(json, f);
  json.end_array();
  if (!job.standard_input.empty()) json.field("stdin", job.standard_input);
  if (job.even_so) json.field("even_so", true);
  if (!job.hours.empty()) json.field("hours", job.hours);
  if (job.not_before_us != 0) json.field("not_before_us", job.not_before_us);
  json.key("outputs").begin_array();
  for (const OutputFile& f : job.outputs)
    json.begin_object().field("name", f.name).field("required", f.required).end_object();
  json.end_array().key("needs").begin_object();
  json.field("os", job.needs.os).field("architecture", job.needs.architecture);
  json.field("cores", job.needs.cores).field("memory", job.needs.memory);
  json.field("disk", job.needs.disk).field("require", job.needs.require);
  json.field("prefer", job.needs.prefer);
  write_amounts(json.key("resources"), job.needs.resources);
  json.end_object();
  json.key("limits").begin_object();
  json.field("cpu_ms", job.bounds.cpu_ms).field("wall_ms", job.bounds.wall_ms);
  json.field("memory", job.bounds.memory).field("output_text", job.bounds.output_text);
  json.field("output_file", job.bounds.output_file).field("processes", job.bounds.processes);
  json.end_object();
  json.field("priority", job.priority).field("retries", job.retries);
  json.field("save_deadline_ms", job.save_deadline_ms);
  if (job.own_checkpoint.is_set()) write_own_checkpoint(json, job.own_checkpoint);
  if (job.leaving != Leaving::kDefault) json.field("leaving", leaving_name(job.leaving));
  if (job.network != Network::kDefault) json.field("network", network_name(job.network));
  write_references(json, job.waits_for);
  json.end_object();
}

std::string waits_for_line(const Dependences& waits_for) {
  const std::pair<const JobReferences*, const char*> lists[] = {
      {&waits_for.after, ""},
      {&waits_for.after_any, " ended however"},
      {&waits_for.after_start, " started"}};
  std::string out;
  for (const auto& [list, condition] : lists) {
    std::vector<IdRange> ids;
    for (const JobReference& jobs : *list) ids.push_back({jobs.first, jobs.count});
    if (!ids.empty()) out += (out.empty() ? "" : "; ") + format_ids(ids) + condition;
  }
  return out;
}

std::string programs_line(const JobDescription& job) {
  std::string out;
  for (const auto& [platform, program] : job.programs)
    out += (out.empty() ? "" : ", ") + shell_word(program) + " on " + platform;
  return out;
}

std::string command_line(const JobDescription& job) {
  std::string out = shell_word(job.program);
  for (const std::string& a : job.arguments) out += " " + shell_word(a);
  return out;
}

}  // namespace sublet::cli
