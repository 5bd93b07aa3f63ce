// machines, report and about.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/names.h"
#include "cli/pool_client.h"

namespace sublet::cli {

namespace {

std::string decimal(double value, int places) {
  char text[64];
  snprintf(text, sizeof text, "%.*f", places, value);
  return text;
}

std::string owner_of(const MachineInfo& m) {
  if (m.state == kMachineGone || m.state == kMachineSilent) return "";
  std::string out = m.away ? "away" : "there";
  if (m.input_idle_ms >= 0) out += ", idle " + age(1, 1 + m.input_idle_ms * 1000);
  if (m.owner_cpu >= 0.01) out += ", " + decimal(m.owner_cpu, 2) + " cores";
  return out;
}

std::string machines_table(const std::vector<MachineInfo>& machines, const Terminal& terminal) {
  int64_t now = now_us();
  std::vector<Row> rows;
  for (const MachineInfo& m : machines) {
    std::string state = machine_state_name(m.state) + (m.requesting ? ", requesting" : "");
    Colour colour = m.state == kMachineIdle     ? Colour::green
                    : m.state == kMachineSilent ? Colour::red
                    : m.state == kMachineGone   ? Colour::dim
                                                : Colour::none;
    rows.push_back({{m.name, state, age(m.state_since_us, now),
                     std::to_string(m.slots_free) + "/" + std::to_string(m.slots),
                     std::to_string(m.cores), format_bytes(m.memory), format_bytes(m.disk),
                     m.os + " " + m.architecture, owner_of(m), age(m.heard_us, now)},
                    colour});
  }
  return list_table({{"NAME", false, 6, 10},
                     {"STATE", false, 6, 9},
                     {"FOR", true, 3, 6},
                     {"FREE", true, 3, 8},
                     {"CORES", true, 3, 3},
                     {"MEMORY", true, 5, 3},
                     {"DISK", true, 5, 1},
                     {"PLATFORM", false, 8, 2},
                     {"OWNER", false, 5, 5},
                     {"HEARD", true, 4, 4}},
                    rows, terminal.columns, terminal.colour);
}

void write_machine(JsonWriter& json, const MachineInfo& m) {
  json.begin_object();
  json.field("number", m.number).field("name", m.name).field("state", machine_state_name(m.state));
  json.field("requesting", m.requesting).field("state_since_us", m.state_since_us);
  json.field("heard_us", m.heard_us).field("os", m.os).field("architecture", m.architecture);
  json.field("version", m.version).field("cores", m.cores).field("slots", m.slots);
  json.field("slots_free", m.slots_free).field("memory", m.memory);
  json.field("memory_free", m.memory_free).field("disk", m.disk).field("disk_free", m.disk_free);
  json.field("owner_away", m.away).field("owner_cpu", m.owner_cpu);
  json.field("input_idle_ms", m.input_idle_ms).key("running").begin_array();
  for (const auto& [job, attempt] : m.running)
    json.begin_object().field("job", job).field("attempt", attempt).end_object();
  json.end_array().end_object();
}

int run_machines(Context& context) {
  std::vector<MachineInfo> machines;
  std::string cursor;
  do {
    MachinePage page = context.pool().machines(cursor, kPageLimit);
    machines.insert(machines.end(), page.machines.begin(), page.machines.end());
    cursor = page.next;
  } while (!cursor.empty());
  if (context.json) {
    JsonWriter json;
    json.begin_object().key("machines").begin_array();
    for (const MachineInfo& m : machines) write_machine(json, m);
    json.end_array().end_object();
    print(json.str() + "\n");
  } else if (machines.empty()) {
    say("no machine has joined the pool; start sublet-client on a workstation");
  } else {
    print(machines_table(machines, context.terminal));
  }
  return 0;
}

struct ReportOptions {
  std::vector<std::string> by;
  std::string since;
  std::string user;
};

ReportQuery report_query(const ReportOptions& o) {
  static const std::vector<std::string> kGroups = {"user", "machine", "batch", "day", "week"};
  ReportQuery query;
  query.user = o.user;
  for (const std::string& word : o.by) {
    auto found = std::find(kGroups.begin(), kGroups.end(), word);
    if (found == kGroups.end())
      throw PoolError(ErrorKind::usage, "usage.by", "--by: '" + word + "' is unknown",
                      "one of user, machine, batch, day, week", word);
    query.by.push_back(static_cast<uint64_t>(found - kGroups.begin()) + kByUser);
  }
  if (query.by.empty()) query.by = {kByUser};
  if (!o.since.empty()) {
    std::optional<int64_t> ms = parse_duration_ms(o.since);
    if (!ms)
      throw PoolError(ErrorKind::usage, "usage.since", "--since: '" + o.since + "' is no duration",
                      "write how far back: \"7 d\" or 12h", o.since);
    query.since_us = std::max<int64_t>(1, now_us() - *ms * 1000);
  }
  return query;
}

std::string usage_table(const std::vector<UsageLine>& lines, const Terminal& terminal) {
  std::vector<Row> rows;
  for (const UsageLine& l : lines) {
    std::string group;
    for (const auto& [name, value] : l.group) group += (group.empty() ? "" : ", ") + value;
    rows.push_back({{group, std::to_string(l.jobs_done), std::to_string(l.attempts),
                     std::to_string(l.evictions), format_duration_ms(l.cpu_us / 1000),
                     format_duration_ms(l.kept_us / 1000), format_duration_ms(l.lost_us / 1000),
                     format_duration_ms(l.charged_us / 1000)}});
  }
  return list_table({{"WHO", false, 6, 10},
                     {"DONE", true, 3, 8},
                     {"TRIES", true, 3, 2},
                     {"EVICTED", true, 3, 3},
                     {"CPU", true, 4, 7},
                     {"KEPT", true, 4, 5},
                     {"LOST", true, 4, 6},
                     {"CHARGED", true, 4, 4}},
                    rows, terminal.columns, terminal.colour);
}

std::string standings_table(const std::vector<Standing>& standings, const Terminal& terminal) {
  std::vector<Row> rows;
  for (const Standing& s : standings)
    rows.push_back({{s.user, decimal(s.usage, 1), decimal(s.shares, 1), std::to_string(s.active),
                     s.active == 0 ? "" : decimal(s.best_priority, 1), s.sentence}});
  return list_table({{"USER", false, 6, 10},
                     {"USAGE", true, 4, 8},
                     {"SHARES", true, 3, 3},
                     {"ACTIVE", true, 3, 6},
                     {"PRIORITY", true, 4, 5},
                     {"", false, 8, 1}},
                    rows, terminal.columns, terminal.colour);
}

void write_json(JsonWriter& json, const std::vector<UsageLine>& lines,
                const std::vector<Standing>& standings) {
  json.begin_object().key("usage").begin_array();
  for (const UsageLine& l : lines) {
    json.begin_object().key("group").begin_object();
    for (const auto& [name, value] : l.group) json.field(name, value);
    json.end_object().field("jobs_done", l.jobs_done).field("attempts", l.attempts);
    json.field("evictions", l.evictions).field("cpu_us", l.cpu_us).field("kept_us", l.kept_us);
    json.field("lost_us", l.lost_us).field("wall_us", l.wall_us);
    json.field("charged_us", l.charged_us).end_object();
  }
  json.end_array().key("standings").begin_array();
  for (const Standing& s : standings) {
    json.begin_object().field("user", s.user).field("usage", s.usage).field("charges", s.charges);
    json.field("shares", s.shares).field("active", s.active);
    json.field("best_priority", s.best_priority).field("sentence", s.sentence).end_object();
  }
  json.end_array().end_object();
}

int run_report(const ReportOptions& o, Context& context) {
  ReportQuery query = report_query(o);
  std::vector<UsageLine> lines;
  std::string cursor;
  do {
    UsagePage page = context.pool().usage(query, cursor, kPageLimit);
    lines.insert(lines.end(), page.lines.begin(), page.lines.end());
    cursor = page.next;
  } while (!cursor.empty());
  std::vector<Standing> standings = context.pool().current_standings();
  if (context.json) {
    JsonWriter json;
    write_json(json, lines, standings);
    print(json.str() + "\n");
    return 0;
  }
  print(lines.empty() ? "nothing has been used yet\n" : usage_table(lines, context.terminal));
  if (!standings.empty()) print("\n" + standings_table(standings, context.terminal));
  return 0;
}

int run_about(Context& context) {
  Details details = context.pool().about();
  if (context.json) {
    JsonWriter json;
    json.begin_object();
    for (const auto& [name, value] : details) json.field(name, value);
    json.end_object();
    print(json.str() + "\n");
    return 0;
  }
  size_t widest = 0;
  for (const auto& [name, value] : details) widest = std::max(widest, display_width(name));
  for (const auto& [name, value] : details)
    print(fit(escape_for_terminal(name), widest + 2) + escape_for_terminal(value) + "\n");
  return 0;
}

}  // namespace

Command machines_command(Arguments& top) {
  Arguments& a = top.command("machines", "List the pool's workstations");
  return {&a, run_machines};
}

Command report_command(Arguments& top) {
  auto o = std::make_shared<ReportOptions>();
  Arguments& a = top.command("report", "Tell who used what, and how users stand now");
  a.option("--by", &o->by, "user, machine, batch, day or week; may be repeated (user)", "GROUP");
  a.option("--since", &o->since, "only this far back, such as \"7 d\"", "TIME");
  a.option("--user", &o->user, "only this user", "U");
  return {&a, [o](Context& context) { return run_report(*o, context); }};
}

Command about_command(Arguments& top) {
  Arguments& a = top.command("about", "Tell the server's version, name and counts");
  return {&a, run_about};
}

}  // namespace sublet::cli
