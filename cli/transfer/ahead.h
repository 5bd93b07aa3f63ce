// Produces pieces on another thread while the previous one is used, so that for example
// reading and sending overlap. The first piece is produced by the caller's thread, so that
// a single piece needs no second thread. Used by one thread.
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
  // `make` is called until it returns an empty piece or throws, never concurrently.
  explicit Ahead(std::function<std::string()> make);
  // Waits for a call of `make` in progress.
  ~Ahead();

  // The next piece, in order; empty at the end and after stop(). Throws what `make` threw.
  // Must not be called again after either.
  std::string next();
  // Produces no more pieces after the one in progress. Any thread.
  void stop();

 private:
  static constexpr size_t kWaiting = 2;  // most pieces produced and not yet used

  void run();

  const std::function<std::string()> make_;
  bool begun_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> made_;
  std::exception_ptr failure_;
  bool ended_ = false;  // no more pieces will be produced
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_TRANSFER_AHEAD_H_
