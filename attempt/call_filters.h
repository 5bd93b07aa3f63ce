// Whether this kernel can filter system calls (seccomp). Any thread.
#ifndef SUBLET_ATTEMPT_CALL_FILTERS_H_
#define SUBLET_ATTEMPT_CALL_FILTERS_H_

#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

namespace sublet {

// Asks for a filter that cannot be read: a kernel that knows none does not get as far.
inline bool kernel_filters_calls() {
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) == 0 || errno == EFAULT;
}

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_CALL_FILTERS_H_
