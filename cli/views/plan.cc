#include "cli/views/plan.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "cli/views/jobs.h"

namespace sublet::cli {
namespace {

constexpr size_t kValueWidth = 40;  // columns of a value; the rest is cut off

// In the order in which the parameters were given.
Values values_of(const PlannedJob& job, uint64_t number) {
  Values values = values_at(job.axes, number);
  Values ordered;
  for (const Axis& axis : job.axes)
    for (const std::string& name : axis.names)
      ordered.push_back(*std::ranges::find(values, name, &Values::value_type::first));
  return ordered;
}

std::string shown(const Values& values) {
  std::string out;
  for (const auto& [name, value] : values) {
    const std::string safe = escape_for_terminal(value);
    const bool fits = display_width(safe) <= kValueWidth;
    out += (out.empty() ? "" : " ") + name + "=" + (fits ? safe : fit(safe, kValueWidth));
  }
  return out;
}

void write_values(JsonWriter& json, const char* key, const Values& values) {
  json.key(key).begin_object();
  for (const auto& [name, value] : values) json.field(name, value);
  json.end_object();
}

void write_job(JsonWriter& json, const PlannedJob& job) {
  JobDescription what = job.what;
  for (const PlannedInput& i : job.inputs) what.inputs.push_back({0, i.name, i.executable});
  json.begin_object().field("count", std::max<uint64_t>(job.count, 1));
  if (!job.axes.empty()) {
    json.key("sweep").begin_object();
    write_values(json, "first", values_of(job, 0));
    write_values(json, "last", values_of(job, job.count - 1));
    json.end_object();
  }
  json.key("description");
  write_json(json, what);
  json.end_object();
}

void write_json(JsonWriter& json, const StopWhen& when) {
  json.begin_object();
  if (when.done > 0) json.field("done", when.done);
  if (when.failed > 0) json.field("failed", when.failed);
  if (!when.output.empty()) json.field("output", when.output);
  json.end_object();
}

// "3 jobs have failed or one left key.txt"
std::string stop_words(const StopWhen& when) {
  std::string out;
  const auto add = [&](const std::string& condition) {
    out += (out.empty() ? "" : " or ") + condition;
  };
  const auto have = [](uint64_t n) { return counted(n, "job") + (n == 1 ? " has" : " have"); };
  if (when.done > 0) add(have(when.done) + " ended well");
  if (when.failed > 0) add(have(when.failed) + " failed");
  if (!when.output.empty()) add("a job has left " + escape_for_terminal(when.output));
  return out;
}

}  // namespace

std::string plan_text(const BatchPlan& plan, const InputFiles& files, const Terminal& terminal) {
  std::vector<Row> rows;
  std::string details;
  for (const PlannedJob& job : plan.jobs) {
    rows.push_back(
        {{job.what.name, job.count == 0 ? "" : std::to_string(job.count), command_line(job.what),
          std::to_string(job.inputs.size()), std::to_string(job.what.outputs.size())}});
    const std::string name = escape_for_terminal(job.what.name);
    if (!job.axes.empty())
      details += name + ": " + counted(job.count, "job") + ", from " + shown(values_of(job, 0)) +
                 " to " + shown(values_of(job, job.count - 1)) + "\n";
    if (!job.what.programs.empty())
      details += name + ": " + escape_for_terminal(programs_line(job.what)) + "\n";
  }
  return list_table({{"NAME", false, 4, 4},
                     {"COUNT", true, 5, 3},
                     {"COMMAND", false, 8, 5},
                     {"INPUTS", true, 3, 1},
                     {"OUTPUTS", true, 3, 1}},
                    rows, terminal.columns, terminal.colour) +
         details + "would submit " + counted(plan.job_count(), "job") + " and send " +
         counted(files.distinct(), "file") + " (" + format_bytes(files.bytes()) + ")\n" +
         (plan.stop_when.is_set()
              ? "the rest would be removed when " + stop_words(plan.stop_when) + "\n"
              : "") +
         (plan.at_most > 0 ? "at most " + std::to_string(plan.at_most) + " would run at a time\n"
                           : "") +
         (plan.on_never == OnNever::kRemove ? "what can never run would be removed\n" : "");
}

std::string plan_json(const BatchPlan& plan, const InputFiles& files) {
  JsonWriter json;
  json.begin_object().field("dry_run", true).field("name", plan.name);
  json.field("job_count", plan.job_count()).field("files", files.distinct());
  json.field("bytes", files.bytes());
  if (plan.stop_when.is_set()) {
    json.key("stop_when");
    write_json(json, plan.stop_when);
  }
  if (plan.at_most > 0) json.field("at_most", plan.at_most);
  if (plan.on_never != OnNever::kHold) json.field("never_satisfied", on_never_name(plan.on_never));
  json.key("jobs").begin_array();
  for (const PlannedJob& job : plan.jobs) write_job(json, job);
  json.end_array().end_object();
  return json.str() + "\n";
}

}  // namespace sublet::cli
