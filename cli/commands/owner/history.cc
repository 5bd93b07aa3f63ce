// owner history: which jobs had to leave this machine, why, and how fast. Reads the file that
// sublet-client keeps, so that it needs neither that nor the load monitor to run.
#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "base/json.h"
#include "base/options/default_places.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_options.h"
#include "cli/commands/owner/monitor.h"
#include "cli/names.h"
#include "protocol/eviction.h"

namespace sublet::cli {

namespace {

using protocol::EvictionNote;

constexpr uint64_t kLargest = 1 << 20;  // bytes

struct HistoryOptions {
  std::string folder;
  int64_t last = 20;
};

// Newest first, of the first folder that has any.
std::vector<EvictionNote> notes_of(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + protocol::kEvictionsFile;
    try {
      auto notes = protocol::notes_in(system_files().read_file(path, kLargest));
      if (!notes)
        throw PoolError(ErrorKind::invalid, "owner.history", path + " is of another version",
                        "use the `sublet` of the release that runs there", path);
      return {notes->rbegin(), notes->rend()};
    } catch (const FileError& error) {
      if (error.code() == ENOENT || error.code() == ENOTDIR) continue;
      throw PoolError(ErrorKind::unavailable, "owner.history",
                      "cannot read " + path + ": " + std::strerror(error.code()),
                      "ask the administrator to let you read it", path);
    }
  }
  return {};
}

// With the place, where one is known: "input, pts/3".
std::string at(const char* words, const char* kind, const std::string& place) {
  return place.empty() ? words : std::string(kind) + ", " + place;
}

// What made the job leave, if it was the owner and the load monitor said what.
std::string phrase(const EvictionNote& note) {
  if (note.ended != protocol::kEndOwner) return protocol::end_name(note.ended);
  switch (note.sensed) {
    case SUBLET_PRESENCE_CPU:
      return "CPU in use";
    case SUBLET_PRESENCE_LOAD:
      return "high load";
    case SUBLET_PRESENCE_INPUT:
      return at("keyboard, mouse or terminal", "input", note.place);
    case SUBLET_PRESENCE_SCRIPT:
      return "simulated owner";
    case SUBLET_PRESENCE_PAUSED:
      return "sublet owner pause";
    case SUBLET_PRESENCE_UNSEEN:
      return at("a session that cannot be seen", "unseen", note.place);
    case SUBLET_PRESENCE_SLEEP:
      return "going to sleep";
    case SUBLET_PRESENCE_MEDIA:
      return at("sound, camera or a film", "media", note.place);
    case SUBLET_PRESENCE_RULE:
    case SUBLET_PRESENCE_WITHHELD:
      return "a rule";
    default:
      return protocol::end_name(note.ended);
  }
}

std::string table_of(const std::vector<EvictionNote>& notes, const Context& context) {
  if (notes.empty()) return "no job has had to leave this machine yet\n";
  std::vector<Row> rows;
  for (const EvictionNote& note : notes) {
    std::vector<std::string> cells = {format_instant(note.at_us),
                                      std::to_string(note.job) + "." + std::to_string(note.attempt),
                                      phrase(note)};
    for (const protocol::EvictionStep& step : protocol::kEvictionSteps) {
      const int64_t after = note.steps.*step.after_us;
      cells.push_back(after < 0 ? "" : short_time_us(after));
    }
    rows.push_back({cells});
  }
  return list_table({{"WHEN", false, 10, 9},
                     {"ATTEMPT", false, 7, 5},
                     {"SENSED", false, 8, 8},
                     {"TOLD", true, 6, 3},
                     {"DEMOTED", true, 6, 2},
                     {"ASKED", true, 6, 1},
                     {"SAVED", true, 6, 4},
                     {"GONE", true, 6, 10}},
                    rows, context.terminal.columns, context.terminal.colour);
}

std::string json_of(const std::vector<EvictionNote>& notes) {
  JsonWriter json;
  json.begin_object().key("evictions").begin_array();
  for (const EvictionNote& note : notes) {
    json.begin_object().field("at_us", note.at_us).field("job", note.job);
    json.field("attempt", note.attempt).field("ended", protocol::end_name(note.ended));
    json.field("sensed", presence_name(note.sensed)).field("place", note.place);
    for (const protocol::EvictionStep& step : protocol::kEvictionSteps)
      json.field((std::string(step.name) + "_us").c_str(), note.steps.*step.after_us);
    json.end_object();
  }
  return json.end_array().end_object().str() + "\n";
}

int run_history(const HistoryOptions& o, const Context& context) {
  if (o.last < 1) usage_error("--last must be at least 1", "leave it out to see the last 20");
  std::vector<EvictionNote> notes = notes_of(client_states(o.folder));
  if (notes.size() > static_cast<size_t>(o.last)) notes.resize(static_cast<size_t>(o.last));
  print(context.json ? json_of(notes) : table_of(notes, context));
  return 0;
}

}  // namespace

Command owner_history_command(Arguments& owner) {
  auto o = std::make_shared<HistoryOptions>();
  Arguments& a = owner.command(
      "history", "Show which jobs had to leave this machine, why, and how long each step took");
  a.option("--last", &o->last, "how many, the newest first (default 20; the last 1000 are kept)",
           "N");
  a.option("--state", &o->folder,
           "state folder of the client (your own client's, or /var/lib/sublet-client)", "FOLDER");
  return {&a, [o](Context& context) { return run_history(*o, context); }};
}

}  // namespace sublet::cli
