// rm, hold and release.
#include "base/json.h"
#include "base/random.h"
#include "cli/commands.h"
#include "cli/pool_client.h"

namespace sublet::cli {

namespace {

using Operation = Control (PoolClient::*)(const RequestId&, const JobFilter&);

struct Verb {
  const char* done;       // "removed"
  const char* unchanged;  // why a job may stay as it is
  Operation operation;
};

int run_control(const Verb& verb, const Selection& selection, Context& context) {
  JobFilter filter = selection.filter();
  PoolClient& pool = context.pool();
  Control control = (pool.*verb.operation)(random_id(), filter);
  uint64_t seen = control.changed + control.unchanged;
  std::optional<PoolError> missing;
  if (seen == 0 || !filter.ids.empty()) missing = missing_jobs(pool, filter);
  if (missing && seen == 0) throw *missing;
  if (context.json) {
    JsonWriter json;
    json.begin_object().field("changed", control.changed).field("unchanged", control.unchanged);
    json.end_object();
    print(json.str() + "\n");
  } else {
    std::string line = std::string(verb.done) + " " + counted(control.changed, "job");
    if (control.unchanged > 0)
      line += "; " + std::to_string(control.unchanged) + " " + verb.unchanged;
    print(line + "\n");
  }
  if (!missing) return 0;
  say(error_line(*missing));
  return exit_status(missing->kind);
}

Command control_command(Arguments& top, const char* name, const char* help, const Verb& verb) {
  auto selection = std::make_shared<Selection>();
  Arguments& a = top.command(name, help);
  selection->declare(a);
  return {&a,
          [selection, verb](Context& context) { return run_control(verb, *selection, context); }};
}

}  // namespace

Command remove_command(Arguments& top) {
  return control_command(top, "rm", "Remove jobs; those that run are stopped without a save",
                         {"removed", "had already ended", &PoolClient::remove});
}

Command hold_command(Arguments& top) {
  return control_command(top, "hold",
                         "Keep jobs from running until released; those that run save and leave",
                         {"held", "unchanged (held already, or ended)", &PoolClient::hold});
}

Command release_command(Arguments& top) {
  return control_command(top, "release", "Let held jobs run again",
                         {"released", "unchanged (not held)", &PoolClient::release});
}

}  // namespace sublet::cli
