#include "client/staging/own_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>

#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "client/staging/work_folder.h"

namespace sublet::client {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
// Times of files are those of the kernel's last tick, up to 10 ms ago: a change within that time
// of another may leave them as they are.
constexpr int64_t kQuietNs = 20'000'000;
constexpr uint64_t kMostWholeBytes = 1 << 20;

int64_t ns_of(const timespec& time) { return time.tv_sec * kNsPerSecond + time.tv_nsec; }

struct Seen {
  UniqueFd fd;
  struct stat info = {};
};

// Whether it is the same file, unchanged.
bool is_still(int file, const struct stat& before) {
  struct stat now = {};
  return fstat(file, &now) == 0 && now.st_ino == before.st_ino && now.st_dev == before.st_dev &&
         now.st_size == before.st_size && ns_of(now.st_mtim) == ns_of(before.st_mtim) &&
         ns_of(now.st_ctim) == ns_of(before.st_ctim);
}

// Somebody may open the file in the moment in which it has a lease. The signal that says so must
// not end this process.
void hear_of_leases() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction handler = {};
    handler.sa_handler = [](int) {};
    handler.sa_flags = SA_RESTART;
    sigaction(SIGIO, &handler, nullptr);
  });
}

// As in client/shepherd/whole_files.cc.
bool is_open_for_writing(int file) {
  hear_of_leases();
  if (fcntl(file, F_SETLEASE, F_RDLCK) != 0) return true;
  fcntl(file, F_SETLEASE, F_UNLCK);
  return false;
}

// What may be taken.
class Whole {
 public:
  Whole(const std::string& folder, bool runs) : runs_(runs) {
    if (runs) return;
    std::string names;
    try {
      names = system_files().read_file(folder + "/" SUBLET_WHOLE_FILE, kMostWholeBytes);
    } catch (const FileError&) {
      return;  // the shepherd was killed
    }
    told_ = true;
    all_ = names == "all";
    for (size_t at = 0; at < names.size();) {
      const size_t end = std::min(names.find('\0', at), names.size());
      entries_.insert(names.substr(at, end - at));
      at = end + 1;
    }
  }

  bool has(const std::string& name, const Seen& file) const {
    // As the shepherd saw it: a process may have been frozen a moment later.
    const std::string entry = std::to_string(file.info.st_size) + " " +
                              std::to_string(file.info.st_ctim.tv_sec) + " " +
                              std::to_string(file.info.st_ctim.tv_nsec) + " " + name;
    return runs_ ? !is_open_for_writing(file.fd.get()) : all_ || entries_.contains(entry);
  }

  // It has just changed. A time in the future says nothing.
  bool is_fresh(const Seen& file) const {
    timespec now = {};
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t changed = std::max(ns_of(file.info.st_mtim), ns_of(file.info.st_ctim));
    return runs_ && changed + kQuietNs > ns_of(now);
  }

  // Why the others were not taken.
  std::string why_not() const {
    if (!runs_ && !told_) return "not taken: the shepherd was killed before it could look at them";
    // The shepherd's last entry, if it did not get to all.
    if (entries_.contains("")) return "not taken: being written, or not looked at in time";
    return "being written, and not taken";
  }

 private:
  const bool runs_;
  bool told_ = false;
  bool all_ = false;
  std::set<std::string> entries_;
};

// It handled the request to save, and was killed before it had ended.
bool was_cut_short(const AttemptWork& work) {
  if (!work.exit) return false;
  const sublet_exit& facts = work.exit->facts;
  return facts.asked != 0 && facts.killed != 0 && facts.no_handler == 0;
}

PackedFile described(const std::string& name, const struct stat& info) {
  PackedFile file;
  file.name = name;
  file.size = static_cast<uint64_t>(info.st_size);
  file.mode = info.st_mode & 0777;
  file.mtime_ns = ns_of(info.st_mtim);
  return file;
}

bool same(const PackedFile& a, const PackedFile& b) {
  return a.name == b.name && a.size == b.size && a.mode == b.mode && a.mtime_ns == b.mtime_ns;
}

class Packing {
 public:
  Packing(const AttemptWork& work, bool runs, uint64_t largest, const Turn& turn)
      : work_(work),
        runs_(runs),
        all_or_none_(!runs && was_cut_short(work)),
        largest_(largest),
        turn_(turn),
        whole_(work.folder, runs) {}

  // Null: there is nothing, or nothing new.
  std::shared_ptr<Pack> make() {
    // While it runs, a file may be gone or changed when its turn comes: then all are chosen anew. A
    // pack without it could replace a good one.
    constexpr int kTries = 3;
    for (int i = 0; i < kTries; ++i) {
      const timespec quiet = {0, kQuietNs};
      if (i > 0) nanosleep(&quiet, nullptr);
      moved_ = false;
      choose();
      if (all_or_none_) note_missing();
      if (moved_) continue;
      if (is_torn() || lacks_ || choices_.empty() || is_nothing_new()) return nullptr;
      std::shared_ptr<Pack> pack = pack_chosen();
      if (!runs_ || !moved_) return pack;
    }
    return nullptr;
  }

  bool has_copied() const { return copied_; }

  std::string left_out() const {
    std::string text = not_files_;
    if (!gone_.empty())
      text += (text.empty() ? "'" : " '") + escape_for_terminal(*gone_.begin()) + "' was gone.";
    if (not_whole_.empty()) return text + why_none();
    const size_t others = not_whole_.size() - 1;
    text += (text.empty() ? "'" : " '") + escape_for_terminal(*not_whole_.begin()) + "'";
    if (others > 0)
      text += " and " + std::to_string(others) + " other checkpoint file" + (others > 1 ? "s" : "");
    return text + (others > 0 ? " were " : " was ") + whole_.why_not() + "." + why_none();
  }

 private:
  // Not open: there may be thousands.
  struct Choice {
    PackedFile file;
    struct stat info;
    const PackedFile* kept;  // of the generation before, in its place
  };

  // Chooses for each name the file, or what is kept of it.
  void choose() {
    choices_.clear();
    not_whole_.clear();
    not_files_.clear();
    lacks_ = false;
    uint64_t bytes = 0;
    for (const std::string& name : find_all()) {
      const std::optional<Seen> seen = open_one(name);
      if (!seen) continue;
      // One that is open is left out even if it has changed: it may be a log.
      const bool whole = whole_.has(name, *seen);
      if (whole && whole_.is_fresh(*seen)) moved_ = true;
      if (whole)
        choices_.push_back({described(name, seen->info), seen->info, nullptr});
      else if (const PackedFile* const kept = leave_out(name))
        choices_.push_back({*kept, {}, kept});
      else
        continue;
      bytes += choices_.back().file.size;
      if (bytes > largest_)
        throw std::runtime_error("they are larger than this machine's limit for a checkpoint (" +
                                 format_bytes(largest_) + ")");
    }
    if (choices_.size() > PackWriter::kMostFiles)
      throw std::runtime_error("they are more than " + std::to_string(PackWriter::kMostFiles));
  }

  // One that is gone may have been about to be written anew.
  void note_missing() {
    // After a restart of this client nobody knows what the generation before had.
    if (!work_.packed && work_.held_generation > 0) lacks_ = true;
    if (!work_.packed) return;
    gone_.clear();
    for (const PackedFile& file : work_.packed->files) gone_.insert(file.name);
    for (const std::string& name : not_whole_) gone_.erase(name);
    for (const Choice& choice : choices_) gone_.erase(choice.file.name);
  }

  std::set<std::string> find_all() {
    const Assignment& what = *work_.assignment;
    std::set<std::string> names;
    FindBounds searchable;
    for (const std::string& file : what.job.own_checkpoint.files) {
      const OutputName name(file);
      if (name.is_file()) {
        names.insert(name.file());
        continue;
      }
      try {
        const FoundFiles found =
            find_inside(work_.folder + "/" SUBLET_WORK_FOLDER, name, what.uid, searchable, turn_);
        names.insert(found.names.begin(), found.names.end());
      } catch (const WorkFolderError& error) {
        note_not_file(error.what());  // of this pattern
      }
    }
    return names;
  }

  std::optional<Seen> open_one(const std::string& name) {
    try {
      Seen seen;
      seen.fd = open_inside(work_.folder + "/" SUBLET_WORK_FOLDER, name, work_.assignment->uid).fd;
      if (fstat(seen.fd.get(), &seen.info) == 0) return seen;
    } catch (const WorkFolderError& error) {
      if (error.code() != ENOENT) note_not_file(error.what());
    }
    return std::nullopt;
  }

  // The first is told; there may be thousands.
  void note_not_file(const std::string& what) {
    if (not_files_.empty()) not_files_ = "A checkpoint file was not taken: " + what + ".";
  }

  bool is_torn() const { return all_or_none_ && !(not_whole_.empty() && gone_.empty()); }
  std::string why_none() const {
    return is_torn() ? " Killed while it saved, it may have changed the others: none was taken."
                     : "";
  }

  // Of one that runs. Of one that has ended, all files are read: a program may set their times.
  bool is_nothing_new() const {
    const Pack* const before = work_.packed.get();
    return runs_ && before != nullptr &&
           std::equal(choices_.begin(), choices_.end(), before->files.begin(), before->files.end(),
                      [](const Choice& a, const PackedFile& b) { return same(a.file, b); });
  }

  std::shared_ptr<Pack> pack_chosen() {
    copied_ = true;
    PackWriter writer(work_.folder);
    int64_t changed_ns = 0;
    for (const Choice& choice : choices_) {
      if (!add(writer, choice)) continue;
      const PackedFile* const before =
          work_.packed ? work_.packed->find(choice.file.name) : nullptr;
      if (choice.kept == nullptr && (before == nullptr || !same(choice.file, *before)))
        changed_ns = std::max(changed_ns, ns_of(choice.info.st_ctim));
    }
    if (is_torn() || lacks_ || (moved_ && runs_) || writer.is_empty()) return nullptr;
    auto pack = std::make_shared<Pack>(writer.finish(work_.held_generation + 1, turn_));
    pack->changed_us = changed_ns / 1000;
    // A program that writes the same again has made no progress.
    const bool is_new = !work_.packed || work_.packed->contents != pack->contents;
    return is_new ? pack : nullptr;
  }

  // What is kept of a file that is not whole; null: nothing.
  const PackedFile* leave_out(const std::string& name) {
    not_whole_.insert(name);
    if (work_.packed) return work_.packed->find(name);
    // After a restart of this client nobody knows what the generation before had.
    if (work_.held_generation > 0) lacks_ = true;
    return nullptr;
  }

  bool copy(PackWriter& writer, const Choice& choice) {
    const std::optional<Seen> seen = open_one(choice.file.name);
    if (!seen || !is_still(seen->fd.get(), choice.info)) return false;
    if (!writer.add(choice.file, seen->fd.get(), 0, turn_)) return false;
    if (is_still(seen->fd.get(), choice.info)) return true;
    writer.drop_last();
    return false;
  }

  // False: it is not in the pack as it was chosen.
  bool add(PackWriter& writer, const Choice& choice) {
    const PackedFile* kept = choice.kept;
    if (kept == nullptr) {
      if (copy(writer, choice)) return true;
      moved_ = true;
      kept = leave_out(choice.file.name);
    }
    if (kept != nullptr) writer.add(*kept, work_.packed->file.get(), kept->offset, turn_);
    return kept != nullptr && kept == choice.kept;
  }

  const AttemptWork& work_;
  const bool runs_;
  const bool all_or_none_;
  const uint64_t largest_;
  const Turn& turn_;
  const Whole whole_;
  std::vector<Choice> choices_;
  std::set<std::string> not_whole_;
  std::set<std::string> gone_;  // of those that the generation before had, if it was cut short
  std::string not_files_;
  bool lacks_ = false;
  bool copied_ = false;
  bool moved_ = false;  // a chosen file has changed, or is gone
};

std::string kept_name(const AttemptWork& work) { return work.folder + "/" + kPackedFile; }

// An input may have the name of a folder that the program has made since, or the reverse.
void clear_the_way(const std::string& work, const std::string& name) {
  struct stat info = {};
  for (size_t slash = name.find('/'); slash != std::string::npos;
       slash = name.find('/', slash + 1)) {
    const std::string folder = work + "/" + name.substr(0, slash);
    if (lstat(folder.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) unlink(folder.c_str());
  }
  const std::string path = work + "/" + name;
  if (lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) system_files().remove_tree(path);
}

// Nobody else uses the working folder during staging.
void put_back(const AttemptWork& work, const PackedFile& file, const Turn& turn) {
  clear_the_way(work.folder + "/" SUBLET_WORK_FOLDER, file.name);
  const UniqueFd to =
      create_inside(work.folder + "/" SUBLET_WORK_FOLDER, file.name, false, work.assignment->uid);
  copy_from(*work.packed, file, to.get(), turn);
  // Programs compare these times, or take the newest file. Of what may not be set none is needed.
  timespec time = {file.mtime_ns / kNsPerSecond, file.mtime_ns % kNsPerSecond};
  if (time.tv_nsec < 0) time = {time.tv_sec - 1, time.tv_nsec + kNsPerSecond};
  const timespec times[] = {time, time};
  if (fchmod(to.get(), file.mode) != 0 || futimens(to.get(), times) != 0)
    throw FileError(errno, "set the times of", file.name);
}

}  // namespace

PackedNow pack_own_files(const AttemptWork& work, bool runs, uint64_t largest, const Turn& turn) {
  Packing packing(work, runs, largest, turn);
  PackedNow out;
  out.pack = packing.make();
  out.left_out = packing.left_out();
  out.copied = packing.has_copied();
  return out;
}

bool unpack_own_files(AttemptWork& work, const Turn& turn) {
  const std::string path = work.folder + "/" SUBLET_CHECKPOINT_FOLDER "/checkpoint";
  UniqueFd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info = {};
  if (!file.valid() || fstat(file.get(), &info) != 0) throw FileError(errno, "open", path);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (!is_pack(file.get(), size)) return true;
  try {
    work.packed = std::make_shared<Pack>(read_pack(std::move(file), size, turn));
  } catch (const DamagedPack& error) {
    log(Severity::warning) << work.label() << ": checkpoint " << work.held_generation
                           << " cannot be used: " << error.what();
    return false;
  }
  for (const PackedFile& one : work.packed->files) put_back(work, one, turn);
  // The program is not to see it.
  system_files().move(path, kept_name(work));
  return true;
}

void keep_packed(const AttemptWork& work) {
  const std::string fresh = kept_name(work) + ".new";
  const std::string file = "/proc/self/fd/" + std::to_string(work.packed->file.get());
  unlink(fresh.c_str());
  if (linkat(AT_FDCWD, file.c_str(), AT_FDCWD, fresh.c_str(), AT_SYMLINK_FOLLOW) != 0 ||
      rename(fresh.c_str(), kept_name(work).c_str()) != 0)
    forget_packed(work);
}

void find_packed(AttemptWork& work, const Turn& turn) {
  UniqueFd file(open(kept_name(work).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info = {};
  if (!file.valid() || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  const auto size = static_cast<uint64_t>(info.st_size);
  try {
    auto found = std::make_shared<Pack>(read_pack(std::move(file), size, turn));
    if (found->generation == work.held_generation)
      work.packed = std::move(found);
    else
      forget_packed(work);  // not to be read again and again
  } catch (const DamagedPack& error) {
    forget_packed(work);
    log(Severity::warning) << work.label() << ": " << kept_name(work)
                           << " cannot be used: " << error.what();
  }
}

void forget_packed(const AttemptWork& work) { unlink(kept_name(work).c_str()); }

}  // namespace sublet::client
