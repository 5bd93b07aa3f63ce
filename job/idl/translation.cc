#include "job/idl/translation.h"

#include "base/octets.h"
#include "job/check.h"
#include "job/state.h"

namespace sublet {
namespace {

namespace v1 = Sublet::v1;

static_assert(kWaiting == v1::JOB_WAITING && kPlaced == v1::JOB_PLACED &&
              kRunning == v1::JOB_RUNNING && kHeld == v1::JOB_HELD && kDone == v1::JOB_DONE &&
              kFailed == v1::JOB_FAILED && kRemoved == v1::JOB_REMOVED &&
              kSuspended == v1::JOB_SUSPENDED && kDelivering == v1::JOB_DELIVERING);
static_assert(uint32_t(Leaving::kDefault) == v1::LEAVING_DEFAULT &&
              uint32_t(Leaving::kSave) == v1::LEAVING_SAVE &&
              uint32_t(Leaving::kSuspend) == v1::LEAVING_SUSPEND &&
              uint32_t(Leaving::kLinger) == v1::LEAVING_LINGER &&
              uint32_t(Leaving::kKill) == v1::LEAVING_KILL);
static_assert(uint32_t(FileKind::kInput) == v1::FILE_INPUT &&
              uint32_t(FileKind::kCheckpoint) == v1::FILE_CHECKPOINT &&
              uint32_t(FileKind::kOutput) == v1::FILE_OUTPUT &&
              uint32_t(FileKind::kStdout) == v1::FILE_STDOUT &&
              uint32_t(FileKind::kStderr) == v1::FILE_STDERR && kChunkLimit == v1::CHUNK_LIMIT);
constexpr const char* kSuspect = "suspect";
static_assert(kNameLimit == v1::NAME_LIMIT && kJobBytes == v1::JOB_BYTES);

std::vector<std::string> strings(const v1::ByteStrings& in) {
  std::vector<std::string> out(in.length());
  for (CORBA::ULong i = 0; i < in.length(); ++i) out[i] = from_octets(in[i]);
  return out;
}

void strings(const std::vector<std::string>& in, v1::ByteStrings& out) {
  out.length(static_cast<CORBA::ULong>(in.size()));
  for (CORBA::ULong i = 0; i < out.length(); ++i) to_octets(in[i], out[i]);
}

void to_idl(const std::vector<InputFile>& inputs, v1::InputFiles& out) {
  out.length(static_cast<CORBA::ULong>(inputs.size()));
  for (CORBA::ULong i = 0; i < out.length(); ++i) {
    out[i].file = inputs[i].file;
    to_octets(inputs[i].name, out[i].name);
    out[i].executable = inputs[i].executable;
    out[i].source.of_this_batch = inputs[i].source.of_this_batch;
    out[i].source.job = inputs[i].source.job;
    to_octets(inputs[i].source.name, out[i].source.name);
  }
}

void to_idl(const std::vector<OutputFile>& outputs, v1::OutputFiles& out) {
  out.length(static_cast<CORBA::ULong>(outputs.size()));
  for (CORBA::ULong i = 0; i < out.length(); ++i) {
    to_octets(outputs[i].name, out[i].name);
    out[i].required = outputs[i].required;
  }
}

void to_idl(const Requirements& needs, v1::Requirements& out) {
  set_text(out.os, needs.os);
  set_text(out.architecture, needs.architecture);
  out.cores = needs.cores;
  out.memory = needs.memory;
  out.disk = needs.disk;
  set_text(out.require, needs.require);
  set_text(out.prefer, needs.prefer);
  sublet::to_idl(needs.resources, out.resources);
}

void to_idl(const JobReferences& references, v1::JobReferences& out) {
  out.length(static_cast<CORBA::ULong>(references.size()));
  for (CORBA::ULong i = 0; i < out.length(); ++i) {
    out[i].of_this_batch = references[i].of_this_batch;
    out[i].jobs.first = references[i].first;
    out[i].jobs.count = references[i].count;
  }
}

void to_idl(const Dependences& dependences, v1::Dependences& out) {
  to_idl(dependences.after, out.after);
  to_idl(dependences.after_any, out.after_any);
  to_idl(dependences.after_start, out.after_start);
}

InputFile from_idl(const v1::InputFile& input) {
  const v1::OutputOfJob& source = input.source;
  return {input.file,
          from_octets(input.name),
          bool(input.executable),
          {bool(source.of_this_batch), source.job, from_octets(source.name)}};
}

JobReferences from_idl(const v1::JobReferences& references) {
  JobReferences out(references.length());
  for (CORBA::ULong i = 0; i < references.length(); ++i)
    out[i] = {bool(references[i].of_this_batch), references[i].jobs.first,
              references[i].jobs.count};
  return out;
}

void to_idl(const Limits& bounds, v1::Limits& out) {
  out.cpu = bounds.cpu_ms;
  out.wall = bounds.wall_ms;
  out.memory = bounds.memory;
  out.output_text = bounds.output_text;
  out.output_file = bounds.output_file;
  out.processes = bounds.processes;
}

void to_idl(const OwnCheckpoint& own, v1::OwnCheckpoint& out) {
  strings(own.files, out.files);
  out.every = own.every_ms;
  out.signal = own.signal;
  out.exit_codes.length(static_cast<CORBA::ULong>(own.exit_codes.size()));
  for (CORBA::ULong i = 0; i < out.exit_codes.length(); ++i) out.exit_codes[i] = own.exit_codes[i];
}

OwnCheckpoint from_idl(const v1::OwnCheckpoint& own) {
  OwnCheckpoint out;
  out.files = strings(own.files);
  out.every_ms = own.every;
  out.signal = own.signal;
  for (CORBA::ULong i = 0; i < own.exit_codes.length(); ++i)
    out.exit_codes.push_back(own.exit_codes[i]);
  return out;
}

// The IDL compiler does not initialise numbers.
void clear_reserved(v1::JobDescription& out) {
  out.reservation = 0;
  out.group.least = 0;
}

// Whether a field, or any field of a struct, has a value.
bool has(const char* text) { return *text != '\0'; }
template <typename Sequence>
requires requires(const Sequence& sequence) { sequence.length(); }
bool has(const Sequence& sequence) { return sequence.length() > 0; }
bool has(const v1::JobGroup& g) { return has(g.name) || g.least != 0 || has(g.more); }

// Refuses unsupported fields, one after the other.
class ServedCheck {
 public:
  explicit ServedCheck(const std::string& subject) : subject_(subject) {}

  void reserved(bool has_value, const std::string& field) const {
    if (has_value) refuse(field);
  }
  void unknown(const v1::Details& more, const std::string& of = "") const {
    for (CORBA::ULong i = 0; i < more.length(); ++i)
      refuse(of + std::string(more[i].name.in()).substr(0, 100));
  }
  [[noreturn]] void refuse(const std::string& field) const {
    const std::string subject = subject_ + ": " + field;
    throw JobError(JobError::Kind::kInvalid, "not.served",
                   subject_ + ": the field `" + field + "` is not served here", "Leave it out.",
                   subject);
  }

 private:
  const std::string& subject_;
};

}  // namespace

Details from_idl(const v1::Details& details) {
  Details out;
  for (CORBA::ULong i = 0; i < details.length(); ++i)
    out.emplace_back(details[i].name.in(), details[i].value.in());
  return out;
}

FilePlace from_idl(const v1::FilePlace& place) {
  FilePlace out;
  out.kind = static_cast<FileKind>(place.kind);
  out.batch = place.batch;
  out.session = from_octets(place.session);
  out.job = place.job;
  out.attempt = place.attempt;
  out.file = place.file;
  out.name = from_octets(place.name);
  out.generation = place.generation;
  for (CORBA::ULong i = 0; i < place.more.length(); ++i)
    if (std::string_view(place.more[i].name.in()) == kSuspect) out.suspect = true;
  return out;
}

Requirements from_idl(const v1::Requirements& needs) {
  return {needs.os.in(),
          needs.architecture.in(),
          static_cast<uint32_t>(needs.cores),
          needs.memory,
          needs.disk,
          needs.require.in(),
          needs.prefer.in(),
          from_idl(needs.resources)};
}

JobDescription from_idl(const v1::JobDescription& job) {
  JobDescription out;
  out.name = job.name.in();
  out.program = from_octets(job.program);
  out.arguments = strings(job.arguments);
  out.environment = strings(job.environment);
  out.standard_input = from_octets(job.standard_input);
  for (CORBA::ULong i = 0; i < job.inputs.length(); ++i)
    out.inputs.push_back(from_idl(job.inputs[i]));
  for (CORBA::ULong i = 0; i < job.outputs.length(); ++i)
    out.outputs.push_back({from_octets(job.outputs[i].name), bool(job.outputs[i].required)});
  out.needs = from_idl(job.needs);
  out.bounds = {job.bounds.cpu,         job.bounds.wall,        job.bounds.memory,
                job.bounds.output_text, job.bounds.output_file, job.bounds.processes};
  out.priority = job.priority;
  out.retries = job.retries;
  out.save_deadline_ms = job.save_deadline;
  out.own_checkpoint = from_idl(job.checkpoint);
  out.leaving = static_cast<Leaving>(job.leaving);
  out.network = static_cast<Network>(job.network);
  out.waits_for = {from_idl(job.waits_for.after), from_idl(job.waits_for.after_any),
                   from_idl(job.waits_for.after_start)};
  out.not_before_us = job.not_before;
  for (CORBA::ULong i = 0; i < job.more.length(); ++i)
    take_detail(out, job.more[i].name.in(), job.more[i].value.in());
  return out;
}

std::vector<Axis> from_idl(const v1::Axes& axes) {
  std::vector<Axis> out(axes.length());
  for (CORBA::ULong i = 0; i < axes.length(); ++i)
    out[i] = {strings(axes[i].names), strings(axes[i].values), axes[i].count, axes[i].first,
              axes[i].step};
  return out;
}

void to_idl(const Details& details, v1::Details& out) {
  out.length(0);
  for (const auto& [name, value] : details) add_detail(out, name, value);
}

void to_idl(const rules::NamedAmounts& resources, v1::ResourceList& out) {
  out.length(0);
  for (const auto& [name, amount] : resources) {
    const CORBA::ULong at = out.length();
    out.length(at + 1);
    set_text(out[at].name, name);
    out[at].amount = amount;
  }
}

rules::NamedAmounts from_idl(const v1::ResourceList& resources) {
  std::vector<rules::NamedAmounts::Pair> pairs;
  for (CORBA::ULong i = 0; i < resources.length(); ++i)
    pairs.emplace_back(resources[i].name.in(), resources[i].amount);
  return rules::NamedAmounts(std::move(pairs));
}

void to_idl(const FilePlace& place, v1::FilePlace& out) {
  out.kind = static_cast<CORBA::ULong>(place.kind);
  out.batch = place.batch;
  to_octets(place.session, out.session);
  out.job = place.job;
  out.attempt = place.attempt;
  out.file = place.file;
  to_octets(place.name, out.name);
  out.generation = place.generation;
  out.more.length(0);
  if (place.suspect) add_detail(out.more, kSuspect, "1");
}

void to_idl(const JobDescription& job, v1::JobDescription& out) {
  set_text(out.name, job.name);
  to_octets(job.program, out.program);
  strings(job.arguments, out.arguments);
  strings(job.environment, out.environment);
  to_octets(job.standard_input, out.standard_input);
  to_idl(job.inputs, out.inputs);
  to_idl(job.outputs, out.outputs);
  to_idl(job.needs, out.needs);
  to_idl(job.bounds, out.bounds);
  out.priority = job.priority;
  out.retries = job.retries;
  out.save_deadline = job.save_deadline_ms;
  to_idl(job.own_checkpoint, out.checkpoint);
  out.leaving = static_cast<CORBA::ULong>(job.leaving);
  out.network = static_cast<CORBA::ULong>(job.network);
  to_idl(job.waits_for, out.waits_for);
  out.not_before = job.not_before_us;
  to_idl(details_of(job), out.more);
  clear_reserved(out);
}

void to_idl(const std::vector<Axis>& axes, v1::Axes& out) {
  out.length(static_cast<CORBA::ULong>(axes.size()));
  for (CORBA::ULong i = 0; i < out.length(); ++i) {
    strings(axes[i].names, out[i].names);
    strings(axes[i].values, out[i].values);
    out[i].count = axes[i].range_count;
    out[i].first = axes[i].first;
    out[i].step = axes[i].step;
  }
}

void check_served(const v1::Requirements& needs, const std::string& subject) {
  const ServedCheck check(subject);
  for (CORBA::ULong i = 0; i < needs.resources.length(); ++i) {
    check.reserved(has(needs.resources[i].instances), "needs.resources.instances");
    check.unknown(needs.resources[i].more, "needs.resources.");
  }
  check.unknown(needs.more, "needs.");
}

void check_served(const v1::JobDescription& job, const std::string& subject) {
  const ServedCheck check(subject);
  for (CORBA::ULong i = 0; i < job.inputs.length(); ++i) {
    check.unknown(job.inputs[i].source.more, "inputs.");
    check.unknown(job.inputs[i].more, "inputs.");
  }
  for (CORBA::ULong i = 0; i < job.outputs.length(); ++i)
    check.unknown(job.outputs[i].more, "outputs.");
  check_served(job.needs, subject);
  check.unknown(job.bounds.more, "bounds.");
  check.unknown(job.checkpoint.more, "checkpoint.");
  check.reserved(job.leaving > v1::LEAVING_KILL, "leaving");
  check.reserved(job.network > v1::NETWORK_ANY, "network");
  check.unknown(job.waits_for.more, "waits_for.");
  for (const auto* list :
       {&job.waits_for.after, &job.waits_for.after_any, &job.waits_for.after_start})
    for (CORBA::ULong i = 0; i < list->length(); ++i) check.unknown((*list)[i].more, "waits_for.");
  check.reserved(job.reservation != 0, "reservation");
  check.reserved(has(job.group), "group");
  check.reserved(has(job.account), "account");
  JobDescription known;
  for (CORBA::ULong i = 0; i < job.more.length(); ++i) {
    const std::string name = job.more[i].name.in();
    if (take_detail(known, name, job.more[i].value.in())) continue;
    if (name != detail_name::kSubmitFolder) check.refuse(name.substr(0, 100));
    invalid(subject, "`" + name + "` is not percent-encoded",
            "Write every byte but letters, digits and -_.~ as %XX.");
  }
}

void check_served(const v1::Axes& axes, const std::string& subject) {
  for (CORBA::ULong i = 0; i < axes.length(); ++i)
    ServedCheck(subject).unknown(axes[i].more, "axes.");
}

}  // namespace sublet
