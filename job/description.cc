#include "job/description.h"

#include <algorithm>

#include "job/output_name.h"

namespace sublet {

using namespace detail_name;

namespace {

Values values_of(const SpecRange& range, uint64_t offset) {
  Values values = values_at(range.axes, offset);
  values.emplace_back("index", std::to_string(range.first_index + offset));
  return values;
}

void fill_outputs(std::vector<OutputFile>& outputs, Values values) {
  for (auto& [name, value] : values) value = quote_output(value);
  for (auto& output : outputs) output.name = fill(output.name, values);
}

}  // namespace

JobDescription spec_at(const SpecRange& range, uint64_t offset) {
  JobDescription job = range.spec;
  if (!range.is_array) return job;
  Values values = values_of(range, offset);
  for (auto& argument : job.arguments) argument = fill(argument, values);
  for (auto& variable : job.environment) variable = fill(variable, values);
  fill_outputs(job.outputs, std::move(values));
  return job;
}

std::vector<OutputFile> outputs_at(const SpecRange& range, uint64_t offset) {
  std::vector<OutputFile> outputs = range.spec.outputs;
  if (range.is_array) fill_outputs(outputs, values_of(range, offset));
  return outputs;
}

bool describes(const JobDescription& job, std::string_view file) {
  return std::any_of(job.outputs.begin(), job.outputs.end(),
                     [&](const auto& output) { return covers(output.name, file); });
}

Details details_of(const JobDescription& job) {
  Details details;
  each_detail(job, [&](auto name, auto value) { details.emplace_back(name, value); });
  return details;
}

JobDescription for_workstation(JobDescription job) {
  job.even_so = false;
  job.hours.clear();
  job.not_before_us = 0;
  job.needs.require.clear();
  job.needs.prefer.clear();
  job.waits_for = {};
  for (InputFile& input : job.inputs) input.source = {};
  return job;
}

bool take_detail(JobDescription& job, std::string_view name, std::string_view value) {
  if (name.starts_with(kProgramAt)) {
    job.programs.emplace_back(name.substr(kProgramAt.size()), value);
  } else if (name == kSubmitFolder) {
    const auto folder = percent_decode(value);
    job.submit_folder = folder.value_or("");
    return folder.has_value();
  } else if (name == kSubmitHost) {
    job.submit_host = value;
  } else if (name == detail_name::kEvenSo) {
    job.even_so = value == "true";
    return job.even_so;
  } else if (name == detail_name::kHours) {
    job.hours = value;
  } else {
    return false;
  }
  return true;
}

}  // namespace sublet
