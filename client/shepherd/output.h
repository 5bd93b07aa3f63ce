// stdout and stderr of the job, each stored in a file up to its limit; bytes beyond
// that are counted and dropped. The job writes to pipes; a thread, created at the first
// output, moves the bytes to the files, so that a slow disk delays neither the job's
// eviction nor the shepherd. A flood of output costs the owner a hundredth of a core, and
// makes the job wait. (RLIMIT_FSIZE would limit every file of the job and kill
// it.)
#ifndef SUBLET_CLIENT_SHEPHERD_OUTPUT_H_
#define SUBLET_CLIENT_SHEPHERD_OUTPUT_H_

#include <pthread.h>
#include <stdint.h>

#include "client/shepherd/cpu_share.h"

namespace sublet::shepherd {

class Output {
 public:
  // Creates the pipes. The files in `folder` are created at the first output. False
  // with errno.
  bool open(int folder, int64_t first_limit, int64_t second_limit);
  // The write end of a pipe, for the job.
  int job_end(int stream) const { return streams_[stream].job_end; }
  // To be polled for input; -1 after start() or ended().
  int poll_fd(int stream) const {
    return started_ || streams_[stream].ended ? -1 : streams_[stream].pipe;
  }
  // Stops polling a pipe that is empty and has no writer, which happens only if start() could not
  // create the thread: it would wake poll() at once every time, and a spinning shepherd would
  // starve the dying job, which has almost no CPU weight.
  void ended(int stream) { streams_[stream].ended = true; }
  // There is output: creates the thread, and closes this process's copies of the write ends, so
  // that the thread sees the end of file. Until then they keep a program that closes its streams,
  // as most do in the end, from waking poll().
  void start();
  // After the last process is gone: stores what is in the pipes now. Does not wait for end of
  // file: another process that got the job's stdout may keep it open forever.
  void finish();

  int64_t kept(int stream) const { return streams_[stream].kept; }
  int64_t dropped(int stream) const { return streams_[stream].dropped; }

 private:
  struct Stream {
    const char* name = nullptr;
    int pipe = -1;
    int job_end = -1;
    bool ended = false;
    int file = -1;
    int64_t limit = 0;
    int64_t kept = 0;
    int64_t dropped = 0;
  };

  static void* run(void* self);
  void close_job_ends();
  void move_all();
  bool move_some(Stream& stream);
  void move_rest();
  bool keep(Stream& stream, const char* bytes, int64_t size);

  Stream streams_[2];
  int folder_ = -1;
  int nowhere_ = -1;  // /dev/null
  int stop_ = -1;     // eventfd that stops the thread
  CpuShare share_;    // used by the thread alone
  bool started_ = false;
  pthread_t thread_ = {};
  char buffer_[16384];
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_OUTPUT_H_
