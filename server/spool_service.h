// Whose files may be put and got: the rules of the spool (design section 4).
// Users reach files through their own batch or job, workstations through the
// live attempt that their session holds.
//
// Threads: any.
#ifndef SUBLET_SERVER_SPOOL_SERVICE_H_
#define SUBLET_SERVER_SPOOL_SERVICE_H_

#include <functional>
#include <string>

#include "server/access.h"
#include "server/archive.h"
#include "server/pipeline.h"
#include "server/sessions.h"
#include "server/spool.h"

namespace sublet::server {

// idl/spool.idl, FilePlace.
struct FilePlace {
  FileKind kind = FileKind::kInput;
  BatchId batch = 0;
  std::string session;
  scheduling::AttemptKey key;
  uint64_t file = 0;
  std::string name;
  uint64_t generation = 0;
};

class SpoolService {
 public:
  SpoolService(Spool& spool, Pipeline& pipeline, Archive& archive, Sessions& sessions,
               Access& access, std::function<void()> may_submit);

  Spool::Started open(const Caller& caller, const std::string& request, const FilePlace& place,
                      uint64_t size, const std::string& digest);
  uint64_t put(const Caller& caller, uint64_t upload, uint64_t offset, std::string_view chunk);
  uint64_t close(const Caller& caller, uint64_t upload);
  // idl/spool.idl, stat: of a checkpoint, the newest intact one; generation 0 when
  // none is left.
  FileRow stat(const Caller& caller, const FilePlace& place);
  std::string get(const Caller& caller, const FilePlace& place, uint64_t offset, uint32_t count);

  // Removes what nothing needs any more; a bounded piece of it at a time.
  void collect_garbage();

 private:
  FileRow place_to_put(const Caller& caller, const FilePlace& place);
  void check_output(const FilePlace& place);
  FileRow find(const Caller& caller, const FilePlace& place);
  FileRow intact_checkpoint(const Caller& caller, const FilePlace& place);
  void drop_damaged(const FilePlace& place, MachineId machine, uint64_t generation,
                    const FileRow& usable, const std::vector<FileRow>& damaged);
  void commit(const FileRow& row);
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
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SPOOL_SERVICE_H_
