// Has the disk begin with a growing file before it is complete, so that little is
// left to sync at its end. Threads: one at a time.
#ifndef SUBLET_BASE_EARLY_WRITEBACK_H_
#define SUBLET_BASE_EARLY_WRITEBACK_H_

#include <fcntl.h>

#include <cstdint>

namespace sublet {

class EarlyWriteback {
 public:
  // The file is written up to `end`. Only begins; waits when the disk's queue is full.
  // Where the file system cannot, the sync at the end has more to do.
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
