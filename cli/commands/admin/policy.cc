// admin policy: which policies decide, and with which parameters.
#include "base/json.h"
#include "base/random.h"
#include "cli/commands/commands.h"
#include "cli/pool/pool_client.h"
#include "cli/views/policies.h"

namespace sublet::cli {

namespace {

struct PolicyOptions {
  std::string name;
  std::vector<std::string> set;
  bool reset = false;
};

// What is to be changed, in the words of the settings.
Details wanted(const PolicyOptions& o) {
  Details words;
  if (!o.name.empty()) words.emplace_back("jobs", o.name);
  for (const std::string& assignment : o.set) {
    const size_t equals = assignment.find('=');
    if (equals == std::string::npos)
      throw PoolError(ErrorKind::usage, "usage.set", "--set: '" + assignment + "' has no =",
                      "write it as NAME=VALUE, such as floor=0.25; `sublet admin policy` lists the "
                      "names",
                      assignment);
    words.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
  }
  return words;
}

int run(const PolicyOptions& o, Context& context) {
  const Details words = wanted(o);
  if (o.reset && !words.empty())
    throw PoolError(ErrorKind::usage, "usage.reset",
                    "--reset cannot be used with a policy or --set",
                    "reset first, then change what is to be different");
  PoolClient& pool = context.pool();
  if (o.reset) pool.give_policies_back(random_id());
  if (!words.empty()) pool.set_policies(random_id(), words);
  const Policies policies = pool.policies_in_force();
  JsonWriter json;
  write_json(json, policies);
  const Terminal& t = context.terminal;
  print(context.json ? json.str() + "\n"
                     : policy_line(policies, now_us(), t.columns) + "\n\n" +
                           policies_table(policies, t.columns, t.colour));
  return 0;
}

}  // namespace

Command policy_command(Arguments& admin) {
  auto o = std::make_shared<PolicyOptions>();
  Arguments& a =
      admin.command("policy", "Show or switch the policies by which jobs get machines, at once");
  a.positional("NAME", &o->name, "the policy for the next job from now on, such as fair-share",
               false);
  a.option("--set", &o->set, "change a parameter: floor=0.1, half_life=\"2 h\"; repeatable",
           "NAME=VALUE");
  a.flag("--reset", &o->reset, "as the server's settings say again");
  return {&a, [o](Context& context) { return run(*o, context); }};
}

}  // namespace sublet::cli
