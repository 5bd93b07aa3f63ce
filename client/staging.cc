#include "client/staging.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/text.h"
#include "client/work_folder.h"

namespace sublet::client {
namespace {

constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin";
constexpr int kDigestTries = 3;

struct Stopped {};

void write_all(int fd, const std::string& bytes, const std::string& name) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw FileError(errno, "write", name);
    done += static_cast<size_t>(n);
  }
}

// One try; false when the bytes are not those that the server announced.
bool fetch_once(AttemptWork& work, ServerCalls& server, const FilePlace& place,
                const RemoteFile& remote, const std::string& folder, bool executable) {
  UniqueFd file = create_inside(folder, place.file_name, executable, work.assignment->uid);
  Sha256 hash;
  uint64_t offset = 0;
  while (offset < remote.size) {
    if (work.stop) throw Stopped();
    std::string chunk =
        server.get(place, offset,
                   static_cast<uint32_t>(std::min<uint64_t>(kChunkBytes, remote.size - offset)));
    if (chunk.empty()) return false;
    write_all(file.get(), chunk, place.file_name);
    hash.update(chunk);
    offset += chunk.size();
  }
  return offset == remote.size && hash.finish() == remote.sha256;
}

[[noreturn]] void arrived_damaged(const FilePlace& place) {
  throw ServerError(ServerError::Kind::kRefused, "client.digest",
                    "'" + escape_for_terminal(place.file_name) + "' arrived damaged " +
                        std::to_string(kDigestTries) + " times.");
}

void fetch_input(AttemptWork& work, ServerCalls& server, const InputFile& input) {
  const FilePlace place{FileKind::kInput, work.assignment->name, input.file, input.name, 0};
  for (int i = 0; i < kDigestTries; ++i)
    if (fetch_once(work, server, place, server.stat(place), work.folder + "/" SUBLET_WORK_FOLDER,
                   input.executable))
      return;
  arrived_damaged(place);
}

// The newest one that the server still has intact; that may be older than the
// order said, or none.
void fetch_checkpoint(AttemptWork& work, ServerCalls& server) {
  const std::string folder = work.folder + "/" SUBLET_CHECKPOINT_FOLDER;
  FilePlace place{FileKind::kCheckpoint, work.assignment->name, 0, "checkpoint", 0};
  for (int i = 0; i < kDigestTries; ++i) {
    const RemoteFile remote = server.stat(place);
    work.held_generation = place.generation = remote.generation;
    if (remote.generation == 0) {
      system_files().remove_file(folder + "/" + place.file_name);  // of an earlier try
      return;
    }
    if (fetch_once(work, server, place, remote, folder, false)) return;
  }
  arrived_damaged(place);
}

void fetch_all(AttemptWork& work, ServerCalls& server) {
  for (const auto& input : work.assignment->inputs) fetch_input(work, server, input);
  if (work.assignment->checkpoint_generation != 0) fetch_checkpoint(work, server);
}

// Value of NAME in "NAME=value", or nullptr.
const char* value_of(const std::vector<std::string>& environment, const std::string& name) {
  for (const auto& variable : environment)
    if (variable.starts_with(name + "=")) return variable.c_str() + name.size() + 1;
  return nullptr;
}

// Names that cannot be, and inputs in each other's way; the rest is the machine's.
bool is_own_fault(int error) {
  return error == EINVAL || error == ELOOP || error == ENOTDIR || error == EISDIR ||
         error == EEXIST || error == ENAMETOOLONG;
}

int64_t ceil_seconds(int64_t ms) { return ms <= 0 ? 0 : (ms + 999) / 1000; }

}  // namespace

StagingOutcome stage(AttemptWork& work, ServerCalls& server) {
  StagingOutcome outcome;
  try {
    if (work.stop) throw Stopped();
    fetch_all(work, server);
  } catch (const Stopped&) {
    outcome.result = TaskResult::kStopped;
  } catch (const ServerError& error) {
    if (error.passing()) {
      outcome.result = TaskResult::kAgain;
    } else {
      outcome.failed = protocol::kEndStaging;
    }
    outcome.reason = error.what();
  } catch (const WorkFolderError& error) {
    bool own = is_own_fault(error.code());
    outcome.failed = own ? protocol::kEndStaging : protocol::kEndLost;
    outcome.reason = error.what();
  } catch (const OsError& error) {
    outcome.failed = protocol::kEndLost;
    outcome.reason = std::string("The machine's disk failed: ") + error.what();
  }
  return outcome;
}

std::vector<std::string> job_environment(const Assignment& assignment,
                                         const std::string& work_folder) {
  std::vector<std::string> out;
  for (const auto& variable : assignment.environment) {
    bool ours = variable.starts_with("SUBLET_JOB=") || variable.starts_with("SUBLET_ATTEMPT=") ||
                variable.starts_with("SUBLET_STATUS=") ||
                variable.starts_with("SUBLET_CHECKPOINT_DIR=");
    if (!ours) out.push_back(variable);
  }
  auto add_unless_given = [&](const char* name, const std::string& value) {
    if (value_of(out, name) == nullptr) out.push_back(std::string(name) + "=" + value);
  };
  add_unless_given("HOME", work_folder);
  add_unless_given("TMPDIR", work_folder);
  add_unless_given("PATH", kDefaultPath);
  add_unless_given("LANG", "C.UTF-8");
  out.push_back("SUBLET_JOB=" + std::to_string(assignment.name.job));
  out.push_back("SUBLET_ATTEMPT=" + std::to_string(assignment.name.attempt));
  return out;
}

uint64_t JobSettings::text_bound(const Assignment& what) const {
  return std::min(what.output_text != 0 ? what.output_text : output_text, output_text_most);
}

uint64_t JobSettings::file_bound(const Assignment& what) const {
  return std::min(what.output_file != 0 ? what.output_file : output_file, output_file_most);
}

AttemptOrder make_order(const AttemptWork& work, const JobSettings& settings) {
  const Assignment& what = *work.assignment;
  AttemptOrder order;
  order.job = static_cast<int64_t>(what.name.job);
  order.attempt = what.name.attempt;
  order.environment = job_environment(what, work.folder + "/" SUBLET_WORK_FOLDER);
  order.program = what.program;  // looked for by the shepherd, in the job's account
  order.arguments.push_back(what.program);
  order.arguments.insert(order.arguments.end(), what.arguments.begin(), what.arguments.end());
  order.uid = what.uid;
  order.gid = what.uid;
  order.stdout_limit = order.stderr_limit = static_cast<int64_t>(settings.text_bound(what));
  order.limit_cpu_s = ceil_seconds(what.cpu_ms);
  order.limit_wall_s = ceil_seconds(what.wall_ms);
  order.limit_memory = static_cast<int64_t>(what.memory);
  order.limit_processes = static_cast<int64_t>(what.processes);
  order.monitor = settings.monitor_socket;
  settings.cgroups.set_folders(what.name, &order);
  order.save_deadline_ms =
      save_deadline_of(what, settings.save_deadline_ms, settings.save_deadline_most_ms);
  order.cpu_allowance_ms = settings.cpu_allowance_ms;
  order.patience_ms = settings.patience_ms;
  order.lease_ns = work.lease_ns;
  order.boot_id = boot_id();
  return order;
}

}  // namespace sublet::client
