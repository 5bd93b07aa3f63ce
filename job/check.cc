#include "job/check.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "job/output_name.h"
#include "rules/hours.h"

namespace sublet {
namespace {

constexpr size_t kMaxSearched = 64;  // outputs that are folders or patterns
constexpr size_t kMaxDetails = 64;
constexpr size_t kMaxDetailBytes = 16 * 1024;

void check_strings(const std::vector<std::string>& strings, const char* what,
                   const std::string& subject) {
  if (strings.size() > kStringsPerJob)
    over_limit("field.too_many", subject, std::string("more than 4,096 ") + what,
               "Put them into a file.");
  for (const auto& s : strings)
    if (s.find('\0') != std::string::npos)
      invalid(subject, std::string("a NUL octet in ") + what, "Remove it.");
}

void check_inputs(const JobDescription& job, const std::string& subject) {
  std::set<std::string> names;
  for (const auto& f : job.inputs) {
    if (!is_inside(f.name))
      invalid(subject, "the input name `" + f.name + "` leaves the job's folder",
              "Give a relative name without `..`.");
    if (!names.insert(f.name).second)
      invalid(subject, "two inputs are called `" + f.name + "`", "Give each its own name.");
    if (f.source.is_set() && f.file != 0)
      invalid(subject, "the input `" + f.name + "` is both a file and another job's output",
              "Give one of them.");
    if (f.source.is_set() && !is_inside(f.source.name))
      invalid(subject, "`" + f.source.name + "` is no file that a job leaves",
              "Give the name of an output, without patterns.");
  }
}

void check_standard_input(const JobDescription& job, const std::string& subject) {
  const std::string& name = job.standard_input;
  if (name.empty() || std::ranges::find(job.inputs, name, &InputFile::name) != job.inputs.end())
    return;
  invalid(subject, "the standard input `" + name + "` is not an input",
          "Give the name of one of the job's inputs.");
}

void check_outputs(const JobDescription& job, const std::string& subject) {
  std::set<std::string> names;
  size_t searched = 0;
  for (const auto& f : job.outputs) {
    if (const std::string wrong = wrong_with_output(f.name); !wrong.empty())
      invalid(subject, "the output name `" + f.name + "`: " + wrong,
              "Give a relative name without `..`.");
    if (!names.insert(f.name).second)
      invalid(subject, "two outputs are called `" + f.name + "`", "Give each its own name.");
    searched += !OutputName(f.name).is_file();
  }
  if (searched > kMaxSearched)
    over_limit("field.too_many", subject, "more than 64 outputs are folders or patterns",
               "Have the job write into one folder.");
}

// "linux/x86_64": two words of letters, digits and "_.-", 64 octets at most each.
bool is_platform(std::string_view text) {
  const auto is_word = [](std::string_view word) {
    return !word.empty() && word.size() <= 64 &&
           std::all_of(word.begin(), word.end(), [](unsigned char c) {
             return c < 0x80 && (isalnum(c) != 0 || c == '_' || c == '.' || c == '-');
           });
  };
  const size_t slash = text.find('/');
  return slash != std::string_view::npos && is_word(text.substr(0, slash)) &&
         is_word(text.substr(slash + 1));
}

void check_programs(const JobDescription& job, const std::string& subject) {
  std::set<std::string> platforms;
  for (const auto& [platform, program] : job.programs) {
    const std::string name = std::string(detail_name::kProgramAt) + platform;
    if (!is_platform(platform) || program.empty())
      invalid(subject, "`" + name + "` = `" + program + "` is not a program for a platform",
              "Write program@OS/ARCHITECTURE, as `uname` prints them, and the program's name.");
    if (!platforms.insert(platform).second)
      invalid(subject, "`" + name + "` is given twice", "Give one program for each platform.");
  }
}

struct DetailSums {
  size_t count = 0, bytes = 0;
};
DetailSums sum_of_details(const JobDescription& job) {
  DetailSums details;
  each_detail(job, [&](std::string_view name, std::string_view value) {
    ++details.count;
    details.bytes += name.size() + value.size();
  });
  return details;
}

void check_details(const JobDescription& job, const std::string& subject) {
  const DetailSums details = sum_of_details(job);
  if (details.count > kMaxDetails || details.bytes > kMaxDetailBytes)
    over_limit("field.too_large", subject, "more than 64 details or 16 KiB of them",
               "Remove some.");
  check_programs(job, subject);
}

void check_references(const JobDescription& job, const std::string& subject) {
  if (job.waits_for.size() > kReferencesPerJob)
    over_limit("relation.too_many", subject, "it waits for more than 1,000 others",
               "Name jobs that follow each other as one range, such as an array.");
  for (const auto& [name, list] : lists_of(job.waits_for))
    for (const JobReference& reference : *list)
      if (reference.count == 0 || reference.count > UINT64_MAX - reference.first)
        invalid(subject, "`" + std::string(name) + "` names no jobs",
                "Give the first one and how many.");
}

void check_numbers(const JobDescription& job, const std::string& subject) {
  if (job.bounds.cpu_ms < 0 || job.bounds.wall_ms < 0)
    invalid(subject, "a limit is negative", "Give a positive one, or 0 for the default.");
  if (job.retries > kMaxRetries)
    invalid(subject, "more than 1,000 retries", "Evictions need no retries: they never count.");
  if (job.save_deadline_ms < 0 || job.save_deadline_ms > kMaxSaveDeadlineMs)
    invalid(subject, "the save deadline is not between 0 and 10 min",
            "Save less data, or more often.");
}

void check_own_checkpoint(const JobDescription& job, const std::string& subject) {
  if (const std::string wrong = wrong_with(job.own_checkpoint); !wrong.empty())
    invalid(subject, wrong, "Name the files in which the program saves its state, as outputs.");
}

void check_resources(const JobDescription& job, const std::string& subject) {
  const std::string advice = "Ask for named amounts as gpu=1.";
  if (const std::string problem = job.needs.resources.problem(); !problem.empty())
    invalid(subject, "resources: " + problem, advice);
  for (const auto& [name, amount] : job.needs.resources)
    if (amount == 0) invalid(subject, "resources: it asks for 0 of '" + name + "'", advice);
}

// The end of the year 9999.
constexpr int64_t kLatestInstantUs = 253'402'300'799'999'999;

void check_times(const JobDescription& job, const std::string& subject) {
  if (job.not_before_us < 0)
    invalid(subject, "`not_before` is negative",
            "Give microseconds since 1970 (UTC), or 0 for any time.");
  if (job.not_before_us > kLatestInstantUs)
    invalid(subject, "`not_before` is after the year 9999", "Give an earlier instant.");
  std::string hours = job.hours;
  if (hours.empty()) return;
  if (const std::string wrong = settle_hours(hours); !wrong.empty())
    invalid(subject, "`hours`: " + wrong, "Write them as in \"mon-fri 19:00-07:00, sat, sun\".");
}

}  // namespace

void invalid(const std::string& subject, const std::string& what, const std::string& advice) {
  throw JobError(JobError::Kind::kInvalid, "field.invalid", subject + ": " + what, advice, subject);
}

void over_limit(const char* code, const std::string& subject, const std::string& what,
                const std::string& advice) {
  throw JobError(JobError::Kind::kLimitExceeded, code, subject + ": " + what, advice, subject);
}

std::string settle_hours(std::string& hours) {
  try {
    hours = rules::Hours::parse(hours).text();
  } catch (const rules::HoursError& e) {
    return e.what();
  }
  return "";
}

std::string wrong_with_output(const std::string& name) {
  try {
    OutputName good(name);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

bool is_inside(std::string_view name) {
  if (name.empty() || name.size() > 4096 || name.front() == '/') return false;
  if (name.find('\0') != std::string_view::npos) return false;
  // The deepest folder that a workstation creates.
  if (std::count(name.begin(), name.end(), '/') > 63) return false;
  while (true) {
    size_t slash = name.find('/');
    std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

size_t octets_of(const JobDescription& job) {
  size_t octets = job.name.size() + job.program.size() + job.needs.os.size() +
                  job.needs.architecture.size() + job.needs.require.size() +
                  job.needs.prefer.size();
  for (const auto& [name, amount] : job.needs.resources) octets += name.size();
  for (const auto& text : job.arguments) octets += text.size();
  for (const auto& text : job.environment) octets += text.size();
  for (const auto& file : job.inputs) octets += file.name.size() + file.source.name.size();
  for (const auto& file : job.outputs) octets += file.name.size();
  for (const auto& file : job.own_checkpoint.files) octets += file.size();
  return octets + job.standard_input.size() + sum_of_details(job).bytes;
}

void check_description(const JobDescription& job, const std::string& subject) {
  if (job.program.empty()) invalid(subject, "no program is given", "Name the program to run.");
  if (job.program.find('\0') != std::string::npos)
    invalid(subject, "a NUL octet in the program's name", "Remove it.");
  if (job.name.size() > kNameLimit)
    over_limit("field.too_large", subject, "a name of more than 1,024 octets", "Shorten it.");
  check_strings(job.arguments, "arguments", subject);
  check_strings(job.environment, "environment variables", subject);
  for (const auto& e : job.environment)
    if (e.find('=') == std::string::npos || e.front() == '=')
      invalid(subject, "`" + e + "` is not an environment variable", "Write NAME=value.");
  if (job.inputs.size() > kStringsPerJob || job.outputs.size() > kStringsPerJob)
    over_limit("field.too_many", subject, "more than 4,096 files", "Pack them into an archive.");
  check_inputs(job, subject);
  check_standard_input(job, subject);
  check_outputs(job, subject);
  check_details(job, subject);
  check_references(job, subject);
  if (octets_of(job) > kJobBytes)
    over_limit("field.too_large", subject, "arguments, environment and names exceed 1 MiB",
               "Put long contents into an input file.");
  if (job.needs.os.size() > 64 || job.needs.architecture.size() > 64)
    invalid(subject, "a platform's name of more than 64 octets", "Write it as `uname` does.");
  check_numbers(job, subject);
  check_own_checkpoint(job, subject);
  check_resources(job, subject);
  check_times(job, subject);
}

void check_inputs_sent(const JobDescription& job, const std::string& subject) {
  for (const auto& f : job.inputs)
    if (f.file == 0 && !f.source.is_set())
      invalid(subject, "the input `" + f.name + "` was not sent", "Upload it first.");
}

}  // namespace sublet
