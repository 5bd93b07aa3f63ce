#include "cli/transfer/fetching.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "cli/names.h"
#include "cli/pool/pool_client.h"
#include "cli/transfer/target_folder.h"
#include "cli/transfer/transfer.h"
#include "cli/views/job_text.h"

namespace sublet::cli {

namespace {

constexpr size_t kStreamNameMax = 100;

FileKind kind_of(const OutputInfo& output) {
  if (output.name == "stdout") return FileKind::kStdout;
  if (output.name == "stderr") return FileKind::kStderr;
  return FileKind::kOutput;
}

std::string target_of(const JobSummary& job, const OutputInfo& output, bool by_job) {
  std::string prefix = by_job ? std::to_string(job.id) + "/" : "";
  FileKind kind = kind_of(output);
  if (kind == FileKind::kOutput) return prefix + output.name;
  // A job's name may be anything; as a file name it is percent-encoded.
  std::string name = percent_encode(job.name.empty() ? "job" : job.name);
  if (name.front() == '.') name.insert(0, "job");
  if (name.size() > kStreamNameMax) name.resize(kStreamNameMax);
  return prefix + name + "." + std::to_string(job.id) +
         (kind == FileKind::kStdout ? ".out" : ".err");
}

PlannedFile planned(const JobDetail& job, const OutputInfo& output, bool by_job) {
  PlannedFile file;
  file.job = job.summary.id;
  file.place.kind = kind_of(output);
  file.place.job = job.summary.id;
  file.place.name = output.name;
  file.info = output;
  file.target = target_of(job.summary, output, by_job);
  return file;
}

std::vector<JobSummary> all_jobs(PoolClient& pool, const JobFilter& filter) {
  std::vector<JobSummary> jobs;
  std::string cursor;
  do {
    JobPage page = pool.list(filter, cursor, kPageLimit);
    jobs.insert(jobs.end(), page.jobs.begin(), page.jobs.end());
    cursor = page.next;
  } while (!cursor.empty());
  return jobs;
}

void receive(PoolClient& pool, const TargetFolder& folder, const PlannedFile& file) {
  auto pending = folder.begin(file.target);
  download(pool, file.place, file.info.size, file.info.digest,
           [&](std::string_view bytes) { pending->write(bytes); });
  pending->commit();
}

void receive_all(PoolClient& pool, const FetchOptions& options, FetchResult* result) {
  if (result->files.empty()) return;
  TargetFolder folder(options.into);
  for (const PlannedFile& file : result->files) {
    receive(pool, folder, file);
    result->bytes += file.info.size;
  }
}

// Prints a job's stream to our stream of the same kind.
void print_stream(Context& context, const PlannedFile& file) {
  const bool to_out = file.place.kind == FileKind::kStdout;
  const Terminal& terminal = context.terminal;
  JobText text(to_out ? terminal.out_is_terminal : terminal.err_is_terminal);
  auto sink = to_out ? print : print_error;
  download(context.pool(), file.place, file.info.size, file.info.digest,
           [&](std::string_view bytes) { sink(text.feed(bytes)); });
  sink(text.finish());
}

}  // namespace

void FetchOptions::declare(Arguments& arguments) {
  arguments.option("--into", &into, "folder for the outputs (default: the current one)", "FOLDER");
  arguments.not_empty("--into");
  arguments.flag("--by-job", &by_job, "put each job's outputs into FOLDER/ID");
  arguments.flag("--discard", &discard, "then remove them from the server");
}

std::string FetchOptions::words() const {
  return (into == "." ? "" : "--into " + quote_for_shell(into) + " ") +
         (by_job ? "--by-job " : "") + (discard ? "--discard " : "");
}

void FetchOptions::check_folder(bool make) const {
  if (make)
    TargetFolder(into).check_writable();
  else
    TargetFolder::check_possible(into);
}

namespace {

[[noreturn]] void twice(const std::string& target, const std::string& what) {
  throw PoolError(ErrorKind::conflict, "output.twice", what,
                  "--by-job puts each job's outputs into a folder of its own", target);
}

// One job's file may have the name of another job's folder.
void check_folders(const std::set<std::string>& targets) {
  for (const std::string& target : targets)
    for (size_t at = target.find('/'); at != std::string::npos; at = target.find('/', at + 1))
      if (targets.contains(target.substr(0, at)))
        twice(target, "an output is called '" + target.substr(0, at) +
                          "', which is the folder of another output, '" + target + "'");
}

}  // namespace

std::vector<PlannedFile> plan_fetch(const std::vector<JobDetail>& jobs, bool by_job) {
  std::vector<PlannedFile> files;
  std::set<std::string> targets;
  for (const JobDetail& job : jobs) {
    for (const OutputInfo& output : job.outputs) {
      PlannedFile file = planned(job, output, by_job);
      if (file.place.kind != FileKind::kOutput && output.size == 0) continue;
      TargetFolder::check(file.target);
      if (!targets.insert(file.target).second)
        twice(file.target, "two of the outputs are called '" + file.target + "'");
      files.push_back(std::move(file));
    }
  }
  check_folders(targets);
  return files;
}

FetchResult fetch_jobs(Context& context, const JobFilter& filter, const FetchOptions& options) {
  PoolClient& pool = context.pool();
  if (std::optional<PoolError> missing = missing_jobs(pool, filter)) throw *missing;
  FetchResult result;
  std::vector<JobDetail> jobs;
  for (const JobSummary& job : all_jobs(pool, filter)) {
    if (job.state == kDone || job.state == kFailed)
      jobs.push_back(pool.show(job.id));
    else if (!is_final(job.state))
      result.unfinished.push_back(job.id);
    if (!jobs.empty() && jobs.back().summary.id == job.id && jobs.back().outputs_removed_us != 0)
      result.removed.push_back(job.id);
  }
  result.jobs = jobs.size();
  result.files = plan_fetch(jobs, options.by_job);
  receive_all(pool, options, &result);
  if (options.discard)
    for (const JobDetail& job : jobs)
      if (!job.outputs.empty()) pool.discard_outputs(job.summary.id);
  return result;
}

FetchResult fetch_and_print(Context& context, uint64_t job, const FetchOptions& options) {
  PoolClient& pool = context.pool();
  JobDetail detail = pool.show(job);
  FetchResult result;
  result.jobs = 1;
  result.files = plan_fetch({detail}, options.by_job);
  auto streams =
      std::stable_partition(result.files.begin(), result.files.end(),
                            [](const PlannedFile& f) { return f.place.kind == FileKind::kOutput; });
  std::vector<PlannedFile> printed(streams, result.files.end());
  result.files.erase(streams, result.files.end());
  receive_all(pool, options, &result);
  for (const PlannedFile& file : printed) {
    print_stream(context, file);
    if (file.info.cut) say("sublet: " + file.info.name + " was cut at the job's limit");
  }
  return result;
}

void report_fetch(const FetchResult& result, const FetchOptions& options) {
  for (const PlannedFile& file : result.files)
    if (file.info.cut)
      say("sublet: " + escape_for_terminal(file.target) + " was cut at the job's limit");
  if (!result.unfinished.empty())
    say("sublet: " + counted(result.unfinished.size(), "job") +
        " had not ended: " + (result.unfinished.size() == 1 ? "job " : "the first is job ") +
        std::to_string(result.unfinished.front()));
  if (!result.removed.empty())
    say("sublet: the server no longer keeps the outputs of " +
        counted(result.removed.size(), "job") + ": " +
        (result.removed.size() == 1 ? "job " : "the first is job ") +
        std::to_string(result.removed.front()) + "; `sublet show` says when they were removed");
  if (result.files.empty()) {
    print("nothing to fetch\n");
    return;
  }
  print("fetched " + counted(result.files.size(), "file") + " of " + counted(result.jobs, "job") +
        " (" + format_bytes(result.bytes) + ") into " + escape_for_terminal(options.into) + "\n");
}

void write_json(JsonWriter& json, const FetchResult& result, const FetchOptions& options) {
  json.begin_object().field("into", options.into).key("files").begin_array();
  for (const PlannedFile& file : result.files) {
    json.begin_object().field("job", file.job).field("name", file.info.name);
    json.field("path", file.target).field("size", file.info.size);
    json.field("digest", hex(file.info.digest)).field("cut", file.info.cut).end_object();
  }
  json.end_array().key("unfinished").begin_array();
  for (uint64_t id : result.unfinished) json.value(id);
  json.end_array().key("removed").begin_array();
  for (uint64_t id : result.removed) json.value(id);
  json.end_array().end_object();
}

}  // namespace sublet::cli
