// The spool: stores files that are transferred between submitting machine, server
// and workstation. An upload is appended to, hashed while it is received, and valid
// only once it is complete, verified and its row committed. Contents up to 32 KiB are
// stored in the row, larger ones in the spool folder, in one file for all rows with
// the same digest. Neither the replies nor their timing reveal that a content was
// already stored: the upload must be complete, is stored like any other, and its own
// file is removed later.
//
// The spool does not know callers; access to a place is checked before (service.h).
//
// Threads: any.
#ifndef SUBLET_SERVER_SPOOL_SPOOL_H_
#define SUBLET_SERVER_SPOOL_SPOOL_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
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
#include "base/files.h"
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
  Micros upload_idle = 3600ll * 1'000'000;  // unfinished uploads idle for longer are dropped
};

class Spool {
 public:
  static constexpr uint64_t kInRow = 32 * 1024;
  static constexpr uint32_t kChunk = 1024 * 1024;
  static constexpr const char* kDamaged = "spool.damaged";

  struct Started {
    uint64_t id = 0;
    uint64_t offset = 0;
    bool is_new = false;  // not known before this call
  };

  // Removes unfinished uploads of an earlier process and sorts out orphans (orphans.h).
  // Throws FileError.
  Spool(const SpoolSettings& settings, Archive& archive, const Clock& clock,
        Files& files = system_files());
  ~Spool();

  // `owner`: who may continue the upload; `request`: the caller's request id;
  // `row`: place and name; `digest`: the expected digest, if known. The same owner
  // and request get the same upload.
  Started open(const std::string& owner, const std::string& request, const FileRow& row,
               uint64_t size, const std::optional<Digest>& digest);
  // Returns the new offset.
  uint64_t put(uint64_t id, const std::string& owner, uint64_t offset, std::string_view chunk);
  // Commits the row of a verified upload, whose file is on disk. May let it refer to a
  // content that is stored already; its own file is removed later then. Throws Refusal:
  // kUnavailable if the row may have been committed nevertheless, else it was not.
  using Commit = std::function<void(FileRow&)>;
  // Verifies a complete upload and commits it. Of several calls for one upload, one
  // commits and the others wait for it. Throws Refusal if the upload is incomplete; if its
  // contents are not those announced or could not be written to disk (it is dropped
  // then); and what `commit` throws: after kUnavailable a repeat commits again, otherwise
  // the upload is dropped.
  void close(uint64_t id, const std::string& owner, const Commit& commit);
  // Drops an upload that was just opened.
  void abandon(uint64_t id);
  // Bytes of the user's unfinished uploads: of checkpoints, or of all others.
  uint64_t announced(const std::string& user, bool checkpoints);
  // Whether this owner recently finished this upload, so that closing it again only
  // repeats a lost reply.
  bool finished_before(uint64_t id, const std::string& owner);

  // Whether the contents are those committed (content_checker.h). suspect: a receiver
  // got data that did not match. Throws Refusal kUnavailable while the check runs or
  // if it is not possible.
  bool intact(const FileRow& row, bool suspect = false);
  // The same without reading the file; false also if not known.
  bool seems_intact(const ContentRow& content);
  // Reads part of a committed file, at most kChunk. Returns the number of bytes; 0 at
  // or beyond its end. Throws Refusal if it is damaged or missing, or "server.disk" if it cannot
  // be read now.
  size_t read(const FileRow& row, uint64_t offset, std::span<char> into);
  static Refusal damaged(const FileRow& row);
  // Removes a content that no row refers to; one that could only not be read becomes an orphan.
  void remove(uint64_t content);

  // Drops idle uploads and removes superfluous files; returns the number of uploads.
  size_t drop_idle();

 private:
  struct Upload {
    std::mutex mutex;
    std::string owner;
    std::string request;
    FileRow row;  // its digest is set once it is complete
    std::optional<Digest> announced;
    std::string small;  // the contents, if they are stored in the row
    UniqueFd fd;        // otherwise
    // For a file: the bytes written, and how many of these have been hashed.
    std::mutex hash_mutex;
    Hasher hash;
    std::atomic<uint64_t> written{0};
    std::atomic<uint64_t> hashed{0};
    std::atomic<bool> queued{false};  // for the hasher
    uint64_t offset = 0;
    EarlyWriteback writeback;
    bool finished = false;  // on disk; its row is not yet committed
    std::atomic<Micros> touched{0};
  };

  // Throw Refusal if there is no such upload.
  std::shared_ptr<Upload> find(uint64_t id, const std::string& owner);
  // Null if this owner recently finished it: looked up at one moment, or a call would find it
  // neither unfinished nor finished while another finishes it.
  std::shared_ptr<Upload> find_unless_finished(uint64_t id, const std::string& owner);
  std::shared_ptr<Upload> find_locked(uint64_t id, const std::string& owner);
  std::string path(uint64_t id) const;
  StoredContent stored(const FileRow& row) const;
  std::string upload_path(uint64_t id) const;
  void write_chunk(Upload& upload, std::string_view chunk);
  void hash_later(const std::shared_ptr<Upload>& upload);
  // Throws Refusal.
  void hash_up_to(Upload& upload, uint64_t end);
  void hash_loop();
  void verify(Upload& upload);
  void store(Upload& upload);
  void erase(const std::string& file);
  void drop(const Upload& upload);
  bool drop_if_idle(uint64_t id, Micros before);
  size_t read_good(const FileRow& row, int fd, uint64_t offset, std::span<char> into);
  Digest digest_of_all(Upload& upload);
  // False: there is no such upload.
  bool forget(uint64_t id, bool finished);

  const SpoolSettings settings_;
  Archive& archive_;
  const Clock& clock_;
  Files& files_;
  // Protects the tables. Never held while locking an upload's own mutex, which is held
  // during disk operations.
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
