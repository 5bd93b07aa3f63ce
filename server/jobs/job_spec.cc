#include "server/jobs/job_spec.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>

#include "job/output_name.h"
#include "protocol/codec.h"
#include "server/jobs/spec_check.h"
#include "server/refusal.h"

namespace sublet::server {
namespace {

constexpr size_t kMaxStrings = 4096;                 // arguments, environment, files: each
constexpr size_t kMaxSearched = 64;                  // outputs that are folders or patterns
constexpr std::string_view kProgramAt = "program@";  // idl/types.idl, JobDescription
constexpr uint32_t kMaxRetries = 1000;
constexpr int64_t kMaxSaveDeadline = 600'000;  // ms

void put_strings(protocol::Encoder& out, const std::vector<std::string>& strings) {
  out.number(uint64_t{strings.size()});
  for (const auto& s : strings) out.text(s);
}

std::vector<std::string> get_strings(protocol::Decoder& in) {
  std::vector<std::string> strings(in.count(8));
  for (auto& s : strings) s = in.text();
  return strings;
}

void put_files(protocol::Encoder& out, const JobSpec& spec) {
  out.number(uint64_t{spec.inputs.size()});
  for (const auto& f : spec.inputs) {
    out.number(f.file);
    out.text(f.name);
    out.flag(f.executable);
  }
  out.number(uint64_t{spec.outputs.size()});
  for (const auto& f : spec.outputs) {
    out.text(f.name);
    out.flag(f.required);
  }
}

void get_files(protocol::Decoder& in, JobSpec& spec) {
  spec.inputs.resize(in.count(17));
  for (auto& f : spec.inputs) {
    f.file = in.number();
    f.name = in.text();
    f.executable = in.flag();
  }
  spec.outputs.resize(in.count(9));
  for (auto& f : spec.outputs) {
    f.name = in.text();
    f.required = in.flag();
  }
}

void put_axes(protocol::Encoder& out, const std::vector<Axis>& axes) {
  out.number(uint64_t{axes.size()});
  for (const auto& axis : axes) {
    put_strings(out, axis.names);
    put_strings(out, axis.values);
    out.number(axis.range_count);
    out.number(axis.first);
    out.number(axis.step);
  }
}

// Throws for axes that no check let through: the combinations are counted on.
std::vector<Axis> get_axes(protocol::Decoder& in) {
  std::vector<Axis> axes(in.count(40));
  for (auto& axis : axes) {
    axis.names = get_strings(in);
    axis.values = get_strings(in);
    axis.range_count = in.number();
    axis.first = in.signed_number();
    axis.step = in.signed_number();
    if (axis.count() == 0) throw protocol::Damaged("an axis without values");
  }
  return axes;
}

void put_spec(protocol::Encoder& out, const JobSpec& spec) {
  out.text(spec.name);
  out.text(spec.program);
  put_strings(out, spec.arguments);
  put_strings(out, spec.environment);
  put_files(out, spec);
  out.text(spec.needs.os);
  out.text(spec.needs.architecture);
  out.number(spec.needs.cores);
  out.number(spec.needs.memory);
  out.number(spec.needs.disk);
  out.number(spec.limits.cpu_ms);
  out.number(spec.limits.wall_ms);
  out.number(spec.limits.memory);
  out.number(spec.limits.output_text);
  out.number(spec.limits.output_file);
  out.number(spec.limits.processes);
  out.number(spec.priority);
  out.number(spec.retries);
  out.number(spec.save_deadline_ms);
  out.number(uint64_t{spec.more.size()});
  for (const auto& [name, value] : spec.more) {
    out.text(name);
    out.text(value);
  }
}

JobSpec get_spec(protocol::Decoder& in) {
  JobSpec spec;
  spec.name = in.text();
  spec.program = in.text();
  spec.arguments = get_strings(in);
  spec.environment = get_strings(in);
  get_files(in, spec);
  spec.needs.os = in.text();
  spec.needs.architecture = in.text();
  spec.needs.cores = in.number32();
  spec.needs.memory = in.number();
  spec.needs.disk = in.number();
  spec.limits.cpu_ms = in.signed_number();
  spec.limits.wall_ms = in.signed_number();
  spec.limits.memory = in.number();
  spec.limits.output_text = in.number();
  spec.limits.output_file = in.number();
  spec.limits.processes = in.number32();
  spec.priority = in.signed_number32();
  spec.retries = in.number32();
  spec.save_deadline_ms = in.signed_number();
  spec.more.resize(in.count(16));
  for (auto& [name, value] : spec.more) {
    name = in.text();
    value = in.text();
  }
  return spec;
}

void check_strings(const std::vector<std::string>& strings, const char* what,
                   const std::string& subject, size_t* bytes) {
  if (strings.size() > kMaxStrings)
    throw Refusal(Refusal::Kind::kLimitExceeded, "field.too_many",
                  subject + ": more than 4,096 " + what, "Put them into a file.", subject);
  for (const auto& s : strings) {
    *bytes += s.size();
    if (s.find('\0') != std::string::npos)
      invalid(subject, std::string("a NUL octet in ") + what, "Remove it.");
  }
}

void check_inputs(const JobSpec& spec, const std::string& subject) {
  std::set<std::string> names;
  for (const auto& f : spec.inputs) {
    if (!is_inside(f.name))
      invalid(subject, "the input name `" + f.name + "` leaves the job's folder",
              "Give a relative name without `..`.");
    if (f.file == 0)
      invalid(subject, "the input `" + f.name + "` was not sent", "Upload it first.");
    if (!names.insert(f.name).second)
      invalid(subject, "two inputs are called `" + f.name + "`", "Give each its own name.");
  }
}

void check_outputs(const JobSpec& spec, const std::string& subject) {
  std::set<std::string> names;
  size_t searched = 0;
  for (const auto& f : spec.outputs) {
    if (const std::string wrong = wrong_with_output(f.name); !wrong.empty())
      invalid(subject, "the output name `" + f.name + "`: " + wrong,
              "Give a relative name without `..`.");
    if (!names.insert(f.name).second)
      invalid(subject, "two outputs are called `" + f.name + "`", "Give each its own name.");
    searched += !OutputName(f.name).is_file();
  }
  if (searched > kMaxSearched)
    throw Refusal(Refusal::Kind::kLimitExceeded, "field.too_many",
                  subject + ": more than 64 outputs are folders or patterns",
                  "Have the job write into one folder.", subject);
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

void check_programs(const JobSpec& spec, const std::string& subject) {
  std::set<std::string> names;
  for (const auto& [name, value] : spec.more) {
    if (!name.starts_with(kProgramAt)) continue;
    if (!is_platform(std::string_view(name).substr(kProgramAt.size())) || value.empty())
      invalid(subject, "`" + name + "` = `" + value + "` is not a program for a platform",
              "Write program@OS/ARCHITECTURE, as `uname` prints them, and the program's name.");
    if (!names.insert(name).second)
      invalid(subject, "`" + name + "` is given twice", "Give one program for each platform.");
  }
}

}  // namespace

void invalid(const std::string& subject, const std::string& what, const std::string& advice) {
  throw Refusal(Refusal::Kind::kInvalid, "field.invalid", subject + ": " + what, advice, subject);
}

std::string wrong_with_output(const std::string& name) {
  try {
    OutputName good(name);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

std::string platforms_of(const JobSpec& spec) {
  std::set<std::string> platforms;
  for (const auto& [name, value] : spec.more)
    if (name.starts_with(kProgramAt)) platforms.insert(name.substr(kProgramAt.size()));
  std::string text;
  for (const auto& platform : platforms) text += (text.empty() ? "" : " ") + platform;
  return text;
}

bool describes(const JobSpec& spec, std::string_view file) {
  return std::any_of(spec.outputs.begin(), spec.outputs.end(),
                     [&](const auto& output) { return covers(output.name, file); });
}

bool is_inside(std::string_view name) {
  if (name.empty() || name.size() > 4096 || name.front() == '/') return false;
  if (name.find('\0') != std::string_view::npos) return false;
  // As many folders deep as a workstation makes.
  if (std::count(name.begin(), name.end(), '/') > 63) return false;
  while (true) {
    size_t slash = name.find('/');
    std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

void check_spec(const JobSpec& spec, const std::string& subject) {
  if (spec.program.empty()) invalid(subject, "no program is given", "Name the program to run.");
  if (spec.program.find('\0') != std::string::npos)
    invalid(subject, "a NUL octet in the program's name", "Remove it.");
  size_t bytes = spec.name.size() + spec.program.size();
  check_strings(spec.arguments, "arguments", subject, &bytes);
  check_strings(spec.environment, "environment variables", subject, &bytes);
  for (const auto& e : spec.environment)
    if (e.find('=') == std::string::npos || e.front() == '=')
      invalid(subject, "`" + e + "` is not an environment variable", "Write NAME=value.");
  if (spec.inputs.size() > kMaxStrings || spec.outputs.size() > kMaxStrings)
    throw Refusal(Refusal::Kind::kLimitExceeded, "field.too_many",
                  subject + ": more than 4,096 files", "Pack them into an archive.", subject);
  check_inputs(spec, subject);
  check_outputs(spec, subject);
  for (const auto& f : spec.inputs) bytes += f.name.size();
  for (const auto& f : spec.outputs) bytes += f.name.size();
  if (bytes > kMaxSpecBytes)
    throw Refusal(Refusal::Kind::kLimitExceeded, "field.too_large",
                  subject + ": arguments, environment and names exceed 1 MiB",
                  "Put long contents into an input file.", subject);
  if (spec.needs.os.size() > 64 || spec.needs.architecture.size() > 64)
    invalid(subject, "a platform's name of more than 64 octets", "Write it as `uname` does.");
  size_t more = 0;
  for (const auto& [name, value] : spec.more) more += name.size() + value.size();
  if (spec.more.size() > 64 || more > 16 * 1024)
    throw Refusal(Refusal::Kind::kLimitExceeded, "field.too_large",
                  subject + ": more than 64 details or 16 KiB of them", "Remove some.", subject);
  check_programs(spec, subject);
  if (spec.limits.cpu_ms < 0 || spec.limits.wall_ms < 0)
    invalid(subject, "a limit is negative", "Give a positive one, or 0 for the default.");
  if (spec.retries > kMaxRetries)
    invalid(subject, "more than 1,000 retries", "Evictions need no retries: they never count.");
  if (spec.save_deadline_ms < 0 || spec.save_deadline_ms > kMaxSaveDeadline)
    invalid(subject, "the save deadline is not between 0 and 10 min",
            "Save less data, or more often.");
}

std::string encode(std::span<const SpecRange> specs) {
  protocol::Encoder out;
  out.number(uint64_t{specs.size()});
  for (const auto& range : specs) {
    out.flag(range.is_array);
    out.number(range.first_index);
    out.number(range.count);
    put_spec(out, range.spec);
  }
  // Behind the rest, where rows without them end.
  if (std::any_of(specs.begin(), specs.end(), [](const auto& s) { return !s.axes.empty(); }))
    for (const auto& range : specs) put_axes(out, range.axes);
  return out.take();
}

std::vector<SpecRange> decode_specs(std::string_view bytes) {
  protocol::Decoder in(bytes);
  std::vector<SpecRange> specs(in.count(17));
  for (auto& range : specs) {
    range.is_array = in.flag();
    range.first_index = in.number();
    range.count = in.number();
    range.spec = get_spec(in);
  }
  if (!in.at_end())
    for (auto& range : specs) range.axes = get_axes(in);
  return specs;
}

JobSpec spec_at(const SpecRange& range, uint64_t offset) {
  JobSpec spec = range.spec;
  if (!range.is_array) return spec;
  Values values = values_at(range.axes, offset);
  values.emplace_back("index", std::to_string(range.first_index + offset));
  for (auto& argument : spec.arguments) argument = fill(argument, values);
  for (auto& variable : spec.environment) variable = fill(variable, values);
  for (auto& [name, value] : values) value = quote_output(value);
  for (auto& output : spec.outputs) output.name = fill(output.name, values);
  return spec;
}

}  // namespace sublet::server
