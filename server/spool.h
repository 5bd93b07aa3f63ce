// The spool: files on their way between submitting machine, server and
// workstation. An upload grows at its end, is hashed as it comes, and counts
// only once it is complete, verified and its row committed. Contents up to
// 32 kB live in the row, larger ones in a file of the spool folder.
//
// The spool knows places (whose file), not callers; who may use a place is
// decided before (spool_service.h).
//
// Threads: any.
#ifndef SUBLET_SERVER_SPOOL_H_
#define SUBLET_SERVER_SPOOL_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/hash.h"
#include "base/unique_fd.h"
#include "server/archive.h"
#include "server/changes.h"

namespace sublet::server {

struct SpoolSettings {
  std::string folder;
  uint64_t largest_file = 4ull << 30;
  uint32_t uploads_per_owner = 256;
  Micros upload_idle = 3600ll * 1'000'000;  // then an unfinished upload is dropped
};

class Spool {
 public:
  static constexpr uint64_t kInRow = 32 * 1024;
  static constexpr uint32_t kChunk = 1024 * 1024;

  struct Started {
    uint64_t id = 0;
    uint64_t offset = 0;
  };

  // Removes what an earlier process left unfinished. Throws FileError.
  Spool(const SpoolSettings& settings, Archive& archive, const Clock& clock);

  // `owner`: who may go on with it; `request`: the caller's request id;
  // `row`: place and name. The same owner and request get the same upload.
  Started open(const std::string& owner, const std::string& request, const FileRow& row,
               uint64_t size, const Digest& digest);
  // Returns the new offset.
  uint64_t put(uint64_t id, const std::string& owner, uint64_t offset, std::string_view chunk);
  // The complete, verified file, on disk if it is large; its row is not yet
  // committed. A repeat gets the same. Throws Refusal: incomplete, or other
  // contents than announced (the upload is then gone).
  FileRow finish(uint64_t id, const std::string& owner);
  // After the commit of the row (kept) or its refusal (removed); a repeat does
  // nothing.
  void settle(const FileRow& row, bool kept);
  // The row of an upload that this owner finished a short while ago: the reply
  // to closing it was lost.
  bool finished_before(uint64_t id, const std::string& owner);

  // Are its contents those that were committed? Reads all of it. Throws Refusal
  // (Unavailable) when that cannot be found out now.
  bool intact(const FileRow& row);
  // Part of a committed file. Throws Refusal when it is damaged or gone.
  std::string read(const FileRow& row, uint64_t offset, uint32_t count);
  void remove(uint64_t id);

  // Drops uploads without a call for too long; returns how many.
  size_t drop_idle();

 private:
  struct Upload {
    std::mutex mutex;
    std::string owner;
    std::string request;
    FileRow row;
    Digest digest{};
    Sha256 hash;
    std::string small;  // contents while they fit a row
    UniqueFd fd;        // else
    uint64_t offset = 0;
    bool finished = false;  // verified; waits for the commit of its row
    std::atomic<Micros> touched{0};
  };

  std::shared_ptr<Upload> find(uint64_t id, const std::string& owner);
  std::string path(uint64_t id) const;
  // Not valid: it is gone or cannot be read. Throws Refusal (Unavailable).
  UniqueFd open_kept(uint64_t id) const;
  std::string upload_path(uint64_t id) const;
  void write_chunk(Upload& upload, std::string_view chunk);
  void verify(Upload& upload);
  // False: it was forgotten before.
  bool forget(uint64_t id, bool finished);

  const SpoolSettings settings_;
  const Clock& clock_;
  // Guards the tables. Never held while an upload's own mutex is taken, which
  // is held during disk work.
  std::mutex mutex_;
  uint64_t next_id_;
  std::map<uint64_t, std::shared_ptr<Upload>> uploads_;
  std::map<std::string, uint64_t> by_request_;   // owner + request
  std::map<std::string, uint32_t> per_owner_;
  std::map<uint64_t, std::string> finished_;     // id -> owner; the newest 10,000
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SPOOL_H_
