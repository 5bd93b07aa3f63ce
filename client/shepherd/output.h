// stdout and stderr of the job, each kept in a file up to its bound; what comes
// after that is counted and dropped. The job writes into pipes; a thread, made
// when the first byte comes, moves the bytes, so that a slow disk holds up
// neither the job's eviction nor the shepherd. (RLIMIT_FSIZE would bound every
// file of the job and kill it.)
#ifndef SUBLET_CLIENT_SHEPHERD_OUTPUT_H_
#define SUBLET_CLIENT_SHEPHERD_OUTPUT_H_

#include <pthread.h>
#include <stdint.h>

namespace sublet::shepherd {

class Output {
 public:
  // The files will be `first` and `second` in `folder`; one that stays empty is
  // not made. False with errno.
  bool open(int folder, int64_t first_limit, int64_t second_limit);
  // The job's ends.
  int job_end(int stream) const { return streams_[stream].job_end; }
  // The shepherd's copies of the job's ends must go, or the end never comes.
  void close_job_ends();
  // To be polled for input until start() or ended(): -1 from then on.
  int poll_fd(int stream) const {
    return started_ || streams_[stream].ended ? -1 : streams_[stream].pipe;
  }
  // Nobody writes into it any more, and nothing is in it. A pipe like that wakes
  // its poller again and again, and a spinning shepherd would keep the dying job,
  // which has almost no weight, from dying.
  void ended(int stream) { streams_[stream].ended = true; }
  // Output has come: makes the thread.
  void start();
  // After the last process is gone: takes what is in the pipes now, and makes the
  // files durable. Never waits for their end: another process that got the
  // job's stdout may keep it open for ever.
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
  void move_all();
  bool move_some(Stream& stream);
  void move_rest();
  bool keep(Stream& stream, const char* bytes, int64_t size);

  Stream streams_[2];
  int folder_ = -1;
  int stop_ = -1;  // eventfd: no process of the job is left
  bool started_ = false;
  pthread_t thread_ = {};
  char buffer_[16384];
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_OUTPUT_H_
