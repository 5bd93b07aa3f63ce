#include "client/shepherd/walls/call_filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>

#include "attempt/call_filters.h"
#include "client/shepherd/walls/secret_marks.h"

namespace sublet::shepherd {

// In source files that make_call_filter.cc makes.
extern const sock_filter kCallFilter[];
extern const unsigned short kCallFilterRows;
extern const sock_filter kSecretCallFilter[];
extern const unsigned short kSecretCallFilterRows;

namespace {

bool install(const sock_filter* rows, unsigned short count) {
  const sock_fprog program = {count, const_cast<sock_filter*>(rows)};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

}  // namespace

bool refuse_calls() { return install(kCallFilter, kCallFilterRows) || !kernel_filters_calls(); }

bool refuse_calls_without(const CallSecret& secret) {
  constexpr unsigned short kMost = 1024;
  sock_filter rows[kMost];
  errno = EFBIG;
  if (kSecretCallFilterRows > kMost) return false;
  memcpy(rows, kSecretCallFilter, kSecretCallFilterRows * sizeof *rows);
  put_secret(rows, kSecretCallFilterRows, secret);
  return install(rows, kSecretCallFilterRows);
}

}  // namespace sublet::shepherd
