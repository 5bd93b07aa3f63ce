// What the processes of an attempt may use together, and what they use, by its cgroups (v1 or
// v2). Allocates nothing. One thread.
#ifndef SUBLET_CLIENT_SHEPHERD_BOUNDS_H_
#define SUBLET_CLIENT_SHEPHERD_BOUNDS_H_

#include <stdint.h>

#include "attempt/format.h"

namespace sublet::shepherd {

class Bounds {
 public:
  // Sets the order's bounds in its cgroups, which exist (Weight::make). The order must outlive
  // this. Null, or the step that failed, with errno.
  const char* set(const sublet_order& order);

  bool counts_memory() const { return *memory_ != 0; }
  bool counts_processes() const { return *processes_ != 0; }
  // True if the kernel killed a process because the limit of memory was reached. A kill because
  // the whole machine ran out of memory does not count: the job is its first victim whatever it
  // uses.
  bool memory_ran_out() const;
  // True if a process or thread could not be created because there were as many as it may have.
  bool processes_ran_out() const;
  // Bytes, without the kernel's copies of files. 0: not known.
  int64_t memory_used() const;
  // The most processes and threads at once until now. 0: not known.
  int64_t most_processes() const;

 private:
  const char* memory_ = "";  // folders; "": none
  const char* processes_ = "";
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_BOUNDS_H_
