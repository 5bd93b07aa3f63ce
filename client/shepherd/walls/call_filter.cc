#include "client/shepherd/walls/call_filter.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "attempt/call_filters.h"

namespace sublet::shepherd {

// In a source file that make_call_filter.cc makes.
extern const sock_filter kCallFilter[];
extern const unsigned short kCallFilterRows;

bool refuse_calls() {
  const sock_fprog program = {kCallFilterRows, const_cast<sock_filter*>(kCallFilter)};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 || !kernel_filters_calls();
}

}  // namespace sublet::shepherd
