#include "cli/transfer/submission.h"

#include <unistd.h>

#include <algorithm>

#include "base/random.h"
#include "job/check.h"

namespace sublet::cli {

namespace {

constexpr size_t kMessageAim = 1u << 20;       // the ORB's limit is 2 MiB
constexpr size_t kSweepAim = kMessageAim / 2;  // for values, besides the description
constexpr int kServerRestartMs = 30'000;       // how long to retry during a submission

JobDescription complete(const PlannedJob& job, const InputFiles& files) {
  JobDescription what = job.what;
  for (const PlannedInput& input : job.inputs)
    what.inputs.push_back({files.file_id(input.path), input.name, input.executable});
  return what;
}

void append_all(PoolClient& pool, uint64_t batch, const BatchPlan& plan, const InputFiles& files) {
  uint64_t number = 0;
  for (const AppendCall& call : append_calls(plan)) {
    if (call.array) {
      const PlannedJob& job = plan.jobs[call.first];
      const JobDescription what = complete(job, files);
      if (job.axes.empty()) pool.append_array(batch, number++, what, 0, job.count);
      for (const SweepPiece& piece : sweep_pieces(job.axes))
        pool.append_sweep(batch, number++, what, piece.axes, piece.first_index);
      continue;
    }
    std::vector<JobDescription> jobs;
    for (size_t i = call.first; i < call.last; ++i) jobs.push_back(complete(plan.jobs[i], files));
    pool.append(batch, number++, jobs);
  }
}

// Checks before anything is sent what the server would refuse.
void check_job(const PlannedJob& job) {
  const std::string subject = "job '" + job.what.name + "'";
  JobDescription what = job.what;
  for (const PlannedInput& input : job.inputs) what.inputs.push_back({0, input.name});
  check_description(what, subject);
  if (job.count == 0) return;
  SpecRange range{std::move(what), true, 0, job.count};
  if (job.axes.empty()) return check_axes(range, subject);
  for (SweepPiece& piece : sweep_pieces(job.axes)) {
    range.axes = std::move(piece.axes);
    check_axes(range, subject);
  }
}

[[noreturn]] void uncertain(const PoolError& e) {
  throw PoolError(e.kind, "submit.uncertain", e.message + " while the jobs were being committed",
                  "check with `sublet ls` whether they exist before you submit again", e.subject);
}

IdRange commit(PoolClient& pool, uint64_t batch) {
  try {
    return pool.commit_batch(random_id(), batch);
  } catch (const PoolError& e) {
    if (e.maybe_done) uncertain(e);
    throw;
  }
}

IdRange submit_single(PoolClient& pool, const JobDescription& job) {
  try {
    return {pool.submit(random_id(), host_name(), job), 1};
  } catch (const PoolError& e) {
    if (e.maybe_done) uncertain(e);
    throw;
  }
}

void give_up(PoolClient& pool, uint64_t batch) {
  try {
    pool.discard_batch(batch);
  } catch (const PoolError&) {
    // The batch expires by itself within an hour; none of its jobs run.
  }
}

}  // namespace

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

size_t description_size(const PlannedJob& job) {
  size_t sum = 256 + 3 * job.what.submit_folder.size() + job.what.standard_input.size() +
               job.what.name.size() + job.what.program.size();
  for (const std::string& s : job.what.arguments) sum += s.size() + 8;
  for (const std::string& s : job.what.environment) sum += s.size() + 8;
  for (const PlannedInput& i : job.inputs) sum += i.name.size() + 24;
  for (const InputFile& i : job.what.inputs) sum += i.name.size() + i.source.name.size() + 48;
  for (const OutputFile& o : job.what.outputs) sum += o.name.size() + 16;
  for (const auto& [platform, program] : job.what.programs)
    sum += platform.size() + program.size() + 32;
  return sum + 32 * job.what.waits_for.size();
}

std::vector<SweepPiece> sweep_pieces(const std::vector<Axis>& axes) {
  if (axes.empty()) return {};
  size_t others = 0;
  uint64_t combinations = 1;  // of all axes except the first
  for (size_t i = 1; i < axes.size(); ++i) {
    for (const std::string& value : axes[i].values) others += value.size() + 8;
    combinations *= axes[i].count();
  }
  if (others > kSweepAim)
    throw PoolError(ErrorKind::limit_exceeded, "job.too_large",
                    "the parameters except the first have more than 512 KiB of values",
                    "put the longest first, or move long values into an input file", "parameters");
  std::vector<SweepPiece> pieces;
  size_t bytes = kSweepAim;  // the first row begins a piece
  const Axis& axis = axes[0];
  const size_t columns = axis.names.size();
  for (uint64_t row = 0; axis.range_count == 0 && row < axis.count(); ++row) {
    const auto begin = axis.values.begin() + static_cast<ptrdiff_t>(row * columns);
    size_t size = 0;
    for (size_t i = 0; i < columns; ++i) size += begin[static_cast<ptrdiff_t>(i)].size() + 8;
    if (bytes + size > kSweepAim) {
      pieces.push_back({axes, row * combinations});
      pieces.back().axes[0].values.clear();
      bytes = others;
    }
    auto& values = pieces.back().axes[0].values;
    values.insert(values.end(), begin, begin + static_cast<ptrdiff_t>(columns));
    bytes += size;
  }
  if (pieces.empty()) pieces.push_back({axes, 0});
  return pieces;
}

std::vector<AppendCall> append_calls(const BatchPlan& plan) {
  std::vector<AppendCall> calls;
  size_t bytes = 0;
  for (size_t i = 0; i < plan.jobs.size(); ++i) {
    const PlannedJob& job = plan.jobs[i];
    size_t size = description_size(job);
    bool starts_call = calls.empty() || calls.back().array || job.count > 0 ||
                       calls.back().last - calls.back().first == kJobsPerAppend ||
                       bytes + size > kMessageAim;
    if (starts_call) {
      calls.push_back({i, i, job.count > 0});
      bytes = 0;
    }
    calls.back().last = i + 1;
    bytes += size;
  }
  return calls;
}

namespace {
// The jobs as far as they wait for each other.
std::vector<SpecRange> relations_of(const BatchPlan& plan) {
  std::vector<SpecRange> relations;
  for (const PlannedJob& job : plan.jobs) {
    SpecRange range;
    range.spec.name = job.what.name;
    range.spec.waits_for = job.what.waits_for;
    range.spec.inputs = job.what.inputs;
    wait_for_sources(range.spec);
    range.count = std::max<uint64_t>(job.count, 1);
    relations.push_back(std::move(range));
  }
  return relations;
}
}  // namespace

void check_plan(const BatchPlan& plan) {
  try {
    for (const PlannedJob& job : plan.jobs) check_job(job);
    check_dependences(relations_of(plan));
  } catch (const JobError& error) {
    const bool limit = error.kind == JobError::Kind::kLimitExceeded;
    throw PoolError(limit ? ErrorKind::limit_exceeded : ErrorKind::invalid, error.code,
                    error.what(), error.advice, error.subject);
  }
}

Submitted Submission::run(PoolClient& pool, const BatchPlan& plan, InputFiles& files) {
  const bool single = plan.jobs.size() == 1 && plan.jobs[0].count == 0 &&
                      plan.jobs[0].inputs.empty() && plan.jobs[0].what.inputs.empty() &&
                      !plan.stop_when.is_set() && plan.on_never == OnNever::kHold &&
                      plan.at_most == 0;
  if (!single) return outcome_.committed(submit_batch(pool, plan, files));
  begin_commit();
  return outcome_.committed(submit_single(pool, plan.jobs[0].what));
}

IdRange Submission::submit_batch(PoolClient& pool, const BatchPlan& plan, InputFiles& files) {
  const uint64_t batch = pool.open_batch(random_id(), plan.name, host_name(), plan.stop_when,
                                         plan.on_never, plan.at_most);
  pool_ = &pool;
  outcome_.batch_opened(batch);
  pool.set_unreachable_ms(kServerRestartMs);
  try {
    files.upload(pool, batch);
    append_all(pool, batch, plan, files);
  } catch (const PoolError&) {
    give_up(pool, batch);
    throw;
  }
  begin_commit();
  return commit(pool, batch);
}

void Submission::begin_commit() {
  if (outcome_.begin_commit()) return;
  while (true) pause();
}

void Submission::interrupt(const std::function<void(const PoolError&)>& failed,
                           const std::function<void(const Submitted&)>& submitted) {
  const uint64_t discard = outcome_.interrupt(failed, submitted);
  if (discard != 0) give_up(*pool_, discard);
}

}  // namespace sublet::cli
