// rm, hold, release and priority.
#include <charconv>
#include <functional>

#include "base/json.h"
#include "base/random.h"
#include "cli/commands/commands.h"
#include "cli/names.h"
#include "cli/pool/pool_client.h"

namespace sublet::cli {

namespace {

using Operation = std::function<Control(PoolClient&, const RequestId&, const JobFilter&)>;

// The jobs that a command applies to: given ids, a batch, or all of a user that have not ended.
// A command without a selection is an error; it never means all jobs.
struct Named {
  void declare(Arguments& arguments) {
    selection.declare(arguments);
    arguments.flag("--mine", &mine, "all your jobs that have not ended");
    arguments.option("--user", &user, "all jobs of this user that have not ended", "U");
    arguments.option("--state", &states, "only jobs in this state (repeatable)", "S");
    arguments.words("--state", job_state_names());
  }

  bool by_user() const { return mine || !user.empty(); }

  JobFilter filter(const Context& context) const {
    const int given = !selection.jobs.empty() + !selection.batch.empty() + mine + !user.empty();
    if (given == 0)
      throw PoolError(ErrorKind::usage, "usage.jobs", "which jobs?",
                      "give ids such as 17-20, --batch 7, or --mine for all your own");
    if (given > 1)
      throw PoolError(ErrorKind::usage, "usage.jobs",
                      "give only one of job ids, --batch, --mine and --user",
                      "--state selects among them");
    JobFilter filter;
    if (by_user()) {
      filter.user = mine ? context.user() : user;
      filter.unfinished_only = true;
    } else {
      filter = selection.filter();
    }
    for (const std::string& word : states) filter.states.push_back(parse_job_state(word));
    return filter;
  }

  Selection selection;
  bool mine = false;
  std::string user;
  std::vector<std::string> states;
};

struct Verb {
  std::string done;       // "removed"
  std::string unchanged;  // why a job may be unchanged
  Operation operation;
};

int run_control(const Verb& verb, const Named& named, Context& context) {
  JobFilter filter = named.filter(context);
  PoolClient& pool = context.pool();
  Control control = verb.operation(pool, random_id(), filter);
  uint64_t seen = control.changed + control.unchanged;
  std::optional<PoolError> missing;
  filter.states.clear();
  if (!named.by_user() && (seen == 0 || !filter.ids.empty())) missing = missing_jobs(pool, filter);
  if (missing && seen == 0) throw *missing;
  if (context.json) {
    JsonWriter json;
    json.begin_object().field("changed", control.changed).field("unchanged", control.unchanged);
    json.end_object();
    print(json.str() + "\n");
  } else {
    std::string line = verb.done + " " + counted(control.changed, "job");
    if (control.unchanged > 0)
      line += "; " + std::to_string(control.unchanged) + " " + verb.unchanged;
    print(line + "\n");
  }
  if (!missing) return 0;
  say(error_line(*missing));
  return exit_status(missing->kind);
}

Command control_command(Arguments& top, const char* name, const char* help, const Verb& verb) {
  auto named = std::make_shared<Named>();
  Arguments& a = top.command(name, help);
  named->declare(a);
  return {&a, [named, verb](Context& context) { return run_control(verb, *named, context); }};
}

int32_t parse_priority(const std::string& text) {
  int32_t priority = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), priority);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || priority < -kMostPriority || priority > kMostPriority)
    throw PoolError(ErrorKind::usage, "usage.priority",
                    "'" + text + "' is not a priority from -1000000 to 1000000",
                    "write it before the jobs: `sublet priority 10 17-20`", text);
  return priority;
}

Verb priority_verb(const std::string& text) {
  const int32_t priority = parse_priority(text);
  const std::string to = std::to_string(priority);
  return {"gave priority " + to + " to", "unchanged (" + to + " already, or ended)",
          [priority](PoolClient& pool, const RequestId& request, const JobFilter& which) {
            return pool.set_priority(request, which, priority);
          }};
}

}  // namespace

Command priority_command(Arguments& top) {
  auto named = std::make_shared<Named>();
  auto priority = std::make_shared<std::string>();
  Arguments& a = top.command("priority", "Change the priority of jobs among your own");
  a.positional("PRIORITY", priority.get(), "higher runs earlier; 0 unless it was set", true);
  named->declare(a);
  return {&a, [named, priority](Context& context) {
            return run_control(priority_verb(*priority), *named, context);
          }};
}

Command remove_command(Arguments& top) {
  return control_command(top, "rm", "Remove jobs; running ones are stopped without saving",
                         {"removed", "had already ended", &PoolClient::remove});
}

Command hold_command(Arguments& top) {
  return control_command(top, "hold",
                         "Keep jobs from running until released; running ones save and leave",
                         {"held", "unchanged (already held, or ended)", &PoolClient::hold});
}

Command release_command(Arguments& top) {
  return control_command(top, "release", "Let held jobs run again",
                         {"released", "unchanged (not held)", &PoolClient::release});
}

}  // namespace sublet::cli
