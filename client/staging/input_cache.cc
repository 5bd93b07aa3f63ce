#include "client/staging/input_cache.h"

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

constexpr size_t kNameLength = 64;
constexpr auto kLookForStop = std::chrono::milliseconds(20);

bool is_name(const std::string& name) {
  return name.size() == kNameLength &&
         name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool is_file(const UniqueFd& fd) {
  struct stat info {};
  return fd.valid() && fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

InputCache::InputCache(Files& files, const CacheSettings& settings)
    : files_(files), settings_(settings) {
  try {
    files_.make_folders(settings_.folder, 0700);
    bound_ = settings_.bytes;
    load();
  } catch (const FileError& error) {
    bound_ = 0;
    log(Severity::error) << "inputs are not cached for later jobs: " << error.what();
  }
}

InputCache::~InputCache() = default;

void InputCache::load() {
  std::vector<std::pair<int64_t, Kept>> by_time;
  Names unwanted;
  for (const FolderEntry& entry : files_.list(settings_.folder)) {
    struct stat info {};
    const bool good =
        is_name(entry.name) && lstat(path(entry.name).c_str(), &info) == 0 && S_ISREG(info.st_mode);
    if (good)
      by_time.emplace_back(info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec,
                           Kept{entry.name, static_cast<uint64_t>(info.st_size)});
    else
      unwanted.push_back(entry.name);  // a partial or foreign file
  }
  std::ranges::stable_sort(by_time, {}, [](const auto& item) { return item.first; });
  for (const auto& [time, kept] : by_time) {
    bytes_ += kept.size;
    put_in(kept.name, kept.size);
  }
  for (auto& name : take_out_oldest(bound_, kMostFiles)) unwanted.push_back(std::move(name));
  remove(unwanted);
}

void InputCache::put_in(const std::string& name, uint64_t size) {
  kept_[name] = by_use_.insert(by_use_.end(), {name, size});
}

std::string InputCache::take_out(ByUse::iterator kept) {
  std::string name = std::move(kept->name);
  bytes_ -= kept->size;
  kept_.erase(name);
  by_use_.erase(kept);
  moving_.insert(name);
  return name;
}

InputCache::Names InputCache::take_out_oldest(uint64_t bytes_left, size_t files_left) {
  Names names;
  while (!by_use_.empty() && (bytes_ > bytes_left || kept_.size() > files_left))
    names.push_back(take_out(by_use_.begin()));
  return names;
}

void InputCache::remove(const Names& names) {
  for (const auto& name : names) {
    try {
      files_.remove_tree(path(name));
    } catch (const FileError& error) {
      log(Severity::error) << error.what();
    }
  }
  std::lock_guard lock(mutex_);
  for (const auto& name : names) moving_.erase(name);
}

void InputCache::forget(const std::string& name) {
  {
    std::lock_guard lock(mutex_);
    const auto it = kept_.find(name);
    if (it == kept_.end()) return;
    take_out(it->second);
  }
  remove({name});
}

void InputCache::make_room(uint64_t bytes) {
  Names oldest;
  {
    std::lock_guard lock(mutex_);
    const uint64_t here = bytes_;
    oldest = take_out_oldest(here - std::min(bytes, here), kMostFiles);
  }
  if (!oldest.empty()) log(Severity::info) << "cached inputs are removed to free disk space";
  remove(oldest);
}

size_t InputCache::waiting() const {
  std::lock_guard lock(mutex_);
  return waiting_;
}

InputCache::Turn::Turn(InputCache& cache, const Digest& digest, const std::atomic<bool>& stop)
    : cache_(cache), name_(hex(digest)) {
  std::unique_lock lock(cache_.mutex_);
  while (!stop) {
    mine_ = cache_.fetched_now_.insert(name_).second;
    if (mine_) return;
    ++cache_.waiting_;
    cache_.turns_.wait_for(lock, kLookForStop);
    --cache_.waiting_;
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

bool InputCache::take(const Digest& digest, uint64_t size, int to, Mover& mover) {
  const std::string name = hex(digest);
  {
    std::lock_guard lock(mutex_);
    const auto it = kept_.find(name);
    if (it == kept_.end()) return false;
    by_use_.splice(by_use_.end(), by_use_, it->second);
  }
  // The file may have been replaced: opening a pipe must not block.
  const UniqueFd from(open(path(name).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (is_file(from) && mover.copy(from.get(), to, size, digest)) {
    futimens(from.get(), nullptr);  // if this fails, it is only removed earlier
    return true;
  }
  log(Severity::warning) << "the cached input " << name
                         << " was altered or removed: fetching it again";
  forget(name);
  if (ftruncate(to, 0) != 0 || lseek(to, 0, SEEK_SET) != 0)
    throw FileError(errno, "write", "an input of a job");
  return false;
}

std::unique_ptr<InputCache::Addition> InputCache::add(const Digest& digest, uint64_t size) {
  if (size == 0 || size > bound_) return nullptr;
  const std::string name = hex(digest);
  std::string part;
  {
    std::lock_guard lock(mutex_);
    if (has(name)) return nullptr;
    part = path(name) + "." + std::to_string(++parts_) + ".part";
  }
  try {
    // Space for two copies is needed: the job has its own.
    if (files_.free_bytes(settings_.folder) / 2 < size + settings_.reserve / 2) return nullptr;
  } catch (const FileError&) {
    return nullptr;
  }
  UniqueFd file(open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) {
    log(Severity::warning) << "an input is not cached: " << part << ": " << std::strerror(errno);
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

InputCache::Addition::~Addition() {
  if (file_.valid()) unlink(path_.c_str());
}

void InputCache::Addition::keep() {
  Names oldest;
  {
    std::lock_guard lock(cache_.mutex_);
    if (cache_.has(name_)) return;
    oldest = cache_.take_out_oldest(cache_.bound_ - size_, kMostFiles - 1);
    cache_.moving_.insert(name_);
    cache_.bytes_ += size_;
  }
  cache_.remove(oldest);
  const bool here = rename(path_.c_str(), cache_.path(name_).c_str()) == 0;
  if (here) file_.reset();
  std::lock_guard lock(cache_.mutex_);
  cache_.moving_.erase(name_);
  if (here)
    cache_.put_in(name_, size_);
  else
    cache_.bytes_ -= size_;
}

}  // namespace sublet::client
