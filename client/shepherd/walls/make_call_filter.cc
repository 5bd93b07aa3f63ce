// make_call_filter NAME [plain]: run by the build, prints the source file that defines NAME of
// call_filter.cc. The kernel runs a new filter once for each number of a call, to find out what it
// always permits. So it is a tree of numbers; a plain one compares one by one, and is there for a
// test.
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <initializer_list>

namespace {

#ifndef TIOCLINUX
constexpr unsigned TIOCLINUX = 0x541C;
#endif
#ifndef CLONE_NEWTIME
constexpr unsigned CLONE_NEWTIME = 0x80;
#endif

scmp_filter_ctx filter;
bool failed = false;

void add(uint32_t answer, int call, std::initializer_list<scmp_arg_cmp> where = {}) {
  const int error = seccomp_rule_add_array(filter, answer, call,
                                           static_cast<unsigned>(where.size()), where.begin());
  if (error == 0) return;
  fprintf(stderr, "make_call_filter: call %d: %s\n", call, strerror(-error));
  failed = true;
}

void refuse(std::initializer_list<int> calls) {
  for (const int call : calls) add(SCMP_ACT_ERRNO(EPERM), call);
}

void refuse_flag(int call, uint64_t flag) {
  add(SCMP_ACT_ERRNO(EPERM), call, {SCMP_A0_64(SCMP_CMP_MASKED_EQ, flag, flag)});
}

// New namespaces give a job the kernel's code for administrators.
void refuse_namespaces() {
  for (const uint64_t kind : {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC,
                              CLONE_NEWUTS, CLONE_NEWCGROUP}) {
    refuse_flag(SCMP_SYS(unshare), kind);
    refuse_flag(SCMP_SYS(clone), kind);
  }
  refuse_flag(SCMP_SYS(unshare), CLONE_NEWTIME);
  // A child of the shepherd, for which the first process of its namespace would not wait.
  refuse_flag(SCMP_SYS(clone), CLONE_PARENT);
  refuse({SCMP_SYS(setns)});
  // Its flags are in memory, where a filter cannot look. The C library then uses clone.
  add(SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3));
}

void refuse_mounts() {
  refuse({SCMP_SYS(mount), SCMP_SYS(umount), SCMP_SYS(umount2), SCMP_SYS(pivot_root),
          SCMP_SYS(fsopen), SCMP_SYS(fsconfig), SCMP_SYS(fsmount), SCMP_SYS(fspick),
          SCMP_SYS(move_mount), SCMP_SYS(open_tree), SCMP_SYS(mount_setattr)});
}

// The limit of core files stays 1: launch.cc says why. Who lowers or raises it is told that it
// is done, because scripts that say `ulimit -c 0` are to run on.
void keep_core_limit() {
  const scmp_arg_cmp core = SCMP_A0_32(SCMP_CMP_EQ, RLIMIT_CORE);
  add(SCMP_ACT_ERRNO(0), SCMP_SYS(setrlimit), {core});
  const scmp_arg_cmp second = SCMP_A1_32(SCMP_CMP_EQ, RLIMIT_CORE);
  const scmp_arg_cmp sets = SCMP_A2_64(SCMP_CMP_NE, 0);
  add(SCMP_ACT_ERRNO(0), SCMP_SYS(prlimit64), {second, sets, SCMP_A3_64(SCMP_CMP_EQ, 0)});
  // Who also asks for the old one would take it from memory that nobody has written.
  add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), {second, sets, SCMP_A3_64(SCMP_CMP_NE, 0)});
}

// A job with the account of its client could end it by a limit. Its own processes' it may set in
// themselves (0).
void refuse_limits_of_others() {
  add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64),
      {SCMP_A0_32(SCMP_CMP_NE, 0), SCMP_A2_64(SCMP_CMP_NE, 0)});
}

void refuse_all() {
  refuse({SCMP_SYS(keyctl), SCMP_SYS(add_key), SCMP_SYS(request_key)});
  refuse({SCMP_SYS(ioprio_set)});
  refuse({SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd)});
  refuse({SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register)});
  refuse_namespaces();
  refuse_mounts();
  keep_core_limit();
  refuse_limits_of_others();
  // Typing into a terminal as its user.
  for (const uint64_t what : {uint64_t{TIOCSTI}, uint64_t{TIOCLINUX}})
    add(SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), {SCMP_A1_32(SCMP_CMP_EQ, what)});
}

// The kernel may also run programs of these, whose calls have other numbers.
void add_other_architectures() {
  const uint32_t native = seccomp_arch_native();
  int error = 0;
  if (native == SCMP_ARCH_X86_64) error = seccomp_arch_add(filter, SCMP_ARCH_X86);
  if (native == SCMP_ARCH_AARCH64) error = seccomp_arch_add(filter, SCMP_ARCH_ARM);
  failed |= error != 0;
}

bool make_tree() {
  constexpr uint32_t kTree = 2;
  return seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, kTree) == 0;
}

bool print(const char* name) {
  const int file = memfd_create("filter", MFD_CLOEXEC);
  if (file < 0 || seccomp_export_bpf(filter, file) != 0 || lseek(file, 0, SEEK_SET) != 0)
    return false;
  sock_filter row;
  ssize_t size;
  printf(
      "// Made by make_call_filter.\n#include <linux/filter.h>\n"
      "namespace sublet::shepherd {\n"
      "extern const sock_filter %s[];\nextern const unsigned short %sRows;\n"
      "const sock_filter %s[] = {\n",
      name, name, name);
  while ((size = read(file, &row, sizeof row)) == static_cast<ssize_t>(sizeof row))
    printf("{%u, %u, %u, %uu},\n", row.code, row.jt, row.jf, row.k);
  printf("};\nconst unsigned short %sRows = sizeof %s / sizeof *%s;\n}\n", name, name, name);
  return size == 0 && fflush(stdout) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool plain = argc == 3 && strcmp(argv[2], "plain") == 0;
  if (argc != 2 && !plain) return 64;
  filter = seccomp_init(SCMP_ACT_ALLOW);
  if (filter == nullptr) return 1;
  // Calls by numbers of a kind that is not known here, such as x32.
  failed |= seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)) != 0;
  add_other_architectures();
  refuse_all();
  failed |= !plain && !make_tree();
  if (!failed && print(argv[1])) return 0;
  fprintf(stderr, "make_call_filter: the filter cannot be made\n");
  return 1;
}
