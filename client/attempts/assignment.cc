#include "client/attempts/assignment.h"

#include <algorithm>

#include "job/codec.h"

namespace sublet::client {
namespace {

constexpr char kTitle[] = "sublet-assignment";
constexpr char kEndTitle[] = "sublet-end";

std::string encode(const JobDescription& job) {
  const SpecRange one{job};
  return sublet::encode({&one, 1});
}

JobDescription decode(const std::string& bytes) {
  try {
    return decode_specs(bytes).at(0).spec;
  } catch (const std::exception& error) {
    throw RecordError(std::string("its description is damaged: ") + error.what());
  }
}

}  // namespace

std::string print_assignment(const Assignment& a) {
  RecordWriter out(kTitle);
  out.add("job", a.name.job).add("attempt", uint64_t{a.name.attempt});
  out.add("description", encode(a.job)).add("user", a.user);
  out.add("checkpoint_generation", a.checkpoint_generation);
  out.add("checkpoint_bytes", a.checkpoint_bytes).add("slot", a.slot).add("uid", a.uid);
  out.add("nonce", std::string_view(reinterpret_cast<const char*>(a.nonce.data()), 16));
  out.add("accepted_us", a.accepted_us);
  for (const std::string& gpu : a.gpus) out.add("gpu", gpu);
  return out.finish();
}

Assignment parse_assignment(std::string_view text) {
  RecordReader in(kTitle, text);
  Assignment a;
  a.name = {in.count("job"), static_cast<uint32_t>(in.count("attempt"))};
  a.job = decode(in.text("description"));
  a.user = in.text("user");
  a.checkpoint_generation = in.count("checkpoint_generation");
  a.checkpoint_bytes = in.count("checkpoint_bytes");
  a.slot = in.number("slot");
  a.uid = in.number("uid");
  std::string nonce = in.text("nonce");
  if (nonce.size() != a.nonce.size()) throw RecordError("the nonce does not have 16 bytes");
  std::copy(nonce.begin(), nonce.end(), a.nonce.begin());
  a.accepted_us = in.number("accepted_us");
  a.gpus = in.list("gpu");
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
  files.write_over(folder + "/" + kAssignmentFile, print_assignment(assignment), outlives);
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
