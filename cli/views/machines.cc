#include "cli/views/machines.h"

#include <ctime>

#include "base/text.h"
#include "cli/names.h"
#include "cli/views/output.h"

namespace sublet::cli {

namespace {

std::string owner_of(const MachineInfo& m) {
  if (m.state == kMachineGone || m.state == kMachineSilent) return "";
  std::string out = m.away ? "away" : m.paused ? "paused" : "there";
  if (m.input_idle_ms >= 0) out += ", idle " + age(1, 1 + m.input_idle_ms * 1000);
  if (m.owner_cpu >= 0.01) out += ", " + decimal(m.owner_cpu, 2) + " cores";
  return out;
}

// A drained machine is busy to the server: it takes no jobs. One that rests is idle to it.
std::string state_of(const MachineInfo& m) {
  const std::string state = machine_state_name(m.state);
  if (!m.draining && m.rests_until_us != 0)
    return m.state == kMachineIdle ? "resting" : state + ", resting";
  if (!m.draining) return state;
  return m.state == kMachineBusy ? "drained" : state + ", drained";
}

// "gpu 1/2 matlab 0/1": free of those it offers.
std::string resources_of(const MachineInfo& m) {
  std::string text;
  for (const auto& [name, amount] : m.resources)
    text += (text.empty() ? "" : " ") + name + " " + std::to_string(m.resources_free.of(name)) +
            "/" + std::to_string(amount);
  return text;
}

Colour colour_of(const MachineInfo& m) {
  switch (m.state) {
    case kMachineIdle:
      return Colour::green;
    case kMachineSilent:
      return Colour::red;
    case kMachineGone:
      return Colour::dim;
    default:
      return Colour::none;
  }
}

}  // namespace

std::string machines_table(const std::vector<MachineInfo>& machines, int64_t now, size_t width,
                           bool colour) {
  std::vector<Row> rows;
  for (const MachineInfo& m : machines)
    rows.push_back(
        {{m.name, state_of(m) + (m.requesting ? ", requesting" : ""), age(m.state_since_us, now),
          std::to_string(m.slots_free) + "/" + std::to_string(m.slots), std::to_string(m.cores),
          m.speed > 0 ? decimal(m.speed, 2) : "", format_bytes(m.memory), format_bytes(m.disk),
          resources_of(m), m.os + " " + m.architecture, owner_of(m), age(m.heard_us, now)},
         colour_of(m)});
  return list_table({{"NAME", false, 6, 10},
                     {"STATE", false, 6, 9},
                     {"FOR", true, 3, 6},
                     {"FREE", true, 3, 8},
                     {"CORES", true, 3, 3},
                     {"SPEED", true, 4, 2},
                     {"MEMORY", true, 5, 3},
                     {"DISK", true, 5, 1},
                     {"RESOURCES", false, 6, 7},
                     {"PLATFORM", false, 8, 2},
                     {"OWNER", false, 5, 5},
                     {"HEARD", true, 4, 4}},
                    rows, width, colour);
}

std::string rests_text(const std::vector<MachineInfo>& machines) {
  std::string text;
  for (const MachineInfo& m : machines) {
    if (m.rests_until_us == 0) continue;
    const time_t until = m.rests_until_us / 1'000'000;
    tm here = {};
    char time_of_day[sizeof "00:00:00"] = "";
    strftime(time_of_day, sizeof time_of_day, "%H:%M:%S", localtime_r(&until, &here));
    text += escape_for_terminal(m.name) + " rests until " + time_of_day + ": it failed " +
            counted(m.failures, "time") + " in a row, last: " + escape_for_terminal(m.failure) +
            "\n";
  }
  return text;
}

void write_json(JsonWriter& json, const MachineInfo& m) {
  json.begin_object();
  json.field("number", m.number).field("name", m.name).field("state", machine_state_name(m.state));
  json.field("requesting", m.requesting).field("state_since_us", m.state_since_us);
  json.field("heard_us", m.heard_us).field("os", m.os).field("architecture", m.architecture);
  json.field("version", m.version).field("cores", m.cores).field("slots", m.slots);
  json.field("slots_free", m.slots_free).field("speed", m.speed).field("memory", m.memory);
  json.field("memory_free", m.memory_free).field("disk", m.disk).field("disk_free", m.disk_free);
  write_amounts(json.key("resources"), m.resources);
  write_amounts(json.key("resources_free"), m.resources_free);
  json.field("owner_away", m.away).field("owner_paused", m.paused);
  json.field("draining", m.draining).field("rests_until_us", m.rests_until_us);
  json.field("failures", m.failures).field("failure", m.failure);
  json.field("owner_cpu", m.owner_cpu);
  json.field("input_idle_ms", m.input_idle_ms).key("running").begin_array();
  for (const auto& [job, attempt] : m.running)
    json.begin_object().field("job", job).field("attempt", attempt).end_object();
  json.end_array().end_object();
}

}  // namespace sublet::cli
