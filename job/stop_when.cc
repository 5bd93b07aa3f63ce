#include "job/stop_when.h"

#include <algorithm>
#include <charconv>

#include "job/check.h"
#include "job/output_name.h"

namespace sublet {
namespace {

constexpr std::string_view kPrefix = "stop_when.";
constexpr size_t kLongestName = 4096;  // as of outputs

[[noreturn]] void cannot_be(const std::string& what, const std::string& advice) {
  throw JobError(JobError::Kind::kInvalid, "field.invalid", what, advice, "stop_when");
}

uint64_t number(const std::string& name, const std::string& value) {
  uint64_t result = 0;
  const char* end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, result);
  if (error != std::errc() || at != end || result == 0)
    cannot_be(name + ": `" + value.substr(0, 100) + "` is not a number of jobs",
              "Write a whole number, 1 or more.");
  return result;
}

bool names(const JobDescription& spec, const std::string& output) {
  return std::any_of(spec.outputs.begin(), spec.outputs.end(),
                     [&](const auto& o) { return o.name == output; });
}

}  // namespace

Details details_of(const StopWhen& when) {
  Details details;
  const auto add = [&](const char* key, const std::string& value) {
    details.emplace_back(std::string(kPrefix) + key, value);
  };
  if (when.done > 0) add("done", std::to_string(when.done));
  if (when.failed > 0) add("failed", std::to_string(when.failed));
  if (!when.output.empty()) add("output", when.output);
  return details;
}

StopWhen read_stop_when(const Details& details) {
  StopWhen when;
  std::set<std::string> seen;
  for (const auto& [name, value] : details) {
    if (!name.starts_with(kPrefix)) continue;
    if (!seen.insert(name).second) cannot_be(name + " is given twice", "Give it once.");
    const std::string key = name.substr(kPrefix.size());
    if (key == "done") {
      when.done = number(name, value);
    } else if (key == "failed") {
      when.failed = number(name, value);
    } else if (key == "output") {
      if (value.empty() || value.size() > kLongestName)
        cannot_be(name + " does not name an output", "Name an output of one of the jobs.");
      when.output = value;
    } else {
      cannot_be(name.substr(0, 100) + " is not known",
                "The known ones are stop_when.done, stop_when.failed and stop_when.output.");
    }
  }
  return when;
}

void StopWhenCheck::add(const SpecRange& range) {
  jobs_ += range.count;
  is_left_ = is_left_ || names(range.spec, when_.output);
}

void StopWhenCheck::finish() const {
  for (const auto& [name, wanted] : {std::pair("done", when_.done), {"failed", when_.failed}})
    if (wanted > jobs_)
      cannot_be("the batch should stop when " + std::to_string(wanted) + " of its jobs are " +
                    name + ", but it has only " + std::to_string(jobs_),
                "Give a number that its jobs can reach.");
  if (!when_.output.empty() && !is_left_)
    cannot_be("the batch should stop when a job leaves `" + when_.output +
                  "`, but no job has an output of that name",
              "Write the name as in the job's outputs.");
}

std::string left_of(const std::string& awaited, const SpecRange& range, uint64_t offset,
                    const std::set<std::string>& kept) {
  const JobDescription spec = spec_at(range, offset);
  for (size_t i = 0; i < range.spec.outputs.size(); ++i)
    if (range.spec.outputs[i].name == awaited)
      for (const auto& file : kept)
        if (covers(spec.outputs[i].name, file)) return file;
  return "";
}

}  // namespace sublet
