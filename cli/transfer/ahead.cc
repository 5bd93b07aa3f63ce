#include "cli/transfer/ahead.h"

namespace sublet::cli {

Ahead::Ahead(std::function<std::string()> make) : make_(std::move(make)) {}

Ahead::~Ahead() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void Ahead::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void Ahead::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_ && !ended_) {
    lock.unlock();
    std::string piece;
    std::exception_ptr failure;
    try {
      piece = make_();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    ended_ = failure || piece.empty();
    if (!ended_) made_.push_back(std::move(piece));
    changed_.notify_all();
    changed_.wait(lock, [this] { return stopping_ || ended_ || made_.size() < kWaiting; });
  }
}

std::string Ahead::next() {
  if (!begun_) {
    begun_ = true;
    return make_();
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopping_ || ended_ || !made_.empty(); });
  if (made_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    return "";
  }
  std::string piece = std::move(made_.front());
  made_.pop_front();
  changed_.notify_all();
  return piece;
}

}  // namespace sublet::cli
