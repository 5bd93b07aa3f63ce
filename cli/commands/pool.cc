// machines and about.
#include <algorithm>
#include <memory>
#include <set>
#include <string_view>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/pool/pool_client.h"
#include "cli/views/machines.h"

namespace sublet::cli {

namespace {

int run_machines(const std::vector<std::string>& names, Context& context) {
  const std::vector<MachineInfo> machines =
      names.empty() ? all_machines(context.pool()) : machines_named(context.pool(), names);
  if (context.json) {
    JsonWriter json;
    json.begin_object().key("machines").begin_array();
    for (const MachineInfo& m : machines) write_json(json, m);
    json.end_array().end_object();
    print(json.str() + "\n");
  } else if (machines.empty()) {
    say("no machine has joined the pool; start sublet-client on a workstation");
  } else {
    print(machines_table(machines, now_us(), context.terminal.columns, context.terminal.colour) +
          rests_text(machines));
  }
  return 0;
}

Details about_details(const PoolInfo& info) {
  Details details = {{"version", info.version},
                     {"pool", info.name},
                     {"pool_id", info.id},
                     {"term", std::to_string(info.term)},
                     {"uptime_ms", std::to_string(info.uptime_ms)}};
  details.insert(details.end(), info.more.begin(), info.more.end());
  return details;
}

int run_about(Context& context) {
  const PoolInfo info = context.pool().about();
  const Details details = about_details(info);
  if (context.json) {
    JsonWriter json;
    json.begin_object();
    for (const auto& [name, value] : details) json.field(name, value);
    json.key("capabilities").begin_array();
    for (const std::string& name : info.capabilities) json.value(name);
    json.end_array().end_object();
    print(json.str() + "\n");
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, value] : details)
    rows.push_back({escape_for_terminal(name), escape_for_terminal(value)});
  print(format_table(rows, {}, context.terminal.columns));
  return 0;
}

}  // namespace

std::vector<MachineInfo> all_machines(PoolClient& pool) {
  std::vector<MachineInfo> machines;
  std::string cursor;
  do {
    MachinePage page = pool.machines(cursor, kPageLimit);
    machines.insert(machines.end(), page.machines.begin(), page.machines.end());
    cursor = page.next;
  } while (!cursor.empty());
  return machines;
}

std::vector<MachineInfo> machines_named(PoolClient& pool, const std::vector<std::string>& names) {
  const std::vector<MachineInfo> all = all_machines(pool);
  std::vector<MachineInfo> found;
  std::vector<std::string> known;
  for (const MachineInfo& m : all) known.push_back(m.name);
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) continue;
    // Of several with a name all but one are gone.
    const MachineInfo* at = nullptr;
    for (const MachineInfo& m : all)
      if (m.name == name && (at == nullptr || at->state == kMachineGone)) at = &m;
    const std::string near = nearest_word(name, known);
    if (at == nullptr)
      throw PoolError(ErrorKind::not_found, "machine.unknown",
                      "there is no machine '" + escape_for_terminal(name) + "'",
                      near.empty() ? "see `sublet machines`"
                                   : "did you mean '" + escape_for_terminal(near) + "'?",
                      name);
    found.push_back(*at);
  }
  return found;
}

Command machines_command(Arguments& top) {
  auto names = std::make_shared<std::vector<std::string>>();
  Arguments& a = top.command("machines", "List the pool's workstations");
  a.positional("NAME", names.get(), "only these", false);
  return {&a, [names](Context& context) { return run_machines(*names, context); }};
}

Command about_command(Arguments& top) {
  Arguments& a = top.command("about", "Print the server's version, name and counts");
  return {&a, run_about};
}

}  // namespace sublet::cli
