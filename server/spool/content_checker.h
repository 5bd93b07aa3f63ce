// Whether what lies in the spool is still what was stored. A file that is the
// one whose bytes were right before (inode, size and times are the same) is not
// read again. Any other, and one that a receiver calls suspect because what came
// did not fit its digest, is read and compared: a small one at once, a large one
// on a thread of its own, while whoever asks is told to come back.
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
#include "base/unique_fd.h"

namespace sublet::server {

// What tells a file from any other and from itself before a change: inode, size,
// times of change. "": cannot be found out.
std::string file_identity(int fd);

struct StoredContent {
  uint64_t id = 0;
  std::string path;
  uint64_t size = 0;
  std::string digest;    // hex
  std::string identity;  // when its bytes were known to be right; "": never
};

class ContentChecker {
 public:
  explicit ContentChecker(const Clock& clock);
  ~ContentChecker();

  // False: other bytes, or gone. Throws Refusal (Unavailable): "spool.checking"
  // while it is being read, "server.disk" when it cannot be opened now.
  bool intact(const StoredContent& what, bool suspect);
  // The same of a file that is open already, without reading it: false means not
  // known.
  bool trusted(const StoredContent& what, const std::string& identity);
  void forget(uint64_t id);

  // Not valid: it is gone or cannot be read. Throws Refusal (Unavailable) when
  // that may be for want of descriptors or memory.
  static UniqueFd open(const std::string& path);

 private:
  static constexpr uint64_t kAtOnce = 1 << 20;  // bytes
  static constexpr size_t kWaiting = 1'000;
  static constexpr size_t kRemembered = 10'000;
  static constexpr int64_t kBelievedNs = 60'000'000'000;  // a result, even if suspected again

  struct Result {
    bool running = false;
    bool intact = false;
    std::string identity;
    int64_t at_ns = 0;
  };

  void work();
  bool note(uint64_t id, const std::string& identity, bool intact);

  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Result> results_;
  std::deque<StoredContent> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SPOOL_CONTENT_CHECKER_H_
