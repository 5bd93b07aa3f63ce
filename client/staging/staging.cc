#include "client/staging/staging.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/text.h"
#include "client/machine/disk_usage.h"
#include "client/mover/mover.h"
#include "client/staging/own_files.h"
#include "client/staging/work_folder.h"

namespace sublet::client {
namespace {

constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin";
constexpr int kDigestTries = 3;

}  // namespace

struct Incoming {
  std::string name;
  RemoteFile remote;
  UniqueFd file;  // in the attempt's folder
  std::unique_ptr<InputCache::Addition> kept;
  uint64_t offset = 0;

  bool is(const FilePlace& place, const RemoteFile& now) const {
    return name == place.name && remote.size == now.size && remote.digest == now.digest &&
           remote.generation == now.generation;
  }
};

namespace {

// Continues fetching work.incoming. False: size or digest differ from what the server
// announced.
bool receive(AttemptWork& work, Mover& mover, const FilePlace& place) {
  const std::shared_ptr<Incoming> in = work.incoming;
  const WantedContent wanted = {place, in->remote.size, in->remote.digest, in->offset};
  const ReceivedContent received =
      mover.receive(wanted, in->file.get(), in->kept ? in->kept->file() : -1, &in->offset);
  work.incoming.reset();
  if (received.copied) in->kept->keep();
  return received.intact;
}

[[noreturn]] void arrived_damaged(const FilePlace& place) {
  throw ServerError(ServerError::Kind::kRefused, "client.digest",
                    "'" + escape_for_terminal(place.name) + "' arrived damaged " +
                        std::to_string(kDigestTries) + " times.");
}

// Copies the input from the cache, or else fetches it. False: it arrived damaged.
bool bring_input(AttemptWork& work, Mover& mover, InputCache& cache, const FilePlace& place,
                 const RemoteFile& remote, bool executable) {
  const InputCache::Turn turn(cache, remote.digest, work.stop);
  if (work.stop) throw TaskStopped();
  if (work.incoming && work.incoming->is(place, remote)) return receive(work, mover, place);
  UniqueFd file = create_inside(work.folder + "/" SUBLET_WORK_FOLDER, place.name, executable,
                                work.assignment->uid);
  if (cache.take(remote.digest, remote.size, file.get(), mover)) return true;
  work.incoming = std::make_shared<Incoming>(
      Incoming{place.name, remote, std::move(file), cache.add(remote.digest, remote.size)});
  return receive(work, mover, place);
}

void fetch_input(AttemptWork& work, ServerCalls& server, Mover& mover, InputCache& cache,
                 const InputFile& input) {
  FilePlace place = place_of(FileKind::kInput, work.assignment->name, input.name);
  place.file = input.file;
  for (int i = 0; i < kDigestTries; ++i) {
    if (bring_input(work, mover, cache, place, server.stat(place), input.executable)) return;
    place.suspect = true;
  }
  arrived_damaged(place);
}

bool fetch_generation(AttemptWork& work, Mover& mover, const FilePlace& place,
                      const RemoteFile& remote, const std::string& folder) {
  if (!work.incoming || !work.incoming->is(place, remote))
    work.incoming = std::make_shared<Incoming>(
        Incoming{place.name, remote, create_inside(folder, place.name, false, work.assignment->uid),
                 nullptr});
  try {
    return receive(work, mover, place);
  } catch (const ServerError& error) {
    if (error.code() != "spool.damaged") throw;
    work.incoming.reset();
    return false;  // an older one may be intact
  }
}

// Puts the files of a program that saves itself where it finds them. False: the checkpoint is
// damaged, or of a later version.
bool take_own_files(AttemptWork& work, Pace& pace) {
  if (!work.assignment->job.own_checkpoint.is_set()) return true;
  std::optional<PacedWork> turn;
  return unpack_own_files(work, [&] {
    turn.reset();
    turn.emplace(pace, work.stop);
    if (work.stop) throw TaskStopped();
  });
}

// Fetches the newest intact checkpoint of the server; it may be older than the order
// said, or there may be none.
void fetch_checkpoint(AttemptWork& work, ServerCalls& server, Mover& mover, Pace& pace) {
  const std::string folder = work.folder + "/" SUBLET_CHECKPOINT_FOLDER;
  FilePlace place = place_of(FileKind::kCheckpoint, work.assignment->name, "checkpoint");
  for (int i = 0; i < kDigestTries; ++i) {
    const RemoteFile remote = server.stat(place);
    work.held_generation = place.generation = remote.generation;
    if (remote.generation == 0) {
      system_files().remove_file(folder + "/" + place.name);  // from an earlier try
      return;
    }
    if (fetch_generation(work, mover, place, remote, folder)) {
      if (take_own_files(work, pace)) return;
      if (place.suspect) {  // the server has verified it: it was packed so
        system_files().remove_file(folder + "/" + place.name);
        return;
      }
    }
    place.suspect = true;
  }
  arrived_damaged(place);
}

void fetch_all(AttemptWork& work, ServerCalls& server, Mover& mover, InputCache& cache,
               Pace& pace) {
  const auto& inputs = work.assignment->job.inputs;
  for (; work.inputs_here < inputs.size(); ++work.inputs_here)
    fetch_input(work, server, mover, cache, inputs[work.inputs_here]);
  if (work.assignment->checkpoint_generation != 0) fetch_checkpoint(work, server, mover, pace);
}

// The value of NAME in "NAME=value", or nullptr.
const char* value_of(const std::vector<std::string>& environment, const std::string& name) {
  for (const auto& variable : environment)
    if (variable.starts_with(name + "=")) return variable.c_str() + name.size() + 1;
  return nullptr;
}

// Whether the error is the job's fault (an invalid name, conflicting inputs) rather than
// the machine's.
bool is_own_fault(int error) {
  return error == EINVAL || error == ELOOP || error == ENOTDIR || error == EISDIR ||
         error == EEXIST || error == ENAMETOOLONG;
}

int64_t ceil_seconds(int64_t ms) { return ms <= 0 ? 0 : (ms + 999) / 1000; }

}  // namespace

bool has_to_fetch(const Assignment& what) {
  return !what.job.inputs.empty() || what.checkpoint_generation != 0;
}

StagingOutcome stage(AttemptWork& work, ServerCalls& server, Mover& mover, InputCache& cache,
                     Pace& pace) {
  StagingOutcome outcome;
  try {
    if (work.stop) throw TaskStopped();
    fetch_all(work, server, mover, cache, pace);
  } catch (const TaskStopped&) {
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
                                         const std::string& work_folder, int64_t mean_idle_s) {
  std::vector<std::string> out;
  for (const auto& variable : assignment.job.environment) {
    bool ours = variable.starts_with("SUBLET_JOB=") || variable.starts_with("SUBLET_ATTEMPT=") ||
                variable.starts_with("SUBLET_STATUS=") ||
                variable.starts_with("SUBLET_CHECKPOINT_DIR=") ||
                variable.starts_with("SUBLET_CHECKPOINT_FILES=") ||
                variable.starts_with("SUBLET_MEAN_IDLE=") ||
                variable.starts_with("SUBLET_RESOURCES=") || variable.starts_with("SUBLET_GPUS=") ||
                (!assignment.gpus.empty() && variable.starts_with("CUDA_VISIBLE_DEVICES="));
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
  if (mean_idle_s > 0) out.push_back("SUBLET_MEAN_IDLE=" + std::to_string(mean_idle_s));
  const rules::NamedAmounts& resources = assignment.job.needs.resources;
  if (!resources.empty()) out.push_back("SUBLET_RESOURCES=" + resources.text());
  const std::vector<std::string>& own = assignment.job.own_checkpoint.files;
  std::string names;
  for (const std::string& file : own) names += (names.empty() ? "" : "\n") + file;
  if (!own.empty()) out.push_back("SUBLET_CHECKPOINT_FILES=" + names);
  if (assignment.gpus.empty()) return out;
  std::string gpus;
  for (const std::string& gpu : assignment.gpus) gpus += (gpus.empty() ? "" : ",") + gpu;
  out.push_back("SUBLET_GPUS=" + gpus);
  out.push_back("CUDA_VISIBLE_DEVICES=" + gpus);
  return out;
}

uint64_t JobSettings::text_bound(const Assignment& what) const {
  return std::min(what.job.bounds.output_text != 0 ? what.job.bounds.output_text : output_text,
                  output_text_most);
}

uint64_t JobSettings::file_bound(const Assignment& what) const {
  return std::min(what.job.bounds.output_file != 0 ? what.job.bounds.output_file : output_file,
                  output_file_most);
}

namespace {

// Where many slots share little, and for what is ours in the folder.
constexpr uint64_t kLeastDisk = 64 << 20;

// What it has been given already, its output, and what it needs, or its slot's part of what is free
// if that is more.
uint64_t disk_bound(const AttemptWork& work, const JobSettings& settings, uint64_t free) {
  const uint64_t part =
      free > settings.disk_reserve ? (free - settings.disk_reserve) / settings.slots : 0;
  const uint64_t needs = std::min<uint64_t>(work.assignment->job.needs.disk, INT64_MAX);
  const uint64_t given = has_to_fetch(*work.assignment) ? disk_usage(work.folder) : 0;
  return given + 2 * settings.text_bound(*work.assignment) + std::max({needs, part, kLeastDisk});
}

}  // namespace

AttemptOrder make_order(const AttemptWork& work, const JobSettings& settings, uint64_t disk_free,
                        const std::string& server) {
  const Assignment& what = *work.assignment;
  AttemptOrder order;
  order.job = static_cast<int64_t>(what.name.job);
  order.attempt = what.name.attempt;
  order.environment = job_environment(what, work.folder + "/" SUBLET_WORK_FOLDER,
                                      settings.mean_idle_s ? settings.mean_idle_s() : 0);
  order.program = what.job.program;  // the shepherd looks it up, under the job's account
  order.arguments.push_back(what.job.program);
  order.arguments.insert(order.arguments.end(), what.job.arguments.begin(),
                         what.job.arguments.end());
  order.standard_input = what.job.standard_input;
  if (what.user.size() <= SUBLET_USER_MAX_BYTES) order.user = what.user;
  order.uid = what.uid;
  order.gid = what.uid;
  order.stdout_limit = order.stderr_limit = static_cast<int64_t>(settings.text_bound(what));
  order.limit_cpu_s = ceil_seconds(what.job.bounds.cpu_ms);
  order.limit_wall_s = ceil_seconds(what.job.bounds.wall_ms);
  order.limit_memory = static_cast<int64_t>(memory_bound(what.job));
  order.slot_memory = static_cast<int64_t>(settings.slot_memory);
  order.limit_disk =
      static_cast<int64_t>(std::min<uint64_t>(disk_bound(work, settings, disk_free), INT64_MAX));
  order.limit_processes = static_cast<int64_t>(what.job.bounds.processes);
  order.walls = settings.walls ? 1 : 0;
  const Network network = settings.network.of(what.job.network);
  order.no_network = network == Network::kNone ? 1 : 0;
  order.only_server = network == Network::kServer ? 1 : 0;
  if (order.only_server) order.server = server;
  order.bandwidth = static_cast<int64_t>(settings.bandwidth);
  order.monitor = settings.monitor_socket;
  settings.cgroups.set_folders(what.name, &order);
  order.save_deadline_ms =
      save_deadline_of(what, settings.save_deadline_ms, settings.save_deadline_most_ms);
  order.cpu_allowance_ms = settings.cpu_allowance_ms;
  order.patience_ms = settings.patience_ms;
  order.leaving = leaving_of(what, settings.leaving);
  order.suspend_ms = settings.suspend_ms;
  order.own_files = what.job.own_checkpoint.files;
  order.save_signal = what.job.own_checkpoint.signal;
  order.lease_ns = work.lease_ns;
  order.boot_id = boot_id();
  return order;
}

}  // namespace sublet::client
