/* SIGTERM: save and leave. SIGUSR1: save and continue. The handler only sets flags and
 * counts the SIGTERM in the status page, so that the shepherd gives it time to save.
 *
 * In a forked child neither may touch what is the parent's. A handler that runs after fork
 * restores the signals there. The signal handler checks the process, too: it may run before
 * that, or in a child that was made by clone.
 *
 * A periodic save is announced by a kernel timer, with SIGUSR1 too, so that a point reads
 * one word and nothing else. The other way is to count points and to read the clock every
 * N-th time: measured in a loop with nothing else in it, each point then waits for the
 * count that the one before it stored, 0.9 to 2.5 ns instead of less than 0.1; threads
 * would share that count; and a program whose points become rare would notice late. A
 * helper thread would make every program one with threads. The signal's price is that once
 * a period it ends a system call that SA_RESTART does not restart, such as poll, which a
 * program that can be asked to save has to expect anyway. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint-api/internal.h"

static int leave_flag;
static int save_flag;
static int due_flag;
static int* attention;
static uint32_t* leave_seen;
static struct sigaction term_before;
static struct sublet_checkpoint* answering; /* NULL: the signals are not ours */
static pid_t process;                       /* whose it is */
static timer_t timer;
static int timer_made;
static int wake_up = -1; /* an eventfd, once the program has asked for it */

static void make_readable(void) {
  const int fd = __atomic_load_n(&wake_up, __ATOMIC_RELAXED);
  if (fd >= 0) eventfd_write(fd, 1);
}

static void restore_handlers(void) {
  /* A request may still arrive, and SIGUSR1's default action would kill the program. */
  signal(SIGUSR1, SIG_IGN);
  sigaction(SIGTERM, &term_before, NULL);
}

static void after_fork(void) {
  if (answering == NULL) return;
  restore_handlers();
  timer_made = 0; /* timers are not inherited */
  wake_up = -1;   /* shared with the parent; closed on exec */
  sublet_disown(answering);
  answering = NULL;
}

static void register_after_fork(void) { pthread_atfork(NULL, NULL, after_fork); }

static void on_signal(int number, siginfo_t* info, void* context) {
  (void)context;
  const int error = errno;
  if (getpid() != process) {
    restore_handlers();
    if (number == SIGTERM) kill(getpid(), SIGTERM); /* delivered when this returns */
    errno = error;
    return;
  }
  int* flag = info->si_code == SI_TIMER ? &due_flag : &save_flag;
  if (number == SIGTERM) {
    __atomic_fetch_add(leave_seen, 1, __ATOMIC_RELAXED);
    flag = &leave_flag;
  }
  __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
  /* Before attention: who clears that makes the descriptor unreadable afterwards. */
  make_readable();
  __atomic_store_n(attention, 1, __ATOMIC_SEQ_CST);
  errno = error;
}

void sublet_signals_take(struct sublet_checkpoint* c) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, register_after_fork);
  attention = &c->shown.attention;
  leave_seen = &c->status->leave_seen;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_signal;
  /* The program's own system calls must not fail with EINTR. */
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  leave_flag = save_flag = due_flag = *attention = 0;
  process = getpid();
  answering = c;
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGTERM, &action, &term_before);
}

int sublet_signals_taken_by_parent(void) { return process != 0 && process != getpid(); }

void sublet_signals_give_back(void) {
  if (answering == NULL) return;
  answering = NULL;
  process = 0;
  if (timer_made) timer_delete(timer);
  timer_made = 0;
  restore_handlers();
  if (wake_up >= 0) close(wake_up);
  wake_up = -1;
}

int sublet_signals_plan(uint64_t ms) {
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGUSR1;
  if (!timer_made && ms != 0) {
    if (timer_create(CLOCK_BOOTTIME, &event, &timer) != 0) return -1;
    timer_made = 1;
  }
  __atomic_store_n(&due_flag, 0, __ATOMIC_RELAXED);
  if (!timer_made) return 0;
  const struct itimerspec next = {
      .it_value = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000}};
  return timer_settime(timer, 0, &next, NULL);
}

void sublet_take_requests(int* save, int* due) {
  /* First clear attention, then the flags: a request in between is seen now or later. */
  if (!sublet_leave_requested()) {
    eventfd_t count;
    __atomic_store_n(attention, 0, __ATOMIC_SEQ_CST);
    if (wake_up >= 0) eventfd_read(wake_up, &count);
  }
  *save = __atomic_exchange_n(&save_flag, 0, __ATOMIC_SEQ_CST);
  *due = __atomic_exchange_n(&due_flag, 0, __ATOMIC_SEQ_CST);
  /* A request to leave in between must set attention again. */
  if (sublet_leave_requested()) __atomic_store_n(attention, 1, __ATOMIC_SEQ_CST);
}

int sublet_any_request(void) {
  return __atomic_load_n(&save_flag, __ATOMIC_SEQ_CST) ||
         __atomic_load_n(&due_flag, __ATOMIC_SEQ_CST) || sublet_leave_requested();
}

int sublet_signals_descriptor(void) {
  if (wake_up >= 0) return wake_up;
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return -1;
  __atomic_store_n(&wake_up, fd, __ATOMIC_SEQ_CST);
  if (sublet_any_request()) make_readable(); /* it came before there was a descriptor */
  return fd;
}

int sublet_leave_requested(void) { return __atomic_load_n(&leave_flag, __ATOMIC_SEQ_CST); }
