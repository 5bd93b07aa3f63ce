#include "job/codec.h"

#include <algorithm>
#include <charconv>

#include "protocol/codec.h"

namespace sublet {
namespace {

// Stored among the details, so that descriptions without it keep their form.
constexpr std::string_view kStandardInput = "standard_input";
constexpr std::string_view kLeaving = "leaving";
constexpr std::string_view kNetwork = "network";
constexpr std::string_view kRequire = "require";
constexpr std::string_view kPrefer = "prefer";
constexpr std::string_view kResources = "resources";
constexpr std::string_view kNotBefore = "not_before";
constexpr std::string_view kOwnCheckpoint = "checkpoint";
constexpr std::string_view kSource = "input_source";

void put_strings(protocol::Encoder& out, const std::vector<std::string>& strings) {
  out.number(uint64_t{strings.size()});
  for (const auto& s : strings) out.text(s);
}

std::vector<std::string> get_strings(protocol::Decoder& in) {
  std::vector<std::string> strings(in.count(8));
  for (auto& s : strings) s = in.text();
  return strings;
}

void put_files(protocol::Encoder& out, const JobDescription& spec) {
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

void get_files(protocol::Decoder& in, JobDescription& spec) {
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

void put_references(protocol::Encoder& out, const JobReferences& references) {
  protocol::Encoder list;
  list.number(uint64_t{references.size()});
  for (const JobReference& reference : references) {
    list.flag(reference.of_this_batch);
    list.number(reference.first);
    list.number(reference.count);
  }
  out.text(list.take());
}

// The source of the input with this number.
std::string encode_source(size_t input, const OutputOfJob& source) {
  protocol::Encoder out;
  out.number(uint64_t{input});
  out.flag(source.of_this_batch);
  out.number(source.job);
  out.text(source.name);
  return out.take();
}

void take_source(std::vector<InputFile>& inputs, std::string_view bytes) {
  protocol::Decoder in(bytes);
  const uint64_t input = in.number();
  if (input >= inputs.size()) throw protocol::Damaged("the source of an input that is not there");
  OutputOfJob& source = inputs[input].source;
  source.of_this_batch = in.flag();
  source.job = in.number();
  source.name = in.text();
}

std::string encode_own(const OwnCheckpoint& own) {
  protocol::Encoder out;
  put_strings(out, own.files);
  out.number(own.every_ms);
  out.number(own.signal);
  out.number(uint64_t{own.exit_codes.size()});
  for (const uint32_t code : own.exit_codes) out.number(code);
  return out.take();
}

OwnCheckpoint decode_own(std::string_view bytes) {
  protocol::Decoder in(bytes);
  OwnCheckpoint own;
  own.files = get_strings(in);
  own.every_ms = in.signed_number();
  own.signal = in.number32();
  own.exit_codes.resize(in.count(4));
  for (uint32_t& code : own.exit_codes) code = in.number32();
  return own;
}

size_t sources_in(const std::vector<InputFile>& inputs) {
  return static_cast<size_t>(std::count_if(
      inputs.begin(), inputs.end(), [](const auto& input) { return input.source.is_set(); }));
}

size_t lists_in(const Dependences& dependences) {
  return !dependences.after.empty() + !dependences.after_any.empty() +
         !dependences.after_start.empty();
}

void put_spec(protocol::Encoder& out, const JobDescription& spec) {
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
  out.number(spec.bounds.cpu_ms);
  out.number(spec.bounds.wall_ms);
  out.number(spec.bounds.memory);
  out.number(spec.bounds.output_text);
  out.number(spec.bounds.output_file);
  out.number(spec.bounds.processes);
  out.number(spec.priority);
  out.number(spec.retries);
  out.number(spec.save_deadline_ms);
  out.number(uint64_t{spec.programs.size()} + !spec.submit_folder.empty() +
             !spec.submit_host.empty() + !spec.standard_input.empty() + spec.even_so +
             !spec.hours.empty() + (spec.not_before_us != 0) + (spec.leaving != Leaving::kDefault) +
             (spec.network != Network::kDefault) + !spec.needs.require.empty() +
             !spec.needs.prefer.empty() + !spec.needs.resources.empty() + lists_in(spec.waits_for) +
             sources_in(spec.inputs) + spec.own_checkpoint.is_set());
  each_detail(spec, [&](std::string_view name, std::string_view value) {
    out.text(name);
    out.text(value);
  });
  if (!spec.standard_input.empty()) {
    out.text(kStandardInput);
    out.text(spec.standard_input);
  }
  if (spec.leaving != Leaving::kDefault) {
    out.text(kLeaving);
    out.text(leaving_name(spec.leaving));
  }
  if (spec.network != Network::kDefault) {
    out.text(kNetwork);
    out.text(network_name(spec.network));
  }
  if (!spec.needs.require.empty()) {
    out.text(kRequire);
    out.text(spec.needs.require);
  }
  if (!spec.needs.prefer.empty()) {
    out.text(kPrefer);
    out.text(spec.needs.prefer);
  }
  if (!spec.needs.resources.empty()) {
    out.text(kResources);
    out.text(spec.needs.resources.text());
  }
  if (spec.not_before_us != 0) {
    out.text(kNotBefore);
    out.text(std::to_string(spec.not_before_us));
  }
  if (spec.own_checkpoint.is_set()) {
    out.text(kOwnCheckpoint);
    out.text(encode_own(spec.own_checkpoint));
  }
  for (const auto& [name, list] : lists_of(spec.waits_for)) {
    if (list->empty()) continue;
    out.text(name);
    put_references(out, *list);
  }
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    if (!spec.inputs[i].source.is_set()) continue;
    out.text(kSource);
    out.text(encode_source(i, spec.inputs[i].source));
  }
}

JobReferences get_references(std::string_view bytes) {
  protocol::Decoder in(bytes);
  JobReferences references(in.count(17));
  for (JobReference& reference : references) {
    reference.of_this_batch = in.flag();
    reference.first = in.number();
    reference.count = in.number();
  }
  return references;
}

bool take_references(Dependences& dependences, std::string_view name, std::string_view value) {
  for (const auto& [known, list] : lists_of(dependences)) {
    if (known != name) continue;
    *list = get_references(value);
    return true;
  }
  return false;
}

JobDescription get_spec(protocol::Decoder& in) {
  JobDescription spec;
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
  spec.bounds.cpu_ms = in.signed_number();
  spec.bounds.wall_ms = in.signed_number();
  spec.bounds.memory = in.number();
  spec.bounds.output_text = in.number();
  spec.bounds.output_file = in.number();
  spec.bounds.processes = in.number32();
  spec.priority = in.signed_number32();
  spec.retries = in.number32();
  spec.save_deadline_ms = in.signed_number();
  // Unknown names, which an older server stored unchecked, are ignored.
  for (uint64_t left = in.count(16); left > 0; --left) {
    const std::string name = in.text();
    std::string value = in.text();
    if (name == kStandardInput)
      spec.standard_input = std::move(value);
    else if (name == kLeaving)
      // What a later version wrote may be stricter than the workstation's way.
      spec.leaving = leaving_named(value).value_or(Leaving::kSave);
    else if (name == kNetwork)
      // What a later version wrote may allow more.
      spec.network = network_named(value).value_or(Network::kNone);
    else if (name == kRequire)
      spec.needs.require = std::move(value);
    else if (name == kPrefer)
      spec.needs.prefer = std::move(value);
    else if (name == kResources)
      spec.needs.resources = rules::NamedAmounts::stored(value);
    else if (name == kNotBefore)
      std::from_chars(value.data(), value.data() + value.size(), spec.not_before_us);
    else if (name == kOwnCheckpoint)
      spec.own_checkpoint = decode_own(value);
    else if (name == kSource)
      take_source(spec.inputs, value);
    else if (!take_references(spec.waits_for, name, value))
      take_detail(spec, name, value);
  }
  return spec;
}

}  // namespace

std::string encode(std::span<const SpecRange> specs) {
  protocol::Encoder out;
  out.number(uint64_t{specs.size()});
  for (const auto& range : specs) {
    out.flag(range.is_array);
    out.number(range.first_index);
    out.number(range.count);
    put_spec(out, range.spec);
  }
  // At the end, where rows without axes stop.
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

}  // namespace sublet
