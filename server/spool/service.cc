#include "server/spool/service.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "job/check.h"
#include "server/refusal.h"
#include "server/request_key.h"

namespace sublet::server {
namespace {

constexpr uint32_t kGarbageAtOnce = 1000;
constexpr uint32_t kExaminedAtOnce = 10'000;  // files; some 50 ms

std::string owner_of(const Caller& caller) { return "uid " + std::to_string(caller.uid) + " "; }

scheduling::AttemptKey attempt_of(const FilePlace& place) { return {place.job, place.attempt}; }

bool of_attempt(FileKind kind) { return kind != FileKind::kInput; }

Refusal unknown_file(const std::string& name) {
  return Refusal(Refusal::Kind::kNotFound, "spool.unknown", "there is no file `" + name + "` there",
                 "See `sublet show` for the job's files.", name);
}

// Output files and the standard streams.
bool is_output(FileKind kind) { return kind >= FileKind::kOutput; }

Refusal superseded(scheduling::AttemptKey key) {
  const std::string subject =
      "attempt " + std::to_string(key.attempt) + " of job " + std::to_string(key.job);
  return Refusal(Refusal::Kind::kConflict, "attempt.superseded", subject + " no longer counts",
                 "Discard it.", subject);
}

// Outputs that jobs need as inputs, also jobs of this transaction. Asks once for each job that
// left them. What is needed is dropped once it no longer is (Archive::unneeded_files).
class NeededOutputs {
 public:
  NeededOutputs(Turn& turn, Archive& archive) : archive_(archive) {
    for (const FeedRow& feed : turn.changes().feeds) fed_now_.emplace(feed.producer, feed.name);
  }
  bool contains(const FileRow& output) {
    const auto known = names_.find(output.job);
    const auto& names = known != names_.end()
                            ? known->second
                            : names_[output.job] = archive_.needed_outputs(output.job);
    return names.contains(output.name) || fed_now_.contains({output.job, output.name});
  }

 private:
  Archive& archive_;
  std::set<std::pair<JobId, std::string>> fed_now_;
  std::map<JobId, std::set<std::string>> names_;
};

}  // namespace

Refusal outputs_removed(JobId job, Micros at) {
  const std::string subject = "job " + std::to_string(job);
  return Refusal(Refusal::Kind::kNotFound, "spool.removed",
                 "the outputs of " + subject + " were removed on " + format_instant(at),
                 "Outputs are kept for a limited time after a job's end; submit it again.",
                 subject);
}

SpoolService::SpoolService(Spool& spool, Pipeline& pipeline, Archive& archive, Sessions& sessions,
                           Access& access, std::function<void()> may_submit, SpoolLimits limits)
    : spool_(spool),
      pipeline_(pipeline),
      archive_(archive),
      sessions_(sessions),
      access_(access),
      may_submit_(std::move(may_submit)),
      limits_(std::move(limits)) {}

uint64_t SpoolLimits::quota_of(const std::string& user) const {
  const auto own = quotas.find(user);
  return own == quotas.end() ? quota : static_cast<uint64_t>(own->second);
}

MachineId SpoolService::check_attempt(const std::string& session, const Caller& caller,
                                      scheduling::AttemptKey key) {
  const SessionInfo info = sessions_.find(session, caller);
  bool live = false;
  pipeline_.perform([&](Turn& turn) {
    const auto* attempt = turn.pool().attempt(key.job);
    live = attempt && attempt->key == key && attempt->machine == info.machine &&
           attempt->state != scheduling::AttemptState::kEnded;
  });
  if (!live) throw superseded(key);
  return info.machine;
}

FileRow SpoolService::place_to_put(const Caller& caller, const FilePlace& place) {
  FileRow row;
  row.kind = place.kind;
  row.name = place.name;
  if (!of_attempt(place.kind)) {
    may_submit_();
    auto batch = archive_.batch(place.batch);
    if (!batch || batch->uid != caller.uid || batch->committed)
      throw Refusal(Refusal::Kind::kNotFound, "batch.unknown",
                    "you have no unfinished batch " + std::to_string(place.batch) + "",
                    "Open a new one.", "batch " + std::to_string(place.batch));
    row.batch = place.batch;
    row.user = batch->user;
    return row;
  }
  check_attempt(place.session, caller, attempt_of(place));
  if (place.kind == FileKind::kOutput) check_output(place);
  row.job = place.job;
  row.attempt = place.attempt;
  row.generation = place.generation;
  if (const auto job = archive_.job(row.job)) row.user = job->job.user;
  return row;
}

// A workstation may be compromised, so it may store only outputs that the job describes.
void SpoolService::check_output(const FilePlace& place) {
  if (!is_inside(place.name))
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid",
                  "the output name `" + place.name + "` leaves the job's folder",
                  "Give a relative name without `..`.", place.name);
  const auto spec = archive_.spec(place.job);
  if (spec && describes(*spec, place.name)) return;
  throw Refusal(Refusal::Kind::kInvalid, "spool.undescribed",
                "`" + place.name + "` is not an output of job " + std::to_string(place.job),
                "Add it to the job's outputs.", place.name);
}

uint64_t SpoolService::quota_of(const std::string& user) {
  return archive_.quota(user).value_or(limits_.quota_of(user));
}

void SpoolService::check_room(const std::string& user, uint64_t bytes) {
  const uint64_t held = archive_.spool_use(user).files + spool_.announced(user, false);
  const uint64_t quota = quota_of(user);
  if (held + bytes <= quota) return;
  throw Refusal(Refusal::Kind::kLimitExceeded, "batch.quota",
                "the jobs take " + format_bytes(bytes) + ", and the files and open batches of " +
                    user + " already take " + format_bytes(held) + " of the " +
                    format_bytes(quota) + " allowed",
                "Commit or discard open batches (they expire after one hour), fetch outputs with "
                "`sublet fetch --discard`, or ask the administrator to raise your quota.",
                user);
}

// Called after the upload has been announced, so that concurrent uploads cannot exceed
// the quota together.
void SpoolService::check_quota(const FileRow& row, uint64_t size) {
  const bool checkpoint = row.kind == FileKind::kCheckpoint;
  const SpoolUse use = archive_.spool_use(row.user);
  const uint64_t held =
      (checkpoint ? use.checkpoints : use.files) + spool_.announced(row.user, checkpoint) - size;
  const uint64_t quota = quota_of(row.user);
  const uint64_t allowed = is_output(row.kind) ? quota + quota / 4 : quota;
  if (held + size <= allowed) return;
  throw Refusal(
      Refusal::Kind::kLimitExceeded, "spool.quota",
      "`" + row.name + "` has " + format_bytes(size) + ", and " +
          (checkpoint ? "checkpoints" : "files") + " of " + row.user + " in the spool have " +
          format_bytes(held) + " of the " + format_bytes(allowed) + " allowed",
      checkpoint ? "Remove jobs that are not needed (`sublet rm`), or ask the administrator to "
                   "raise your quota."
                 : "Fetch outputs with `sublet fetch --discard`, remove jobs that are not needed "
                   "(`sublet rm`), or ask the administrator to raise your quota.",
      row.user);
}

void SpoolService::hold(JobId job, const std::string& why) {
  uint64_t held = 0;
  pipeline_.perform([&](Turn& turn) {
    held = turn.apply(scheduling::JobsHeld{{job}, {}, {}, why}).answer.changed;
  });
  if (held > 0) log(Severity::error) << "job " << job << " is held: " << why;
}

Spool::Started SpoolService::open(const Caller& caller, const std::string& request,
                                  const FilePlace& place, uint64_t size,
                                  const std::string& digest) {
  request_key(caller.uid, request);
  std::optional<Digest> wanted;
  if (!digest.empty() || of_attempt(place.kind)) {
    wanted.emplace();
    if (digest.size() != wanted->size())
      throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "a digest must have 32 octets",
                    "Send the digest of the contents; for an input it may be omitted.",
                    "content_digest");
    std::memcpy(wanted->data(), digest.data(), wanted->size());
  }
  const FileRow row = place_to_put(caller, place);
  const Spool::Started started = spool_.open(owner_of(caller), request, row, size, wanted);
  if (!started.is_new) return started;
  try {
    check_quota(row, size);
  } catch (const Refusal& refusal) {
    spool_.abandon(started.id);
    // The job has not failed: it can resume from its checkpoint when there is space.
    if (is_output(row.kind))
      hold(row.job, "there is no room for its output: " + refusal.message +
                        "; make room, then release it: it resumes from its last checkpoint");
    throw;
  }
  return started;
}

uint64_t SpoolService::put(const Caller& caller, uint64_t upload, uint64_t offset,
                           std::string_view chunk) {
  return spool_.put(upload, owner_of(caller), offset, chunk);
}

// Refers the row to a stored content with the same digest, or else returns a new row for
// its own content.
std::optional<ContentRow> SpoolService::new_content(Turn& turn, FileRow& row) {
  if (row.in_row) return std::nullopt;
  row.content = row.id;
  const auto& pending = turn.changes().contents;
  for (const auto& [id, content] : pending)
    if (content.digest == row.digest && !content.damaged) row.content = id;
  if (row.content != row.id) return std::nullopt;
  const auto known = archive_.content(row.digest);
  if (known && !pending.count(known->id) && spool_.seems_intact(*known)) {
    row.content = known->id;
    return std::nullopt;
  }
  return ContentRow{row.id, row.digest, row.size, row.identity, false};
}

void SpoolService::commit(FileRow& row) {
  pipeline_.perform([&](Turn& turn) {
    // Checks that may throw come before anything is applied.
    const std::optional<ContentRow> added = new_content(turn, row);
    if (of_attempt(row.kind)) {
      const auto* attempt = turn.pool().attempt(row.job);
      if (!attempt || attempt->key.attempt != row.attempt ||
          attempt->state == scheduling::AttemptState::kEnded)
        throw superseded({row.job, row.attempt});
      if (row.kind == FileKind::kCheckpoint) {
        auto answer =
            turn.apply(scheduling::CheckpointStored{
                           {row.job, row.attempt}, attempt->machine, row.generation, row.size})
                .answer;
        if (!answer.accepted) throw superseded({row.job, row.attempt});
      }
    }
    if (added) turn.changes().contents[row.id] = *added;
    turn.changes().files[row.id] = row;
  });
}

uint64_t SpoolService::close(const Caller& caller, uint64_t upload) {
  spool_.close(upload, owner_of(caller), [this](FileRow& row) { commit(row); });
  return upload;
}

// Sent with the job's batch, or left by the job that the input names.
bool SpoolService::is_input(JobId job, const FileRow& file) {
  const auto place = archive_.spec_place(job);
  if (!place) return false;
  const auto& inputs = place->range->spec.inputs;
  const bool named = std::any_of(inputs.begin(), inputs.end(), [&](const InputFile& input) {
    const OutputOfJob& source = input.source;
    return source.is_set() ? source.job == file.job && source.name == file.name
                           : input.file == file.id;
  });
  if (!named || file.kind == FileKind::kInput) return named;
  const auto output = archive_.output(file.job, FileKind::kOutput, file.name);
  return output && output->id == file.id;
}

FileRow SpoolService::find(const Caller& caller, const FilePlace& place) {
  std::optional<FileRow> row;
  if (place.kind == FileKind::kInput) {
    check_attempt(place.session, caller, attempt_of(place));
    row = archive_.file(place.file);
    if (row && !is_input(place.job, *row)) row.reset();
  } else if (place.kind == FileKind::kCheckpoint) {
    check_attempt(place.session, caller, attempt_of(place));
    std::vector<FileRow> rows = archive_.checkpoints(place.job, place.generation);
    if (!rows.empty() && rows[0].generation == place.generation) row = std::move(rows[0]);
  } else {
    auto job = archive_.job(place.job);
    if (!job)
      throw Refusal(Refusal::Kind::kNotFound, "job.unknown",
                    "there is no job " + std::to_string(place.job), "See `sublet ls --all`.",
                    "job " + std::to_string(place.job));
    access_.require_owner(caller, job->job.user, "job " + std::to_string(place.job));
    row = archive_.output(place.job, place.kind, place.name);
  }
  if (row) return *row;
  if (is_output(place.kind))
    if (const Micros at = archive_.outputs_removed_at(place.job))
      throw outputs_removed(place.job, at);
  throw unknown_file(place.name);
}

FileRow SpoolService::intact_checkpoint(const Caller& caller, const FilePlace& place) {
  const MachineId machine = check_attempt(place.session, caller, attempt_of(place));
  const auto job = archive_.job(place.job);
  const uint64_t newest = job ? job->job.generation : 0;
  FileRow usable;
  usable.name = "checkpoint";
  usable.digest = hex(Hasher().finish());
  if (newest == 0) return usable;
  std::vector<FileRow> damaged;
  for (FileRow& row : archive_.checkpoints(place.job, newest)) {
    if (spool_.intact(row, place.suspect)) {
      usable = std::move(row);
      break;
    }
    damaged.push_back(std::move(row));
  }
  if (usable.generation < newest) drop_damaged(place, machine, newest, usable, damaged);
  return usable;
}

void SpoolService::drop_damaged(const FilePlace& place, MachineId machine, uint64_t generation,
                                const FileRow& usable, const std::vector<FileRow>& damaged) {
  const std::string job = "job " + std::to_string(place.job);
  pipeline_.perform([&](Turn& turn) {
    auto answer = turn.apply(scheduling::CheckpointDamaged{attempt_of(place), machine, generation,
                                                           usable.generation, usable.size})
                      .answer;
    if (!answer.accepted) throw superseded(attempt_of(place));
    for (const FileRow& row : damaged) mark_damaged(turn, archive_, row);
    drop(turn, damaged);
  });
  log(Severity::error) << job << ": checkpoint generation " << generation
                       << " is damaged in the spool; resuming from generation "
                       << usable.generation;
  remove_contents(damaged);
}

void SpoolService::mark_damaged(Turn& turn, Archive& archive, const FileRow& row) {
  // A content in its row is not shared, and one deleted meanwhile need not be marked.
  if (row.in_row || row.damaged || !archive.content_exists(row.content)) return;
  turn.changes().contents[row.content] =
      ContentRow{row.content, row.digest, row.size, row.identity, true};
}

void SpoolService::note_damage(const FilePlace& place, const FileRow& row) {
  const std::string what = "`" + row.name + "` is damaged in the server's spool";
  if (!row.damaged) {
    log(Severity::error) << (row.job ? "job " + std::to_string(row.job)
                                     : "batch " + std::to_string(row.batch))
                         << ": " << what << " (content " << row.content << ")";
    pipeline_.perform([&](Turn& turn) { mark_damaged(turn, archive_, row); });
  }
  if (place.kind == FileKind::kInput)
    hold(place.job, "its input " + what + ": submit the job again, and remove this one");
}

FileRow SpoolService::stat(const Caller& caller, const FilePlace& place) {
  if (place.kind == FileKind::kCheckpoint) return intact_checkpoint(caller, place);
  FileRow row = find(caller, place);
  if (spool_.intact(row, place.suspect)) return row;
  note_damage(place, row);
  throw Spool::damaged(row);
}

size_t SpoolService::get(const Caller& caller, const FilePlace& place, uint64_t offset,
                         std::span<char> into) {
  const FileRow row = find(caller, place);
  try {
    return spool_.read(row, offset, into);
  } catch (const Refusal& refusal) {
    // A damaged checkpoint is handled by stat, which returns an older one.
    if (refusal.code == Spool::kDamaged && place.kind != FileKind::kCheckpoint)
      note_damage(place, row);
    throw;
  }
}

void SpoolService::drop(Turn& turn, const std::vector<FileRow>& rows) {
  for (const FileRow& row : rows) {
    turn.changes().dropped_files.push_back(row.id);
    if (!row.in_row) turn.changes().loosened_contents.push_back(row.content);
  }
}

// Content ids are never reused, so this need not be done in a turn.
void SpoolService::remove_contents(const std::vector<FileRow>& rows) {
  for (const FileRow& row : rows)
    if (!row.in_row && !archive_.content_exists(row.content)) spool_.remove(row.content);
}

void SpoolService::drop_outputs(const std::vector<FileRow>& rows) {
  if (rows.empty()) return;
  std::vector<FileRow> dropped;
  pipeline_.perform([&](Turn& turn) {
    dropped.clear();
    NeededOutputs needed(turn, archive_);
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(dropped),
                 [&](const FileRow& row) { return !needed.contains(row); });
    drop(turn, dropped);
    for (const FileRow& row : rows) turn.changes().removed_outputs[row.job] = turn.now();
  });
  remove_contents(dropped);
}

void SpoolService::discard_outputs(const Caller& caller, JobId id) {
  const std::string subject = "job " + std::to_string(id);
  const auto job = archive_.job(id);
  if (!job)
    throw Refusal(Refusal::Kind::kNotFound, "job.unknown", "there is no " + subject,
                  "See `sublet ls --all`.", subject);
  access_.require_owner(caller, job->job.user, subject);
  if (!scheduling::is_final(job->job.state))
    throw Refusal(Refusal::Kind::kConflict, "job.unfinished", subject + " has not ended",
                  "Wait for its end.", subject);
  drop_outputs(archive_.outputs(id));
}

void SpoolService::collect_garbage() {
  spool_.drop_idle();
  uint64_t after = examined_;
  const auto rows = archive_.unneeded_files(after, kExaminedAtOnce);
  examined_ = after;
  if (!rows.empty()) {
    pipeline_.perform([&](Turn& turn) { drop(turn, rows); });
    remove_contents(rows);
  }
  if (limits_.keep_outputs == 0) return;
  Micros now = 0;
  pipeline_.perform([&](Turn& turn) { now = turn.now(); });
  drop_outputs(archive_.outputs_before(now - limits_.keep_outputs, kGarbageAtOnce));
}

}  // namespace sublet::server
