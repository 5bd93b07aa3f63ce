#include "cli/pool/idl_translation.h"

#include <cstring>

#include "base/text.h"

namespace sublet::cli {

static_assert(kWaiting == v1::JOB_WAITING && kPlaced == v1::JOB_PLACED &&
              kRunning == v1::JOB_RUNNING && kHeld == v1::JOB_HELD && kDone == v1::JOB_DONE &&
              kFailed == v1::JOB_FAILED && kRemoved == v1::JOB_REMOVED);
static_assert(kMachineIdle == v1::MACHINE_IDLE && kMachineBusy == v1::MACHINE_BUSY &&
              kMachineSilent == v1::MACHINE_SILENT && kMachineGone == v1::MACHINE_GONE);
static_assert(kFileInput == v1::FILE_INPUT && kFileOutput == v1::FILE_OUTPUT &&
              kFileStdout == v1::FILE_STDOUT && kFileStderr == v1::FILE_STDERR);
static_assert(kByUser == v1::BY_USER && kByMachine == v1::BY_MACHINE && kByBatch == v1::BY_BATCH &&
              kByDay == v1::BY_DAY && kByWeek == v1::BY_WEEK && kByJob == v1::BY_JOB);
static_assert(kChunkLimit == v1::CHUNK_LIMIT);

namespace {

void add_detail(v1::Details& details, const char* name, const std::string& value) {
  if (value.empty()) return;
  const CORBA::ULong at = details.length();
  details.length(at + 1);
  details[at].name = CORBA::string_dup(name);
  details[at].value = to_string(value);
}

}  // namespace

v1::Bytes to_bytes(const std::string& bytes) {
  v1::Bytes out;
  out.length(static_cast<CORBA::ULong>(bytes.size()));
  if (!bytes.empty()) std::memcpy(out.get_buffer(), bytes.data(), bytes.size());
  return out;
}

v1::RequestId to_request(const RequestId& request) {
  v1::RequestId out;
  out.length(static_cast<CORBA::ULong>(request.size()));
  for (CORBA::ULong i = 0; i < request.size(); ++i) out[i] = request[i];
  return out;
}

v1::Digest to_digest(const Digest& digest) {
  v1::Digest out;
  out.length(static_cast<CORBA::ULong>(digest.size()));
  for (CORBA::ULong i = 0; i < digest.size(); ++i) out[i] = digest[i];
  return out;
}

char* to_string(const std::string& text) { return CORBA::string_dup(to_utf8(text).c_str()); }

v1::Details to_details(const StopWhen& when) {
  v1::Details out;
  if (when.done > 0) add_detail(out, "stop_when.done", std::to_string(when.done));
  if (when.failed > 0) add_detail(out, "stop_when.failed", std::to_string(when.failed));
  if (!when.output.empty()) add_detail(out, "stop_when.output", when.output);
  return out;
}

v1::JobFilter to_filter(const JobFilter& filter) {
  v1::JobFilter out{};
  out.ids.length(static_cast<CORBA::ULong>(filter.ids.size()));
  for (CORBA::ULong i = 0; i < filter.ids.size(); ++i)
    out.ids[i] = v1::JobRange{filter.ids[i].first, filter.ids[i].count};
  out.batch = filter.batch;
  out.user = to_string(filter.user);
  out.states.length(static_cast<CORBA::ULong>(filter.states.size()));
  for (CORBA::ULong i = 0; i < filter.states.size(); ++i) out.states[i] = filter.states[i];
  out.unfinished_only = filter.unfinished_only;
  if (filter.runs) add_detail(out.more, "runs", "yes");
  if (filter.stopped != JobFilter::Stopped::any)
    add_detail(out.more, "stopped", filter.stopped == JobFilter::Stopped::only ? "yes" : "no");
  return out;
}

v1::Axis to_axis(const Axis& axis) {
  const auto strings = [](const std::vector<std::string>& from, v1::ByteStrings& to) {
    to.length(static_cast<CORBA::ULong>(from.size()));
    for (CORBA::ULong i = 0; i < from.size(); ++i) to[i] = to_bytes(from[i]);
  };
  v1::Axis out{};
  strings(axis.names, out.names);
  strings(axis.values, out.values);
  out.count = axis.range_count;
  out.first = axis.first;
  out.step = axis.step;
  return out;
}

v1::JobDescription to_description(const JobDescription& job) {
  v1::JobDescription out;
  out.name = to_string(job.name);
  out.program = to_bytes(job.program);
  out.arguments.length(static_cast<CORBA::ULong>(job.arguments.size()));
  for (CORBA::ULong i = 0; i < job.arguments.size(); ++i)
    out.arguments[i] = to_bytes(job.arguments[i]);
  out.environment.length(static_cast<CORBA::ULong>(job.environment.size()));
  for (CORBA::ULong i = 0; i < job.environment.size(); ++i)
    out.environment[i] = to_bytes(job.environment[i]);
  out.inputs.length(static_cast<CORBA::ULong>(job.inputs.size()));
  for (CORBA::ULong i = 0; i < job.inputs.size(); ++i) {
    out.inputs[i].file = job.inputs[i].file;
    out.inputs[i].name = to_bytes(job.inputs[i].name);
    out.inputs[i].executable = job.inputs[i].executable;
  }
  out.outputs.length(static_cast<CORBA::ULong>(job.outputs.size()));
  for (CORBA::ULong i = 0; i < job.outputs.size(); ++i) {
    out.outputs[i].name = to_bytes(job.outputs[i].name);
    out.outputs[i].required = job.outputs[i].required;
  }
  out.needs.os = to_string(job.needs.os);
  out.needs.architecture = to_string(job.needs.architecture);
  out.needs.cores = job.needs.cores;
  out.needs.memory = job.needs.memory;
  out.needs.disk = job.needs.disk;
  out.bounds.cpu = job.bounds.cpu_ms;
  out.bounds.wall = job.bounds.wall_ms;
  out.bounds.memory = job.bounds.memory;
  out.bounds.output_text = job.bounds.output_text;
  out.bounds.output_file = job.bounds.output_file;
  out.bounds.processes = job.bounds.processes;
  out.priority = job.priority;
  out.retries = job.retries;
  out.save_deadline = job.save_deadline_ms;
  out.more.length(static_cast<CORBA::ULong>(job.programs.size()));
  for (CORBA::ULong i = 0; i < job.programs.size(); ++i) {
    out.more[i].name = to_string(std::string(kProgramAt) + job.programs[i].first);
    out.more[i].value = to_string(job.programs[i].second);
  }
  add_detail(out.more, kSubmitFolder, percent_encode(job.submit_folder));
  add_detail(out.more, kSubmitHost, job.submit_host);
  return out;
}

v1::FilePlace to_place(const FilePlace& place) {
  v1::FilePlace out{};
  out.kind = place.kind;
  out.batch = place.batch;
  out.job = place.job;
  out.attempt = 0;
  out.file = 0;
  out.name = to_bytes(place.name);
  out.generation = 0;
  if (place.suspect) add_detail(out.more, "suspect", "1");
  return out;
}

v1::ReportQuery to_query(const ReportQuery& query) {
  v1::ReportQuery out{};
  out.since = query.since_us;
  out.until = query.until_us;
  out.by.length(static_cast<CORBA::ULong>(query.by.size()));
  for (CORBA::ULong i = 0; i < query.by.size(); ++i) out.by[i] = query.by[i];
  out.user = to_string(query.user);
  return out;
}

}  // namespace sublet::cli
