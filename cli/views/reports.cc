#include "cli/views/reports.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/text.h"
#include "cli/views/output.h"
#include "cli/views/policies.h"

namespace sublet::cli {
namespace {

// The shortest form that reads back as the same number.
std::string plain(double value) {
  JsonWriter json;
  json.begin_array().value(value).end_array();
  return json.str().substr(1, json.str().size() - 2);
}

std::string time_us(int64_t us) { return format_duration_ms(us / 1000); }

UsageLine sum_of(const std::vector<UsageLine>& lines) {
  UsageLine sum;
  sum.local_us = 0;
  for (const UsageLine& l : lines) {
    sum.jobs_done += l.jobs_done;
    sum.attempts += l.attempts;
    sum.evictions += l.evictions;
    sum.cpu_us += l.cpu_us;
    sum.kept_us += l.kept_us;
    sum.lost_us += l.lost_us;
    sum.wall_us += l.wall_us;
    sum.charged_us += l.charged_us;
    sum.waited_us += l.waited_us;
    sum.local_us = l.local_us < 0 || sum.local_us < 0 ? -1 : sum.local_us + l.local_us;
  }
  return sum;
}

std::vector<std::string> figures(const UsageLine& l) {
  const double gained = leverage(l);
  return {std::to_string(l.jobs_done),
          std::to_string(l.attempts),
          std::to_string(l.evictions),
          time_us(l.cpu_us),
          percent(static_cast<int32_t>(std::min<int64_t>(cpu_ppm(l), INT32_MAX))),
          time_us(l.kept_us),
          time_us(l.lost_us),
          time_us(l.charged_us),
          l.attempts == 0 ? "" : time_us(l.waited_us / static_cast<int64_t>(l.attempts)),
          l.local_us < 0 ? "" : time_us(l.local_us),
          gained == 0 ? "" : decimal(gained, gained < 10 ? 1 : 0)};
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? "\"\"" : std::string(1, c);
  return cell + "\"";
}
std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + csv_cell(cells[i]);
  return line + "\n";
}

const std::vector<std::string> kUsageColumns = {"jobs_done", "attempts", "evictions", "cpu_us",
                                                "wall_us",   "kept_us",  "lost_us",   "charged_us",
                                                "waited_us", "local_us"};
const std::vector<std::string> kStandingColumns = {"usage",   "charges", "shares",        "active",
                                                   "waiting", "place",   "best_priority", "reason"};

std::vector<std::string> usage_cells(const UsageLine& l) {
  return {std::to_string(l.jobs_done), std::to_string(l.attempts),
          std::to_string(l.evictions), std::to_string(l.cpu_us),
          std::to_string(l.wall_us),   std::to_string(l.kept_us),
          std::to_string(l.lost_us),   std::to_string(l.charged_us),
          std::to_string(l.waited_us), l.local_us < 0 ? "" : std::to_string(l.local_us)};
}
std::vector<std::string> standing_cells(const Standing& s) {
  return {plain(s.usage),
          plain(s.charges),
          plain(s.shares),
          std::to_string(s.active),
          std::to_string(s.waiting),
          std::to_string(s.place),
          plain(s.best_priority),
          s.reason};
}

std::vector<Column> group_columns(const UsageLine& line) {
  std::vector<Column> columns;
  for (const auto& [name, value] : line.group) {
    std::string title = name;
    for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    columns.push_back({title, name == "job" || name == "batch", 6, 20});
  }
  return columns;
}

std::vector<std::string> group_of(const UsageLine& line) {
  std::vector<std::string> group;
  for (const auto& [name, value] : line.group) group.push_back(value);
  return group;
}

void write_json(JsonWriter& json, const char* name, const std::vector<StepSpread>& steps) {
  json.key(name).begin_array();
  for (const StepSpread& s : steps) {
    json.begin_object().field("step", s.step).field("count", s.count).field("p50_us", s.p50_us);
    json.field("p95_us", s.p95_us).field("p99_us", s.p99_us).field("most_us", s.most_us);
    json.end_object();
  }
  json.end_array();
}

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

int64_t cpu_ppm(const UsageLine& line) {
  if (line.wall_us <= 0) return -1;
  return static_cast<int64_t>(static_cast<double>(line.cpu_us) * 1e6 /
                              static_cast<double>(line.wall_us));
}

double leverage(const UsageLine& line) {
  if (line.local_us <= 0) return 0;
  return static_cast<double>(line.kept_us) / static_cast<double>(line.local_us);
}

std::string usage_table(const std::vector<UsageLine>& lines, size_t width, bool colour) {
  std::vector<Row> rows;
  if (lines.empty()) return "";
  std::vector<Column> columns = group_columns(lines.front());
  const std::vector<Column> measured = {
      {"DONE", true, 3, 8},   {"TRIES", true, 3, 2},   {"EVICTED", true, 3, 3},
      {"CPU", true, 4, 10},   {"OF WALL", true, 4, 3}, {"KEPT", true, 4, 6},
      {"LOST", true, 4, 7},   {"CHARGED", true, 4, 4}, {"WAITED", true, 4, 5},
      {"SERVER", true, 4, 9}, {"LEVERAGE", true, 4, 9}};
  columns.insert(columns.end(), measured.begin(), measured.end());
  const auto add = [&rows](std::vector<std::string> cells, const UsageLine& l, Colour c) {
    append(cells, figures(l));
    rows.push_back({cells, c});
  };
  for (const UsageLine& l : lines) add(group_of(l), l, Colour::none);
  if (lines.size() > 1) {
    std::vector<std::string> group(lines.front().group.size());
    group.front() = "total";
    add(group, sum_of(lines), Colour::dim);
  }
  return list_table(columns, rows, width, colour);
}

std::string steps_table(const std::vector<UsageLine>& lines, const std::vector<StepSpread>& total,
                        size_t width, bool colour) {
  if (lines.empty()) return "";
  std::vector<Row> rows;
  const auto add = [&rows](std::vector<std::string> cells, const StepSpread& s, Colour c) {
    std::string step = s.step;
    std::replace(step.begin(), step.end(), '_', ' ');
    append(cells, {step, std::to_string(s.count), short_time_us(s.p50_us), short_time_us(s.p95_us),
                   short_time_us(s.p99_us), short_time_us(s.most_us)});
    rows.push_back({cells, c});
  };
  for (const UsageLine& l : lines)
    for (const StepSpread& s : l.steps) add(group_of(l), s, Colour::none);
  std::vector<std::string> all(lines.front().group.size());
  if (!all.empty()) all.front() = "total";
  if (lines.size() > 1)
    for (const StepSpread& s : total) add(all, s, Colour::dim);
  std::vector<Column> columns = group_columns(lines.front());
  const std::vector<Column> measured = {{"STEP", false, 4, 10}, {"OF", true, 2, 2},
                                        {"P50", true, 6, 9},    {"P95", true, 6, 3},
                                        {"P99", true, 6, 8},    {"MAX", true, 6, 7}};
  columns.insert(columns.end(), measured.begin(), measured.end());
  return list_table(columns, rows, width, colour);
}

std::string standings_table(const std::vector<Standing>& standings, size_t width, bool colour) {
  std::vector<Row> rows;
  for (const Standing& s : standings)
    rows.push_back({{s.user, decimal(s.usage, 1), decimal(s.shares, 1), std::to_string(s.active),
                     s.place == 0 ? "" : decimal(s.best_priority, 1), s.reason},
                    s.place == 1 ? Colour::green : Colour::none});
  return list_table({{"USER", false, 6, 10},
                     {"USAGE", true, 4, 8},
                     {"SHARES", true, 3, 3},
                     {"ACTIVE", true, 3, 6},
                     {"PRIORITY", true, 4, 5},
                     {"STANDING", false, 12, 4}},
                    rows, width, colour);
}

void write_json(JsonWriter& json, const Standing& s) {
  json.begin_object().field("user", s.user).field("usage", s.usage).field("charges", s.charges);
  json.field("shares", s.shares).field("active", s.active).field("waiting", s.waiting);
  json.field("place", s.place).field("best_priority", s.best_priority);
  if (s.cpu_day_us >= 0) json.field("cpu_day_us", s.cpu_day_us);
  if (!s.users.empty()) {
    json.key("users").begin_array();
    for (const std::string& user : s.users) json.value(user);
    json.end_array();
  }
  json.field("reason", s.reason).end_object();
}

void write_json(JsonWriter& json, const Report& report) {
  json.begin_object().key("usage").begin_array();
  for (const UsageLine& l : report.usage) {
    json.begin_object().key("group").begin_object();
    for (const auto& [name, value] : l.group) json.field(name, value);
    json.end_object().field("jobs_done", l.jobs_done).field("attempts", l.attempts);
    json.field("evictions", l.evictions).field("cpu_us", l.cpu_us).field("wall_us", l.wall_us);
    json.field("cpu_ppm", cpu_ppm(l)).field("kept_us", l.kept_us).field("lost_us", l.lost_us);
    json.field("charged_us", l.charged_us).field("waited_us", l.waited_us);
    if (l.local_us >= 0) json.field("local_us", l.local_us);
    if (leverage(l) > 0) json.field("leverage", leverage(l));
    if (report.of_steps) write_json(json, "steps", l.steps);
    json.end_object();
  }
  json.end_array();
  if (report.of_steps) write_json(json, "steps", report.total_steps);
  if (report.of_users) {
    json.key("policies");
    write_json(json, report.policies);
    json.key("standings").begin_array();
    for (const Standing& s : report.standings) write_json(json, s);
    json.end_array();
  }
  json.end_object();
}

std::string report_csv(const Report& report, const std::vector<std::string>& by) {
  const bool with_standings = report.of_users && by == std::vector<std::string>{"user"};
  std::vector<std::string> heading = by;
  append(heading, kUsageColumns);
  if (with_standings) append(heading, kStandingColumns);
  std::string text = csv_line(heading);
  std::map<std::string, const Standing*> standings;
  if (with_standings)
    for (const Standing& s : report.standings) standings[s.user] = &s;
  for (const UsageLine& l : report.usage) {
    std::vector<std::string> cells = group_of(l);
    append(cells, usage_cells(l));
    if (with_standings) {
      const auto own = standings.find(cells.front());
      append(cells, own == standings.end() ? std::vector<std::string>(kStandingColumns.size())
                                           : standing_cells(*own->second));
      if (own != standings.end()) standings.erase(own);
    }
    text += csv_line(cells);
  }
  for (const auto& [user, standing] : standings) {
    std::vector<std::string> cells = {user};
    append(cells, std::vector<std::string>(kUsageColumns.size()));
    append(cells, standing_cells(*standing));
    text += csv_line(cells);
  }
  return text;
}

std::string steps_csv(const Report& report, const std::vector<std::string>& by) {
  std::vector<std::string> heading = by;
  append(heading, {"step", "count", "p50_us", "p95_us", "p99_us", "most_us"});
  std::string text = csv_line(heading);
  for (const UsageLine& l : report.usage)
    for (const StepSpread& s : l.steps) {
      std::vector<std::string> cells = group_of(l);
      append(cells,
             {s.step, std::to_string(s.count), std::to_string(s.p50_us), std::to_string(s.p95_us),
              std::to_string(s.p99_us), std::to_string(s.most_us)});
      text += csv_line(cells);
    }
  return text;
}

}  // namespace sublet::cli
