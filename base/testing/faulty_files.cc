#include "base/testing/faulty_files.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace sublet {

uint64_t FaultyFiles::steps() const {
  std::lock_guard lock(mutex_);
  return steps_;
}

void FaultyFiles::fail_step(FileStep step, int code) {
  std::lock_guard lock(mutex_);
  step_codes_[step] = code;
}

void FaultyFiles::ignore_syncs(bool ignore) {
  std::lock_guard lock(mutex_);
  ignore_syncs_ = ignore;
}

void FaultyFiles::fail_at(uint64_t nth, int code) {
  std::lock_guard lock(mutex_);
  fail_at_ = steps_ + nth;
  fail_onwards_ = false;
  code_ = code;
}

void FaultyFiles::fail_from(uint64_t nth, int code) {
  fail_at(nth, code);
  std::lock_guard lock(mutex_);
  fail_onwards_ = true;
}

FaultyFiles::Contents FaultyFiles::contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void FaultyFiles::touch(const std::string& path) const {
  std::error_code ignored;
  if (durable_.contains(path) || std::filesystem::is_directory(path, ignored)) return;
  durable_[path] = synced_[path] = contents(path);
}

int FaultyFiles::before(FileStep step, const std::string& path) const {
  std::lock_guard lock(mutex_);
  const uint64_t now = steps_++;
  auto code = step_codes_.find(step);
  if (code != step_codes_.end() && code->second != 0) return code->second;
  if (fail_at_ && (now == *fail_at_ || (fail_onwards_ && now > *fail_at_))) return code_;
  if (step == FileStep::open || step == FileStep::rename || step == FileStep::link ||
      step == FileStep::remove)
    touch(path);
  return 0;
}

void FaultyFiles::after(FileStep step, const std::string& path, const std::string& from) {
  std::lock_guard lock(mutex_);
  switch (step) {
    case FileStep::sync:
      if (ignore_syncs_) break;
      synced_[path] = contents(path);
      if (durable_[path]) durable_[path] = synced_[path];
      break;
    case FileStep::rename:
      touch(from);
      // A renamed file that was never synced is empty after a loss of power.
      synced_[path] = synced_[from].value_or("");
      synced_[from] = std::nullopt;
      break;
    case FileStep::link:
      touch(from);
      synced_[path] = synced_[from].value_or("");
      break;
    case FileStep::remove:
      synced_[path] = std::nullopt;
      break;
    case FileStep::sync_folder:
      if (ignore_syncs_) break;
      for (auto& [name, state] : durable_) {
        if (folder_of(name) == path) state = synced_[name];
      }
      break;
    default:
      break;
  }
}

void FaultyFiles::lose_power() {
  std::lock_guard lock(mutex_);
  for (const auto& [path, state] : durable_) {
    if (state) {
      std::ofstream(path, std::ios::binary | std::ios::trunc) << *state;
    } else {
      std::remove(path.c_str());
    }
  }
  durable_.clear();
  synced_.clear();
}

}  // namespace sublet
