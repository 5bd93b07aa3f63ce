// The spool: files on their way between submitting machine, server and
// workstation. An upload grows at its end, is hashed while more comes, and counts
// only once it is complete, verified and its row committed. Contents up to
// 32 kB live in the row, larger ones in a file of the spool folder, once for all
// rows of equal digest. That an upload's contents were there already shows
// neither in the answers nor in their time: it comes whole, is stored like any
// other, and its own file is removed later.
//
// The spool knows places (whose file), not callers; who may use a place is
// decided before (service.h).
//
// Threads: any.
#ifndef SUBLET_SERVER_SPOOL_SPOOL_H_
#define SUBLET_SERVER_SPOOL_SPOOL_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/early_writeback.h"
#include "base/hash.h"
#include "base/unique_fd.h"
#include "server/commit/changes.h"
#include "server/refusal.h"
#include "server/spool/content_checker.h"
#include "server/store/archive/archive.h"

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
  static constexpr const char* kDamaged = "spool.damaged";

  struct Started {
    uint64_t id = 0;
    uint64_t offset = 0;
    bool fresh = false;  // not known before this call
  };

  // Removes what an earlier process left unfinished. Throws FileError.
  Spool(const SpoolSettings& settings, Archive& archive, const Clock& clock);
  ~Spool();

  // `owner`: who may go on with it; `request`: the caller's request id;
  // `row`: place and name; `digest`: what it must turn out to have, if that is
  // known. The same owner and request get the same upload.
  Started open(const std::string& owner, const std::string& request, const FileRow& row,
               uint64_t size, const std::optional<Digest>& digest);
  // Returns the new offset.
  uint64_t put(uint64_t id, const std::string& owner, uint64_t offset, std::string_view chunk);
  // The complete, verified file, on disk if it is large; its row is not yet
  // committed. A repeat gets the same. Throws Refusal: incomplete, or other
  // contents than announced (the upload is then gone).
  FileRow finish(uint64_t id, const std::string& owner);
  // After the commit of the row (kept) or its refusal (removed); a repeat does
  // nothing. A row that was given another's content has no use for its own.
  void settle(const FileRow& row, bool kept);
  // Gives up an upload that was just begun.
  void abandon(uint64_t id);
  // Bytes of the user's unfinished uploads: of checkpoints, or of all others.
  uint64_t announced(const std::string& user, bool checkpoints);
  // The row of an upload that this owner finished a short while ago: the reply
  // to closing it was lost.
  bool finished_before(uint64_t id, const std::string& owner);

  // Are its contents those that were committed? content_checker.h; suspect: what
  // came to a receiver did not fit. Throws Refusal (Unavailable) while that is
  // being found out, or cannot be.
  bool intact(const FileRow& row, bool suspect = false);
  // Is it, as far as can be told without reading it?
  bool seems_intact(const ContentRow& content);
  // Part of a committed file, of kChunk at most. Returns how many bytes: 0 behind
  // its end. Throws Refusal when it is damaged or gone.
  size_t read(const FileRow& row, uint64_t offset, std::span<char> into);
  static Refusal damaged(const FileRow& row);
  // A content that no row refers to any more.
  void remove(uint64_t content);

  // Drops uploads without a call for too long, and superfluous files; returns how
  // many uploads.
  size_t drop_idle();

 private:
  struct Upload {
    std::mutex mutex;
    std::string owner;
    std::string request;
    FileRow row;  // its digest: once it is complete
    std::optional<Digest> announced;
    std::string small;  // contents while they fit a row
    UniqueFd fd;        // else
    // Of a file: how much is in it, and how much of that is hashed.
    std::mutex hash_mutex;
    Hasher hash;
    std::atomic<uint64_t> written{0};
    std::atomic<uint64_t> hashed{0};
    std::atomic<bool> queued{false};  // for the hasher
    uint64_t offset = 0;
    EarlyWriteback writeback;
    bool finished = false;  // on disk; waits for the commit of its row
    std::atomic<Micros> touched{0};
  };

  std::shared_ptr<Upload> find(uint64_t id, const std::string& owner);
  std::string path(uint64_t id) const;
  StoredContent stored(const FileRow& row) const;
  std::string upload_path(uint64_t id) const;
  void write_chunk(Upload& upload, std::string_view chunk);
  void hash_later(const std::shared_ptr<Upload>& upload);
  // Throws Refusal.
  static void hash_up_to(Upload& upload, uint64_t end);
  void hash_loop();
  void verify(Upload& upload);
  Digest digest_of_all(Upload& upload);
  // False: it was forgotten before.
  bool forget(uint64_t id, bool finished);

  const SpoolSettings settings_;
  const Clock& clock_;
  // Guards the tables. Never held while an upload's own mutex is taken, which
  // is held during disk work.
  std::mutex mutex_;
  uint64_t next_id_;
  std::map<uint64_t, std::shared_ptr<Upload>> uploads_;
  std::map<std::string, uint64_t> by_request_;  // owner + request
  std::map<std::string, uint32_t> per_owner_;
  std::map<std::pair<std::string, bool>, uint64_t> announced_;  // user, checkpoints -> bytes
  std::vector<uint64_t> superfluous_;                           // files to be removed
  std::map<uint64_t, std::string> finished_;                    // id -> owner; the newest 10,000
  ContentChecker checker_;

  std::mutex hash_mutex_;
  std::condition_variable hash_wake_;
  std::deque<std::shared_ptr<Upload>> to_hash_;  // each upload once
  bool stopping_ = false;
  std::thread hasher_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SPOOL_SPOOL_H_
