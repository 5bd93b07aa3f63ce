#include "server/spool/spool.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/log.h"
#include "server/spool/orphans.h"

namespace sublet::server {
namespace {

constexpr uint64_t kBehind = 32 << 20;  // how far the hasher may be behind an upload

Refusal disk(const std::string& what, int code) {
  return Refusal(Refusal::Kind::kUnavailable, "server.disk",
                 "the server cannot " + what + ": " + std::string(strerror(code)),
                 "Tell the administrator; try again when there is room.", "spool");
}

void on_disk(const char* what, const std::function<void()>& step) {
  try {
    step();
  } catch (const FileError& error) {
    throw disk(what, error.code());
  }
}

// Checkpoints are counted separately, as in table spool_use.
std::pair<std::string, bool> account(const FileRow& row) {
  return {row.user, row.kind == FileKind::kCheckpoint};
}

}  // namespace

Spool::Spool(const SpoolSettings& settings, Archive& archive, const Clock& clock, Files& files)
    : settings_(settings), archive_(archive), clock_(clock), files_(files), checker_(clock, files) {
  files_.make_folders(settings_.folder);
  // Ids start from the current time, so that an id is never reused even if the newest
  // rows have been removed.
  next_id_ = std::max<uint64_t>(archive.last_file_id() + 1, clock.utc_us());
  if (!archive.was_used()) require_empty_spool(files_, settings_.folder);
  std::set<std::string> known;
  for (uint64_t id : archive.content_ids()) known.insert(std::to_string(id));
  sort_out_orphans(files_, settings_.folder, known, clock_.utc_us());
  hasher_ = std::thread([this] { hash_loop(); });
}

Spool::~Spool() {
  {
    std::lock_guard lock(hash_mutex_);
    stopping_ = true;
  }
  hash_wake_.notify_all();
  hasher_.join();
}

Refusal Spool::damaged(const FileRow& row) {
  return Refusal(Refusal::Kind::kNotFound, kDamaged,
                 "`" + row.name + "` is damaged or missing in the server's spool",
                 "Tell the administrator; submit the job again.", row.name);
}

std::string Spool::path(uint64_t id) const { return settings_.folder + "/" + std::to_string(id); }
std::string Spool::upload_path(uint64_t id) const { return path(id) + ".part"; }

Spool::Started Spool::open(const std::string& owner, const std::string& request, const FileRow& row,
                           uint64_t size, const std::optional<Digest>& digest) {
  if (size > settings_.largest_file)
    throw Refusal(Refusal::Kind::kLimitExceeded, "spool.too_large",
                  "`" + row.name + "` has " + std::to_string(size) +
                      " bytes; the spool accepts at most " +
                      std::to_string(settings_.largest_file) + " per file",
                  "Split it, or ask the administrator to raise spool.largest_file.", row.name);
  std::unique_lock lock(mutex_);
  auto again = by_request_.find(owner + request);
  if (again != by_request_.end()) {
    std::shared_ptr<Upload> old = uploads_.at(again->second);
    lock.unlock();
    std::lock_guard upload_lock(old->mutex);
    if (old->row.size != size || old->announced != digest)
      throw Refusal(Refusal::Kind::kConflict, "request.reused",
                    "this request id was used before, for another file",
                    "Make a new random request id for every new request.", row.name);
    return Started{old->row.id, old->offset, false};
  }
  if (per_owner_[owner] >= settings_.uploads_per_owner)
    throw Refusal(Refusal::Kind::kLimitExceeded, "spool.uploads", "too many unfinished uploads",
                  "Finish some first.", row.name);
  auto upload = std::make_shared<Upload>();
  upload->owner = owner;
  upload->request = request;
  upload->row = row;
  upload->row.id = next_id_++;
  upload->row.size = size;
  upload->row.in_row = size <= kInRow;
  upload->row.content = upload->row.in_row ? 0 : upload->row.id;
  upload->announced = digest;
  upload->touched = clock_.utc_us();
  if (!upload->row.in_row) {
    on_disk("create a file in its spool",
            [&] { upload->fd = files_.create(upload_path(upload->row.id)); });
  }
  uploads_[upload->row.id] = upload;
  by_request_[owner + request] = upload->row.id;
  ++per_owner_[owner];
  announced_[account(upload->row)] += size;
  return Started{upload->row.id, 0, true};
}

std::shared_ptr<Spool::Upload> Spool::find(uint64_t id, const std::string& owner) {
  std::lock_guard lock(mutex_);
  return find_locked(id, owner);
}

std::shared_ptr<Spool::Upload> Spool::find_unless_finished(uint64_t id, const std::string& owner) {
  std::lock_guard lock(mutex_);
  const auto it = finished_.find(id);
  if (it != finished_.end() && it->second == owner) return nullptr;
  return find_locked(id, owner);
}

std::shared_ptr<Spool::Upload> Spool::find_locked(uint64_t id, const std::string& owner) {
  auto it = uploads_.find(id);
  if (it == uploads_.end() || it->second->owner != owner)
    throw Refusal(Refusal::Kind::kNotFound, "upload.unknown",
                  "you have no unfinished upload " + std::to_string(id), "Start it again.",
                  "upload " + std::to_string(id));
  it->second->touched = clock_.utc_us();
  return it->second;
}

void Spool::write_chunk(Upload& upload, std::string_view chunk) {
  if (upload.row.in_row) {
    upload.small.append(chunk);
  } else {
    on_disk("write to its spool", [&] {
      files_.write_at(upload.fd.get(), upload_path(upload.row.id), upload.offset, chunk);
    });
  }
  upload.offset += chunk.size();
  upload.written = upload.offset;
  if (!upload.row.in_row) upload.writeback.written(upload.fd.get(), upload.offset);
}

// Hashes on a separate thread, from the file, in parallel with the upload. If the hasher is
// too far behind, the sender's thread hashes.
void Spool::hash_later(const std::shared_ptr<Upload>& upload) {
  if (upload->written > upload->hashed + kBehind) hash_up_to(*upload, upload->written);
  if (upload->queued.exchange(true)) return;
  {
    std::lock_guard lock(hash_mutex_);
    to_hash_.push_back(upload);
  }
  hash_wake_.notify_one();
}

void Spool::hash_up_to(Upload& upload, uint64_t end) {
  std::lock_guard lock(upload.hash_mutex);
  if (upload.hashed >= end) return;
  const auto part = std::make_unique_for_overwrite<char[]>(kChunk);
  while (upload.hashed < end) {
    const size_t wanted = std::min<uint64_t>(kChunk, end - upload.hashed);
    size_t got = 0;
    on_disk("read in its spool", [&] {
      got = files_.read_at(upload.fd.get(), upload_path(upload.row.id), upload.hashed,
                           {part.get(), wanted});
    });
    if (got == 0) throw disk("read in its spool", EIO);
    upload.hash.update(part.get(), got);
    upload.hashed += got;
  }
}

void Spool::hash_loop() {
  std::unique_lock lock(hash_mutex_);
  while (true) {
    hash_wake_.wait(lock, [this] { return stopping_ || !to_hash_.empty(); });
    if (stopping_) return;
    const std::shared_ptr<Upload> upload = std::move(to_hash_.front());
    to_hash_.pop_front();
    lock.unlock();
    upload->queued = false;  // before hashing, so that data written meanwhile is queued again
    try {
      hash_up_to(*upload, upload->written);
    } catch (const Refusal&) {
      // finish() hits the same error and reports it.
    }
    lock.lock();
  }
}

uint64_t Spool::put(uint64_t id, const std::string& owner, uint64_t offset,
                    std::string_view chunk) {
  auto upload = find(id, owner);
  std::lock_guard lock(upload->mutex);
  const std::string subject = "upload " + std::to_string(id);
  if (offset != upload->offset)
    throw Refusal(
        Refusal::Kind::kConflict, "spool.offset",
        subject + " is at " + std::to_string(upload->offset) + ", not at " + std::to_string(offset),
        "Continue from there.", subject);
  if (chunk.size() > kChunk)
    throw Refusal(Refusal::Kind::kLimitExceeded, "spool.chunk", "a chunk is larger than 1 MiB",
                  "Send smaller chunks.", subject);
  if (chunk.size() > upload->row.size - upload->offset)
    throw Refusal(Refusal::Kind::kInvalid, "spool.size",
                  "more bytes than the " + std::to_string(upload->row.size) + " announced",
                  "The file grew while it was sent; start again.", subject);
  write_chunk(*upload, chunk);
  if (!upload->row.in_row) hash_later(upload);
  return upload->offset;
}

void Spool::close(uint64_t id, const std::string& owner, const Commit& commit) {
  const auto upload = find_unless_finished(id, owner);
  if (!upload) return;  // the reply was lost
  std::lock_guard lock(upload->mutex);
  // The call that held the lock finished it, or dropped it, which throws.
  if (!find_unless_finished(id, owner)) return;
  const std::string subject = "upload " + std::to_string(id);
  if (upload->offset != upload->row.size)
    throw Refusal(Refusal::Kind::kConflict, "spool.incomplete",
                  subject + " has " + std::to_string(upload->offset) + " of " +
                      std::to_string(upload->row.size) + " bytes",
                  "Send the rest first.", subject);
  if (!upload->finished) verify(*upload);
  FileRow row = upload->row;
  try {
    commit(row);
  } catch (const Refusal& refusal) {
    if (refusal.kind != Refusal::Kind::kUnavailable) drop(*upload);
    throw;
  }
  forget(id, true);
  if (row.in_row || row.content == id) return;
  // Removed later: the reply must not take longer if the content was already stored.
  std::lock_guard table_lock(mutex_);
  superfluous_.push_back(id);
}

Digest Spool::digest_of_all(Upload& upload) {
  if (upload.row.in_row) return digest_of(upload.small);
  hash_up_to(upload, upload.row.size);
  std::lock_guard lock(upload.hash_mutex);
  return upload.hash.finish();
}

// The upload's mutex must be held.
void Spool::verify(Upload& upload) {
  const uint64_t id = upload.row.id;
  // Only once: this function is called again if the disk failed below.
  if (upload.row.digest.empty()) upload.row.digest = hex(digest_of_all(upload));
  if (upload.announced && upload.row.digest != hex(*upload.announced)) {
    drop(upload);
    throw Refusal(Refusal::Kind::kInvalid, "spool.digest",
                  "the data received is not what was announced (the digest differs)",
                  "The file changed while it was sent; start again.",
                  "upload " + std::to_string(id));
  }
  if (upload.row.in_row)
    upload.row.body = upload.small;
  else
    store(upload);
  upload.finished = true;
}

// After a failed sync nobody knows what is on disk, and the next one may report success
// (fsync(2)): the upload is dropped.
void Spool::store(Upload& upload) {
  const uint64_t id = upload.row.id;
  try {
    on_disk("write to its spool", [&] {
      files_.sync(upload.fd.get(), upload_path(id));
      files_.rename(upload_path(id), path(id));
      files_.sync_folder(settings_.folder);
    });
  } catch (const Refusal&) {
    drop(upload);
    throw;
  }
  upload.row.identity = file_identity(upload.fd.get());
}

// Nothing refers to it any more. What cannot be removed is set aside by the next start.
void Spool::erase(const std::string& file) {
  try {
    files_.remove_file(file);
  } catch (const FileError& error) {
    log(Severity::warning) << error.what();
  }
}

void Spool::drop(const Upload& upload) {
  const uint64_t id = upload.row.id;
  forget(id, false);
  erase(upload_path(id));
  erase(path(id));
}

bool Spool::forget(uint64_t id, bool finished) {
  std::lock_guard lock(mutex_);
  auto it = uploads_.find(id);
  if (it == uploads_.end()) return false;
  const std::string owner = it->second->owner;
  by_request_.erase(owner + it->second->request);
  if (--per_owner_[owner] == 0) per_owner_.erase(owner);
  const auto bytes = announced_.find(account(it->second->row));
  if (bytes != announced_.end() && (bytes->second -= it->second->row.size) == 0)
    announced_.erase(bytes);
  if (finished) finished_[id] = owner;
  if (finished_.size() > 10'000) finished_.erase(finished_.begin());
  uploads_.erase(it);
  return true;
}

bool Spool::finished_before(uint64_t id, const std::string& owner) {
  std::lock_guard lock(mutex_);
  auto it = finished_.find(id);
  return it != finished_.end() && it->second == owner;
}

void Spool::abandon(uint64_t id) {
  if (forget(id, false)) erase(upload_path(id));
}

uint64_t Spool::announced(const std::string& user, bool checkpoints) {
  std::lock_guard lock(mutex_);
  const auto bytes = announced_.find({user, checkpoints});
  return bytes == announced_.end() ? 0 : bytes->second;
}

StoredContent Spool::stored(const FileRow& row) const {
  return {row.content, path(row.content), row.size, row.digest, row.identity};
}

size_t Spool::read_good(const FileRow& row, int fd, uint64_t offset, std::span<char> into) {
  try {
    return files_.read_at(fd, path(row.content), offset, into);
  } catch (const FileError& error) {
    log(Severity::error) << error.what();
    checker_.note_unread(stored(row), file_identity(fd));
    throw disk("read in its spool", error.code());
  }
}

size_t Spool::read(const FileRow& row, uint64_t offset, std::span<char> into) {
  if (offset >= row.size) return 0;
  into = into.first(std::min<uint64_t>({into.size(), kChunk, row.size - offset}));
  size_t got = 0;
  if (row.in_row) {
    if (offset < row.body.size()) got = row.body.copy(into.data(), into.size(), offset);
  } else if (const UniqueFd fd = ContentChecker::open(path(row.content), files_); fd.valid()) {
    const bool good =
        !row.damaged && (checker_.trusted(stored(row), file_identity(fd.get())) || intact(row));
    if (good) got = read_good(row, fd.get(), offset, into);
  }
  if (got < into.size()) throw damaged(row);
  return got;
}

bool Spool::intact(const FileRow& row, bool suspect) {
  if (row.in_row) return row.body.size() == row.size && hex(digest_of(row.body)) == row.digest;
  return !row.damaged && checker_.intact(stored(row), suspect);
}

bool Spool::seems_intact(const ContentRow& content) {
  try {
    const UniqueFd fd = ContentChecker::open(path(content.id), files_);
    return fd.valid() && checker_.trusted({content.id, "", content.size, "", content.identity},
                                          file_identity(fd.get()));
  } catch (const Refusal&) {
    return false;  // then it is stored again
  }
}

void Spool::remove(uint64_t content) {
  const bool unread = checker_.was_given_up(content);
  checker_.forget(content);
  if (!unread) return erase(path(content));
  try {
    set_orphan_aside(files_, settings_.folder, std::to_string(content), clock_.utc_us());
  } catch (const FileError& error) {  // the next start sets it aside
    log(Severity::error) << error.what();
  }
}

size_t Spool::drop_idle() {
  const Micros before = clock_.utc_us() - settings_.upload_idle;
  std::vector<uint64_t> idle;
  std::vector<uint64_t> superfluous;
  {
    std::lock_guard lock(mutex_);
    superfluous.swap(superfluous_);
    for (const auto& [id, upload] : uploads_)
      if (upload->touched < before) idle.push_back(id);
  }
  for (uint64_t id : superfluous) erase(path(id));
  return static_cast<size_t>(
      std::ranges::count_if(idle, [&](uint64_t id) { return drop_if_idle(id, before); }));
}

bool Spool::drop_if_idle(uint64_t id, Micros before) {
  std::shared_ptr<Upload> upload;
  {
    std::lock_guard lock(mutex_);
    const auto it = uploads_.find(id);
    if (it == uploads_.end()) return false;
    upload = it->second;
  }
  const std::unique_lock lock(upload->mutex, std::try_to_lock);
  if (!lock || upload->touched >= before) return false;
  // A commit that was reported as failed may have succeeded.
  if (upload->finished && archive_.has_content(id))
    forget(id, true);
  else
    drop(*upload);
  return true;
}

}  // namespace sublet::server
