#include "server/jobs/stop_when.h"

#include <algorithm>
#include <charconv>

#include "job/output_name.h"
#include "server/refusal.h"

namespace sublet::server {
namespace {

using scheduling::StopWhen;

constexpr std::string_view kPrefix = "stop_when.";
constexpr size_t kLongestName = 4096;  // as of outputs

[[noreturn]] void invalid(const std::string& what, const std::string& advice) {
  throw Refusal(Refusal::Kind::kInvalid, "field.invalid", what, advice, "stop_when");
}

uint64_t number(const std::string& name, const std::string& value) {
  uint64_t result = 0;
  const char* end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, result);
  if (error != std::errc() || at != end || result == 0)
    invalid(name + ": `" + value.substr(0, 100) + "` is not a number of jobs",
            "Write a whole number, 1 or more.");
  return result;
}

bool describes(const JobSpec& spec, const std::string& output) {
  return std::any_of(spec.outputs.begin(), spec.outputs.end(),
                     [&](const auto& o) { return o.name == output; });
}

}  // namespace

StopWhen read_stop_when(const std::vector<std::pair<std::string, std::string>>& details) {
  StopWhen when;
  std::set<std::string> seen;
  for (const auto& [name, value] : details) {
    if (!name.starts_with(kPrefix)) continue;
    if (!seen.insert(name).second) invalid(name + " is given twice", "Give it once.");
    const std::string key = name.substr(kPrefix.size());
    if (key == "done") {
      when.done = number(name, value);
    } else if (key == "failed") {
      when.failed = number(name, value);
    } else if (key == "output") {
      if (value.empty() || value.size() > kLongestName)
        invalid(name + " does not name an output", "Name an output of one of the jobs.");
      when.output = value;
    } else {
      invalid(name.substr(0, 100) + " is not known",
              "The known ones are stop_when.done, stop_when.failed and stop_when.output.");
    }
  }
  return when;
}

void check_stop_when(const StopWhen& when, const std::vector<SpecRange>& specs) {
  uint64_t jobs = 0;
  for (const auto& range : specs) jobs += range.count;
  for (const auto& [name, wanted] : {std::pair("done", when.done), {"failed", when.failed}})
    if (wanted > jobs)
      invalid("the batch should stop when " + std::to_string(wanted) + " of its jobs are " + name +
                  ", but it has only " + std::to_string(jobs),
              "Give a number that its jobs can reach.");
  if (when.output.empty()) return;
  if (std::none_of(specs.begin(), specs.end(),
                   [&](const auto& range) { return describes(range.spec, when.output); }))
    invalid("the batch should stop when a job leaves `" + when.output +
                "`, but no job has an output of that name",
            "Write the name as in the job's outputs.");
}

std::string left_of(const std::string& awaited, const SpecRange& range, uint64_t offset,
                    const std::set<std::string>& kept) {
  const JobSpec spec = spec_at(range, offset);
  for (size_t i = 0; i < range.spec.outputs.size(); ++i)
    if (range.spec.outputs[i].name == awaited)
      for (const auto& file : kept)
        if (covers(spec.outputs[i].name, file)) return file;
  return "";
}

}  // namespace sublet::server
