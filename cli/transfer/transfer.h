// Files on their way between this machine and the server's spool. Both
// directions go on where they stood when the connection was lost or the server
// was restarted, for a bounded time. The server takes the digest of what it gets,
// and what comes back is compared with that. One thread; the next chunk is read
// on another, the next two are asked for on two others, at the same time.
#ifndef SUBLET_CLI_TRANSFER_TRANSFER_H_
#define SUBLET_CLI_TRANSFER_TRANSFER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/batch/plan.h"
#include "cli/pool/pool.h"

namespace sublet::cli {

struct TransferPatience {
  int without_progress_ms = 60'000;  // then the failure is passed on
  int pause_ms = 200;                // at most between two tries; the first come sooner
};

// A file of the user's at one moment. When any of it differs later, the file
// has been changed.
struct FileStamp {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  auto operator<=>(const FileStamp&) const = default;
};

// All input files of a batch, each opened once (however many jobs name it).
class InputFiles {
 public:
  // Notes those of the plan. Only files of equal size are read here, to find out
  // whether they are equal: the others are read once, while they are sent.
  // PoolError "input.missing" (with FILE:LINE:COLUMN where a batch file asked for
  // it), "input.changed".
  void read(const BatchPlan& plan);
  // Sends each distinct content once. PoolError "input.changed" when a file is
  // no longer what read() saw, by its size and times: who writes through a mapping
  // while it is sent may not be noticed.
  void upload(SpoolCalls& spool, uint64_t batch, const TransferPatience& patience = {});
  // After upload(): its number in the spool.
  uint64_t file_id(const std::string& path) const;
  // Distinct contents, and their bytes.
  uint64_t distinct() const { return contents_.size(); }
  uint64_t bytes() const;

 private:
  struct LocalFile {
    FileStamp stamp;
    size_t content = 0;  // in contents_
  };
  struct Content {
    std::string path;  // of a file that has it
    FileStamp stamp;   // of that file
    std::optional<Digest> digest;
    uint64_t file_id = 0;  // 0: not yet sent
  };

  size_t content_of(const std::string& path, const FileStamp& stamp);
  const Digest& digest_of_content(size_t content);

  std::map<std::string, LocalFile> files_;  // by path
  std::vector<Content> contents_;
  // The same content in contents_: of a file under two names, of equal bytes.
  std::map<std::pair<uint64_t, uint64_t>, size_t> by_inode_;  // device, inode
  std::map<uint64_t, size_t> first_of_size_;
  std::map<std::pair<uint64_t, Digest>, size_t> by_digest_;  // where a size has several files
};

// A whole file of the spool, in order. PoolError "spool.damaged" when the server
// no longer has what was stored, "spool.digest" when what came is not that (the
// sink has seen it by then).
void download(SpoolCalls& spool, const FilePlace& place, uint64_t size, const Digest& digest,
              const std::function<void(std::string_view)>& sink,
              const TransferPatience& patience = {});

}  // namespace sublet::cli

#endif  // SUBLET_CLI_TRANSFER_TRANSFER_H_
