// Files on their way between this machine and the server's spool. Both
// directions go on where they stood when the connection was lost or the server
// was restarted, for a bounded time, and are verified by SHA-256. One thread;
// download() asks for the next chunk on another.
#ifndef SUBLET_CLI_TRANSFER_H_
#define SUBLET_CLI_TRANSFER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/batch_file.h"
#include "cli/pool.h"

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
struct LocalFile {
  std::string path;
  FileStamp stamp;
  Digest sha256{};
};

// All input files of a batch, each read once (however many jobs name it).
class InputFiles {
 public:
  // Reads and hashes those of the plan that are not yet known. PoolError
  // "input.missing" (with FILE:LINE:COLUMN where a batch file asked for it),
  // "input.changed".
  void read(const BatchPlan& plan);
  const LocalFile& at(const std::string& path) const { return files_.at(path); }
  // Sends each distinct content once. PoolError "input.changed" when a file is
  // no longer what read() saw.
  void upload(SpoolCalls& spool, uint64_t batch, const TransferPatience& patience = {});
  // After upload(): its number in the spool.
  uint64_t file_id(const std::string& path) const;
  // Distinct contents, and their bytes.
  uint64_t distinct() const { return contents_.size(); }
  uint64_t bytes() const;

 private:
  std::map<std::string, LocalFile> files_;                    // by path
  std::map<std::pair<Digest, uint64_t>, uint64_t> contents_;  // digest and size -> file id
};

// A whole file of the spool, in order. PoolError "spool.damaged" when the server
// no longer has what was stored, "spool.digest" when what came is not that (the
// sink has seen it by then).
void download(SpoolCalls& spool, const FilePlace& place, uint64_t size, const Digest& sha256,
              const std::function<void(std::string_view)>& sink,
              const TransferPatience& patience = {});

}  // namespace sublet::cli

#endif  // SUBLET_CLI_TRANSFER_H_
