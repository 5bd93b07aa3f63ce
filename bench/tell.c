/* A job that reports when it runs, by datagrams (datagram.h).
 *
 * usage: bench-tell SOCKET end|leave
 *
 * It sends "start". end: exits at once. leave: waits; when asked to leave, it sends "told"
 * and exits as a program that has saved. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "bench/datagram.h"

#define LEFT 75 /* exit status of a program that leaves as asked: evicted, not failed */

static volatile sig_atomic_t asked;
static volatile int64_t asked_ns;

static void take_note(int signal) {
  (void)signal;
  asked_ns = now_ns();
  asked = 1;
}

int main(int argc, char** argv) {
  int64_t began = now_ns();
  if (argc != 3 || (strcmp(argv[2], "end") && strcmp(argv[2], "leave"))) {
    fputs("usage: bench-tell SOCKET end|leave\n", stderr);
    return 2;
  }
  struct sigaction action = {.sa_handler = take_note};
  sigset_t term, old;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, &old);
  sigaction(SIGTERM, &action, NULL);
  tell(argv[1], "start", began);
  if (!strcmp(argv[2], "end")) return 0;
  while (!asked) sigsuspend(&old);
  tell(argv[1], "told", asked_ns);
  return LEFT;
}
