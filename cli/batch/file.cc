#include "cli/batch/file.h"

#include <algorithm>
#include <cerrno>
#include <functional>

#include "base/files.h"
#include "base/text.h"
#include "cli/batch/instant.h"
#include "cli/batch/references.h"
#include "cli/batch/sweep.h"
#include "cli/batch/toml_reader.h"
#include "cli/names.h"
#include "job/at_most.h"
#include "job/check.h"

namespace sublet::cli {

namespace {

constexpr size_t kNameMax = 200;
constexpr size_t kNamesPerBatch = 2'000'000;   // of all jobs together: what fits in memory
constexpr size_t kBytesPerBatch = 512u << 20;  // of these, all jobs together
constexpr size_t kPlatforms = 16;              // of a job's programs

// `{ gpu = 1, ansys = 2 }`
void read_resources(const TomlReader& r, const TomlMember& m, Requirements* needs) {
  std::vector<rules::NamedAmounts::Pair> pairs;
  for (const TomlMember& one : r.expect(m, TomlKind::table).members)
    pairs.emplace_back(one.key, r.integer(one, 1, rules::kMostOfOne));
  needs->resources = rules::NamedAmounts(std::move(pairs));
  const std::string problem = needs->resources.problem();
  r.check(m.value, problem.empty() ? "" : "resources: " + problem);
}

void read_needs(const TomlReader& r, const TomlMember& m, Requirements* needs) {
  r.each_member(
      r.expect(m, TomlKind::table), "needs",
      {{"os", [&](auto& v) { needs->os = r.text(v, kNameMax); }},
       {"architecture", [&](auto& v) { needs->architecture = r.text(v, kNameMax); }},
       {"cores", [&](auto& v) { needs->cores = static_cast<uint32_t>(r.integer(v, 1, 100'000)); }},
       {"memory", [&](auto& v) { needs->memory = r.bytes(v); }},
       {"disk", [&](auto& v) { needs->disk = r.bytes(v); }},
       {"require", [&](auto& v) { needs->require = r.text(v); }},
       {"prefer", [&](auto& v) { needs->prefer = r.text(v); }},
       {"resources", [&](auto& v) { read_resources(r, v, needs); }}});
}

void read_limits(const TomlReader& r, const TomlMember& m, Limits* bounds) {
  r.each_member(r.expect(m, TomlKind::table), "limits",
                {{"cpu", [&](auto& v) { bounds->cpu_ms = r.duration_ms(v); }},
                 {"wall", [&](auto& v) { bounds->wall_ms = r.duration_ms(v); }},
                 {"memory", [&](auto& v) { bounds->memory = r.bytes(v); }},
                 {"output_text", [&](auto& v) { bounds->output_text = r.bytes(v); }},
                 {"output_file", [&](auto& v) { bounds->output_file = r.bytes(v); }},
                 {"processes", [&](auto& v) {
                    bounds->processes = static_cast<uint32_t>(r.integer(v, 1, 100'000));
                  }}});
}

// A job of this batch by its name, an element of an array, or an id.
std::string read_job_name(const TomlReader& r, const TomlValue& v, const std::string& what) {
  if (v.kind == TomlKind::integer) return std::to_string(v.integer);
  if (v.kind != TomlKind::text)
    r.fail(v, what + " must name jobs by strings and ids, not by " + toml_kind_name(v.kind));
  return r.text(v, "a job");
}

// `{ job = "mesh", output = "grid.bin" }`
void read_source(const TomlReader& r, const TomlValue& item, PlannedJob* job) {
  InputFile input;
  PlannedReference reference{"", "", item.line, item.column};
  r.each_member(
      item, "an input",
      {{"job", [&](auto& v) { reference.text = read_job_name(r, v.value, "job"); }},
       {"output",
        [&](auto& v) { r.check(v.value, check_relative_name(r.text(v), &input.source.name)); }},
       {"name", [&](auto& v) { input.name = r.text(v); }}});
  if (reference.text.empty() || !input.source.is_set())
    r.fail(item, "an input from another job needs job and output");
  r.check(item, add_input(job, std::move(input), std::move(reference)));
}

void read_inputs(const TomlReader& r, const TomlMember& m, PlannedJob* job) {
  for (const TomlValue& item : r.expect(m, TomlKind::array).items) {
    if (item.find("job") != nullptr || item.find("output") != nullptr) {
      read_source(r, item, job);
      continue;
    }
    PlannedInput input;
    if (item.kind == TomlKind::text) {
      input.path = r.text(item, "an input");
    } else if (item.kind == TomlKind::table) {
      r.each_member(item, "an input",
                    {{"file", [&](auto& v) { input.path = r.text(v); }},
                     {"name", [&](auto& v) { input.name = r.text(v); }},
                     {"executable", [&](auto& v) {
                        input.executable = r.expect(v, TomlKind::boolean).boolean;
                      }}});
    } else {
      r.fail(item, std::string("an input must be a string or a table with file, name and "
                               "executable, not ") +
                       toml_kind_name(item.kind));
    }
    if (input.path.empty()) r.fail(item, "an input needs a file");
    input.path = located(r.folder(), input.path);
    input.where = r.where(item);
    r.check(item, add_input(job, std::move(input)));
  }
}

void read_outputs(const TomlReader& r, const TomlMember& m, PlannedJob* job) {
  for (const TomlValue& item : r.expect(m, TomlKind::array).items) {
    std::string name;
    bool required = true;
    if (item.kind == TomlKind::text) {
      name = r.text(item, "an output");
    } else if (item.kind == TomlKind::table) {
      r.each_member(
          item, "an output",
          {{"name", [&](auto& v) { name = r.text(v); }},
           {"required", [&](auto& v) { required = r.expect(v, TomlKind::boolean).boolean; }}});
    } else {
      r.fail(item,
             std::string("an output must be a string or a table with name and required, not ") +
                 toml_kind_name(item.kind));
    }
    r.check(item, add_output(job, name, required, r.where(item)));
  }
}

void read_environment(const TomlReader& r, const TomlMember& m, PlannedJob* job) {
  for (const TomlMember& v : r.expect(m, TomlKind::table).members)
    r.check(v.value, set_environment(job, v.key, r.text(v)));
}

void read_arguments(const TomlReader& r, const TomlMember& m, JobDescription* what) {
  what->arguments.clear();
  for (const TomlValue& item : r.expect(m, TomlKind::array).items) {
    if (what->arguments.size() == kNamesPerJob) r.fail(item, "more than 4096 arguments");
    what->arguments.push_back(r.text(item, "an argument"));
  }
}

// Checks a platform such as "linux/x86_64". Returns an error text, or "".
std::string wrong_platform(const std::string& platform) {
  static constexpr char kOs[] = "abcdefghijklmnopqrstuvwxyz0123456789_.-";
  static constexpr char kArchitecture[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  const size_t slash = std::min(platform.find('/'), platform.size());
  const std::string os = platform.substr(0, slash);
  const std::string architecture = platform.substr(std::min(slash + 1, platform.size()));
  const bool good = !os.empty() && !architecture.empty() && platform.size() <= kNameMax / 2 &&
                    os.find_first_not_of(kOs) == std::string::npos &&
                    architecture.find_first_not_of(kArchitecture) == std::string::npos;
  return good ? ""
              : "'" + escape_for_terminal(platform.substr(0, kNameMax)) +
                    "' is not a platform such as \"linux/x86_64\": what `uname -s`, in lower case, "
                    "and `uname -m` print";
}

// A string, or a table with a string for each platform.
void read_program(const TomlReader& r, const TomlMember& m, JobDescription* what) {
  what->program.clear();
  what->programs.clear();
  if (m.value.kind != TomlKind::table) {
    what->program = r.text(m);
    return;
  }
  for (const TomlMember& v : m.value.members) {
    r.check(v.value, wrong_platform(v.key));
    if (r.text(v).empty()) r.fail(v.value, "the program's name is empty");
    if (what->programs.size() == kPlatforms) r.fail(v.value, "more than 16 platforms");
    what->programs.emplace_back(v.key, r.text(v));
  }
}

uint64_t read_count(const TomlReader& r, const TomlMember& m) {
  return static_cast<uint64_t>(r.integer(m, 1, static_cast<int64_t>(kJobsPerBatch)));
}

Leaving read_leaving(const TomlReader& r, const TomlMember& v) {
  const auto leaving = leaving_named(r.text(v));
  if (!leaving) r.fail(v.value, "leaving must be one of leave, suspend, linger, kill");
  return *leaving;
}

// Names and patterns of files; one may stand alone.
void read_checkpoint(const TomlReader& r, const TomlMember& m, OwnCheckpoint* own) {
  own->files.clear();
  if (m.value.kind == TomlKind::text) {
    own->files.push_back(r.text(m));
  } else {
    for (const TomlValue& item : r.expect(m, TomlKind::array).items)
      own->files.push_back(r.text(item, "a checkpoint file"));
  }
  r.check(m.value, own->is_set() ? wrong_with({.files = own->files}) : "");
}

void read_checkpoint_exit(const TomlReader& r, const TomlMember& m, OwnCheckpoint* own) {
  own->exit_codes.clear();
  for (const TomlValue& item : r.expect(m, TomlKind::array).items) {
    const TomlMember one = {m.key, item.line, item.column, item};
    own->exit_codes.push_back(static_cast<uint32_t>(r.integer(one, 1, 255)));
  }
}

uint32_t read_checkpoint_signal(const TomlReader& r, const TomlMember& v) {
  const auto signal = signal_named(r.text(v));
  if (!signal) r.fail(v.value, "checkpoint_signal must be one of TERM, HUP, INT, QUIT, USR1, USR2");
  return *signal;
}

Network read_network(const TomlReader& r, const TomlMember& v) {
  const auto network = network_named(r.text(v));
  if (!network)
    r.fail(v.value,
           "network must be one of none, server, any; leave it out to use the machine's setting");
  return *network;
}

// Names of jobs of this batch, elements of arrays, and ids.
void read_references(const TomlReader& r, const TomlMember& m, PlannedJob* job) {
  std::erase_if(job->references, [&](const auto& reference) { return reference.list == m.key; });
  for (const TomlValue& item : r.expect(m, TomlKind::array).items) {
    const std::string text = read_job_name(r, item, m.key);
    if (job->references.size() == kReferencesPerJob)
      r.fail(item, "more than 1000 jobs to wait for");
    job->references.push_back({m.key, text, item.line, item.column});
  }
}

// In their one form.
std::string read_hours(const TomlReader& r, const TomlMember& v) {
  std::string hours = r.text(v);
  if (const std::string wrong = settle_hours(hours); !wrong.empty())
    r.fail(v.value, "hours: " + wrong);
  return hours;
}

// A string, or a date with or without a time.
int64_t read_instant(const TomlReader& r, const TomlMember& v) {
  const bool is_date = v.value.kind == TomlKind::date;
  const auto instant = parse_instant(is_date ? v.value.text : r.text(v));
  if (!instant) r.fail(v.value, v.key + " is not a valid time: " + kInstantForm);
  return *instant;
}

OnNever read_on_never(const TomlReader& r, const TomlMember& v) {
  const auto on_never = on_never_named(r.text(v));
  if (!on_never) r.fail(v.value, "never_satisfied must be hold or remove");
  return *on_never;
}

// The keys that [defaults] and [[job]] share.
TomlReader::Keys job_keys(const TomlReader& r, PlannedJob* job) {
  JobDescription* what = &job->what;
  return {
      {"program", [=, &r](auto& v) { read_program(r, v, what); }},
      {"count", [=, &r](auto& v) { job->count = read_count(r, v); }},
      {"parameters", [=, &r](auto& v) { add_parameters(r, v, &job->axes); }},
      {"table", [=, &r](auto& v) { add_table(r, v, &job->axes); }},
      {"arguments", [=, &r](auto& v) { read_arguments(r, v, what); }},
      {"environment", [=, &r](auto& v) { read_environment(r, v, job); }},
      {"inputs", [=, &r](auto& v) { read_inputs(r, v, job); }},
      {"stdin", [=, &r](auto& v) { what->standard_input = r.text(v); }},
      {"outputs", [=, &r](auto& v) { read_outputs(r, v, job); }},
      {"needs", [=, &r](auto& v) { read_needs(r, v, &what->needs); }},
      {"limits", [=, &r](auto& v) { read_limits(r, v, &what->bounds); }},
      {"even_so", [=, &r](auto& v) { what->even_so = r.expect(v, TomlKind::boolean).boolean; }},
      {"retries",
       [=, &r](auto& v) { what->retries = static_cast<uint32_t>(r.integer(v, 0, 1000)); }},
      {"priority",
       [=, &r](auto& v) {
         what->priority = static_cast<int32_t>(r.integer(v, -kMostPriority, kMostPriority));
       }},
      {"save_deadline",
       [=, &r](auto& v) {
         what->save_deadline_ms = r.duration_ms(v);
         if (what->save_deadline_ms > kMaxSaveDeadlineMs)
           r.fail(v.value, "save_deadline may be at most 10 min");
       }},
      {"checkpoint", [=, &r](auto& v) { read_checkpoint(r, v, &what->own_checkpoint); }},
      {"checkpoint_every", [=, &r](auto& v) { what->own_checkpoint.every_ms = r.duration_ms(v); }},
      {"checkpoint_signal",
       [=, &r](auto& v) { what->own_checkpoint.signal = read_checkpoint_signal(r, v); }},
      {"checkpoint_exit", [=, &r](auto& v) { read_checkpoint_exit(r, v, &what->own_checkpoint); }},
      {"leaving", [=, &r](auto& v) { what->leaving = read_leaving(r, v); }},
      {"network", [=, &r](auto& v) { what->network = read_network(r, v); }},
      {"hours", [=, &r](auto& v) { what->hours = read_hours(r, v); }},
      {"not_before", [=, &r](auto& v) { what->not_before_us = read_instant(r, v); }},
      {"after", [=, &r](auto& v) { read_references(r, v, job); }},
      {"after_any", [=, &r](auto& v) { read_references(r, v, job); }},
      {"after_start", [=, &r](auto& v) { read_references(r, v, job); }},
  };
}

// The keys that make a job an array belong together: one of them in the job replaces
// all of them in [defaults].
bool has_array_of_its_own(const TomlValue& table) {
  const auto has = [&](const char* key) { return table.find(key) != nullptr; };
  return has("count") || has("parameters") || has("table");
}

using TextCheck = std::function<std::string(const std::string&)>;

// Checks every text in the value; an error names its place.
void check_texts(const TomlReader& r, const TomlValue& v, const TextCheck& wrong) {
  if (v.kind == TomlKind::text) r.check(v, wrong(v.text));
  for (const TomlValue& item : v.items) check_texts(r, item, wrong);
  for (const TomlMember& member : v.members) check_texts(r, member.value, wrong);
}

// Finds misspelt "{NAME}"s of an array, and those that are not replaced, where they are written.
// `defaults`: the table [defaults], or an empty one.
void check_placeholders(const TomlReader& r, const PlannedJob& job, const TomlValue& table,
                        const TomlValue& defaults) {
  const auto check = [&](const char* key, bool replaces, const TextCheck& wrong) {
    const TomlValue* own = table.find(key);
    if (own != nullptr) check_texts(r, *own, wrong);
    if (own != nullptr && replaces) return;
    if (const TomlValue* common = defaults.find(key)) check_texts(r, *common, wrong);
  };
  const TextCheck misspelt = [&](auto& text) { return misspelt_placeholder(job, text); };
  for (const char* key : {"arguments", "stdin", "after", "after_any", "after_start"})
    check(key, true, misspelt);
  for (const char* key : {"environment", "inputs", "outputs"}) check(key, false, misspelt);
  check("name", true, [&](auto& text) { return misplaced_placeholder(job, text, "a job's name"); });
  check("program", true,
        [&](auto& text) { return misplaced_placeholder(job, text, "a job's program"); });
  r.check(table, unused_parameter(job));
}

PlannedJob read_job(const TomlReader& r, const TomlValue& table, const PlannedJob& defaults,
                    const TomlValue& defaults_table) {
  r.expect(table, TomlKind::table, "[[job]]");
  PlannedJob job = defaults;
  TomlReader::Keys keys = job_keys(r, &job);
  keys.insert(keys.begin(), {"name", [&](auto& v) { job.what.name = r.text(v, kNameMax); }});
  r.each_member(table, "[[job]]", keys);
  if (!job.axes.empty()) {
    const TomlValue* count = table.find("count");
    if (job.count != 0)
      r.fail(count != nullptr ? *count : table,
             "count and parameters cannot be used together: the parameters determine the count");
    r.check(table, count_combinations(job.axes, &job.count));
  }
  const TomlValue* program = table.find("program");
  const TomlValue& at = program != nullptr ? *program : table;
  const auto& programs = job.what.programs;
  if (job.what.program.empty() && programs.empty()) r.fail(at, "a job needs a program");
  if (job.what.name.empty())
    job.what.name =
        to_utf8(base_name(programs.empty() ? job.what.program : programs.front().second));
  r.check(at, send_program_along(&job, r.folder(), r.where(at)));
  const TomlValue* own_input = table.find("stdin");
  const TomlValue& input = own_input != nullptr ? *own_input : table;
  r.check(input, send_standard_input(&job, r.folder(), r.where(input)));
  const TomlValue* files = table.find("checkpoint");
  r.check(files != nullptr ? *files : table, wrong_with(job.what.own_checkpoint));
  for (const std::string& file : job.what.own_checkpoint.files)
    r.check(files != nullptr ? *files : table,
            misplaced_placeholder(job, file, "a checkpoint file"));
  check_placeholders(r, job, table, defaults_table);
  return job;
}

// `stop_when = { done = 1 }`
StopWhen read_stop_when(const TomlReader& r, const TomlMember& m) {
  StopWhen when;
  const auto number = [&](auto& v) {
    return static_cast<uint64_t>(r.integer(v, 1, static_cast<int64_t>(kJobsPerBatch)));
  };
  r.each_member(
      r.expect(m, TomlKind::table), "stop_when",
      {{"done", [&](auto& v) { when.done = number(v); }},
       {"failed", [&](auto& v) { when.failed = number(v); }},
       {"output", [&](auto& v) { r.check(v.value, check_output_name(r.text(v), &when.output)); }}});
  if (!when.is_set()) r.fail(m.value, "stop_when needs done, failed or output");
  return when;
}

// How much the job adds to the plan: an array counts once, unless it is submitted as
// single jobs.
struct Weight {
  size_t names = 0;  // arguments, variables, inputs, outputs, jobs that it waits for
  size_t bytes = 0;  // of these and of the parameters' values
};
Weight weight_of(const PlannedJob& job) {
  Weight one;
  const auto add = [&](const std::string& text) {
    ++one.names;
    one.bytes += text.size();
  };
  for (const std::string& argument : job.what.arguments) add(argument);
  for (const std::string& variable : job.what.environment) add(variable);
  for (const OutputFile& output : job.what.outputs) add(output.name);
  for (const PlannedInput& input : job.inputs) add(input.path);
  for (const PlannedReference& reference : job.references) add(reference.text);
  const size_t jobs = jobs_told_apart(job);
  size_t values = 0;
  for (const Axis& axis : job.axes)
    for (const std::string& value : axis.values) values += sizeof value + value.size();
  return {one.names * jobs, one.bytes * jobs + values};
}

}  // namespace

BatchPlan parse_batch(std::string_view text, const std::string& file, const std::string& folder) {
  const TomlValue root = parse_toml(text, file);
  TomlReader r(file, folder);
  BatchPlan plan;
  PlannedJob defaults;
  const TomlValue* jobs = nullptr;
  const TomlValue* stop = nullptr;
  const TomlValue* defaults_table = root.find("defaults");
  const TomlValue no_table;
  r.each_member(
      root, "the batch file",
      {{"batch",
        [&](auto& m) {
          r.each_member(r.expect(m, TomlKind::table), "[batch]",
                        {{"name", [&](auto& v) { plan.name = r.text(v, kNameMax); }},
                         {"at_most",
                          [&](auto& v) {
                            plan.at_most =
                                static_cast<uint64_t>(r.integer(v, 1, int64_t{kLargestAtMost}));
                          }},
                         {"never_satisfied", [&](auto& v) { plan.on_never = read_on_never(r, v); }},
                         {"stop_when", [&](auto& v) {
                            plan.stop_when = read_stop_when(r, v);
                            stop = &v.value;
                          }}});
        }},
       {"defaults",
        [&](auto& m) {
          r.each_member(r.expect(m, TomlKind::table), "[defaults]", job_keys(r, &defaults));
        }},
       {"job", [&](auto& m) {
          if (m.value.kind == TomlKind::table)
            r.fail(m.value, "write [[job]] instead of [job]: a batch has a list of jobs");
          jobs = &r.expect(m, TomlKind::array);
        }}});
  if (jobs == nullptr || jobs->items.empty())
    throw DocumentError(file, 1, 1, "no [[job]] in the batch file");
  uint64_t total = 0;
  PlannedJob no_array = defaults;
  no_array.count = 0;
  no_array.axes.clear();
  Weight weight;
  for (const TomlValue& table : jobs->items) {
    const PlannedJob job = read_job(r, table, has_array_of_its_own(table) ? no_array : defaults,
                                    defaults_table ? *defaults_table : no_table);
    const Weight more = weight_of(job);
    weight.names += more.names;
    weight.bytes += more.bytes;
    if (weight.names > kNamesPerBatch || weight.bytes > kBytesPerBatch)
      r.fail(table,
             "more than 2,000,000 arguments, variables and files in the batch, or 512 MiB "
             "of them");
    for (PlannedJob& one : told_apart(job)) plan.jobs.push_back(std::move(one));
    total += std::max<uint64_t>(job.count, 1);
    if (total > kJobsPerBatch)
      r.fail(table, "more than " + std::to_string(kJobsPerBatch) + " jobs in the batch");
  }
  for (const char* key : {"done", "failed", "output"})
    if (const TomlValue* v = stop == nullptr ? nullptr : stop->find(key))
      r.check(*v, check_stop_when(plan, key));
  if (const WrongReference wrong = find_references(&plan); !wrong.error.empty())
    throw DocumentError(file, wrong.line, wrong.column, wrong.error);
  return plan;
}

BatchPlan read_batch_file(const std::string& path) {
  std::string text;
  try {
    text = system_files().read_file(path, kBatchFileMax);
  } catch (const FileError& e) {
    if (e.code() == EFBIG)
      throw PoolError(ErrorKind::limit_exceeded, "batch.file_size", path + " is larger than 16 MiB",
                      "use count for jobs that differ only in a number", path);
    throw PoolError(ErrorKind::invalid, "batch.file", e.what(), "", path);
  }
  std::string folder = folder_of(path);
  BatchPlan plan = parse_batch(text, path, folder);
  if (plan.name.empty()) {
    plan.name = to_utf8(base_name(path));
    if (plan.name.ends_with(".toml")) plan.name.resize(plan.name.size() - 5);
  }
  return plan;
}

}  // namespace sublet::cli
