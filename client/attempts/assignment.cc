#include "client/attempts/assignment.h"

#include <algorithm>

namespace sublet::client {
namespace {

constexpr char kTitle[] = "sublet-assignment";
constexpr char kEndTitle[] = "sublet-end";

InputFile parse_input(const std::string& text) {
  // "FILE x NAME": x or - says whether it is executable
  size_t first = text.find(' ');
  if (first == std::string::npos || first + 3 > text.size() || text[first + 2] != ' ')
    throw RecordError("an input is not 'FILE x NAME'");
  InputFile input;
  try {
    input.file = std::stoull(text.substr(0, first));
  } catch (const std::exception&) {
    throw RecordError("an input's file is not a number");
  }
  input.executable = text[first + 1] == 'x';
  input.name = text.substr(first + 3);
  return input;
}

OutputFile parse_output(const std::string& text) {
  if (text.size() < 2 || text[1] != ' ') throw RecordError("an output is not 'r NAME'");
  return {text.substr(2), text[0] == 'r'};
}

void add_lists(RecordWriter& out, const Assignment& a) {
  for (const auto& argument : a.arguments) out.add("argument", argument);
  for (const auto& variable : a.environment) out.add("environment", variable);
  for (const auto& input : a.inputs)
    out.add("input", std::to_string(input.file) + (input.executable ? " x " : " - ") + input.name);
  for (const auto& output : a.outputs)
    out.add("output", (output.required ? "r " : "- ") + output.name);
}

}  // namespace

std::string print_assignment(const Assignment& a) {
  RecordWriter out(kTitle);
  out.add("job", a.name.job).add("attempt", uint64_t{a.name.attempt}).add("name", a.job_name);
  out.add("user", a.user).add("program", a.program);
  add_lists(out, a);
  out.add("memory", a.memory).add("cpu_ms", a.cpu_ms).add("wall_ms", a.wall_ms);
  out.add("output_text", a.output_text).add("output_file", a.output_file);
  out.add("processes", a.processes).add("save_deadline_ms", a.save_deadline_ms);
  out.add("checkpoint_generation", a.checkpoint_generation);
  out.add("checkpoint_bytes", a.checkpoint_bytes).add("slot", a.slot).add("uid", a.uid);
  out.add("nonce", std::string_view(reinterpret_cast<const char*>(a.nonce.data()), 16));
  out.add("accepted_us", a.accepted_us);
  return out.finish();
}

Assignment parse_assignment(std::string_view text) {
  RecordReader in(kTitle, text);
  Assignment a;
  a.name = {in.count("job"), static_cast<uint32_t>(in.count("attempt"))};
  a.job_name = in.text("name");
  a.user = in.text("user");
  a.program = in.text("program");
  a.arguments = in.list("argument");
  a.environment = in.list("environment");
  for (const auto& item : in.list("input")) a.inputs.push_back(parse_input(item));
  for (const auto& item : in.list("output")) a.outputs.push_back(parse_output(item));
  a.memory = in.count("memory");
  a.cpu_ms = in.number("cpu_ms");
  a.wall_ms = in.number("wall_ms");
  a.output_text = in.count("output_text");
  a.output_file = in.count("output_file");
  a.processes = in.count("processes");
  a.save_deadline_ms = in.number("save_deadline_ms");
  a.checkpoint_generation = in.count("checkpoint_generation");
  a.checkpoint_bytes = in.count("checkpoint_bytes");
  a.slot = in.number("slot");
  a.uid = in.number("uid");
  std::string nonce = in.text("nonce");
  if (nonce.size() != a.nonce.size()) throw RecordError("the nonce does not have 16 bytes");
  std::copy(nonce.begin(), nonce.end(), a.nonce.begin());
  a.accepted_us = in.number("accepted_us");
  return a;
}

std::string print_end(const EndRecord& end) {
  RecordWriter out(kEndTitle);
  out.add("end", uint64_t{end.end}).add("reason", end.reason).add("at_us", end.at_us);
  return out.finish();
}

EndRecord parse_end(std::string_view text) {
  RecordReader in(kEndTitle, text);
  return {static_cast<uint32_t>(in.count("end")), in.text("reason"), in.number("at_us")};
}

void write_assignment(Files& files, const std::string& folder, const Assignment& assignment,
                      Files::Outlives outlives) {
  files.write_atomic(folder + "/" + kAssignmentFile, print_assignment(assignment), 0600, outlives);
}

void write_end(Files& files, const std::string& folder, const EndRecord& end) {
  files.write_atomic(folder + "/" + kEndFile, print_end(end));
}

Assignment read_assignment(const Files& files, const std::string& folder) {
  return parse_assignment(files.read_file(folder + "/" + kAssignmentFile, kAssignmentMaxBytes));
}

std::optional<EndRecord> read_end(const Files& files, const std::string& folder) {
  std::string path = folder + "/" + kEndFile;
  if (!files.exists(path)) return std::nullopt;
  return parse_end(files.read_file(path, kAssignmentMaxBytes));
}

}  // namespace sublet::client
