// Checks that contents in the spool are unchanged. A file that was verified before
// and still has the same inode, size and times is not read again. Any other file,
// and one that a receiver reports as suspect because the received data did not match
// its digest, is read and compared: a small one immediately, a large one on a thread
// of its own, while the caller is refused and must try again.
//
// Threads: any.
#ifndef SUBLET_SERVER_SPOOL_CONTENT_CHECKER_H_
#define SUBLET_SERVER_SPOOL_CONTENT_CHECKER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/unique_fd.h"

namespace sublet::server {

// Identifies a version of a file: its inode, size and times of change. "": not
// available.
std::string file_identity(int fd);

struct StoredContent {
  uint64_t id = 0;
  std::string path;
  uint64_t size = 0;
  std::string digest;    // hex
  std::string identity;  // when its bytes were last verified; "": never
};

class ContentChecker {
 public:
  ContentChecker(const Clock& clock, const Files& files);
  ~ContentChecker();

  // False: its bytes differ, it is missing, or it was given up: kReadTries tries, kTryNs apart,
  // could not read it. Throws Refusal kUnavailable: "spool.checking" while it is being read,
  // "server.disk" if it cannot be opened or read now.
  bool intact(const StoredContent& what, bool suspect);
  // The same for a file that is already open, without reading it; false also if not
  // known.
  bool trusted(const StoredContent& what, const std::string& identity);
  // Somebody else could not read the file: a failed try, and it is no longer trusted.
  void note_unread(const StoredContent& what, const std::string& identity);
  // Whether it counts as damaged only because it could not be read.
  bool was_given_up(uint64_t id);
  void forget(uint64_t id);

  // Reads the whole file. False: its bytes differ, or it is missing. Throws as open() does, also if
  // it cannot be read.
  static bool reads_as_stored(const StoredContent& what, const Files& files);

  // Invalid if there is no such file. Throws Refusal kUnavailable "server.disk" if it cannot be
  // opened for another reason, which may pass or be mended.
  static UniqueFd open(const std::string& path, const Files& files);

 private:
  static constexpr uint64_t kAtOnce = 1 << 20;  // bytes
  static constexpr size_t kWaiting = 1'000;
  static constexpr size_t kRemembered = 10'000;
  // A read error may pass (a cable, a controller that resets), and damage is for ever.
  static constexpr int kReadTries = 3;
  static constexpr int64_t kTryNs = 60'000'000'000;
  static constexpr int64_t kBelievedNs = 60'000'000'000;  // a result is used again, even if suspect

  struct Result {
    bool running = false;
    bool intact = false;
    std::string identity;
    int64_t at_ns = 0;  // when it was read, or the last try that counts
    int unread = 0;     // tries in a row that could not read it
  };
  enum class Reading { kIntact, kDiffers, kFailed };

  static bool is_unread(const Result& result) {
    return result.unread > 0 && result.unread < kReadTries;
  }
  void work();
  static Reading read(int fd, const StoredContent& what, const Files& files);
  void check(const StoredContent& what);
  Result note(uint64_t id, const std::string& identity, Reading reading);

  const Clock& clock_;
  const Files& files_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Result> results_;
  std::deque<StoredContent> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SPOOL_CONTENT_CHECKER_H_
