#include "cli/transfer/transfer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>

#include "base/os_error.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "cli/transfer/ahead.h"

namespace sublet::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr uint32_t kChunk = kChunkLimit;
constexpr int kFirstPauseMs = 5;

uint32_t chunk_at(uint64_t offset, uint64_t size) {
  return static_cast<uint32_t>(std::min<uint64_t>(kChunk, size - offset));
}

std::string prefixed(const std::string& where, const std::string& message) {
  return where.empty() ? message : where + ": " + message;
}

PoolError changed(const std::string& path) {
  return {ErrorKind::conflict, "input.changed", path + " changed while it was being sent",
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
  // O_NONBLOCK: do not wait for the writer of a FIFO; no effect on regular files.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat s {};
  if (!fd.valid() || fstat(fd.get(), &s) != 0) throw unreadable(where, path, errno);
  if (!S_ISREG(s.st_mode))
    throw PoolError(ErrorKind::invalid, "input.kind",
                    prefixed(where, "the input " + path + " is not an ordinary file"),
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

Digest digest_of_file(const std::string& path, const FileStamp& expected) {
  FileStamp stamp;
  UniqueFd fd = open_input(path, "", &stamp);
  Hasher hash;
  for (std::string chunk; !(chunk = read_chunk(fd.get(), path)).empty();) hash.update(chunk);
  if (stamp != expected || !same_now(fd.get(), stamp)) throw changed(path);
  return hash.finish();
}

// Whether the transfer may resume after this error.
bool resumable(const PoolError& e) {
  return e.kind == ErrorKind::unavailable || e.code == "spool.offset" || e.code == "upload.unknown";
}

// The time limit for a transfer without progress.
class Patience {
 public:
  explicit Patience(const TransferPatience& p) : p_(p) { progress(); }
  void progress() {
    end_ = Clock::now() + std::chrono::milliseconds(p_.without_progress_ms);
    conflicts_ = 0;
    pause_ms_ = std::min(kFirstPauseMs, p_.pause_ms);
  }
  // Pauses before a retry, or rethrows the error. Inside a catch block.
  void failed(const PoolError& e) {
    if (!resumable(e) || Clock::now() >= end_) throw;
    // The server answers, but the transfer does not progress: retrying will not help.
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

// The server hashes what it receives: if that differs from the digest, the file was changed
// after it was first read.
uint64_t close_sent(SpoolCalls& spool, uint64_t upload, const std::string& path) {
  try {
    return spool.close_upload(upload);
  } catch (const PoolError& e) {
    if (e.code == "spool.digest") throw changed(path);
    throw;
  }
}

struct Sent {
  const std::string& path;
  const FileStamp& stamp;
  const std::optional<Digest>& digest;  // if already known
};

// Sends from the server's offset to the end; the file's size must not have changed.
void send_rest(SpoolCalls& spool, const Upload& upload, int fd, const Sent& file,
               Patience* patience) {
  uint64_t offset = upload.offset;
  if (lseek(fd, static_cast<off_t>(offset), SEEK_SET) < 0) throw unreadable("", file.path, errno);
  Ahead chunks([&] { return read_chunk(fd, file.path); });
  while (offset < file.stamp.size) {
    const std::string chunk = chunks.next();
    const uint64_t end = offset + chunk.size();
    if (chunk.empty() || end > file.stamp.size) throw changed(file.path);
    offset = spool.put(upload.id, offset, chunk);
    patience->progress();
    if (offset != end)
      throw PoolError(ErrorKind::conflict, "spool.offset", "the server is at another offset",
                      "submit again", file.path);
  }
}

// One try.
uint64_t send_once(SpoolCalls& spool, const RequestId& request, const FilePlace& place,
                   const Sent& file, Patience* patience) {
  FileStamp stamp;
  UniqueFd fd = open_input(file.path, "", &stamp);
  if (stamp != file.stamp) throw changed(file.path);
  Upload upload = spool.open_upload(request, place, file.stamp.size, file.digest);
  if (upload.offset > file.stamp.size)
    throw PoolError(ErrorKind::conflict, "spool.state", "the server has more than was sent",
                    "submit again", file.path);
  send_rest(spool, upload, fd.get(), file, patience);
  if (!same_now(fd.get(), file.stamp)) throw changed(file.path);
  return close_sent(spool, upload.id, file.path);
}

// Waits until the server has verified its own copy; throws if it is damaged.
void doubt(SpoolCalls& spool, const FilePlace& place, Patience& patience) {
  for (patience.progress();;) {
    try {
      return spool.doubt(place);
    } catch (const PoolError& e) {
      patience.failed(e);
    }
  }
}

uint64_t send(SpoolCalls& spool, uint64_t batch, const Sent& file, const TransferPatience& limits) {
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
      // The server has discarded this upload; with the same request id it would only return
      // the same upload again.
      if (e.kind == ErrorKind::not_found) request = random_id();
    }
  }
}

}  // namespace

void InputFiles::read(const BatchPlan& plan) {
  for (const PlannedJob& job : plan.jobs) {
    for (const PlannedInput& input : job.inputs) {
      if (files_.count(input.path) != 0) continue;
      LocalFile file;
      open_input(input.path, input.where, &file.stamp);
      file.content = content_of(input.path, file.stamp);
      files_.emplace(input.path, file);
    }
  }
}

size_t InputFiles::content_of(const std::string& path, const FileStamp& stamp) {
  const size_t added = contents_.size();
  const auto [same, new_inode] = by_inode_.emplace(std::pair(stamp.device, stamp.inode), added);
  if (!new_inode) return same->second;
  contents_.push_back({path, stamp, {}, 0});
  const auto [first, alone] = first_of_size_.emplace(stamp.size, added);
  if (alone) return added;
  by_digest_.emplace(std::pair(stamp.size, digest_of_content(first->second)), first->second);
  const auto [equal, is_new] =
      by_digest_.emplace(std::pair(stamp.size, digest_of_content(added)), added);
  if (is_new) return added;
  contents_.pop_back();
  return by_inode_[{stamp.device, stamp.inode}] = equal->second;
}

const Digest& InputFiles::digest_of_content(size_t content) {
  Content& one = contents_[content];
  if (!one.digest) one.digest = digest_of_file(one.path, one.stamp);
  return *one.digest;
}

void InputFiles::upload(SpoolCalls& spool, uint64_t batch, const TransferPatience& patience) {
  for (Content& one : contents_)
    if (one.file_id == 0)
      one.file_id = send(spool, batch, {one.path, one.stamp, one.digest}, patience);
  // The content of this file may have been sent from another path: the file must still be
  // unchanged.
  for (const auto& [path, file] : files_) {
    FileStamp stamp;
    UniqueFd fd = open_input(path, "", &stamp);
    if (stamp != file.stamp) throw changed(path);
  }
}

uint64_t InputFiles::file_id(const std::string& path) const {
  return contents_[files_.at(path).content].file_id;
}

uint64_t InputFiles::bytes() const {
  uint64_t sum = 0;
  for (const Content& one : contents_) sum += one.stamp.size;
  return sum;
}

namespace {

// A file's chunks from an offset on. Two are requested at a time, while a third is hashed
// and a fourth written.
class Chunks {
 public:
  Chunks(SpoolCalls& spool, const FilePlace& place, uint64_t size, uint64_t from, Hasher* hash)
      : asked_{Ahead(every_other(spool, place, size, from)),
               Ahead(every_other(spool, place, size, from + kChunk))},
        hashed_([this, hash] {
          std::string chunk = asked_[turn_].next();
          turn_ = 1 - turn_;
          hash->update(chunk);
          return chunk;
        }) {}
  // Stops both before waiting for either.
  ~Chunks() {
    for (Ahead& one : asked_) one.stop();
  }

  // The next chunk, already hashed. A failure is thrown only after all earlier chunks have
  // been returned, so that every hashed chunk has also been returned.
  std::string next() { return hashed_.next(); }

 private:
  static std::function<std::string()> every_other(SpoolCalls& spool, const FilePlace& place,
                                                  uint64_t size, uint64_t from) {
    return [&spool, &place, size, at = from]() mutable {
      if (at >= size) return std::string();
      std::string chunk = spool.get(place, at, chunk_at(at, size));
      at += 2 * kChunk;
      return chunk;
    };
  }

  Ahead asked_[2];
  int turn_ = 0;
  Ahead hashed_;  // last member, because it uses the others
};

}  // namespace

void download(SpoolCalls& spool, const FilePlace& place, uint64_t size, const Digest& digest,
              const std::function<void(std::string_view)>& sink, const TransferPatience& limits) {
  Hasher hash;
  Patience patience(limits);
  std::unique_ptr<Chunks> coming;
  for (uint64_t offset = 0; offset < size;) {
    const uint32_t wanted = chunk_at(offset, size);
    std::string chunk;
    try {
      if (!coming) coming = std::make_unique<Chunks>(spool, place, size, offset, &hash);
      chunk = coming->next();
    } catch (const PoolError& e) {
      coming.reset();
      patience.failed(e);
      continue;
    }
    if (chunk.size() != wanted)
      throw PoolError(ErrorKind::unavailable, "spool.short",
                      "the server sent " + std::string(chunk.size() < wanted ? "less" : "more") +
                          " than '" + place.name + "' of job " + std::to_string(place.job) + " has",
                      "fetch it again", place.name);
    patience.progress();
    offset += chunk.size();
    sink(chunk);
  }
  coming.reset();  // no other thread uses the hash now
  if (hash.finish() == digest) return;
  doubt(spool, place, patience);
  throw PoolError(ErrorKind::unavailable, "spool.digest",
                  "'" + place.name + "' of job " + std::to_string(place.job) +
                      " arrived damaged: its digest differs",
                  "fetch it again", place.name);
}

}  // namespace sublet::cli
