// Starts writing a growing file to disk before it is complete, so that the final sync
// has little left to do. Not thread-safe.
#ifndef SUBLET_BASE_EARLY_WRITEBACK_H_
#define SUBLET_BASE_EARLY_WRITEBACK_H_

#include <fcntl.h>

#include <cstdint>

namespace sublet {

class EarlyWriteback {
 public:
  // The file has been written up to `end`. Only starts the writeback, but blocks if the
  // disk's queue is full. If the file system does not support it, nothing happens.
  void written(int fd, uint64_t end) {
    if (end - begun_ < kAtOnce) return;
    ::sync_file_range(fd, static_cast<off_t>(begun_), static_cast<off_t>(end - begun_),
                      SYNC_FILE_RANGE_WRITE);
    begun_ = end;
  }

 private:
  static constexpr uint64_t kAtOnce = 8 << 20;  // bytes
  uint64_t begun_ = 0;
};

}  // namespace sublet

#endif  // SUBLET_BASE_EARLY_WRITEBACK_H_
