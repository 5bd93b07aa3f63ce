// What a job may not ask of the kernel, whoever it is: keyrings, namespaces, mounts, bpf,
// perf events, userfaultfd, io_uring, typing into a terminal, others' limits. They fail with EPERM
// (clone3, and calls by x32 numbers, with ENOSYS). For all architectures whose programs the kernel
// may run. make_call_filter.cc has the list.
#ifndef SUBLET_CLIENT_SHEPHERD_WALLS_CALL_FILTER_H_
#define SUBLET_CLIENT_SHEPHERD_WALLS_CALL_FILTER_H_

#include <stdint.h>

namespace sublet::shepherd {

// To be called in the child, after it has given up new privileges. A kernel without filters
// counts as success: the client says at its start that it has none. False with errno.
bool refuse_calls();

// Two numbers that nobody can guess.
struct CallSecret {
  uint64_t words[2];
};

// The same in a process that creates such children: they inherit the filter, which is cheaper than
// one for each. Only who has the secret can still use clone3 under it: by these numbers in the two
// registers behind those that the call uses. The process does not tell its children. False if the
// kernel has no filters, too.
bool refuse_calls_without(const CallSecret& secret);

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WALLS_CALL_FILTER_H_
