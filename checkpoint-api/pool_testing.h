// What a shepherd gives to a job, and a started handle, for tests of this folder.
#ifndef SUBLET_CHECKPOINT_API_POOL_TESTING_H_
#define SUBLET_CHECKPOINT_API_POOL_TESTING_H_

#include <fcntl.h>
#include <sys/mman.h>

#include "checkpoint-api/internal.h"
#include "checkpoint-api/sublet_checkpoint.h"
#include "checkpoint-api/sublet_status.h"
#include "checkpoint-api/testing.h"

namespace sublet::testing {

// The environment that a shepherd gives to a job: the folder and the status page.
class Pool {
 public:
  Pool() {
    write_file(folder_ / "status", std::string(SUBLET_STATUS_BYTES, '\0'));
    setenv("SUBLET_CHECKPOINT_DIR", folder_.path().c_str(), 1);
    setenv("SUBLET_STATUS", (folder_ / "status").c_str(), 1);
    const int fd = open((folder_ / "status").c_str(), O_RDWR);
    page_ = static_cast<sublet_status*>(
        mmap(nullptr, SUBLET_STATUS_BYTES, PROT_READ, MAP_SHARED, fd, 0));
    close(fd);
    CPPUNIT_ASSERT(page_ != MAP_FAILED);
  }
  ~Pool() {
    munmap(page_, SUBLET_STATUS_BYTES);
    unsetenv("SUBLET_CHECKPOINT_DIR");
    unsetenv("SUBLET_STATUS");
    unsetenv("SUBLET_CHECKPOINT_PERIOD");
  }

  const sublet_status& page() const { return *page_; }
  std::uint64_t generation() const { return __atomic_load_n(&page_->generation, __ATOMIC_ACQUIRE); }
  bool aware() const { return __atomic_load_n(&page_->aware, __ATOMIC_ACQUIRE) == 1; }
  bool has_worked() const { return __atomic_load_n(&page_->progress_ppm, __ATOMIC_RELAXED) > 0; }
  const TempFolder& folder() const { return folder_; }

 private:
  TempFolder folder_;
  sublet_status* page_;
};

// A started handle with no variables.
struct Handle {
  sublet_checkpoint* const c = sublet_checkpoint_open("counter", 1);

  Handle() {
    if (sublet_checkpoint_start(c, nullptr) == SUBLET_REFUSED) abort();
  }
  ~Handle() { sublet_checkpoint_close(c); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  bool asks() const { return __atomic_load_n(&c->shown.attention, __ATOMIC_RELAXED) != 0; }
};

inline bool exited_with(int end, int status) {
  return WIFEXITED(end) && WEXITSTATUS(end) == status;
}

}  // namespace sublet::testing

#endif  // SUBLET_CHECKPOINT_API_POOL_TESTING_H_
