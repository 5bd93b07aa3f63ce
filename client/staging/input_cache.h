// Inputs that were fetched before, kept by their content: a program comes once,
// however many of its jobs run here. The folder is the client's own; a job gets
// a copy, never a link. What is copied is hashed on its way: a kept file that was
// altered is named in the log, thrown away and fetched again. Bounded: the least
// recently used go first. Survives restarts: a file's time is that of its last
// use. Nothing that goes wrong with it fails a job or keeps the client from
// starting: without a folder nothing is kept.
//
// It knows contents, not who may have them: the caller asks the server first.
//
// Threads: any. No lock is held over the disk; bytes() never waits.
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
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/hash.h"
#include "base/unique_fd.h"

namespace sublet::client {

struct CacheSettings {
  std::string folder;
  uint64_t bytes = 0;    // of all that is kept; 0: nothing
  uint64_t reserve = 0;  // of the disk, not to be used
};

class InputCache {
 public:
  static constexpr size_t kMostFiles = 10'000;

  // Finds what an earlier client kept.
  InputCache(Files& files, const CacheSettings& settings);
  ~InputCache();

  // While it lives no other thread fetches this content: others wait for their turn
  // and then find it here. Given up when `stop` is set. Its owner must not wait
  // for another.
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

  // Copies a kept content into the empty file `to`. False: it is not here, was
  // altered (the file is empty again), or `stop` was set. Throws FileError when
  // `to` cannot be written.
  bool take(const Digest& digest, uint64_t size, int to, const std::atomic<bool>& stop);

  // A content that is being fetched. Without keep() nothing stays of it.
  class Addition {
   public:
    ~Addition();
    Addition(const Addition&) = delete;
    Addition& operator=(const Addition&) = delete;
    // A failure ends the keeping, not the fetching.
    void write(std::string_view bytes);
    // All of it has come, and is right.
    void keep();

   private:
    friend class InputCache;
    Addition(InputCache& cache, std::string name, uint64_t size, std::string path, UniqueFd file);
    void give_up();

    InputCache& cache_;
    const std::string name_;
    const uint64_t size_;
    const std::string path_;
    UniqueFd file_;
  };
  // Nothing: it is too large, or there is no room.
  std::unique_ptr<Addition> add(const Digest& digest, uint64_t size);

  // Removes at least so many bytes, as far as there are any.
  void make_room(uint64_t bytes);
  uint64_t bytes() const { return bytes_; }
  // How many wait for their turn.
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
  // With mutex_ held. What is put in counts in bytes_ already; what is taken out counts
  // no more, and the caller removes it.
  void put_in(const std::string& name, uint64_t size);
  std::string take_out(ByUse::iterator kept);
  Names take_out_oldest(uint64_t bytes_left, size_t files_left);
  bool has(const std::string& name) const { return kept_.count(name) || moving_.count(name); }
  // Without it. What cannot be removed is named in the log.
  void remove(const Names& names);

  Files& files_;
  const CacheSettings settings_;
  uint64_t bound_ = 0;  // bytes; 0 without a folder
  mutable std::mutex mutex_;
  std::condition_variable turns_;
  size_t waiting_ = 0;
  ByUse by_use_;  // the least recently used first
  std::map<std::string, ByUse::iterator> kept_;
  std::set<std::string> moving_;  // their files come or go, without mutex_
  std::set<std::string> fetched_now_;
  std::atomic<uint64_t> bytes_{0};  // written with mutex_ held
  uint64_t parts_ = 0;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_STAGING_INPUT_CACHE_H_
