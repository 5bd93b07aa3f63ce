// The permissions and quotas of the spool. Users have access to the files of their
// own batches and jobs, workstations to those of the live attempts of their session.
// Each user has one quota for inputs, outputs and what is appended to open batches together,
// and another one of the same size for checkpoints, so that outputs never prevent a checkpoint.
// Outputs may exceed the quota by a quarter, so that a full quota stops new inputs before the
// results of finished computations.
//
// Threads: any.
#ifndef SUBLET_SERVER_SPOOL_SERVICE_H_
#define SUBLET_SERVER_SPOOL_SERVICE_H_

#include <atomic>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "job/file_place.h"
#include "server/access.h"
#include "server/commit/pipeline.h"
#include "server/machines/sessions.h"
#include "server/refusal.h"
#include "server/spool/spool.h"
#include "server/store/archive/archive.h"

namespace sublet::server {

struct SpoolLimits {
  uint64_t quota = 50ull << 30;          // bytes per user
  std::map<std::string, double> quotas;  // of users with a different one
  Micros keep_outputs = 0;               // after the job's end; 0: for ever

  uint64_t quota_of(const std::string& user) const;
};

// The refusal for outputs, including streams, that have been removed.
Refusal outputs_removed(JobId job, Micros at);

class SpoolService {
 public:
  SpoolService(Spool& spool, Pipeline& pipeline, Archive& archive, Sessions& sessions,
               Access& access, std::function<void()> may_submit, SpoolLimits limits);

  Spool::Started open(const Caller& caller, const std::string& request, const FilePlace& place,
                      uint64_t size, const std::string& digest);
  uint64_t put(const Caller& caller, uint64_t upload, uint64_t offset, std::string_view chunk);
  uint64_t close(const Caller& caller, uint64_t upload);
  // idl/spool.idl, stat. For a checkpoint: the newest intact one; generation 0 if
  // there is none.
  FileRow stat(const Caller& caller, const FilePlace& place);
  // Returns the number of bytes read; 0 at or beyond the end.
  size_t get(const Caller& caller, const FilePlace& place, uint64_t offset, std::span<char> into);
  // idl/spool.idl, discard_outputs.
  void discard_outputs(const Caller& caller, JobId job);

  // Throws Refusal kLimitExceeded "batch.quota" if so many bytes more, appended to an open batch,
  // are beyond the user's quota.
  void check_room(const std::string& user, uint64_t bytes);

  // Removes files that are no longer needed or have expired, a bounded number per call.
  void collect_garbage();

 private:
  FileRow place_to_put(const Caller& caller, const FilePlace& place);
  void check_output(const FilePlace& place);
  void check_quota(const FileRow& row, uint64_t size);
  uint64_t quota_of(const std::string& user);
  void hold(JobId job, const std::string& why);
  bool is_input(JobId job, const FileRow& file);
  FileRow find(const Caller& caller, const FilePlace& place);
  FileRow intact_checkpoint(const Caller& caller, const FilePlace& place);
  void drop_damaged(const FilePlace& place, MachineId machine, uint64_t generation,
                    const FileRow& usable, const std::vector<FileRow>& damaged);
  // Logs the damage, marks the content so that no new file refers to it, and holds
  // the job whose input it is.
  void note_damage(const FilePlace& place, const FileRow& row);
  static void mark_damaged(Turn& turn, Archive& archive, const FileRow& row);
  // drop() deletes the rows in a turn; after its commit, remove_contents() deletes the
  // contents that are no longer referred to.
  static void drop(Turn& turn, const std::vector<FileRow>& rows);
  void remove_contents(const std::vector<FileRow>& rows);
  void drop_outputs(const std::vector<FileRow>& rows);
  // Also sets the content that the row refers to.
  void commit(FileRow& row);
  std::optional<ContentRow> new_content(Turn& turn, FileRow& row);
  // Throws unless this is a live attempt of the session's machine; returns the
  // machine.
  MachineId check_attempt(const std::string& session, const Caller& caller,
                          scheduling::AttemptKey key);

  Spool& spool_;
  Pipeline& pipeline_;
  Archive& archive_;
  Sessions& sessions_;
  Access& access_;
  const std::function<void()> may_submit_;
  const SpoolLimits limits_;
  std::atomic<uint64_t> examined_{0};  // collect_garbage() continues after this file
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SPOOL_SERVICE_H_
