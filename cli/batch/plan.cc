#include "cli/batch/plan.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/text.h"
#include "cli/names.h"

namespace sublet::cli {
namespace {

// One program; `suffix` is appended to the name of the input.
std::string send_along(PlannedJob* job, std::string* program, const std::string& suffix,
                       const std::string& folder, const std::string& where) {
  if (program->find('/') == std::string::npos) return "";
  std::string name;
  if (check_relative_name(*program, &name).empty()) {
    for (PlannedInput& input : job->inputs) {
      if (input.name != name) continue;
      input.executable = true;
      *program = "./" + name;
      return "";
    }
  }
  const std::string base = base_name(*program);
  if (base.empty()) return "the program's name ends in a slash";
  std::string wrong = add_input(job, {located(folder, *program), base + suffix, true, where});
  if (wrong.empty()) *program = "./" + base + suffix;
  return wrong;
}

}  // namespace

uint64_t BatchPlan::job_count() const {
  uint64_t sum = 0;
  for (const PlannedJob& job : jobs) sum += std::max<uint64_t>(job.count, 1);
  return sum;
}

std::string send_program_along(PlannedJob* job, const std::string& folder,
                               const std::string& where) {
  auto& programs = job->what.programs;
  if (programs.empty()) return send_along(job, &job->what.program, "", folder, where);
  for (auto& [platform, program] : programs) {
    std::string suffix = "." + platform;
    std::replace(suffix.begin(), suffix.end(), '/', '-');
    std::string wrong = send_along(job, &program, suffix, folder, where);
    if (!wrong.empty()) return wrong;
  }
  // Shown where there is room for one name only.
  job->what.program = programs.front().second;
  return "";
}

std::string send_standard_input(PlannedJob* job, const std::string& folder,
                                const std::string& where) {
  std::string& written = job->what.standard_input;
  if (written.empty()) return "";
  std::string name;
  const bool is_name = check_relative_name(written, &name).empty();
  if (!is_name || std::ranges::find(job->inputs, name, &PlannedInput::name) == job->inputs.end()) {
    name = base_name(written);
    std::string wrong = add_input(job, {located(folder, written), name, false, where});
    if (!wrong.empty()) return wrong;
  }
  written = name;
  return "";
}

std::string add_input(PlannedJob* job, PlannedInput input) {
  std::string name = input.name.empty() ? base_name(input.path) : input.name;
  std::string wrong = check_relative_name(name, &input.name);
  if (!wrong.empty()) return "input name '" + name + "': " + wrong;
  if (job->inputs.size() == kNamesPerJob) return "more than 4096 inputs";
  for (const PlannedInput& other : job->inputs)
    if (other.name == input.name) return "two inputs are called '" + input.name + "'";
  job->inputs.push_back(std::move(input));
  return "";
}

std::string add_input(PlannedJob* job, InputFile input, PlannedReference reference) {
  const std::string name = input.name.empty() ? base_name(input.source.name) : input.name;
  if (std::string wrong = check_relative_name(name, &input.name); !wrong.empty())
    return "input name '" + name + "': " + wrong;
  if (job->what.inputs.size() == kNamesPerJob) return "more than 4096 inputs";
  reference.list = "inputs";
  reference.input = job->what.inputs.size();
  job->references.push_back(std::move(reference));
  job->what.inputs.push_back(std::move(input));
  return "";
}

std::string add_output(PlannedJob* job, const std::string& name, bool required,
                       const std::string& where) {
  OutputFile output{"", required};
  std::string wrong = check_output_name(name, &output.name);
  if (!wrong.empty()) return "output name '" + name + "': " + wrong;
  if (job->what.outputs.size() == kNamesPerJob) return "more than 4096 outputs";
  for (const OutputFile& other : job->what.outputs)
    if (other.name == output.name) return "two outputs are called '" + output.name + "'";
  job->what.outputs.push_back(std::move(output));
  job->output_places.push_back(where);
  return "";
}

std::string set_environment(PlannedJob* job, const std::string& name, const std::string& value) {
  if (name.empty()) return "an environment variable needs a name";
  if (name.find_first_of(std::string_view("=\0", 2)) != std::string::npos)
    return "'" + name + "' is not a name of an environment variable";
  std::string prefix = name + "=";
  for (std::string& entry : job->what.environment) {
    if (!entry.starts_with(prefix)) continue;
    entry = prefix + value;
    return "";
  }
  if (job->what.environment.size() == kNamesPerJob) return "more than 4096 variables";
  job->what.environment.push_back(prefix + value);
  return "";
}

std::string check_stop_when(const BatchPlan& plan, std::string_view condition) {
  const StopWhen& when = plan.stop_when;
  if (condition != "output") {
    const uint64_t number = condition == "done" ? when.done : when.failed;
    if (number <= plan.job_count()) return "";
    const uint64_t jobs = plan.job_count();
    return "the batch has only " + std::to_string(jobs) + (jobs == 1 ? " job" : " jobs");
  }
  std::set<std::string> described;
  for (const PlannedJob& job : plan.jobs)
    for (const OutputFile& o : job.what.outputs) described.insert(o.name);
  if (when.output.empty() || described.contains(when.output)) return "";
  const std::string near = nearest_word(when.output, {described.begin(), described.end()});
  return "no job describes an output '" + escape_for_terminal(when.output) + "'" +
         (near.empty() ? "" : "; did you mean '" + near + "'?");
}

}  // namespace sublet::cli
