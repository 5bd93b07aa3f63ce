#include "client/staging/hand_in.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <set>
#include <stdexcept>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint-api/file_format.h"
#include "checkpoint-api/interval.h"
#include "checkpoint-api/sublet_status.h"
#include "client/attempts/ending.h"
#include "client/mover/contents.h"
#include "client/staging/own_files.h"
#include "client/staging/work_folder.h"

namespace sublet::client {
namespace {

// The same file of the same attempt always has the same id. `round` counts uploads that
// the server forgot before they were complete.
RequestId request_id(const Assignment& what, const FilePlace& place, const Digest& digest,
                     int round) {
  Hasher hash;
  hash.update(what.nonce.data(), what.nonce.size());
  hash.update(std::to_string(static_cast<int>(place.kind)) + "/" +
              std::to_string(place.generation) + "/" + std::to_string(round) + "/" + place.name +
              "/");
  hash.update(digest.data(), digest.size());
  Digest all = hash.finish();
  RequestId id;
  std::copy_n(all.begin(), id.size(), id.begin());
  return id;
}

struct Uploader {
  AttemptWork& work;
  ServerCalls& server;
  Mover& mover;
  Pace& pace;
  uint64_t passed = 0;  // bytes read and sent

  Uploader(AttemptWork& of, ServerCalls& to, Mover& by, Pace& at)
      : work(of), server(to), mover(by), pace(at) {
    mover.on_progress([this](uint64_t bytes) { pass(bytes); });
  }

  void pass(uint64_t bytes) {
    passed += bytes;
    const bool outputs = work.delivery == AttemptWork::Delivery::kOutputs;
    if (outputs && passed > work.delivered) work.delivered = passed;
  }

  Digest digest_of(const FilePlace& place, int fd, uint64_t size) {
    const auto key = std::tuple(place.kind, place.name, place.generation, size);
    const auto known = work.known_digests.find(key);
    if (known == work.known_digests.end()) return work.known_digests[key] = mover.digest(fd, size);
    pass(size);
    return known->second;
  }

  // Returns the file's id. Throws ServerError, FileError, TaskStopped.
  uint64_t upload(const FilePlace& place, int fd, uint64_t size) {
    const Digest digest = digest_of(place, fd, size);
    constexpr int kRounds = 3;
    const uint64_t passed_before = passed;
    for (int round = 0;; ++round) {
      passed = passed_before;
      const Upload begun = server.open_upload(request_id(*work.assignment, place, digest, round),
                                              place, size, digest);
      try {
        pass(begun.offset);
        mover.send(fd, size, begun.id, begun.offset);
        return server.close_upload(begun.id);
      } catch (const ServerError& error) {
        bool forgotten = error.kind() == ServerError::Kind::kNotFound && round + 1 < kRounds;
        if (!forgotten) throw;
      }
    }
  }
};

std::optional<OpenedFile> open_if_there(const std::string& folder, const std::string& name,
                                        int64_t uid) {
  try {
    return open_inside(folder, name, uid);
  } catch (const WorkFolderError& error) {
    if (error.code() == ENOENT) return std::nullopt;
    throw;
  }
}

// Uploads the checkpoint if it is newer than the server's.
void send_checkpoint(Uploader& to, uint64_t largest) {
  AttemptWork& work = to.work;
  const Assignment& what = *work.assignment;
  auto file = open_if_there(work.folder + "/" SUBLET_CHECKPOINT_FOLDER, "checkpoint", what.uid);
  if (!file) return;
  // Of this generation or, if it has not been reported yet, an older one.
  const int64_t cpu_us = work.reported_cpu_us;
  const uint64_t reported = work.reported_generation;
  uint64_t generation = checkpoint_generation(file->fd.get(), file->size, reported);
  if (generation <= work.held_generation) return;
  if (file->size > largest)
    throw std::runtime_error("it has " + format_bytes(file->size) + ", this machine's limit is " +
                             format_bytes(largest));
  FilePlace place = place_of(FileKind::kCheckpoint, what.name, "checkpoint");
  place.generation = generation;
  to.upload(place, file->fd.get(), file->size);
  work.held_generation = work.handed_in_generation = generation;
  if (reported <= generation) work.stored_cpu_us = cpu_us;
  work.handed_in_bytes = file->size;
  log(Severity::info) << work.label() << ": checkpoint " << generation << " uploaded, "
                      << format_bytes(file->size);
}

// A turn of work for the owner's sake, and a pause before the next.
class Turns {
 public:
  Turns(Pace& pace, const std::atomic<bool>& stop) : pace_(pace), stop_(stop) { begin(); }
  void begin() {
    turn_.reset();
    turn_.emplace(pace_, stop_);
    if (stop_) throw TaskStopped();
  }

 private:
  Pace& pace_;
  const std::atomic<bool>& stop_;
  std::optional<PacedWork> turn_;
};

// Whether a program that runs says in its status page, which is its own, that it saves by the API.
bool says_aware(const AttemptWork& work) {
  const std::string path = work.folder + "/" SUBLET_STATUS_FILE;
  const UniqueFd page(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  sublet_status status = {};
  return page.valid() &&
         pread(page.get(), &status, sizeof status, 0) == static_cast<ssize_t>(sizeof status) &&
         status.magic == SUBLET_STATUS_MAGIC && status.aware != 0;
}

// Whether the program saves its state in files, and neither it nor an attempt before it has done so
// by the checkpoint API.
bool saves_files(const AttemptWork& work) {
  if (!work.assignment->job.own_checkpoint.is_set()) return false;
  const bool aware =
      work.reported_generation != 0 || (work.exit ? work.exit->facts.aware != 0 : says_aware(work));
  return !aware && !system_files().exists(work.folder + "/" SUBLET_CHECKPOINT_FOLDER "/checkpoint");
}

PackedNow pack_now(Uploader& to, const FilePlace& place, uint64_t largest, bool runs) {
  AttemptWork& work = to.work;
  Turns turns(to.pace, work.stop);
  // This client may have begun anew, and does not know what it has sent before.
  if (!work.packed) {
    work.held_generation = to.server.stat(place).generation;
    find_packed(work, [&] { turns.begin(); });
  }
  return pack_own_files(work, runs, largest, [&] { turns.begin(); });
}

// Measures what a copy of a running program's files takes, its upload included, and plans the next
// one: the interval is that between saves by the API. After a copy that failed it is at least the
// longest of these. What was found unchanged is no copy.
class CopyPlan {
 public:
  CopyPlan(AttemptWork& work, const JobSettings& settings)
      : work_(work), idle_s_(settings.mean_idle_s ? settings.mean_idle_s() : 0) {
    if (idle_s_ <= 0) idle_s_ = SUBLET_MEAN_IDLE_DEFAULT_S;
  }
  ~CopyPlan() {
    const int64_t took_us = (system_clock().boot_ns() - begun_ns_) / 1000;
    if (copied) sublet_add_save(&work_.copy_costs, static_cast<uint64_t>(took_us), 1);
    const int64_t ran_ms = std::max<int64_t>(0, system_clock().utc_us() - work_.started_us) / 1000;
    const auto next_ms = static_cast<int64_t>(sublet_next_save_ms(
        &work_.copy_costs, static_cast<uint64_t>(ran_ms), static_cast<uint64_t>(idle_s_)));
    work_.next_copy_ms = done ? next_ms : std::max<int64_t>(next_ms, SUBLET_INTERVAL_MOST_MS);
  }
  CopyPlan(const CopyPlan&) = delete;
  CopyPlan& operator=(const CopyPlan&) = delete;

  bool copied = true;
  bool done = false;

 private:
  AttemptWork& work_;
  int64_t idle_s_;
  const int64_t begun_ns_ = system_clock().boot_ns();
};

void upload_pack(Uploader& to, FilePlace place, const Pack& pack) {
  AttemptWork& work = to.work;
  place.generation = pack.generation;
  to.upload(place, pack.file.get(), pack.size);
  work.held_generation = work.handed_in_generation = place.generation;
  work.handed_in_bytes = pack.size;
  // One that only lacks a file of the last is as old as that.
  work.stored_files_us = std::max(work.stored_files_us.load(), pack.changed_us);
  log(Severity::info) << work.label() << ": checkpoint " << place.generation << " of "
                      << pack.files.size() << " files uploaded, " << format_bytes(pack.size);
}

// Uploads the files in which the program saves its state, if they are newer than the server's:
// those of a program that runs, ...
void copy_own_files(Uploader& to, const FilePlace& place, const JobSettings& settings) {
  AttemptWork& work = to.work;
  CopyPlan plan(work, settings);
  PackedNow now = pack_now(to, place, settings.checkpoint_largest, true);
  plan.copied = now.copied;
  if (now.pack) {
    upload_pack(to, place, *now.pack);
    work.packed = std::move(now.pack);
    keep_packed(work);
  }
  plan.done = true;
}

// ... and those of one that has ended.
void send_own_files(Uploader& to, const FilePlace& place, uint64_t largest) {
  AttemptWork& work = to.work;
  if (!work.files_packed) {
    PackedNow now = pack_now(to, place, largest, false);
    work.unsent = std::move(now.pack);
    work.left_out = std::move(now.left_out);
    work.files_packed = true;
  }
  if (!work.unsent) return;
  upload_pack(to, place, *work.unsent);
  work.unsent = work.packed = nullptr;  // they take room on the disk
  forget_packed(work);
}

// Like send_checkpoint(), but only logs a checkpoint that cannot be uploaded.
void try_checkpoint(Uploader& to, const JobSettings& settings, bool runs) {
  AttemptWork& work = to.work;
  const bool files = saves_files(work);
  const auto fail = [&](const char* what) {
    log(Severity::warning) << work.label() << ": checkpoint not uploaded: " << what;
    if (files && !runs)
      work.left_out = "Its checkpoint files were not kept: " + std::string(what) + ".";
    work.files_packed = work.files_packed || !runs;
  };
  to.mover.move_checkpoint(true);
  try {
    const FilePlace place = place_of(FileKind::kCheckpoint, work.assignment->name, "checkpoint");
    if (files && runs)
      copy_own_files(to, place, settings);
    else if (files)
      send_own_files(to, place, settings.checkpoint_largest);
    else
      send_checkpoint(to, settings.checkpoint_largest);
  } catch (const ServerError& error) {
    if (error.passing()) throw;
    fail(error.what());
  } catch (const std::runtime_error& error) {
    fail(error.what());
  }
}

struct Outputs {
  Uploader& to;
  AttemptWork& work;
  uint64_t bound;       // bytes per file
  uint64_t left;        // bytes for all remaining files
  uint64_t text_bound;  // bytes per stream
  FindBounds searchable = {};
  std::set<std::string> sent = {};

  void fail(const std::string& reason) {
    if (work.end.end != protocol::kEndDone) return;
    work.end.end = protocol::kEndOutput;
    work.end.reason = reason;
  }

  void send_file(const std::string& name, OpenedFile file) {
    if (!sent.insert(name).second) return;  // part of an earlier output
    if (file.size > bound) {
      fail("The output '" + escape_for_terminal(name) + "' has " + format_bytes(file.size) +
           ", its limit is " + format_bytes(bound) + ".");
      return;
    }
    if (file.size > left) {
      fail("The outputs together are larger than this machine's limit.");
      return;
    }
    left -= file.size;
    FilePlace place = place_of(FileKind::kOutput, work.assignment->name, name);
    work.end.outputs.push_back(to.upload(place, file.fd.get(), file.size));
  }

  void send_one(const OutputFile& output) {
    const Assignment& what = *work.assignment;
    const std::string folder = work.folder + "/" SUBLET_WORK_FOLDER;
    const OutputName name(output.name);
    std::string missing = "The output '" + escape_for_terminal(output.name) + "' was not produced.";
    if (name.is_file()) {
      auto file = open_if_there(folder, name.file(), what.uid);
      if (file) return send_file(name.file(), std::move(*file));
    } else {
      const FoundFiles found = find(folder, name);
      for (const auto& one : found.names) send_file(one, open_inside(folder, one, what.uid));
      if (!found.names.empty()) return;
      if (found.others > 0)
        missing += " '" + escape_for_terminal(found.other) + "' is not a file of the job.";
    }
    if (output.required) fail(missing);
  }

  FoundFiles find(const std::string& folder, const OutputName& name) {
    // A folder may have a million entries, and the owner may be present.
    std::optional<PacedWork> turn(std::in_place, to.pace, work.stop);
    const auto again = [&] {
      turn.reset();
      turn.emplace(to.pace, work.stop);
      if (work.stop) throw TaskStopped();
    };
    FoundFiles found = find_inside(folder, name, work.assignment->uid, searchable, again);
    if (found.others > 0)
      log(Severity::info) << work.label() << ": " << found.others
                          << " entries of an output are not files of the job and were skipped: '"
                          << escape_for_terminal(found.other) << "' ...";
    return found;
  }

  void send_output(const OutputFile& output) {
    try {
      send_one(output);
    } catch (const std::invalid_argument& error) {
      fail("The output '" + escape_for_terminal(output.name) + "': " + error.what() + ".");
    } catch (const WorkFolderError& error) {
      fail("An output cannot be collected: " + std::string(error.what()) + ".");
    } catch (const ServerError& error) {
      if (error.passing()) throw;
      fail("An output was refused: " + std::string(error.what()));
    } catch (const FileError& error) {
      fail("An output cannot be read: " + std::string(error.what()));
    }
  }

  // An empty stream is not sent.
  void send_stream(FileKind kind, const char* name) {
    UniqueFd fd(open((work.folder + "/" + name).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info;
    if (!fd.valid() || fstat(fd.get(), &info) != 0 || info.st_size == 0) return;
    if (!S_ISREG(info.st_mode)) return;
    FilePlace place = place_of(kind, work.assignment->name, name);
    // The shepherd enforces the limit, but the job may share its account.
    auto size = static_cast<uint64_t>(info.st_size);
    if (size > text_bound)
      (kind == FileKind::kStdout ? work.end.stdout_cut : work.end.stderr_cut) = true;
    try {
      work.end.outputs.push_back(to.upload(place, fd.get(), std::min(size, text_bound)));
    } catch (const ServerError& error) {
      if (error.passing()) throw;
      log(Severity::warning) << work.label() << ": " << name << " not uploaded: " << error.what();
    } catch (const FileError& error) {
      log(Severity::warning) << work.label() << ": " << name << " not uploaded: " << error.what();
    }
  }
};

void note_own_files(AttemptWork& work) {
  AttemptEnd& end = work.end;
  if (!work.left_out.empty()) end.reason += (end.reason.empty() ? "" : " ") + work.left_out;
  if (work.handed_in_generation == 0 || end.finished_us <= end.started_us) return;
  end.cpu_saved_us =
      cpu_of_files(end.cpu_us, work.stored_files_us, end.started_us, end.finished_us);
}

void hand_in_all(Uploader& to, const JobSettings& settings) {
  AttemptWork& work = to.work;
  const Assignment& what = *work.assignment;
  bool failed_or_done = !protocol::is_eviction(work.end.end);
  work.delivery =
      failed_or_done ? AttemptWork::Delivery::kOutputs : AttemptWork::Delivery::kNothing;
  bool resumes_elsewhere = !failed_or_done && work.end.end != protocol::kEndRemoved &&
                           work.end.end != protocol::kEndSuperseded;
  const bool files = resumes_elsewhere && saves_files(work);
  if (!files) work.files_packed = true;  // none is needed
  if (resumes_elsewhere) try_checkpoint(to, settings, false);
  if (files) note_own_files(work);
  if (failed_or_done && !work.is_untouched) {
    Outputs outputs{to, work, settings.file_bound(what), settings.output_file_most,
                    settings.text_bound(what)};
    for (const auto& output : what.job.outputs) outputs.send_output(output);
    outputs.send_stream(FileKind::kStdout, SUBLET_STDOUT_FILE);
    outputs.send_stream(FileKind::kStderr, SUBLET_STDERR_FILE);
  }
  work.end.generation = work.handed_in_generation;
  work.end.checkpoint_bytes = work.handed_in_bytes;
}

}  // namespace

uint64_t checkpoint_generation(int fd, uint64_t size, uint64_t reported) {
  std::string head = read_content(fd, 0, SUBLET_HEADER_BYTES);
  if (head.size() < SUBLET_HEADER_BYTES) return reported;
  sublet_header header;
  const char* wrong =
      sublet_header_decode(reinterpret_cast<const unsigned char*>(head.data()), size, &header);
  return wrong == nullptr ? header.generation : reported;
}

const std::optional<AttemptExit>& exit_of(AttemptWork& work, const Files& files,
                                          std::string* error) {
  if (!work.exit) work.exit = read_exit(files, work.folder, error);
  return work.exit;
}

bool has_nothing_to_send(AttemptWork& work, const Files& files) {
  std::string error;
  const std::optional<AttemptExit>& exit = exit_of(work, files, &error);
  const JobDescription& job = work.assignment->job;
  if (!exit || !job.outputs.empty() || job.own_checkpoint.is_set()) return false;
  const sublet_exit& facts = exit->facts;
  const bool by_itself = facts.asked == 0 && facts.reason == SUBLET_LEAVE_NONE &&
                         work.leave_reason == SUBLET_LEAVE_NONE;
  return by_itself && facts.stdout_bytes == 0 && facts.stderr_bytes == 0;
}

void find_end(AttemptWork& work, Files& files) {
  const Assignment& what = *work.assignment;
  std::string error;
  std::optional<AttemptExit> exit = exit_of(work, files, &error);
  if (exit) {
    // Killed by this client because the shepherd did not respond and so cannot know why.
    auto reason = work.leave_reason.load();
    const bool killed_from_here = exit->facts.asked == 0 &&
                                  exit->facts.outcome == SUBLET_OUTCOME_SIGNALLED &&
                                  exit->facts.code == SIGKILL && reason != SUBLET_LEAVE_NONE;
    if (killed_from_here) {
      exit->facts.asked = exit->facts.killed = 1;
      exit->facts.reason = reason;
    }
    work.end = end_from_exit(what, *exit, work.shortage(), system_clock(), boot_id());
    if (killed_from_here) note_seen(work.seen, system_clock(), &work.end);
    work.end.cpu_saved_us =
        cpu_at_checkpoint(*exit, work.reported_generation, work.reported_cpu_us);
    const auto saved = static_cast<uint64_t>(exit->facts.generation);
    if (work.reported_generation < saved) work.reported_generation = saved;
    return;
  }
  try {
    if (auto record = read_end(files, work.folder)) {
      work.end = end_from_record(what, *record);
      note_seen(work.seen, system_clock(), &work.end);
      work.end.started_us = work.started_us;
      return;
    }
  } catch (const std::exception& e) {
    error = e.what();
  }
  work.end = end_from_record(
      what, {protocol::kEndLost, "Its exit record cannot be read: " + error, what.accepted_us});
}

TaskResult hand_in(AttemptWork& work, ServerCalls& server, Mover& mover, Files& files,
                   const JobSettings& settings, Pace& pace, std::string* why) {
  try {
    find_end(work, files);
    Uploader to(work, server, mover, pace);
    hand_in_all(to, settings);
    return TaskResult::kDone;
  } catch (const TaskStopped&) {
    return TaskResult::kStopped;
  } catch (const ServerError& error) {
    *why = error.what();
    return TaskResult::kAgain;
  }
}

TaskResult hand_in_checkpoint(AttemptWork& work, ServerCalls& server, Mover& mover,
                              const JobSettings& settings, Pace& pace, std::string* why) {
  try {
    Uploader to(work, server, mover, pace);
    try_checkpoint(to, settings, true);
    return TaskResult::kDone;
  } catch (const TaskStopped&) {
    return TaskResult::kStopped;
  } catch (const ServerError& error) {
    *why = error.what();
    return TaskResult::kAgain;
  }
}

}  // namespace sublet::client
