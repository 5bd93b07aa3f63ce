// System call helpers of the shepherd. No C++ library, no allocation.
#ifndef SUBLET_CLIENT_SHEPHERD_SYSTEM_H_
#define SUBLET_CLIENT_SHEPHERD_SYSTEM_H_

#include <linux/sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

namespace sublet::shepherd {

// Nanoseconds of CLOCK_BOOTTIME.
int64_t boot_now();

// 36 characters and a null; "" if it cannot be read.
struct BootId {
  char text[64];
  BootId();
};

// Reads a regular file in `folder` of at most `size` bytes. Returns the number of bytes,
// or -1 with errno (EFBIG if there are more).
int64_t read_whole(int folder, const char* name, char* to, size_t size);

// Allocates disk space for a file that write_atomically() will write later, when the
// disk may be full. Best effort: a descriptor for that, or -1.
int reserve_room(int folder, const char* name, size_t size);

// Writes the file completely or not at all. It survives this process, not a power failure.
// `reserved`: of reserve_room() for this file; it is closed. False with errno.
bool write_atomically(int folder, const char* name, const char* bytes, size_t size,
                      int reserved = -1);

// Like fork(), but the new process is a child of this one's parent, and fork handlers are not
// called.
pid_t fork_sibling();

// clone3(); the child does `run`, which must not return. It may borrow this process's memory and
// stack (CLONE_VM with CLONE_VFORK), where the processor is one of those for which this is made;
// elsewhere, and with a sanitizer, it gets a copy. `unused`: two more arguments, for a
// filter of calls. The number of the child, or -1 with errno.
pid_t clone_and_run(clone_args& how, const uint64_t (&unused)[2], void (*run)(void*),
                    void* argument);

// Gives a new descriptor this number. False with errno, also if it is -1.
bool place(int descriptor, int number);
// Takes the number until a descriptor gets it.
bool reserve(int number);

// All signals have their default action.
void reset_handlers();
// None is ignored, by this process or by programs that its children execute.
void ignore_nothing();

// A process that asked to be traced stops for its parent, which is not interested: it goes on with
// this signal.
void let_go(pid_t pid, int signal);

// A file of /proc or a cgroup; O_CLOEXEC is added to `flags`. -1 with errno.
int open_kernel_file(const char* folder, const char* name, int flags);
// A single write to such a file. False with errno.
bool write_kernel_file(const char* folder, const char* name, const char* text);

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_SYSTEM_H_
