// What a job may not ask of the kernel, whoever it is: keyrings, namespaces, mounts, bpf,
// perf events, userfaultfd, io_uring, typing into a terminal, others' limits. They fail with EPERM
// (clone3, and calls by x32 numbers, with ENOSYS). For all architectures whose programs the kernel
// may run. make_call_filter.cc has the list.
#ifndef SUBLET_CLIENT_SHEPHERD_WALLS_CALL_FILTER_H_
#define SUBLET_CLIENT_SHEPHERD_WALLS_CALL_FILTER_H_

#include <linux/filter.h>
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
// one for each. Only who has the secret can still use clone3 and unshare under it: by these numbers
// as the third and the fourth argument, which the calls do not have. The process does not tell its
// children. False if the kernel has no filters, too, or on another processor than those for which
// this is made.
bool refuse_calls_without(const CallSecret& secret);

// The filter: what knows the secret, and then the other rows.
constexpr unsigned kMostFilterRows = 1024;
// Returns how many there are; 0: it is not made for this processor.
unsigned short make_filter_with(const CallSecret& secret, sock_filter* rows);

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WALLS_CALL_FILTER_H_
