#include "client/shepherd/system.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace sublet::shepherd {

int64_t boot_now() {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}

BootId::BootId() {
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t count = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  text[count > 0 ? count : 0] = 0;
  text[strcspn(text, "\n")] = 0;
}

int64_t read_whole(int folder, const char* name, char* to, size_t size) {
  int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat about;
  int64_t count = 0;
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    errno = EINVAL;
    count = -1;
  } else if (static_cast<uint64_t>(about.st_size) > size) {
    errno = EFBIG;
    count = -1;
  }
  while (count >= 0 && static_cast<size_t>(count) < size) {
    ssize_t more = read(fd, to + count, size - static_cast<size_t>(count));
    if (more <= 0) {
      if (more < 0) count = -1;
      break;
    }
    count += more;
  }
  int error = errno;
  close(fd);
  errno = error;
  return count;
}

static bool write_all(int fd, const char* bytes, size_t size) {
  while (size > 0) {
    ssize_t count = write(fd, bytes, size);
    if (count < 0) return false;
    bytes += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

struct TemporaryName {
  explicit TemporaryName(const char* name) { snprintf(text, sizeof text, ".%s.new", name); }
  char text[32];
};

// Without O_TRUNC, so that space allocated by reserve_room() is used.
static int open_temporary(int folder, const char* temporary) {
  return openat(folder, temporary, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

int reserve_room(int folder, const char* name, size_t size) {
  const int fd = open_temporary(folder, TemporaryName(name).text);
  struct stat about;
  constexpr size_t kBlock = 512;  // unit of st_blocks
  const bool has_room =
      fd >= 0 && fstat(fd, &about) == 0 && static_cast<size_t>(about.st_blocks) * kBlock >= size;
  if (fd >= 0 && !has_room && fallocate(fd, 0, 0, static_cast<off_t>(size)) != 0) errno = 0;
  return fd;
}

bool write_atomically(int folder, const char* name, const char* bytes, size_t size, int reserved) {
  const TemporaryName named(name);
  const char* const temporary = named.text;
  const int fd = reserved >= 0 ? reserved : open_temporary(folder, temporary);
  if (fd < 0) return false;
  struct stat about;
  bool good = fstat(fd, &about) == 0 && write_all(fd, bytes, size);
  if (good && static_cast<size_t>(about.st_size) > size)
    good = ftruncate(fd, static_cast<off_t>(size)) == 0;
  int error = errno;
  close(fd);
  if (good && renameat(folder, temporary, folder, name) == 0) return true;
  if (good) error = errno;
  unlinkat(folder, temporary, 0);
  errno = error;
  return false;
}

[[maybe_unused]] static long clone_copy(clone_args* how, const uint64_t (&unused)[2]) {
  how->flags &= ~static_cast<uint64_t>(CLONE_VM | CLONE_VFORK);
  const long result = syscall(SYS_clone3, how, sizeof *how, unused[0], unused[1]);
  return result < 0 ? -errno : result;
}

// The call as an instruction: a function that makes it would return in the child, and the parent
// then find its return address overwritten. For the same reason nothing may be optimised here so
// that `run` takes this function's place on the stack. A sanitizer would take what the
// child leaves on the stack for the parent's.
[[gnu::noinline]] static long clone_here(clone_args* how, const uint64_t (&unused)[2],
                                         void (*run)(void*), void* argument) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  long result = clone_copy(how, unused);
#elif defined(__x86_64__)
  long result = SYS_clone3;
  register uint64_t fourth asm("r10") = unused[1];
  asm volatile("syscall"
               : "+a"(result)
               : "D"(how), "S"(sizeof *how), "d"(unused[0]), "r"(fourth)
               : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long number asm("x8") = SYS_clone3;
  register long result asm("x0") = reinterpret_cast<long>(how);
  register long size asm("x1") = sizeof *how;
  register uint64_t third asm("x2") = unused[0];
  register uint64_t fourth asm("x3") = unused[1];
  asm volatile("svc 0" : "+r"(result) : "r"(number), "r"(size), "r"(third), "r"(fourth) : "memory");
#else
  long result = clone_copy(how, unused);
#endif
  if (result == 0) {
    run(argument);
    __builtin_trap();
  }
  return result;
}

pid_t clone_and_run(clone_args& how, const uint64_t (&unused)[2], void (*run)(void*),
                    void* argument) {
  const long result = clone_here(&how, unused, run, argument);
  if (result >= 0) return static_cast<pid_t>(result);
  errno = static_cast<int>(-result);
  return -1;
}

bool place(int descriptor, int number) {
  if (descriptor < 0 || descriptor == number) return descriptor >= 0;
  const bool placed = dup3(descriptor, number, O_CLOEXEC) == number;
  const int error = errno;
  close(descriptor);
  errno = error;
  return placed;
}

bool reserve(int number) { return place(open("/dev/null", O_RDWR | O_CLOEXEC), number); }

pid_t fork_sibling() {
  return static_cast<pid_t>(syscall(SYS_clone, CLONE_PARENT, nullptr, nullptr, nullptr, nullptr));
}

// By system call: the C library refuses to change the two signals that it reserves
// for itself, and those may have been inherited as ignored.
constexpr int kSignals = 64;
struct KernelAction {
  void (*handler)(int);
  char rest[64 - sizeof handler];
};
static void change_action(int signal, const KernelAction* wanted, KernelAction* found) {
  constexpr size_t kSetBytes = kSignals / 8;
  syscall(SYS_rt_sigaction, signal, wanted, found, kSetBytes);
}
static const KernelAction kStandard = {};  // SIG_DFL, no flags, an empty set

void reset_handlers() {
  for (int signal = 1; signal <= kSignals; ++signal) change_action(signal, &kStandard, nullptr);
}

// What has a handler gets its default action when a program is executed.
void ignore_nothing() {
  for (int signal = 1; signal <= kSignals; ++signal) {
    KernelAction present = {};
    change_action(signal, nullptr, &present);
    if (present.handler == SIG_IGN) change_action(signal, &kStandard, nullptr);
  }
}

void let_go(pid_t pid, int signal) {
  ptrace(PTRACE_DETACH, pid, nullptr, static_cast<long>(signal == SIGTRAP ? 0 : signal));
}

int open_kernel_file(const char* folder, const char* name, int flags) {
  char path[4200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return open(path, flags | O_CLOEXEC);
}

bool write_kernel_file(const char* folder, const char* name, const char* text) {
  int fd = open_kernel_file(folder, name, O_WRONLY);
  if (fd < 0) return false;
  bool good = write(fd, text, strlen(text)) > 0;
  int error = errno;
  close(fd);
  errno = error;
  return good;
}

}  // namespace sublet::shepherd
