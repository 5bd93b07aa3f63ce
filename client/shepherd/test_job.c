/* The jobs of the shepherd's tests: test_job MODE [NUMBER]. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint-api/sublet_status.h"

static struct sublet_status* page;
static volatile sig_atomic_t asked_to_leave, asked_to_save;

static void note_leave(int signal) {
  (void)signal;
  asked_to_leave = 1;
  if (page) page->leave_seen++;
}
static void note_leave_silently(int signal) {
  (void)signal;
  asked_to_leave = 1;
}
static void note_save(int signal) {
  (void)signal;
  asked_to_save = 1;
}

static void burn_ms(long ms) {
  struct timespec now;
  do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
}

static void map_page(void) {
  int fd = open(getenv("SUBLET_STATUS"), O_RDWR);
  page = mmap(NULL, SUBLET_STATUS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) exit(99);
  page->magic = SUBLET_STATUS_MAGIC;
  page->version = SUBLET_STATUS_VERSION;
  page->progress_ppm = 250000;
}

/* Saves when asked, using `ms` of CPU time per save; creates the file "ready" in its
 * working folder when it has started. */
static int aware(long ms) {
  struct timespec nap = {10, 0};
  sigset_t both, none;
  sigemptyset(&none);
  sigemptyset(&both);
  sigaddset(&both, SIGTERM);
  sigaddset(&both, SIGUSR1);
  sigprocmask(SIG_BLOCK, &both, NULL);
  signal(SIGTERM, note_leave);
  signal(SIGUSR1, note_save);
  map_page();
  page->aware = 1;
  close(open("ready", O_CREAT | O_WRONLY, 0600));
  for (;;) {
    while (!asked_to_leave && !asked_to_save) pselect(0, NULL, NULL, NULL, &nap, &none);
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    burn_ms(used.tv_sec * 1000 + used.tv_nsec / 1000000 + ms);
    page->checkpoint_bytes = 1234;
    clock_gettime(CLOCK_BOOTTIME, &used);
    page->saved_boot_ns = used.tv_sec * 1000000000ull + used.tv_nsec;
    page->generation++;
    asked_to_save = 0;
    if (!asked_to_leave) continue;
    page->left = 1;
    return SUBLET_EXIT_LEFT;
  }
}

static void spin(void) {
  close(open("ready", O_CREAT | O_WRONLY, 0600));
  for (volatile unsigned i = 0;; ++i) {
  }
}

/* `reports`: with a status page, so that the job is lifted. */
static void burn_when_asked(int reports) {
  if (reports) {
    map_page();
    page->aware = 1;
  }
  signal(SIGTERM, note_leave);
  close(open("ready", O_CREAT | O_WRONLY, 0600));
  while (!asked_to_leave) pause();
  spin();
}

/* Leaves `count` daemons behind: double fork, own session. */
static void make_daemons(long count) {
  for (long i = 0; i < count; ++i) {
    if (fork() != 0) {
      wait(NULL);
      continue;
    }
    setsid();
    if (fork() != 0) _exit(0);
    setsid();
    for (;;) pause();
  }
  close(open("ready", O_CREAT | O_WRONLY, 0600));
}

/* Continually replaces its process by a forked one. */
static void run_away(void) {
  close(open("ready", O_CREAT | O_WRONLY, 0600));
  for (;;) {
    setsid();
    if (fork() != 0) _exit(0);
  }
}

static void fork_bomb(void) {
  close(open("ready", O_CREAT | O_WRONLY, 0600));
  for (;;)
    if (fork() < 0) usleep(1000);
}

/* 1 if any signal is ignored, including those that the C library hides. */
static int any_ignored(void) {
  char line[256];
  unsigned long long ignored = 1;
  FILE* status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status)) sscanf(line, "SigIgn: %llx", &ignored);
  fclose(status);
  return ignored != 0;
}

/* Stops every process that it may, forever. */
static void stop_everybody(void) {
  signal(SIGTERM, SIG_IGN);
  close(open("ready", O_CREAT | O_WRONLY, 0600));
  for (;;) kill(-1, SIGSTOP);
}

/* Leaves memory behind in every way that outlives a process. */
static int leave_memory(void) {
  int memory = shm_open("/sublet-test-left", O_CREAT | O_RDWR, 0600);
  int file = open("/tmp/sublet-test-left", O_CREAT | O_WRONLY, 0600);
  return memory < 0 || file < 0 || shmget(0x5b1e7, 4096, IPC_CREAT | 0600) < 0;
}

/* When asked to leave, starts one short-lived process after another. */
static void burn_in_children(void) {
  map_page();
  page->aware = 1;
  signal(SIGTERM, note_leave);
  close(open("ready", O_CREAT | O_WRONLY, 0600));
  while (!asked_to_leave) pause();
  for (;;) {
    if (fork() == 0) {
      burn_ms(2);
      _exit(0);
    }
    wait(NULL);
  }
}

/* `weight`: cpu.idle of its cgroup, its autogroup, or "class": that of the scheduler. */
static int has_normal_weight(const char* weight) {
  char text[64] = {0};
  if (!strcmp(weight, "class")) return sched_getscheduler(0) != SCHED_IDLE;
  int fd = open(weight, O_RDONLY);
  if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) exit(94);
  close(fd);
  const char* nice = strstr(text, " nice ");
  return nice ? atoi(nice + 6) < 19 : text[0] == '0';
}

/* What a job sees of its own weight; the test reads it from the file "weight". */
struct weight_seen {
  int normal; /* now */
  int lifts;  /* how often it became normal */
  int asked;  /* SIGTERM has arrived */
};

/* Looks at its weight all the time. How it answers SIGTERM: "none"; "handler"; "mute": it has a
 * page, but its handler does not report; "late": with a page, but SIGTERM is blocked until the
 * job was lifted and demoted again; when it is lifted once more, it saves and leaves. */
static int watch(const char* answer, const char* weight) {
  int late = !strcmp(answer, "late"), reports = late || !strcmp(answer, "mute");
  int fd = open("weight", O_CREAT | O_RDWR, 0600);
  if (ftruncate(fd, sizeof(struct weight_seen)) != 0) exit(93);
  volatile struct weight_seen* seen =
      mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  if (late) sigprocmask(SIG_BLOCK, &term, NULL);
  if (reports) map_page();
  if (strcmp(answer, "none")) signal(SIGTERM, late ? note_leave : note_leave_silently);
  if (reports) page->aware = 1;
  /* Before the test may say that the owner is back. Normal at first is no lift. */
  seen->normal = has_normal_weight(weight);
  int before = seen->normal ? -1 : 0;
  close(open("ready", O_CREAT | O_WRONLY, 0600));
  for (;;) {
    int normal = has_normal_weight(weight);
    if (normal && !seen->normal) seen->lifts++;
    seen->normal = normal;
    seen->asked = asked_to_leave;
    if (!late) continue;
    if (before < 0 && !normal) before = seen->lifts;
    if (before >= 0 && seen->lifts > before && !normal) sigprocmask(SIG_UNBLOCK, &term, NULL);
    if (!asked_to_leave || !normal) continue;
    page->generation++;
    page->left = 1;
    return SUBLET_EXIT_LEFT;
  }
}

/* A program built before the status page had leave_seen. */
static int older(void) {
  map_page();
  page->version = 1;
  signal(SIGTERM, note_leave_silently);
  page->aware = 1;
  close(open("ready", O_CREAT | O_WRONLY, 0600));
  while (!asked_to_leave) pause();
  page->wants_seen++;
  burn_ms(20);
  page->generation++;
  page->left = 1;
  return SUBLET_EXIT_LEFT;
}

/* Handles SIGTERM, and has a child that burns in a session of its own once the file "go"
 * exists; its pid is in the file "session". */
static void burn_in_a_new_session(void) {
  signal(SIGTERM, note_leave);
  if (fork() == 0) {
    close(open("ready", O_CREAT | O_WRONLY, 0600));
    while (access("go", F_OK) != 0) usleep(1000);
    setsid();
    char pid[16];
    int length = snprintf(pid, sizeof pid, "%d", (int)getpid());
    int fd = open("session.new", O_CREAT | O_WRONLY, 0600);
    if (write(fd, pid, (size_t)length) != length || rename("session.new", "session") != 0) exit(92);
    spin();
  }
  for (;;) pause();
}

static void inspect(void) {
  struct sigaction action;
  sigset_t mask;
  int odd = any_ignored(), death = 0;
  struct rlimit core;
  for (int i = 1; i < NSIG; ++i)
    odd += sigaction(i, NULL, &action) == 0 && action.sa_handler != SIG_DFL;
  sigprocmask(SIG_SETMASK, NULL, &mask);
  for (int i = 1; i < NSIG; ++i) odd += sigismember(&mask, i) == 1;
  prctl(PR_GET_PDEATHSIG, &death);
  getrlimit(RLIMIT_CORE, &core);
  int open_files = 0;
  for (int i = 3; i < 1024; ++i) open_files += fcntl(i, F_GETFD) >= 0;
  mode_t mask_bits = umask(0);
  printf("signals %d files %d session %d group %d umask %03o core %ld death %d new_privs %d\n", odd,
         open_files, getsid(0) == getpid(), getpgrp() == getpid(), mask_bits, (long)core.rlim_max,
         death, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

static void say(const char* what, long result) {
  printf("%s %s\n", what, result < 0 ? strerrorname_np(errno) : "done");
}

static sigjmp_buf no_32_bit_calls;
static void give_up_32_bit(int signal) { siglongjmp(no_32_bit_calls, signal); }

/* A call by the numbers of 32-bit programs. The kernel may not run such. */
static void try_32_bit_keyctl(void) {
#if defined(__x86_64__)
  long result;
  signal(SIGSEGV, give_up_32_bit);
  if (sigsetjmp(no_32_bit_calls, 1) == 0) {
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(288), "b"(0), "c"(-3), "d"(0) : "memory");
    printf("32-bit keyctl %s\n", result < 0 ? strerrorname_np(-(int)result) : "done");
    return;
  }
#endif
  puts("no 32-bit calls");
}

static long read_memory(pid_t of) {
  static char from = 'x', to;
  struct iovec here = {&to, 1}, there = {&from, 1};
  return process_vm_readv(of, &here, 1, &there, 1, 0);
}

/* Returns 7 if a signal to itself is handled although it is traced. */
static int be_traced(void) {
  signal(SIGUSR1, note_leave_silently);
  ptrace(PTRACE_TRACEME, 0, NULL, NULL);
  raise(SIGUSR1);
  return asked_to_leave ? 7 : 8;
}

static int be_traced_as_orphan(void) {
  if (fork() == 0) {
    const pid_t parent = getpid();
    if (fork() == 0) {
      while (getppid() == parent) usleep(1000);
      close(open(be_traced() == 7 ? "done" : "failed", O_CREAT | O_WRONLY, 0600));
      _exit(0);
    }
    _exit(0);
  }
  wait(NULL);
  while (access("done", F_OK) != 0) usleep(1000);
  return 0;
}

/* Asks for what a filter of system calls refuses, and for a little more. */
static void ask_the_kernel(void) {
  struct rlimit core = {0, 0};
  say("keyctl", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0));
  say("add_key", syscall(SYS_add_key, "user", "x", "x", 1, KEY_SPEC_PROCESS_KEYRING));
  say("request_key", syscall(SYS_request_key, "user", "x", NULL, 0));
  say("bpf", syscall(SYS_bpf, 0, NULL, 0));
  say("perf_event_open", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
  say("userfaultfd", syscall(SYS_userfaultfd, 0));
  say("io_uring_setup", syscall(SYS_io_uring_setup, 0, NULL));
  say("unshare user", unshare(CLONE_NEWUSER));
  say("unshare time", unshare(0x80));
  say("unshare files", unshare(CLONE_FILES));
  long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  say("clone user", child);
  child = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  say("clone beside", child);
  say("clone3", syscall(SYS_clone3, NULL, 0));
  say("setns", syscall(SYS_setns, -1, 0));
  say("mount", syscall(SYS_mount, "none", "/none", "tmpfs", 0, NULL));
  say("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
  say("ioprio_set", syscall(SYS_ioprio_set, 1, 0, 0));
  say("TIOCSTI", ioctl(0, TIOCSTI, "x"));
  struct rlimit none = {0, 0};
  say("another's limit", prlimit(1, RLIMIT_CPU, &none, NULL));
  say("its own limits", prlimit(getpid(), RLIMIT_CPU, NULL, &none));
  setrlimit(RLIMIT_CORE, &core);
  say("core limit again", prlimit(0, RLIMIT_CORE, &core, &core));
  getrlimit(RLIMIT_CORE, &core);
  printf("core limit %ld\n", (long)core.rlim_cur);
#if defined(__x86_64__)
  say("x32 getpid", syscall(0x40000000 + SYS_getpid));
#else
  puts("x32 getpid ENOSYS");
#endif
  fflush(stdout);
  child = fork();
  if (child == 0) _exit(0);
  say("fork", child);
  waitpid((pid_t)child, NULL, 0);
  say("read itself", read_memory(getpid()));
  say("trace", ptrace(PTRACE_TRACEME, 0, NULL, NULL));
  try_32_bit_keyctl();
}

/* Tries what a job must not be permitted to do; arguments: a pid, then files. */
static int trespass(int count, char** what) {
  int got = 0;
  if (kill(atoi(what[0]), SIGKILL) == 0) got |= 1;
  for (int i = 1; i < count; ++i) {
    if (open(what[i], O_RDONLY) >= 0) got |= 2;
    if (open(what[i], O_WRONLY | O_CREAT, 0600) >= 0) got |= 4;
    if (unlink(what[i]) == 0) got |= 8;
  }
  return got;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  long number = argc > 2 ? atol(argv[2]) : 0;
  if (!strcmp(mode, "exit")) return (int)number;
  if (!strcmp(mode, "aware")) return aware(number);
  if (!strcmp(mode, "inspect")) inspect();
  if (!strcmp(mode, "be-traced")) return be_traced();
  if (!strcmp(mode, "orphan-be-traced")) return be_traced_as_orphan();
  if (!strcmp(mode, "ask-the-kernel")) ask_the_kernel();
  if (!strcmp(mode, "raise")) raise((int)number);
  if (!strcmp(mode, "spin")) spin();
  if (!strcmp(mode, "trespass")) return trespass(argc - 2, argv + 2);
  if (!strcmp(mode, "watch")) return watch(argv[2], argv[3]);
  if (!strcmp(mode, "older")) return older();
  if (!strcmp(mode, "burn-in-a-new-session")) burn_in_a_new_session();
  if (!strcmp(mode, "burn-when-asked")) burn_when_asked(0);
  if (!strcmp(mode, "report-and-burn")) burn_when_asked(1);
  if (!strcmp(mode, "burn-in-children")) burn_in_children();
  if (!strcmp(mode, "stop-everybody")) stop_everybody();
  if (!strcmp(mode, "leave-memory")) return leave_memory();
  if (!strcmp(mode, "run-away")) run_away();
  if (!strcmp(mode, "fork-bomb")) fork_bomb();
  if (!strcmp(mode, "write"))
    for (long i = 0; i < number; ++i)
      if (putchar("0123456789"[i % 10]) == EOF) return 98;
  if (!strcmp(mode, "file")) {
    char block[4096] = {0};
    int fd = open("big", O_CREAT | O_WRONLY, 0600);
    for (long i = 0; i < number; i += 4096)
      if (write(fd, block, sizeof block) < 0) return 97;
  }
  if (!strcmp(mode, "memory")) {
    char* memory = malloc((size_t)number);
    if (!memory) return 96;
    memset(memory, 1, (size_t)number);
    pause();
  }
  if (!strcmp(mode, "connect")) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct sockaddr* any = (struct sockaddr*)&to;
    socklen_t size = sizeof to;
    say("to this machine", connect(socket(AF_INET, SOCK_STREAM, 0), any, size));
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_port = 0;
    if (bind(listener, any, size) != 0 || listen(listener, 1) != 0) return 89;
    getsockname(listener, any, &size);
    say("to itself", connect(socket(AF_INET, SOCK_STREAM, 0), any, size));
    return 0;
  }
  if (!strcmp(mode, "deaf")) {
    signal(SIGTERM, SIG_IGN);
    close(open("ready", O_CREAT | O_WRONLY, 0600));
    for (;;) pause();
  }
  if (!strcmp(mode, "claim")) {
    map_page();
    page->aware = 1;
    close(open("ready", O_CREAT | O_WRONLY, 0600));
    for (;;) pause();
  }
  if (!strcmp(mode, "wait")) {
    close(open("ready", O_CREAT | O_WRONLY, 0600));
    for (;;) pause();
  }
  if (!strcmp(mode, "daemons")) make_daemons(number);
  if (!strcmp(mode, "daemons-and-wait")) {
    make_daemons(number);
    for (;;) pause();
  }
  if (!strcmp(mode, "say")) { /* fills the whole message from the second on */
    map_page();
    memset(page->message, 'x', number > 2 ? sizeof page->message : 4);
    page->message_count = (uint32_t)number;
    close(open("ready", O_CREAT | O_WRONLY, 0600));
    for (;;) pause();
  }
  if (!strcmp(mode, "lie")) {
    map_page();
    memset(page, 0xff, sizeof *page);
    page->magic = SUBLET_STATUS_MAGIC;
    page->version = SUBLET_STATUS_VERSION;
    if (truncate(getenv("SUBLET_STATUS"), number) != 0) return 95;
  }
  return 0;
}
