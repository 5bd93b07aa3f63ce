// The namespaces of a job: mounts, System V IPC, processes and, without root, accounts. Compiled
// into the shepherd without the C++ library.
#ifndef SUBLET_ATTEMPT_NAMESPACES_H_
#define SUBLET_ATTEMPT_NAMESPACES_H_

namespace sublet {

// The calling process, which must have one thread, enters new ones. Without root its account and
// group keep their numbers, others have none there (but it keeps the rights of its groups), and it
// has all capabilities there until it executes a program. `network`: also a network
// namespace, in which loopback is still down. The first process that it then creates is number 1:
// when that ends, the kernel kills all others. Mounts made outside are seen, those made here are
// not seen outside. False with errno; it may then be in some of them.
bool enter_new_namespaces(bool network);

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_NAMESPACES_H_
