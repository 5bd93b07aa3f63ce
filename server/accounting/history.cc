#include "server/accounting/history.h"

#include <limits>

#include "base/json.h"
#include "base/text.h"
#include "server/commit/crash_point.h"

namespace sublet::server {
namespace {

constexpr Micros kDay = 86'400ll * 1'000'000;
constexpr uint32_t kUsesPerFile = 20'000;
constexpr int kFilesPerRound = 5;

Micros start_of_day(Micros at) { return at - at % kDay; }

std::string line_of(const OldUse& old) {
  const scheduling::UseRecord& u = old.use;
  JsonWriter json;
  json.begin_object().field("kind", "use").field("job", u.key.job).field("attempt", u.key.attempt);
  json.field("user", u.user).field("machine", old.machine_name).field("machine_number", u.machine);
  json.field("batch", u.batch).field("ended", static_cast<uint32_t>(u.ended));
  json.field("started_us", u.started).field("finished_us", u.finished);
  json.field("wall_us", u.wall).field("cpu_us", u.used).field("kept_us", u.kept);
  json.field("lost_us", u.lost).field("charged_us", u.charged).field("waited_us", u.waited);
  json.end_object();
  return json.str() + "\n";
}

std::string line_of(const SpentRow& spent) {
  JsonWriter json;
  json.begin_object().field("kind", "server").field("minute_us", spent.at);
  json.field("cpu_us", spent.cpu).end_object();
  return json.str() + "\n";
}

}  // namespace

UsageHistory::UsageHistory(const std::string& folder, Micros keep, Files& files, Archive& archive,
                           Pipeline& pipeline)
    : folder_(folder), keep_(keep), files_(files), archive_(archive), pipeline_(pipeline) {}

void UsageHistory::write_old() {
  if (keep_ == 0) return;
  Micros now = 0;
  pipeline_.perform([&](Turn& turn) { now = turn.now(); });
  for (int i = 0; i < kFilesPerRound; ++i)
    if (!write_one(start_of_day(now - keep_))) return;
}

// Writes the next file of the oldest day that ended before `before`; false: there is none.
bool UsageHistory::write_one(Micros before) {
  const Micros oldest = archive_.oldest_history();
  if (oldest == 0 || oldest >= before) return false;
  const Micros day = start_of_day(oldest);
  const auto uses = archive_.oldest_uses(day + kDay, kUsesPerFile);
  Changes::ForgottenHistory forgotten;
  scheduling::AttemptKey first;
  std::string text;
  for (const OldUse& use : uses) text += line_of(use);
  if (!uses.empty()) {
    first = uses.front().use.key;
    forgotten.last = uses.back().use.key;
    forgotten.uses_until = uses.back().use.finished;
  } else {  // rows left of this day, if any, cannot be read, and have been logged
    forgotten.last = {std::numeric_limits<int64_t>::max(), std::numeric_limits<uint32_t>::max()};
    forgotten.uses_until = day + kDay - 1;
  }
  if (uses.size() < kUsesPerFile) {  // the day's last file
    for (const SpentRow& spent : archive_.spent_before(day + kDay)) text += line_of(spent);
    forgotten.spent_before = day + kDay;
  }
  if (!text.empty()) {
    files_.make_folders(folder_);
    files_.write_atomic(folder_ + "/uses-" + format_instant(day).substr(0, 10) + "-" +
                            std::to_string(first.job) + "." + std::to_string(first.attempt) +
                            ".jsonl",
                        text);
  }
  crash_point("history");
  pipeline_.perform([&](Turn& turn) { turn.changes().forget_history = forgotten; });
  return true;
}

}  // namespace sublet::server
