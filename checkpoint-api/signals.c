/* SIGTERM: save and leave. SIGUSR1: save and continue. The handler only sets flags and
 * counts the SIGTERM in the status page, so that the shepherd gives it time to save. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>

#include "checkpoint-api/internal.h"

static int leave_flag;
static int save_flag;
static uint32_t* leave_seen;
static struct sigaction term_before;
static int taken;
int sublet_wanted;

static void on_signal(int number) {
  if (number == SIGTERM) __atomic_fetch_add(leave_seen, 1, __ATOMIC_RELAXED);
  __atomic_store_n(number == SIGTERM ? &leave_flag : &save_flag, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&sublet_wanted, 1, __ATOMIC_RELEASE);
}

void sublet_signals_take(uint32_t* counter) {
  leave_seen = counter;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART; /* the program's own system calls must not fail with EINTR */
  sigemptyset(&action.sa_mask);
  leave_flag = save_flag = sublet_wanted = 0;
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGTERM, &action, &term_before);
  taken = 1;
}

void sublet_signals_give_back(void) {
  if (!taken) return;
  taken = 0;
  /* A request may still arrive, and SIGUSR1's default action would kill the program. */
  signal(SIGUSR1, SIG_IGN);
  sigaction(SIGTERM, &term_before, NULL);
}

int sublet_take_save_request(void) {
  /* First clear sublet_wanted, then the flag: a request in between is seen now or later. */
  if (!sublet_leave_requested()) __atomic_store_n(&sublet_wanted, 0, __ATOMIC_SEQ_CST);
  const int requested = __atomic_exchange_n(&save_flag, 0, __ATOMIC_SEQ_CST);
  /* A request to leave between the two lines above must set sublet_wanted again. */
  if (sublet_leave_requested()) __atomic_store_n(&sublet_wanted, 1, __ATOMIC_SEQ_CST);
  return requested;
}

int sublet_leave_requested(void) { return __atomic_load_n(&leave_flag, __ATOMIC_SEQ_CST); }
