#include "cli/rehearse/carried.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/files.h"
#include "cli/checkpoint/file.h"

namespace sublet::cli {

namespace {

namespace fs = std::filesystem;

// 0: there is none, or it is not whole.
uint64_t generation_in(const std::string& path) {
  try {
    return CheckpointFile(path).header().generation;
  } catch (const CheckpointFault&) {
    return 0;
  }
}

bool same_contents(const std::string& a, const std::string& b) {
  return fs::file_size(a) == fs::file_size(b) &&
         system_files().read_file(a, UINT64_MAX) == system_files().read_file(b, UINT64_MAX);
}

bool same_files(const std::map<std::string, std::string>& a,
                const std::map<std::string, std::string>& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, path] : a) {
    const auto other = b.find(name);
    if (other == b.end() || !same_contents(path, other->second)) return false;
  }
  return true;
}

void copy_into(const std::string& from, const fs::path& to) {
  fs::create_directories(to.parent_path());
  fs::copy_file(from, to, fs::copy_options::overwrite_existing);
  fs::last_write_time(to, fs::last_write_time(from));
}

}  // namespace

void Carried::put_into(const AttemptFolder& folder) const {
  if (!now_.checkpoint.empty()) copy_into(now_.checkpoint, folder.checkpoint() + "/checkpoint");
  for (const auto& [name, path] : now_.files) copy_into(path, folder.work() + "/" + name);
}

void Carried::replace_by(State next) { before_ = std::exchange(now_, std::move(next)); }

bool Carried::take_checkpoint(const AttemptFolder& folder) {
  const std::string newest = folder.checkpoint() + "/checkpoint";
  const std::string previous = newest + ".previous";
  // The one before first, so that it is there for a run that loses the newest.
  bool taken = false;
  for (const std::string& path : {previous, newest}) {
    const uint64_t generation = generation_in(path);
    if (generation <= now_.generation) continue;
    State next = now_;
    next.generation = generation;
    next.checkpoint = path;
    replace_by(std::move(next));
    taken = true;
  }
  return taken;
}

// Whether no file was being written, or was gone that there had been.
bool Carried::has_all(const AttemptEnded& ended) const {
  const auto is_there = [&](const auto& file) { return ended.whole_files.contains(file.first); };
  return std::ranges::all_of(ended.listed_files, is_there) &&
         std::ranges::all_of(now_.files, is_there);
}

bool Carried::take_files(const AttemptEnded& ended) {
  // As in the pool (client/staging/own_files.h).
  const bool was_cut_short = ended.asked && ended.handled && ended.killed;
  if (was_cut_short && !has_all(ended)) return false;
  State next = now_;
  next.files = ended.whole_files;
  // In place of one that was being written, what it was before.
  for (const auto& [name, path] : ended.listed_files)
    if (const auto old = now_.files.find(name); old != now_.files.end())
      next.files.emplace(name, old->second);
  if (same_files(next.files, now_.files)) return false;
  replace_by(std::move(next));
  return true;
}

bool Carried::take_from(const AttemptFolder& folder, const AttemptEnded& ended) {
  const bool saved = take_checkpoint(folder);
  // Who uses the API has that checkpoint only.
  if (now_.generation != 0) return saved;
  return !ended.listed_files.empty() && take_files(ended);
}

bool Carried::lose_newest() {
  now_ = std::exchange(before_, {});
  return is_something();
}

uint64_t Carried::bytes() const {
  uint64_t bytes = now_.checkpoint.empty() ? 0 : fs::file_size(now_.checkpoint);
  for (const auto& [name, path] : now_.files) bytes += fs::file_size(path);
  return bytes;
}

}  // namespace sublet::cli
