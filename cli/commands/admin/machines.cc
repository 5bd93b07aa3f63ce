// admin drain, admin resume and admin evict: what administrators do with machines.
#include "base/json.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/pool/pool_client.h"

namespace sublet::cli {

namespace {

enum class Act { kDrain, kResume, kEvict };

std::string name_of(const MachineInfo& machine) { return escape_for_terminal(machine.name); }

std::string jobs_go_on(const MachineInfo& machine) {
  const size_t count = machine.running.size();
  if (count == 0) return "";
  return "; " + (count == 1 ? "the job that is there goes on"
                            : "the " + counted(count, "job") + " that are there go on");
}

std::string drained_text(const MachineInfo& machine, bool changed) {
  if (!changed) return name_of(machine) + " was drained already" + jobs_go_on(machine) + "\n";
  return name_of(machine) + " takes no more jobs" + jobs_go_on(machine) + "\n";
}

std::string resumed_text(const MachineInfo& machine, bool changed) {
  return name_of(machine) +
         (changed ? " takes jobs again\n" : " was neither drained nor resting\n");
}

std::string evicted_text(const MachineInfo& machine, uint64_t count) {
  if (count == 0) return "no job has to leave " + name_of(machine) + "\n";
  return counted(count, "job") + (count == 1 ? " saves and leaves " : " save and leave ") +
         name_of(machine) + "\n";
}

// Does it, and adds what was done to the answer.
void act_on(const MachineInfo& machine, Act act, Context& context, JsonWriter& json,
            std::string& text) {
  PoolClient& pool = context.pool();
  json.begin_object().field("name", machine.name).field("number", machine.number);
  if (act == Act::kEvict) {
    const uint64_t count = pool.evict(random_id(), machine.number);
    json.field("evicted", count).field("draining", machine.draining);
    text += evicted_text(machine, count);
    if (!machine.draining)
      say(name_of(machine) + " may get other jobs at once; `sublet admin drain " +
          name_of(machine) + "` prevents that");
  } else if (act == Act::kDrain) {
    const bool changed = pool.drain(random_id(), machine.number);
    json.field("changed", changed).field("draining", true);
    text += drained_text(machine, changed);
  } else {
    const bool changed = pool.resume(random_id(), machine.number);
    json.field("changed", changed).field("draining", false);
    text += resumed_text(machine, changed);
  }
  json.end_object();
}

int run(const std::vector<std::string>& names, Act act, Context& context) {
  JsonWriter json;
  std::string text;
  json.begin_object().key("machines").begin_array();
  for (const MachineInfo& machine : machines_named(context.pool(), names))
    act_on(machine, act, context, json, text);
  json.end_array().end_object();
  print(context.json ? json.str() + "\n" : text);
  return 0;
}

Command machine_act(Arguments& admin, const std::string& name, const std::string& help, Act act) {
  auto names = std::make_shared<std::vector<std::string>>();
  Arguments& a = admin.command(name, help);
  a.positional("MACHINE", names.get(), "names of machines; see `sublet machines`", true);
  return {&a, [names, act](Context& context) { return run(*names, act, context); }};
}

}  // namespace

Command drain_command(Arguments& admin) {
  return machine_act(admin, "drain",
                     "Let a machine take no more jobs until `resume`; those that are there go on",
                     Act::kDrain);
}

Command resume_command(Arguments& admin) {
  return machine_act(admin, "resume", "Let a machine that is drained or rests take jobs again",
                     Act::kResume);
}

Command evict_command(Arguments& admin) {
  return machine_act(admin, "evict",
                     "Make the jobs of a machine save, leave and go on elsewhere; no retry is used",
                     Act::kEvict);
}

}  // namespace sublet::cli
