// owner rules: when this machine is lent, besides what its senses see.
#include <cerrno>
#include <cstring>

#include "base/json.h"
#include "base/options/default_places.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_options.h"
#include "cli/commands/owner/monitor.h"

namespace sublet::cli {

namespace {

struct RulesOptions {
  std::string folder, user, idle_when, evict_when;
  bool anywhere = false;
  bool remove = false;
};

OwnerWord word_of(const RulesOptions& o) {
  const bool sets = !o.idle_when.empty() || !o.evict_when.empty();
  if (sets && o.remove)
    usage_error("--remove goes without rules", "leave out --idle-when and --evict-when");
  if (!o.user.empty() && !sets && !o.remove)
    usage_error("--user needs rules, or --remove",
                "add --idle-when 'RULE' or --evict-when 'RULE'; without any, all rules are shown");
  if (o.anywhere && o.user.empty())
    usage_error("--anywhere needs --user", "say whose logins count: --user NAME");
  if (o.user.find(' ') != std::string::npos)
    usage_error("'" + o.user + "' cannot be the name of a user", "give one name");
  OwnerWord word{SUBLET_OWNER_RULES};
  if (!sets && !o.remove) return word;
  for (const std::string& text : {o.user, o.idle_when, o.evict_when})
    if (text.find('\n') != std::string::npos)
      throw PoolError(ErrorKind::invalid, "owner.rule", "a rule is one line",
                      "write it without line breaks", "");
  word.text = o.user + (o.anywhere ? " anywhere" : "") + "\n" + o.idle_when + "\n" + o.evict_when;
  return word;
}

std::string scope_of(const OwnersPair& pair) {
  if (pair.user.empty()) return "always";
  return pair.user + (pair.anywhere ? " is logged in" : " is here");
}

std::string table_of(const std::vector<OwnersPair>& rules, const Context& context) {
  if (rules.empty()) return "no rules: jobs may run whenever the senses see nobody\n";
  std::vector<Row> rows;
  for (const OwnersPair& pair : rules)
    rows.push_back({{pair.fixed ? "administrator" : "owner", scope_of(pair), pair.idle_when,
                     pair.evict_when}});
  return list_table({{"BY", false, 6, 3},
                     {"WHILE", false, 6, 4},
                     {"IDLE_WHEN", false, 10, 2},
                     {"EVICT_WHEN", false, 10, 2}},
                    rows, context.terminal.columns, context.terminal.colour);
}

std::string json_of(const std::vector<OwnersPair>& rules) {
  JsonWriter json;
  json.begin_object().key("rules").begin_array();
  for (const OwnersPair& pair : rules)
    json.begin_object()
        .field("by_administrator", pair.fixed)
        .field("user", pair.user)
        .field("anywhere", pair.anywhere)
        .field("idle_when", pair.idle_when)
        .field("evict_when", pair.evict_when)
        .end_object();
  return json.end_array().end_object().str() + "\n";
}

int run_rules(const RulesOptions& o, const Context& context) {
  const OwnerWord word = word_of(o);
  const OwnerAnswer answer = say_to_monitor(client_states(o.folder), word,
                                            context.timeout_ms().value_or(kOwnerPatienceMs));
  print(context.json ? json_of(answer.rules) : table_of(answer.rules, context));
  if (answer.status.arg[3] != 0 && !word.text.empty())
    say("this could not be stored, so that a restart forgets it: " +
        std::string(std::strerror(static_cast<int>(answer.status.arg[3]))));
  return 0;
}

}  // namespace

Command owner_rules_command(Arguments& owner) {
  auto o = std::make_shared<RulesOptions>();
  Arguments& a = owner.command(
      "rules", "Show the rules by which this machine is lent, or set those of its owner");
  a.option("--idle-when", &o->idle_when, "jobs may come only when this is true", "RULE");
  a.option("--evict-when", &o->evict_when, "jobs must leave when this is true", "RULE");
  a.option("--user", &o->user, "the rules count only while this user is logged in here", "NAME");
  a.flag("--anywhere", &o->anywhere,
         "with --user: count while that user is logged in anywhere in the pool; such rules only "
         "keep jobs from coming");
  a.flag("--remove", &o->remove, "remove the owner's rules (with --user: those of that user)");
  a.option("--state", &o->folder,
           "state folder of the client (your own client's, or /var/lib/sublet-client)", "FOLDER");
  return {&a, [o](Context& context) { return run_rules(*o, context); }};
}

}  // namespace sublet::cli
