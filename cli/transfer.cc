#include "cli/transfer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <future>
#include <thread>

#include "base/os_error.h"
#include "base/random.h"
#include "base/unique_fd.h"

namespace sublet::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr uint32_t kChunk = kChunkLimit;
constexpr int kFirstPauseMs = 5;

std::string prefixed(const std::string& where, const std::string& message) {
  return where.empty() ? message : where + ": " + message;
}

PoolError changed(const std::string& path) {
  return {ErrorKind::conflict, "input.changed", path + " was changed while it was being sent",
          "submit again when it is complete; nothing was submitted", path};
}

PoolError unreadable(const std::string& where, const std::string& path, int code) {
  if (code == ENOENT)
    return {ErrorKind::invalid, "input.missing",
            prefixed(where, "the input file " + path + " does not exist"), "nothing was submitted",
            path};
  OsError error(code, "read", path);
  return {ErrorKind::invalid, "input.unreadable", prefixed(where, error.what()),
          "nothing was submitted", path};
}

FileStamp stamp_of(const struct stat& s) {
  return {s.st_dev, s.st_ino, static_cast<uint64_t>(s.st_size),
          s.st_mtim.tv_sec * 1'000'000'000 + s.st_mtim.tv_nsec,
          s.st_ctim.tv_sec * 1'000'000'000 + s.st_ctim.tv_nsec};
}

UniqueFd open_input(const std::string& path, const std::string& where, FileStamp* stamp) {
  // O_NONBLOCK: a FIFO would wait for a writer; for regular files it means nothing.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat s {};
  if (!fd.valid() || fstat(fd.get(), &s) != 0) throw unreadable(where, path, errno);
  if (!S_ISREG(s.st_mode))
    throw PoolError(ErrorKind::invalid, "input.kind",
                    prefixed(where, "the input " + path + " is no ordinary file"),
                    S_ISDIR(s.st_mode) ? "send a folder's files one by one or as an archive"
                                       : "nothing was submitted",
                    path);
  *stamp = stamp_of(s);
  return fd;
}

bool same_now(int fd, const FileStamp& stamp) {
  struct stat s {};
  return fstat(fd, &s) == 0 && stamp_of(s) == stamp;
}

// Up to kChunk bytes; empty at the end.
std::string read_chunk(int fd, const std::string& path) {
  std::string chunk(kChunk, '\0');
  size_t have = 0;
  while (have < chunk.size()) {
    ssize_t n = ::read(fd, chunk.data() + have, chunk.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw unreadable("", path, errno);
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  chunk.resize(have);
  return chunk;
}

LocalFile read_local(const std::string& path, const std::string& where) {
  LocalFile file;
  file.path = path;
  UniqueFd fd = open_input(path, where, &file.stamp);
  Sha256 hash;
  for (std::string chunk; !(chunk = read_chunk(fd.get(), path)).empty();) hash.update(chunk);
  file.sha256 = hash.finish();
  if (!same_now(fd.get(), file.stamp)) throw changed(path);
  return file;
}

// Failures after which the transfer may go on where it stood.
bool resumable(const PoolError& e) {
  return e.kind == ErrorKind::unavailable || e.code == "spool.offset" ||
         e.code == "upload.unknown" || e.code == "spool.unknown_upload";
}

// Counts down while nothing moves.
class Patience {
 public:
  explicit Patience(const TransferPatience& p) : p_(p) { progress(); }
  void progress() {
    end_ = Clock::now() + std::chrono::milliseconds(p_.without_progress_ms);
    conflicts_ = 0;
    pause_ms_ = std::min(kFirstPauseMs, p_.pause_ms);
  }
  // Waits a little, or passes the failure on. Inside a catch block.
  void failed(const PoolError& e) {
    if (!resumable(e) || Clock::now() >= end_) throw;
    // The server answers, and still it does not go on: that will not mend itself.
    if (e.kind != ErrorKind::unavailable && ++conflicts_ > 5) throw;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms_));
    pause_ms_ = std::min(2 * pause_ms_, p_.pause_ms);
  }

 private:
  TransferPatience p_;
  Clock::time_point end_;
  int conflicts_ = 0;
  int pause_ms_ = 0;
};

// The server hashes what comes: what differs from the digest was changed after it
// was read first.
uint64_t close_sent(SpoolCalls& spool, uint64_t upload, const std::string& path) {
  try {
    return spool.close_upload(upload);
  } catch (const PoolError& e) {
    if (e.code == "spool.digest") throw changed(path);
    throw;
  }
}

// One try: sends from where the server stands.
uint64_t send_once(SpoolCalls& spool, const RequestId& request, const FilePlace& place,
                   const LocalFile& file, Patience* patience) {
  FileStamp stamp;
  UniqueFd fd = open_input(file.path, "", &stamp);
  if (stamp != file.stamp) throw changed(file.path);
  Upload upload = spool.open_upload(request, place, file.stamp.size, file.sha256);
  if (upload.offset > file.stamp.size)
    throw PoolError(ErrorKind::conflict, "spool.state", "the server holds more than was sent",
                    "submit again", file.path);
  uint64_t offset = upload.offset;
  if (lseek(fd.get(), static_cast<off_t>(offset), SEEK_SET) < 0)
    throw unreadable("", file.path, errno);
  for (std::string chunk; !(chunk = read_chunk(fd.get(), file.path)).empty();) {
    const uint64_t end = offset + chunk.size();
    if (end > file.stamp.size) throw changed(file.path);
    offset = spool.put(upload.id, offset, chunk);
    patience->progress();
    if (offset != end)
      throw PoolError(ErrorKind::conflict, "spool.offset", "the server stands elsewhere",
                      "submit again", file.path);
  }
  if (offset != file.stamp.size || !same_now(fd.get(), file.stamp)) throw changed(file.path);
  return close_sent(spool, upload.id, file.path);
}

// Until the server knows whether its own contents are damaged; throws when they are.
void doubt(SpoolCalls& spool, const FilePlace& place, Patience& patience) {
  for (patience.progress();;) {
    try {
      return spool.doubt(place);
    } catch (const PoolError& e) {
      patience.failed(e);
    }
  }
}

uint64_t send(SpoolCalls& spool, uint64_t batch, const LocalFile& file,
              const TransferPatience& limits) {
  FilePlace place;
  place.batch = batch;
  place.name = file.path.substr(file.path.rfind('/') + 1);
  RequestId request = random_id();
  Patience patience(limits);
  for (;;) {
    try {
      return send_once(spool, request, place, file, &patience);
    } catch (const PoolError& e) {
      patience.failed(e);
      // The server has forgotten this upload; under its id it would only be
      // told of the same one again.
      if (e.kind == ErrorKind::not_found) request = random_id();
    }
  }
}

}  // namespace

void InputFiles::read(const BatchPlan& plan) {
  for (const PlannedJob& job : plan.jobs) {
    for (const PlannedInput& input : job.inputs) {
      if (files_.count(input.path) != 0) continue;
      LocalFile file = read_local(input.path, input.where);
      contents_.emplace(std::pair(file.sha256, file.stamp.size), 0);
      files_.emplace(input.path, std::move(file));
    }
  }
}

void InputFiles::upload(SpoolCalls& spool, uint64_t batch, const TransferPatience& patience) {
  for (const auto& [path, file] : files_) {
    uint64_t& id = contents_.at({file.sha256, file.stamp.size});
    if (id == 0) id = send(spool, batch, file, patience);
  }
  // A content that was sent from another path stands for this file too: it
  // must still be what it was.
  for (const auto& [path, file] : files_) {
    FileStamp stamp;
    UniqueFd fd = open_input(path, "", &stamp);
    if (stamp != file.stamp) throw changed(path);
  }
}

uint64_t InputFiles::file_id(const std::string& path) const {
  const LocalFile& file = files_.at(path);
  return contents_.at({file.sha256, file.stamp.size});
}

uint64_t InputFiles::bytes() const {
  uint64_t sum = 0;
  for (const auto& [content, id] : contents_) sum += content.second;
  return sum;
}

void download(SpoolCalls& spool, const FilePlace& place, uint64_t size, const Digest& sha256,
              const std::function<void(std::string_view)>& sink, const TransferPatience& limits) {
  Sha256 hash;
  Patience patience(limits);
  const auto wanted = [&](uint64_t offset) {
    return static_cast<uint32_t>(std::min<uint64_t>(kChunk, size - offset));
  };
  // The next chunk comes while this one is hashed and written.
  const auto ask = [&](uint64_t offset, std::launch when) {
    return std::async(when, [&, offset] { return spool.get(place, offset, wanted(offset)); });
  };
  std::future<std::string> coming = ask(0, std::launch::deferred);
  for (uint64_t offset = 0; offset < size;) {
    std::string chunk;
    try {
      chunk = coming.get();
    } catch (const PoolError& e) {
      patience.failed(e);
      coming = ask(offset, std::launch::deferred);
      continue;
    }
    if (chunk.empty() || chunk.size() > wanted(offset))
      throw PoolError(ErrorKind::unavailable, "spool.short",
                      "the server sent " + std::string(chunk.empty() ? "less" : "more") +
                          " than '" + place.name + "' of job " + std::to_string(place.job) + " has",
                      "fetch it again", place.name);
    patience.progress();
    offset += chunk.size();
    if (offset < size) coming = ask(offset, std::launch::async);
    hash.update(chunk);
    sink(chunk);
  }
  if (hash.finish() == sha256) return;
  doubt(spool, place, patience);
  throw PoolError(ErrorKind::unavailable, "spool.digest",
                  "'" + place.name + "' of job " + std::to_string(place.job) +
                      " came damaged: its SHA-256 differs",
                  "fetch it again", place.name);
}

}  // namespace sublet::cli
