// Transfers files between this machine and the server's spool. After a lost connection or
// a restart of the server, both directions resume, for a limited time. The server computes
// the digest of what it receives; downloads are compared with it. Used by one thread; other
// threads read the next chunk, or request the next two, at the same time.
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
  int without_progress_ms = 60'000;  // then the error is thrown
  int pause_ms = 200;                // longest pause between tries; the first are shorter
};

// The state of a user's file at one moment. If any field differs later, the file has been
// changed.
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
  // Records the inputs of the plan. Only files of equal size are read here, to compare
  // them; the others are read once, while they are sent. Throws PoolError "input.missing"
  // (with FILE:LINE:COLUMN in a batch file), "input.changed".
  void read(const BatchPlan& plan);
  // Sends each distinct content once. Throws PoolError "input.changed" if a file's size or
  // times differ from those in read(); writes through a mapping during the transfer may not
  // be detected.
  void upload(SpoolCalls& spool, uint64_t batch, const TransferPatience& patience = {});
  // After upload(): the file's id in the spool.
  uint64_t file_id(const std::string& path) const;
  // The number of distinct contents, and their bytes.
  uint64_t distinct() const { return contents_.size(); }
  uint64_t bytes() const;

 private:
  struct LocalFile {
    FileStamp stamp;
    size_t content = 0;  // in contents_
  };
  struct Content {
    std::string path;  // of a file with this content
    FileStamp stamp;   // of that file
    std::optional<Digest> digest;
    uint64_t file_id = 0;  // 0: not yet sent
  };

  size_t content_of(const std::string& path, const FileStamp& stamp);
  const Digest& digest_of_content(size_t content);

  std::map<std::string, LocalFile> files_;  // by path
  std::vector<Content> contents_;
  // To find equal contents in contents_: a file under two names, or equal bytes.
  std::map<std::pair<uint64_t, uint64_t>, size_t> by_inode_;  // device, inode
  std::map<uint64_t, size_t> first_of_size_;
  std::map<std::pair<uint64_t, Digest>, size_t> by_digest_;  // if several have this size
};

// Downloads a whole file of the spool, in order. Throws PoolError "spool.damaged" if the
// server's copy is damaged, "spool.digest" if the received bytes do not match the digest
// (the sink has received them by then).
void download(SpoolCalls& spool, const FilePlace& place, uint64_t size, const Digest& digest,
              const std::function<void(std::string_view)>& sink,
              const TransferPatience& patience = {});

}  // namespace sublet::cli

#endif  // SUBLET_CLI_TRANSFER_TRANSFER_H_
