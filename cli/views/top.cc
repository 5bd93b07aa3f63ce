#include "cli/views/top.h"

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "cli/names.h"
#include "cli/views/jobs.h"
#include "cli/views/machines.h"
#include "cli/views/output.h"
#include "cli/views/reports.h"
#include "protocol/attempt.h"

namespace sublet::cli {

namespace {

constexpr size_t kEventsWithoutLimit = 10;

// "3: 2 idle, 1 busy"
class Figures {
 public:
  explicit Figures(uint64_t total) : text_(std::to_string(total)) {}
  Figures& add(uint64_t n, const char* what) {
    if (n == 0) return *this;
    text_ += (first_ ? ": " : ", ") + std::to_string(n) + " " + what;
    first_ = false;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool first_ = true;
};

bool takes_part(const MachineInfo& m) { return m.state == kMachineIdle || m.state == kMachineBusy; }

std::string machine_figures(const std::vector<MachineInfo>& machines) {
  const auto in = [&](uint32_t state) {
    return static_cast<uint64_t>(
        std::count_if(machines.begin(), machines.end(),
                      [state](const MachineInfo& m) { return m.state == state; }));
  };
  const auto requesting = static_cast<uint64_t>(std::count_if(
      machines.begin(), machines.end(), [](const MachineInfo& m) { return m.requesting; }));
  return Figures(machines.size())
      .add(in(kMachineIdle), "idle")
      .add(in(kMachineBusy), "busy")
      .add(requesting, "requesting")
      .add(in(kMachineSilent), "silent")
      .add(in(kMachineGone), "gone")
      .text();
}

std::string slot_figures(const std::vector<MachineInfo>& machines) {
  uint64_t all = 0;
  uint64_t free = 0;
  for (const MachineInfo& m : machines) {
    if (!takes_part(m)) continue;
    all += m.slots;
    free += std::min(m.slots, m.slots_free);
  }
  return Figures(all).add(all - free, "taken").add(free, "free").text();
}

std::string job_figures(const JobCounts& c) {
  return Figures(c.unfinished())
      .add(c.running, "running")
      .add(c.suspended, "suspended")
      .add(c.delivering, "delivering")
      .add(c.placed, "placed")
      .add(c.waiting, "waiting")
      .add(c.held, "held")
      .text();
}

std::string eviction_figures(const PoolPicture& p) {
  return std::to_string(p.evictions) + (p.own_evictions ? " of your jobs" : "") +
         " in the last hour";
}

// Machines with jobs first, those that have left last.
std::vector<MachineInfo> in_order(std::vector<MachineInfo> machines) {
  const auto rank = [](const MachineInfo& m) {
    if (m.state == kMachineGone) return 3;
    if (m.state == kMachineSilent) return 0;
    return m.slots_free < m.slots ? 1 : 2;
  };
  std::stable_sort(machines.begin(), machines.end(),
                   [&](const MachineInfo& a, const MachineInfo& b) { return rank(a) < rank(b); });
  return machines;
}

// Users with jobs, the next in line first.
std::vector<Standing> in_line(std::vector<Standing> standings) {
  std::erase_if(standings, [](const Standing& s) { return s.active == 0; });
  std::stable_sort(standings.begin(), standings.end(), [](const Standing& a, const Standing& b) {
    return (a.place == 0 ? UINT64_MAX : a.place) < (b.place == 0 ? UINT64_MAX : b.place);
  });
  return standings;
}

std::string queue_table(const std::vector<Standing>& users, size_t width, bool colour) {
  std::vector<Row> rows;
  for (const Standing& s : users)
    rows.push_back(
        {{s.user, std::to_string(s.active - std::min(s.active, s.waiting)),
          std::to_string(s.waiting), s.place == 0 ? "" : std::to_string(s.place), s.reason},
         s.place == 1 ? Colour::green : Colour::none});
  return list_table({{"USER", false, 4, 10},
                     {"RUN", true, 5, 8},
                     {"WAIT", true, 7, 9},
                     {"PLACE", true, 3, 5},
                     {"STANDING", false, 12, 3}},
                    rows, width, colour);
}

std::string events_table(const std::vector<Change>& events, int64_t now, size_t width,
                         bool colour) {
  std::vector<Row> rows;
  for (const Change& c : events)
    rows.push_back({{age(c.at_us, now), format_ids({{c.job, c.count}}), job_state_name(c.state),
                     c.attempt == 0 ? "" : std::to_string(c.attempt), protocol::end_name(c.ended)},
                    is_eviction(c.ended) ? Colour::yellow : state_colour(c.state)});
  return list_table({{"AGO", true, 3, 5},
                     {"JOB", true, 4, 10},
                     {"NOW", false, 7, 9},
                     {"TRY", true, 3, 3},
                     {"ENDED BY", false, 8, 7}},
                    rows, width, colour);
}

// A list of the frame: `rows` of its `size` items are shown.
struct List {
  size_t size;
  std::function<std::string(size_t shown)> table;
  size_t rows = 0;
};

constexpr size_t kAround = 2;  // lines per list: an empty one and the heading

// Shares `room` lines evenly among the non-empty lists; leaves out the last lists if there is
// no room for them.
void share_room(std::vector<List>& lists, size_t room) {
  std::erase_if(lists, [](const List& l) { return l.size == 0; });
  while (lists.size() * (kAround + 1) > room) {
    if (lists.empty()) return;
    lists.pop_back();
  }
  room -= lists.size() * kAround;
  for (bool given = true; given && room > 0;) {
    given = false;
    for (List& list : lists) {
      if (list.rows == list.size || room == 0) continue;
      ++list.rows;
      --room;
      given = true;
    }
  }
}

std::string shown(const List& list) {
  if (list.rows == list.size) return list.table(list.size);
  const size_t some = list.rows - 1;
  return list.table(some) + "… " + std::to_string(list.size - some) + " more\n";
}

// Each line at most `columns` wide (0: no limit).
std::string heading(const PoolPicture& p, const std::string& notice, size_t columns) {
  std::vector<std::string> lines = {
      p.pool + "  " + format_instant(p.at_us), "machines  " + machine_figures(p.machines),
      "slots     " + slot_figures(p.machines), "jobs      " + job_figures(p.jobs),
      "evictions " + eviction_figures(p)};
  if (!notice.empty()) lines.push_back(notice);
  std::string out;
  for (const std::string& line : lines) {
    const std::string safe = escape_for_terminal(line);
    out += (columns > 0 && display_width(safe) > columns ? fit(safe, columns) : safe) + "\n";
  }
  return out;
}

std::string first_lines(const std::string& text, size_t count) {
  size_t end = 0;
  for (; count > 0 && end < text.size(); --count)
    end = std::min(text.find('\n', end), text.size() - 1) + 1;
  return text.substr(0, end);
}

}  // namespace

std::chrono::milliseconds pause_after_refresh(std::chrono::milliseconds took) {
  return std::clamp<std::chrono::milliseconds>(20 * took, std::chrono::seconds(1),
                                               std::chrono::minutes(1));
}

std::string top_frame(const PoolPicture& p, const std::string& notice, size_t columns, size_t rows,
                      bool colour) {
  const std::vector<MachineInfo> machines = in_order(p.machines);
  const std::vector<Standing> users = in_line(p.standings);
  const std::vector<Change> events(p.events.rbegin(), p.events.rend());
  const auto first = [](const auto& all, size_t n) {
    return std::vector(all.begin(), all.begin() + static_cast<ptrdiff_t>(n));
  };
  const size_t most_events = rows == 0 ? kEventsWithoutLimit : events.size();
  std::vector<List> lists = {
      {machines.size(),
       [&](size_t n) { return machines_table(first(machines, n), p.at_us, columns, colour); }},
      {users.size(), [&](size_t n) { return queue_table(first(users, n), columns, colour); }},
      {std::min(events.size(), most_events),
       [&](size_t n) { return events_table(first(events, n), p.at_us, columns, colour); }}};
  std::string out = heading(p, notice, columns);
  const auto used = static_cast<size_t>(std::count(out.begin(), out.end(), '\n'));
  if (rows > 0 && used >= rows) return first_lines(out, rows);
  share_room(lists, rows == 0 ? SIZE_MAX : rows - used);
  for (const List& list : lists) out += "\n" + shown(list);
  return out;
}

void write_json(JsonWriter& json, const PoolPicture& p) {
  json.begin_object().field("at_us", p.at_us).field("pool", p.pool);
  json.key("jobs").begin_object().field("waiting", p.jobs.waiting).field("placed", p.jobs.placed);
  json.field("running", p.jobs.running)
      .field("suspended", p.jobs.suspended)
      .field("delivering", p.jobs.delivering);
  json.field("held", p.jobs.held).end_object();
  json.key("machines").begin_array();
  for (const MachineInfo& m : p.machines) write_json(json, m);
  json.end_array().key("standings").begin_array();
  for (const Standing& s : p.standings) write_json(json, s);
  json.end_array().field("evictions_last_hour", p.evictions);
  json.field("evictions_own", p.own_evictions).key("events").begin_array();
  for (const Change& c : p.events) {
    json.begin_object().field("at_us", c.at_us).field("job", c.job).field("count", c.count);
    json.field("batch", c.batch).field("state", job_state_name(c.state));
    json.field("attempt", c.attempt).field("ended", protocol::end_name(c.ended));
    json.field("ended_code", c.ended).end_object();
  }
  json.end_array().end_object();
}

}  // namespace sublet::cli
