/* A job that reports when it runs: it sends datagrams "WORD JOB ATTEMPT PID NS" to a
 * socket that any user may write to; NS is CLOCK_MONOTONIC in nanoseconds.
 *
 * usage: bench-tell SOCKET end|leave|stay [FILE]
 *
 * It sends "start". end: exits at once. leave: waits; when asked to leave, it sends "told"
 * and exits as a program that has saved. stay: ignores the request to leave and uses all the
 * CPU time that it gets; the instant at which it last ran is stored as eight octets in FILE. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LEFT 75 /* exit status of a program that leaves as asked: evicted, not failed */

static volatile sig_atomic_t asked;
static volatile int64_t asked_ns;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void take_note(int signal) {
  (void)signal;
  asked_ns = now_ns();
  asked = 1;
}

static void tell(const char* socket_path, const char* word, int64_t at_ns) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  char text[128];
  const char* job = getenv("SUBLET_JOB");
  const char* attempt = getenv("SUBLET_ATTEMPT");
  int length = snprintf(text, sizeof text, "%s %s %s %d %lld", word, job ? job : "0",
                        attempt ? attempt : "0", (int)getpid(), (long long)at_ns);
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || strlen(socket_path) >= sizeof to.sun_path) exit(1);
  strcpy(to.sun_path, socket_path);
  if (sendto(fd, text, (size_t)length, 0, (struct sockaddr*)&to, sizeof to) != length) exit(1);
  close(fd);
}

static void stay(const char* file) {
  int fd = open(file, O_RDWR | O_CLOEXEC);
  volatile int64_t* last =
      fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *last, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (last == MAP_FAILED) exit(1);
  for (;;) *last = now_ns();
}

int main(int argc, char** argv) {
  int64_t began = now_ns();
  const int stays = argc == 4 && !strcmp(argv[2], "stay");
  if (!stays && (argc != 3 || (strcmp(argv[2], "end") && strcmp(argv[2], "leave")))) {
    fputs("usage: bench-tell SOCKET end|leave|stay [FILE]\n", stderr);
    return 2;
  }
  if (stays) {
    signal(SIGTERM, SIG_IGN);
    tell(argv[1], "start", began);
    stay(argv[3]);
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
