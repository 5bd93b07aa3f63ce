// Whose files may be put and got: the rules of the spool (design section 4).
// Users reach files through their own batch or job, workstations through the
// live attempt that their session holds. And how much of it: each user's inputs
// and outputs have a quota together, checkpoints the same once more, so that
// none is lost because outputs fill the spool; outputs may go a quarter beyond
// the quota, so that who sends too much is stopped before who has computed.
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
  uint64_t quota = 50ull << 30;          // bytes of one user
  std::map<std::string, double> quotas;  // of those who have another one
  Micros keep_outputs = 0;               // after the job's end; 0: for ever

  uint64_t quota_of(const std::string& user) const;
};

// Says that outputs, streams included, were kept no longer.
Refusal outputs_removed(JobId job, Micros at);

class SpoolService {
 public:
  SpoolService(Spool& spool, Pipeline& pipeline, Archive& archive, Sessions& sessions,
               Access& access, std::function<void()> may_submit, SpoolLimits limits);

  Spool::Started open(const Caller& caller, const std::string& request, const FilePlace& place,
                      uint64_t size, const std::string& digest);
  uint64_t put(const Caller& caller, uint64_t upload, uint64_t offset, std::string_view chunk);
  uint64_t close(const Caller& caller, uint64_t upload);
  // idl/spool.idl, stat: of a checkpoint, the newest intact one; generation 0 when
  // none is left.
  FileRow stat(const Caller& caller, const FilePlace& place);
  // Returns how many bytes: 0 behind the end.
  size_t get(const Caller& caller, const FilePlace& place, uint64_t offset, std::span<char> into);
  // idl/spool.idl, discard_outputs.
  void discard_outputs(const Caller& caller, JobId job);

  // Removes what nothing needs any more, or was kept long enough; a bounded piece
  // of it at a time.
  void collect_garbage();

 private:
  FileRow place_to_put(const Caller& caller, const FilePlace& place);
  void check_output(const FilePlace& place);
  void check_quota(const FileRow& row, uint64_t size);
  void hold(JobId job, const std::string& why);
  FileRow find(const Caller& caller, const FilePlace& place);
  FileRow intact_checkpoint(const Caller& caller, const FilePlace& place);
  void drop_damaged(const FilePlace& place, MachineId machine, uint64_t generation,
                    const FileRow& usable, const std::vector<FileRow>& damaged);
  // Names the damage, keeps new files from referring to it, and holds the job
  // whose input it is.
  void note_damage(const FilePlace& place, const FileRow& row);
  static void mark_damaged(Turn& turn, Archive& archive, const FileRow& row);
  // In a turn: these rows go. After its commit: what nothing refers to any more.
  static void drop(Turn& turn, const std::vector<FileRow>& rows);
  void remove_contents(const std::vector<FileRow>& rows);
  void drop_outputs(const std::vector<FileRow>& rows);
  // Sets the content that the row refers to.
  void commit(FileRow& row);
  std::optional<ContentRow> new_content(Turn& turn, FileRow& row);
  // Throws unless it is the live attempt of that session's machine, which is
  // returned.
  MachineId check_attempt(const std::string& session, const Caller& caller,
                          scheduling::AttemptKey key);

  Spool& spool_;
  Pipeline& pipeline_;
  Archive& archive_;
  Sessions& sessions_;
  Access& access_;
  const std::function<void()> may_submit_;
  const SpoolLimits limits_;
  std::atomic<uint64_t> examined_{0};  // collect_garbage() goes on after this file
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SPOOL_SERVICE_H_
