#include "server/spool/content_checker.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/hash.h"
#include "server/refusal.h"

namespace sublet::server {
namespace {

constexpr size_t kPart = 1 << 20;

Refusal unavailable(const char* code, const std::string& message, const char* advice) {
  return Refusal(Refusal::Kind::kUnavailable, code, message, advice, "spool");
}

Refusal checking() {
  return unavailable("spool.checking", "a file in the spool is being verified",
                     "Try again in a moment.");
}

bool matches(int fd, const StoredContent& what) {
  Hasher hash;
  std::vector<char> part(std::min<uint64_t>(kPart, what.size));
  uint64_t offset = 0;
  while (offset < what.size) {
    const ssize_t n = pread(fd, part.data(), std::min<uint64_t>(part.size(), what.size - offset),
                            static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    hash.update(part.data(), static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return hex(hash.finish()) == what.digest;
}

}  // namespace

std::string file_identity(int fd) {
  struct stat s {};
  if (fstat(fd, &s) != 0) return "";
  const auto instant = [](const timespec& t) {
    return std::to_string(t.tv_sec * 1'000'000'000 + t.tv_nsec);
  };
  return std::to_string(s.st_ino) + " " + std::to_string(s.st_size) + " " + instant(s.st_mtim) +
         " " + instant(s.st_ctim);
}

UniqueFd ContentChecker::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid() && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EINTR))
    throw unavailable("server.disk",
                      "the server cannot open a file in its spool: " + std::string(strerror(errno)),
                      "Tell the administrator; try again.");
  return fd;
}

bool ContentChecker::reads_as_stored(const StoredContent& what) {
  const UniqueFd fd = open(what.path);
  return fd.valid() && matches(fd.get(), what);
}

ContentChecker::ContentChecker(const Clock& clock) : clock_(clock), thread_([this] { work(); }) {}

ContentChecker::~ContentChecker() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool ContentChecker::trusted(const StoredContent& what, const std::string& identity) {
  std::lock_guard lock(mutex_);
  const auto known = results_.find(what.id);
  if (known == results_.end()) return !identity.empty() && identity == what.identity;
  return !known->second.running && known->second.intact && known->second.identity == identity;
}

bool ContentChecker::intact(const StoredContent& what, bool suspect) {
  const UniqueFd fd = open(what.path);
  if (!fd.valid()) return false;
  const std::string identity = file_identity(fd.get());
  if (!suspect && trusted(what, identity)) return true;
  {
    std::lock_guard lock(mutex_);
    const auto known = results_.find(what.id);
    if (known != results_.end()) {
      if (known->second.running) throw checking();
      const bool believed = clock_.boot_ns() - known->second.at_ns < kBelievedNs;
      if (known->second.identity == identity && (!known->second.intact || believed))
        return known->second.intact;
    }
    if (what.size > kAtOnce) {
      if (queue_.size() >= kWaiting)
        throw unavailable("server.busy", "too many files in the spool are being verified",
                          "Try again in a moment.");
      results_[what.id].running = true;
      queue_.push_back(what);
      changed_.notify_all();
      throw checking();
    }
  }
  return note(what.id, identity, matches(fd.get(), what));
}

bool ContentChecker::note(uint64_t id, const std::string& identity, bool intact) {
  std::lock_guard lock(mutex_);
  results_[id] = Result{false, intact, identity, clock_.boot_ns()};
  for (auto it = results_.begin(); it != results_.end() && results_.size() > kRemembered;)
    it = it->second.running || it->first == id ? std::next(it) : results_.erase(it);
  return intact;
}

void ContentChecker::forget(uint64_t id) {
  std::lock_guard lock(mutex_);
  results_.erase(id);
}

void ContentChecker::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const StoredContent what = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    const UniqueFd fd(::open(what.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    const std::string identity = fd.valid() ? file_identity(fd.get()) : "";
    note(what.id, identity, fd.valid() && matches(fd.get(), what));
    lock.lock();
  }
}

}  // namespace sublet::server
