// machines and about.
#include <algorithm>
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

Command about_command(Arguments& top) {
  Arguments& a = top.command("about", "Tell the server's version, name and counts");
  return {&a, run_about};
}

}  // namespace sublet::cli
