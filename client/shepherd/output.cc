#include "client/shepherd/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/attempt_format.h"

namespace sublet::shepherd {

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
  }
  return true;
}

void Output::close_job_ends() {
  for (Stream& stream : streams_) close(stream.job_end);
}

void Output::start() {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 * 1024);
  started_ = pthread_create(&thread_, &small, run, this) == 0;
  pthread_attr_destroy(&small);
  if (started_) return;
  // No thread to be had: the job's output is moved here, or the job would stop.
  for (Stream& stream : streams_) {
    pollfd ready = {stream.pipe, POLLIN, 0};
    if (poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN)) move_some(stream);
  }
}

void* Output::run(void* self) {
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
  ssize_t count = read(stream.pipe, buffer_, sizeof buffer_);
  if (count < 0) return errno == EINTR;
  if (count == 0) return false;
  int64_t room = stream.limit - stream.kept;
  int64_t wanted = count < room ? count : room;
  int64_t before = stream.kept;
  // A full disk ends the file here: a gap would be worse than an end.
  if (wanted > 0 && !keep(stream, buffer_, wanted)) stream.limit = stream.kept;
  stream.dropped += count - (stream.kept - before);
  return true;
}

void Output::move_all() {
  pollfd waiting[2] = {{streams_[0].pipe, POLLIN, 0}, {streams_[1].pipe, POLLIN, 0}};
  while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
    if (poll(waiting, 2, -1) < 0 && errno != EINTR) return;
    for (int i = 0; i < 2; ++i)
      if (waiting[i].fd >= 0 && waiting[i].revents && !move_some(streams_[i])) waiting[i].fd = -1;
  }
}

void Output::finish() {
  if (started_)
    pthread_join(thread_, nullptr);
  else
    move_all();
  for (Stream& stream : streams_)
    if (stream.file >= 0) fdatasync(stream.file);
}

}  // namespace sublet::shepherd
