#include "client/input_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/log.h"

namespace sublet::client {
namespace {

constexpr size_t kPart = 1 << 20;
constexpr size_t kNameLength = 64;
constexpr auto kLookForStop = std::chrono::milliseconds(20);

bool is_name(const std::string& name) {
  return name.size() == kNameLength &&
         name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// False, with errno, on failure.
bool write_all(int fd, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t n = write(fd, bytes, count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes += n;
    count -= static_cast<size_t>(n);
  }
  return true;
}

enum class Copied { kRight, kOther, kStopped };

Copied copy(int from, int to, uint64_t size, const Digest& digest, const std::atomic<bool>& stop) {
  std::vector<char> part(std::clamp<uint64_t>(size, 1, kPart));
  Sha256 hash;
  uint64_t done = 0;
  while (true) {
    if (stop) return Copied::kStopped;
    const ssize_t n = read(from, part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Copied::kOther;
    if (n == 0) break;
    done += static_cast<uint64_t>(n);
    if (done > size) return Copied::kOther;
    hash.update(part.data(), static_cast<size_t>(n));
    if (!write_all(to, part.data(), static_cast<size_t>(n)))
      throw FileError(errno, "write", "an input of a job");
  }
  return done == size && hash.finish() == digest ? Copied::kRight : Copied::kOther;
}

}  // namespace

InputCache::InputCache(Files& files, const CacheSettings& settings)
    : files_(files), settings_(settings) {
  files_.make_folders(settings_.folder, 0700);
  load();
}

InputCache::~InputCache() = default;

void InputCache::load() {
  std::vector<std::pair<int64_t, std::string>> by_time;
  for (const FolderEntry& entry : files_.list(settings_.folder)) {
    struct stat info {};
    const bool good =
        is_name(entry.name) && lstat(path(entry.name).c_str(), &info) == 0 && S_ISREG(info.st_mode);
    if (!good) {
      files_.remove_tree(path(entry.name));  // half of a file, or none of ours
      continue;
    }
    kept_[entry.name].size = static_cast<uint64_t>(info.st_size);
    bytes_ += static_cast<uint64_t>(info.st_size);
    by_time.emplace_back(info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec, entry.name);
  }
  std::sort(by_time.begin(), by_time.end());
  for (const auto& [time, name] : by_time) kept_[name].used = ++uses_;
  while (bytes_ > settings_.bytes || kept_.size() > kMostFiles) remove_oldest();
}

void InputCache::remove_oldest() {
  const auto oldest =
      std::min_element(kept_.begin(), kept_.end(),
                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
  unlink(path(oldest->first).c_str());
  bytes_ -= oldest->second.size;
  kept_.erase(oldest);
}

void InputCache::forget(const std::string& name) {
  std::lock_guard lock(mutex_);
  const auto it = kept_.find(name);
  if (it == kept_.end()) return;
  unlink(path(name).c_str());
  bytes_ -= it->second.size;
  kept_.erase(it);
}

void InputCache::make_room(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const uint64_t wanted = bytes_ - std::min(bytes, bytes_);
  if (bytes_ > wanted) log(Severity::info) << "inputs kept from earlier jobs make room on the disk";
  while (bytes_ > wanted) remove_oldest();
}

uint64_t InputCache::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

InputCache::Turn::Turn(InputCache& cache, const Digest& digest, const std::atomic<bool>& stop)
    : cache_(cache), name_(hex(digest)) {
  std::unique_lock lock(cache_.mutex_);
  while (!stop) {
    mine_ = cache_.fetched_now_.insert(name_).second;
    if (mine_) return;
    cache_.turns_.wait_for(lock, kLookForStop);
  }
}

InputCache::Turn::~Turn() {
  if (!mine_) return;
  {
    std::lock_guard lock(cache_.mutex_);
    cache_.fetched_now_.erase(name_);
  }
  cache_.turns_.notify_all();
}

bool InputCache::take(const Digest& digest, uint64_t size, int to, const std::atomic<bool>& stop) {
  const std::string name = hex(digest);
  {
    std::lock_guard lock(mutex_);
    const auto it = kept_.find(name);
    if (it == kept_.end()) return false;
    it->second.used = ++uses_;
  }
  const UniqueFd from(open(path(name).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  const Copied copied = from.valid() ? copy(from.get(), to, size, digest, stop) : Copied::kOther;
  if (copied == Copied::kRight) {
    futimens(from.get(), nullptr);  // at worst it goes earlier
    return true;
  }
  if (copied == Copied::kOther) {
    log(Severity::warning) << "the kept input " << name
                           << " was altered or is gone: it is fetched again";
    forget(name);
  }
  if (ftruncate(to, 0) != 0 || lseek(to, 0, SEEK_SET) != 0)
    throw FileError(errno, "write", "an input of a job");
  return false;
}

std::unique_ptr<InputCache::Addition> InputCache::add(const Digest& digest, uint64_t size) {
  if (size == 0 || size > settings_.bytes) return nullptr;
  const std::string name = hex(digest);
  std::string part;
  {
    std::lock_guard lock(mutex_);
    if (kept_.count(name)) return nullptr;
    part = path(name) + "." + std::to_string(++parts_) + ".part";
  }
  try {
    // Twice: the job has a copy of its own.
    if (files_.free_bytes(settings_.folder) / 2 < size + settings_.reserve / 2) return nullptr;
  } catch (const FileError&) {
    return nullptr;
  }
  UniqueFd file(open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) {
    log(Severity::warning) << "an input is not kept: " << part << ": " << std::strerror(errno);
    return nullptr;
  }
  return std::unique_ptr<Addition>(
      new Addition(*this, name, size, std::move(part), std::move(file)));
}

InputCache::Addition::Addition(InputCache& cache, std::string name, uint64_t size, std::string path,
                               UniqueFd file)
    : cache_(cache),
      name_(std::move(name)),
      size_(size),
      path_(std::move(path)),
      file_(std::move(file)) {}

InputCache::Addition::~Addition() { give_up(); }

void InputCache::Addition::give_up() {
  if (!file_.valid()) return;
  file_.reset();
  unlink(path_.c_str());
}

void InputCache::Addition::write(std::string_view bytes) {
  if (!file_.valid() || write_all(file_.get(), bytes.data(), bytes.size())) return;
  log(Severity::warning) << "an input is not kept: " << std::strerror(errno);
  give_up();
}

void InputCache::Addition::keep() {
  if (!file_.valid()) return;
  std::lock_guard lock(cache_.mutex_);
  if (cache_.kept_.count(name_)) return;
  while (!cache_.kept_.empty() &&
         (cache_.bytes_ + size_ > cache_.settings_.bytes || cache_.kept_.size() >= kMostFiles))
    cache_.remove_oldest();
  if (rename(path_.c_str(), cache_.path(name_).c_str()) != 0) return;
  file_.reset();
  cache_.bytes_ += size_;
  cache_.kept_[name_] = {size_, ++cache_.uses_};
}

}  // namespace sublet::client
