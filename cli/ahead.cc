#include "cli/ahead.h"

namespace sublet::cli {

Ahead::Ahead(std::function<std::string()> make)
    : make_(std::move(make)), thread_([this] { run(); }) {}

Ahead::~Ahead() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Ahead::run() {
  for (;;) {
    std::string piece;
    std::exception_ptr failure;
    try {
      piece = make_();
    } catch (...) {
      failure = std::current_exception();
    }
    std::unique_lock lock(mutex_);
    failure_ = failure;
    ended_ = failure || piece.empty();
    if (!ended_) made_.push_back(std::move(piece));
    changed_.notify_all();
    changed_.wait(lock, [this] { return stopping_ || ended_ || made_.size() < kWaiting; });
    if (stopping_ || ended_) return;
  }
}

std::string Ahead::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_ || !made_.empty(); });
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
