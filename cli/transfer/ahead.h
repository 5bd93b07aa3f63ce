// Pieces made on a thread of their own while the one before is used: what reads
// and what sends then work at the same time. The first is made when it is asked
// for, so that what has one piece only needs no thread. Threads: one uses it.
#ifndef SUBLET_CLI_TRANSFER_AHEAD_H_
#define SUBLET_CLI_TRANSFER_AHEAD_H_

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace sublet::cli {

class Ahead {
 public:
  // `make` is called up to the first empty piece or throw, never twice at a time.
  explicit Ahead(std::function<std::string()> make);
  // Waits for a call of `make` that is under way.
  ~Ahead();

  // The next piece, in order; empty at the end, and once it is stopped. Throws what
  // `make` threw. Not to be called again after either.
  std::string next();
  // Nothing more is made, but for what is under way. From any thread.
  void stop();

 private:
  static constexpr size_t kWaiting = 2;  // made and not yet used, at most

  void run();

  const std::function<std::string()> make_;
  bool begun_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> made_;
  std::exception_ptr failure_;
  bool ended_ = false;  // nothing more will be made
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_TRANSFER_AHEAD_H_
