#include "client/machine/idle_history.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "client/attempts/record.h"

namespace sublet::client {
namespace {

constexpr char kTitle[] = "sublet-idle-history";
constexpr uint64_t kMaxBytes = 4096;
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kMostIdleMs = int64_t{100} * 365 * 24 * 3600 * 1000;

}  // namespace

IdleHistory::IdleHistory(Files& files, std::string path) : files_(files), path_(std::move(path)) {
  try {
    if (files_.exists(path_)) read();
  } catch (const RecordError& error) {
    log(Severity::warning) << path_ << " is damaged (" << error.what() << "); set aside as "
                           << path_ << ".damaged";
    try {
      files_.rename(path_, path_ + ".damaged");
    } catch (const FileError& failed) {
      log(Severity::warning) << failed.what();
    }
  } catch (const FileError& error) {
    log(Severity::warning) << error.what();
  }
}

void IdleHistory::read() {
  RecordReader in(kTitle, files_.read_file(path_, kMaxBytes));
  const uint64_t idle_ms = in.count("idle_ms"), ends = in.count("ends");
  if (idle_ms > uint64_t{kMostIdleMs} || ends > uint64_t{kMostEnds})
    throw RecordError("a number is too large");
  idle_ms_ = static_cast<int64_t>(idle_ms);
  ends_ = static_cast<int64_t>(ends);
}

bool IdleHistory::note(bool idle, int64_t now_ns) {
  const int64_t since = since_ns_;
  if (idle == (since != 0)) return false;
  since_ns_ = idle ? now_ns : 0;
  if (idle) return std::exchange(unsaved_, false);
  unsaved_ = true;
  int64_t idle_ms = idle_ms_ + (now_ns - since) / kMs, ends = ends_ + 1;
  if (ends > kMostEnds) {
    idle_ms /= 2;
    ends /= 2;
  }
  idle_ms_ = std::min(idle_ms, kMostIdleMs);
  ends_ = ends;
  return false;
}

void IdleHistory::store() {
  RecordWriter out(kTitle);
  out.add("idle_ms", static_cast<uint64_t>(idle_ms_)).add("ends", static_cast<uint64_t>(ends_));
  try {
    files_.write_atomic(path_, out.finish(), 0600, Files::Outlives::kProcess);
  } catch (const FileError& error) {
    log(Severity::warning) << error.what();
  }
}

int64_t IdleHistory::mean_s(int64_t now_ns) const {
  const int64_t since = since_ns_;
  const int64_t present_ms = since == 0 ? 0 : (now_ns - since) / kMs;
  const int64_t mean_ms = (kAtFirstMs + idle_ms_ + present_ms) / (1 + ends_);
  return std::max<int64_t>(mean_ms / 1000, 1);
}

}  // namespace sublet::client
