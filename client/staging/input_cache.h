// A cache of fetched inputs, addressed by content: a program is fetched once, however
// many of its jobs run here. The folder is private to the client; a job gets a copy,
// never a link. Copies are hashed: an altered file is logged, removed and fetched again.
// Bounded; the least recently used files are removed first. Survives restarts: a file's
// modification time is that of its last use. No error here fails a job or keeps the
// client from starting: without a usable folder nothing is cached.
//
// The cache does no access control: the caller asks the server first.
//
// Any thread. No lock is held during disk I/O; bytes() never waits.
#ifndef SUBLET_CLIENT_STAGING_INPUT_CACHE_H_
#define SUBLET_CLIENT_STAGING_INPUT_CACHE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/hash.h"
#include "base/unique_fd.h"
#include "client/mover/mover.h"

namespace sublet::client {

struct CacheSettings {
  std::string folder;
  uint64_t bytes = 0;    // limit for all files together; 0: no caching
  uint64_t reserve = 0;  // bytes of the disk that must stay free
};

class InputCache {
 public:
  static constexpr size_t kMostFiles = 10'000;

  // Loads the files cached before a restart.
  InputCache(Files& files, const CacheSettings& settings);
  ~InputCache();

  // A lock on one content: during its lifetime no other thread fetches it; others wait
  // and then find it in the cache. The constructor stops waiting when `stop` is set. A
  // thread must not hold more than one.
  class Turn {
   public:
    Turn(InputCache& cache, const Digest& digest, const std::atomic<bool>& stop);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    InputCache& cache_;
    std::string name_;
    bool mine_ = false;
  };

  // Copies a cached content into the empty file `to`. False: it is not cached or was
  // altered; `to` is then empty again. Throws what Mover::copy() does.
  bool take(const Digest& digest, uint64_t size, int to, Mover& mover);

  // A content being fetched. Discarded by the destructor unless keep() was called.
  class Addition {
   public:
    ~Addition();
    Addition(const Addition&) = delete;
    Addition& operator=(const Addition&) = delete;
    int file() const { return file_.get(); }
    // To be called when it is complete and verified.
    void keep();

   private:
    friend class InputCache;
    Addition(InputCache& cache, std::string name, uint64_t size, std::string path, UniqueFd file);

    InputCache& cache_;
    const std::string name_;
    const uint64_t size_;
    const std::string path_;
    UniqueFd file_;
  };
  // Null if it is already cached, too large, or there is no room.
  std::unique_ptr<Addition> add(const Digest& digest, uint64_t size);

  // Removes at least `bytes`, or everything if there is less.
  void make_room(uint64_t bytes);
  uint64_t bytes() const { return bytes_; }
  // The number of threads waiting in Turn.
  size_t waiting() const;

 private:
  struct Kept {
    std::string name;  // the hex of its digest
    uint64_t size = 0;
  };
  using ByUse = std::list<Kept>;
  using Names = std::vector<std::string>;

  std::string path(const std::string& name) const { return settings_.folder + "/" + name; }
  void load();
  void forget(const std::string& name);
  // With mutex_ held. put_in() expects the size to be counted in bytes_ already;
  // take_out() subtracts it, and the caller must remove the file.
  void put_in(const std::string& name, uint64_t size);
  std::string take_out(ByUse::iterator kept);
  Names take_out_oldest(uint64_t bytes_left, size_t files_left);
  bool has(const std::string& name) const { return kept_.count(name) || moving_.count(name); }
  // Without mutex_. Failures are logged.
  void remove(const Names& names);

  Files& files_;
  const CacheSettings settings_;
  uint64_t bound_ = 0;  // bytes; 0 without a folder
  mutable std::mutex mutex_;
  std::condition_variable turns_;
  size_t waiting_ = 0;
  ByUse by_use_;  // the least recently used first
  std::map<std::string, ByUse::iterator> kept_;
  std::set<std::string> moving_;  // files being added or removed, without mutex_
  std::set<std::string> fetched_now_;
  std::atomic<uint64_t> bytes_{0};  // written with mutex_ held
  uint64_t parts_ = 0;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_STAGING_INPUT_CACHE_H_
