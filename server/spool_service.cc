#include "server/spool_service.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/log.h"
#include "server/job_spec.h"
#include "server/refusal.h"
#include "server/request_key.h"

namespace sublet::server {
namespace {

constexpr uint32_t kGarbageAtOnce = 1000;

std::string owner_of(const Caller& caller) { return "uid " + std::to_string(caller.uid) + " "; }

bool of_attempt(FileKind kind) { return kind != FileKind::kInput; }

Refusal unknown_file(const std::string& name) {
  return Refusal(Refusal::Kind::kNotFound, "spool.unknown", "there is no file `" + name + "` there",
                 "See `sublet show` for the job's files.", name);
}

Refusal superseded(scheduling::AttemptKey key) {
  const std::string subject =
      "attempt " + std::to_string(key.attempt) + " of job " + std::to_string(key.job);
  return Refusal(Refusal::Kind::kConflict, "attempt.superseded", subject + " counts no more",
                 "Forget it.", subject);
}

}  // namespace

SpoolService::SpoolService(Spool& spool, Pipeline& pipeline, Archive& archive, Sessions& sessions,
                           Access& access, std::function<void()> may_submit)
    : spool_(spool),
      pipeline_(pipeline),
      archive_(archive),
      sessions_(sessions),
      access_(access),
      may_submit_(std::move(may_submit)) {}

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
                    "there is no unfinished batch " + std::to_string(place.batch) + " of yours",
                    "Open a new one.", "batch " + std::to_string(place.batch));
    row.batch = place.batch;
    return row;
  }
  check_attempt(place.session, caller, place.key);
  if (place.kind == FileKind::kOutput) check_output(place);
  row.job = place.key.job;
  row.attempt = place.key.attempt;
  row.generation = place.generation;
  return row;
}

// A workstation may have been taken over: it puts nothing but what was asked for.
void SpoolService::check_output(const FilePlace& place) {
  if (!is_inside(place.name))
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid",
                  "the output name `" + place.name + "` leaves the job's folder",
                  "Give a relative name without `..`.", place.name);
  const auto spec = archive_.spec(place.key.job);
  if (spec && describes(*spec, place.name)) return;
  throw Refusal(Refusal::Kind::kInvalid, "spool.undescribed",
                "`" + place.name + "` belongs to no output of job " + std::to_string(place.key.job),
                "Name it among the job's outputs.", place.name);
}

Spool::Started SpoolService::open(const Caller& caller, const std::string& request,
                                  const FilePlace& place, uint64_t size,
                                  const std::string& digest) {
  request_key(caller.uid, request);
  Digest wanted;
  if (digest.size() != wanted.size())
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "a SHA-256 has 32 octets",
                  "Send the digest of the contents.", "sha256");
  std::memcpy(wanted.data(), digest.data(), wanted.size());
  return spool_.open(owner_of(caller), request, place_to_put(caller, place), size, wanted);
}

uint64_t SpoolService::put(const Caller& caller, uint64_t upload, uint64_t offset,
                           std::string_view chunk) {
  return spool_.put(upload, owner_of(caller), offset, chunk);
}

void SpoolService::commit(const FileRow& row) {
  pipeline_.perform([&](Turn& turn) {
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
    turn.changes().files[row.id] = row;
  });
}

uint64_t SpoolService::close(const Caller& caller, uint64_t upload) {
  if (spool_.finished_before(upload, owner_of(caller)) && archive_.file(upload)) return upload;
  const FileRow row = spool_.finish(upload, owner_of(caller));
  try {
    commit(row);
  } catch (...) {
    spool_.settle(row, false);
    throw;
  }
  spool_.settle(row, true);
  return row.id;
}

FileRow SpoolService::find(const Caller& caller, const FilePlace& place) {
  std::optional<FileRow> row;
  if (place.kind == FileKind::kInput) {
    check_attempt(place.session, caller, place.key);
    auto spec = archive_.spec(place.key.job);
    const bool named =
        spec && std::any_of(spec->inputs.begin(), spec->inputs.end(),
                            [&](const auto& input) { return input.file == place.file; });
    if (named) row = archive_.file(place.file);
  } else if (place.kind == FileKind::kCheckpoint) {
    check_attempt(place.session, caller, place.key);
    std::vector<FileRow> rows = archive_.checkpoints(place.key.job, place.generation);
    if (!rows.empty() && rows[0].generation == place.generation) row = std::move(rows[0]);
  } else {
    auto job = archive_.job(place.key.job);
    if (!job)
      throw Refusal(Refusal::Kind::kNotFound, "job.unknown",
                    "there is no job " + std::to_string(place.key.job), "See `sublet ls --all`.",
                    "job " + std::to_string(place.key.job));
    access_.require_owner(caller, job->job.user, "job " + std::to_string(place.key.job));
    row = archive_.output(place.key.job, place.kind, place.name);
  }
  if (!row) throw unknown_file(place.name);
  return *row;
}

FileRow SpoolService::intact_checkpoint(const Caller& caller, const FilePlace& place) {
  const MachineId machine = check_attempt(place.session, caller, place.key);
  const auto job = archive_.job(place.key.job);
  const uint64_t newest = job ? job->job.generation : 0;
  FileRow usable;
  usable.name = "checkpoint";
  usable.sha256 = hex(Sha256().finish());
  if (newest == 0) return usable;
  std::vector<FileRow> damaged;
  for (FileRow& row : archive_.checkpoints(place.key.job, newest)) {
    if (spool_.intact(row)) {
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
  const std::string job = "job " + std::to_string(place.key.job);
  pipeline_.perform([&](Turn& turn) {
    auto answer = turn.apply(scheduling::CheckpointDamaged{place.key, machine, generation,
                                                           usable.generation, usable.size})
                      .answer;
    if (!answer.accepted) throw superseded(place.key);
    for (const FileRow& row : damaged) turn.changes().dropped_files.push_back(row.id);
  });
  log(Severity::error) << job << ": checkpoint generation " << generation
                       << " is damaged in the spool; going on from generation "
                       << usable.generation;
  for (const FileRow& row : damaged) spool_.remove(row.id);
}

FileRow SpoolService::stat(const Caller& caller, const FilePlace& place) {
  if (place.kind == FileKind::kCheckpoint) return intact_checkpoint(caller, place);
  return find(caller, place);
}

std::string SpoolService::get(const Caller& caller, const FilePlace& place, uint64_t offset,
                              uint32_t count) {
  return spool_.read(find(caller, place), offset, count);
}

void SpoolService::collect_garbage() {
  spool_.drop_idle();
  const std::vector<uint64_t> ids = archive_.unneeded_files(kGarbageAtOnce);
  if (ids.empty()) return;
  pipeline_.perform([&](Turn& turn) {
    auto& dropped = turn.changes().dropped_files;
    dropped.insert(dropped.end(), ids.begin(), ids.end());
  });
  for (uint64_t id : ids) spool_.remove(id);
}

}  // namespace sublet::server
