#include "server/spool/content_checker.h"

#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/hash.h"
#include "base/log.h"
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

Refusal unreadable() {
  return unavailable("server.disk", "the server cannot read a file in its spool",
                     "Tell the administrator; try again.");
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

UniqueFd ContentChecker::open(const std::string& path, const Files& files) {
  try {
    return files.open_to_read(path);
  } catch (const FileError& error) {
    const int code = error.code();
    if (code == ENOENT || code == ENOTDIR || code == ELOOP) return UniqueFd();
    // Nothing is known of its bytes, and what counts as damaged is given up.
    throw unavailable("server.disk",
                      "the server cannot open a file in its spool: " + std::string(strerror(code)),
                      "Tell the administrator; try again.");
  }
}

ContentChecker::Reading ContentChecker::read(int fd, const StoredContent& what,
                                             const Files& files) {
  Hasher hash;
  std::vector<char> part(std::min<uint64_t>(kPart, what.size));
  try {
    for (uint64_t offset = 0; offset < what.size;) {
      const size_t wanted = std::min<uint64_t>(part.size(), what.size - offset);
      const size_t got = files.read_at(fd, what.path, offset, {part.data(), wanted});
      if (got == 0) return Reading::kDiffers;
      hash.update(part.data(), got);
      offset += got;
    }
  } catch (const FileError& error) {
    log(Severity::error) << error.what();
    return Reading::kFailed;
  }
  return hex(hash.finish()) == what.digest ? Reading::kIntact : Reading::kDiffers;
}

bool ContentChecker::reads_as_stored(const StoredContent& what, const Files& files) {
  const UniqueFd fd = open(what.path, files);
  if (!fd.valid()) return false;
  const Reading reading = read(fd.get(), what, files);
  if (reading == Reading::kFailed) throw unreadable();
  return reading == Reading::kIntact;
}

ContentChecker::ContentChecker(const Clock& clock, const Files& files)
    : clock_(clock), files_(files), thread_([this] { work(); }) {}

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
  const UniqueFd fd = open(what.path, files_);
  if (!fd.valid()) return false;
  const std::string identity = file_identity(fd.get());
  if (!suspect && trusted(what, identity)) return true;
  {
    std::lock_guard lock(mutex_);
    Result& known = results_[what.id];
    if (known.running) throw checking();
    const bool undecided = known.identity != identity || is_unread(known);
    const bool believed = clock_.boot_ns() - known.at_ns < kBelievedNs;
    if (!undecided && (!known.intact || believed)) return known.intact;
    if (what.size > kAtOnce) {
      if (queue_.size() >= kWaiting)
        throw unavailable("server.busy", "too many files in the spool are being verified",
                          "Try again in a moment.");
      known.running = true;
      queue_.push_back(what);
      changed_.notify_all();
      throw is_unread(known) ? unreadable() : checking();
    }
  }
  const Result result = note(what.id, identity, read(fd.get(), what, files_));
  if (is_unread(result)) throw unreadable();
  return result.intact;
}

ContentChecker::Result ContentChecker::note(uint64_t id, const std::string& identity,
                                            Reading reading) {
  std::lock_guard lock(mutex_);
  Result& result = results_[id];
  const int64_t now = clock_.boot_ns();
  Result next{false, reading == Reading::kIntact, identity, now, 0};
  if (reading == Reading::kFailed) {
    const bool counts = result.unread == 0 || now - result.at_ns >= kTryNs;
    next.unread = result.unread + (counts ? 1 : 0);
    if (!counts) next.at_ns = result.at_ns;
  }
  result = next;
  const Result noted = result;
  for (auto it = results_.begin(); it != results_.end() && results_.size() > kRemembered;)
    it = it->second.running || it->first == id ? std::next(it) : results_.erase(it);
  return noted;
}

void ContentChecker::note_unread(const StoredContent& what, const std::string& identity) {
  note(what.id, identity, Reading::kFailed);
}

bool ContentChecker::was_given_up(uint64_t id) {
  std::lock_guard lock(mutex_);
  const auto known = results_.find(id);
  return known != results_.end() && known->second.unread >= kReadTries;
}

void ContentChecker::forget(uint64_t id) {
  std::lock_guard lock(mutex_);
  results_.erase(id);
}

void ContentChecker::check(const StoredContent& what) {
  try {
    const UniqueFd fd = open(what.path, files_);
    if (fd.valid())
      note(what.id, file_identity(fd.get()), read(fd.get(), what, files_));
    else
      note(what.id, "", Reading::kDiffers);
  } catch (const Refusal& refusal) {
    log(Severity::error) << refusal.message;
    forget(what.id);  // asked again, it is opened first
  }
}

void ContentChecker::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const StoredContent what = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    check(what);
    lock.lock();
  }
}

}  // namespace sublet::server
