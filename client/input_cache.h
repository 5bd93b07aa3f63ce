// Inputs that were fetched before, kept by their content: a program comes once,
// however many of its jobs run here. The folder is the client's own; a job gets
// a copy, never a link. What is copied is hashed on its way: a kept file that was
// altered is named in the log, thrown away and fetched again. Bounded: the least
// recently used go first. Survives restarts: a file's time is that of its last
// use. Nothing that goes wrong with it fails a job.
//
// It knows contents, not who may have them: the caller asks the server first.
//
// Threads: any.
#ifndef SUBLET_CLIENT_INPUT_CACHE_H_
#define SUBLET_CLIENT_INPUT_CACHE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

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

  // Finds what an earlier client kept. Throws FileError.
  InputCache(Files& files, const CacheSettings& settings);
  ~InputCache();

  // While it lives nobody else fetches this content: others wait for their turn
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
  uint64_t bytes() const;

 private:
  struct Kept {
    uint64_t size = 0;
    uint64_t used = 0;  // grows with each use
  };

  std::string path(const std::string& name) const { return settings_.folder + "/" + name; }
  void load();
  void remove_oldest();  // with mutex_ held; there is one
  void forget(const std::string& name);

  Files& files_;
  const CacheSettings settings_;
  mutable std::mutex mutex_;
  std::condition_variable turns_;
  std::map<std::string, Kept> kept_;  // by the hex of their SHA-256
  std::set<std::string> fetched_now_;
  uint64_t bytes_ = 0;
  uint64_t uses_ = 0;
  uint64_t parts_ = 0;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_INPUT_CACHE_H_
