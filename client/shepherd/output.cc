#include "client/shepherd/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "attempt/disk_priority.h"
#include "attempt/format.h"

namespace sublet::shepherd {
namespace {

constexpr size_t kDroppedAtOnce = 1 << 20;

int64_t read_clock(clockid_t clock) {
  struct timespec now = {};
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000ll + now.tv_nsec;
}

}  // namespace

bool Output::open(int folder, int64_t first_limit, int64_t second_limit) {
  folder_ = folder;
  streams_[0].name = SUBLET_STDOUT_FILE;
  streams_[1].name = SUBLET_STDERR_FILE;
  streams_[0].limit = first_limit;
  streams_[1].limit = second_limit;
  for (Stream& stream : streams_) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    stream.pipe = ends[0];
    stream.job_end = ends[1];
    // Only our end: the job's must block, as programs expect.
    if (fcntl(stream.pipe, F_SETFL, O_NONBLOCK) != 0) return false;
  }
  return true;
}

void Output::close_job_ends() {
  for (Stream& stream : streams_) {
    if (stream.job_end >= 0) close(stream.job_end);
    stream.job_end = -1;
  }
}

// Needed by few programs.
void Output::start() {
  close_job_ends();
  nowhere_ = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  stop_ = eventfd(0, EFD_CLOEXEC);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 * 1024);
  started_ = stop_ >= 0 && pthread_create(&thread_, &small, run, this) == 0;
  pthread_attr_destroy(&small);
  if (started_) return;
  // The thread could not be created: move the output here, or the job would block.
  for (Stream& stream : streams_) {
    pollfd ready = {stream.pipe, POLLIN, 0};
    if (poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN)) move_some(stream);
  }
}

void* Output::run(void* self) {
  set_disk_priority(0, DiskPriority::kIdle);
  static_cast<Output*>(self)->move_all();
  return nullptr;
}

bool Output::keep(Stream& stream, const char* bytes, int64_t size) {
  if (stream.file < 0)
    stream.file =
        openat(folder_, stream.name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  while (size > 0) {
    ssize_t count = stream.file < 0 ? -1 : write(stream.file, bytes, static_cast<size_t>(size));
    if (count <= 0) return false;
    stream.kept += count;
    bytes += count;
    size -= count;
  }
  return true;
}

// False at the end of the stream.
bool Output::move_some(Stream& stream) {
  const int64_t room = stream.limit - stream.kept;
  // What is not kept is not copied either.
  const ssize_t count = room > 0 || nowhere_ < 0 ? read(stream.pipe, buffer_, sizeof buffer_)
                                                 : splice(stream.pipe, nullptr, nowhere_, nullptr,
                                                          kDroppedAtOnce, SPLICE_F_NONBLOCK);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (count == 0) return false;
  int64_t wanted = count < room ? count : room;
  int64_t before = stream.kept;
  // If the disk is full, the file ends here: a gap would be worse.
  if (wanted > 0 && !keep(stream, buffer_, wanted)) stream.limit = stream.kept;
  stream.dropped += count - (stream.kept - before);
  return true;
}

void Output::move_all() {
  pollfd waiting[3] = {
      {streams_[0].pipe, POLLIN, 0}, {streams_[1].pipe, POLLIN, 0}, {stop_, POLLIN, 0}};
  while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
    if (poll(waiting, 3, -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (waiting[2].revents) return;
    for (int i = 0; i < 2; ++i)
      if (waiting[i].fd >= 0 && waiting[i].revents && !move_some(streams_[i])) waiting[i].fd = -1;
    if (const int rest =
            share_.rest_ms(read_clock(CLOCK_MONOTONIC), read_clock(CLOCK_THREAD_CPUTIME_ID));
        rest > 0 && poll(&waiting[2], 1, rest) > 0)
      return;
  }
}

// Only the bytes that are there now: another process may keep adding more.
void Output::move_rest() {
  for (Stream& stream : streams_) {
    int there = 0;
    if (ioctl(stream.pipe, FIONREAD, &there) != 0) continue;
    for (int64_t left = there; left > 0;) {
      int64_t before = stream.kept + stream.dropped;
      move_some(stream);
      int64_t moved = stream.kept + stream.dropped - before;
      left = moved > 0 ? left - moved : 0;
    }
  }
}

void Output::finish() {
  uint64_t one = 1;
  if (started_ && write(stop_, &one, sizeof one) == static_cast<ssize_t>(sizeof one))
    pthread_join(thread_, nullptr);
  move_rest();
}

}  // namespace sublet::shepherd
