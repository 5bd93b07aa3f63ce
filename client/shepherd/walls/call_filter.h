// What a job may not ask of the kernel, whoever it is: keyrings, namespaces, mounts, bpf,
// perf events, userfaultfd, io_uring, typing into a terminal, others' limits. They fail with EPERM
// (clone3, and calls by x32 numbers, with ENOSYS). For all architectures whose programs the kernel
// may run. make_call_filter.cc has the list.
#ifndef SUBLET_CLIENT_SHEPHERD_WALLS_CALL_FILTER_H_
#define SUBLET_CLIENT_SHEPHERD_WALLS_CALL_FILTER_H_

namespace sublet::shepherd {

// To be called in the child, after it has given up new privileges. A kernel without filters
// counts as success: the client says at its start that it has none. False with errno.
bool refuse_calls();

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WALLS_CALL_FILTER_H_
