#include "cli/commands/commands.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "base/files.h"
#include "base/options/default_places.h"
#include "base/options/toml_document.h"
#include "base/os_error.h"
#include "base/text.h"
#include "cli/names.h"
#include "cli/pool/members.h"
#include "cli/pool/pool_client.h"
#include "cli/views/job_text.h"

namespace sublet::cli {

namespace {

constexpr uint64_t kConfigMax = 1u << 20;
constexpr const char* kWithoutFile = "with --server or $SUBLET_SERVER this file is not needed";
constexpr int64_t kCallTimeoutMax = 3'600'000;

// The value of `server` in a configuration, or "".
std::string server_in(const TomlValue& root, const std::string& path) {
  std::string server;
  for (const TomlMember& m : root.members) {
    if (m.key != "server")
      throw DocumentError(path, m.line, m.column,
                          "unknown key '" + escape_for_terminal(m.key) + "'; known is server");
    if (m.value.kind != TomlKind::text)
      throw DocumentError(
          path, m.value.line, m.value.column,
          std::string("server must be a string, not ") + toml_kind_name(m.value.kind));
    server = m.value.text;
  }
  return server;
}

// `server` in the user's configuration, if it is there.
std::optional<ServerAddress> configured_server() {
  const char* home = getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  std::string path = std::string(home) + "/.config/sublet/config.toml";
  std::string text;
  try {
    text = system_files().read_file(path, kConfigMax);
  } catch (const FileError& e) {
    if (e.code() == ENOENT || e.code() == ENOTDIR) return {};
    throw PoolError(ErrorKind::invalid, "config.file", e.what(), kWithoutFile, path);
  }
  try {
    const std::string server = server_in(parse_toml(text, path), path);
    if (server.empty()) return {};
    return ServerAddress{server, "from " + path};
  } catch (const DocumentError& e) {
    throw PoolError(ErrorKind::invalid, "config.file", e.what(),
                    std::string("correct it there; ") + kWithoutFile, path);
  }
}

bool wants_json(int argc, const char* const* argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i)
    if (std::string_view(argv[i]) == "--json") return true;
  return false;
}

// Runs the chosen command; turns every failure into one line and an exit status.
int run_safely(const Command& command, Context& context) {
  try {
    return command.run(context);
  } catch (const PoolError& e) {
    return report_error(e, context.json);
  } catch (const DocumentError& e) {
    return report_error(
        PoolError(ErrorKind::invalid, "batch.file", e.what(), "nothing was submitted"),
        context.json);
  } catch (const OsError& e) {
    return report_error(PoolError(ErrorKind::unavailable, "system", e.what(), "", e.subject()),
                        context.json);
  }
}

}  // namespace

int report_error(const PoolError& error, bool json) {
  if (json)
    print(error_json(error));
  else
    say(error_line(error));
  return exit_status(error.kind);
}

Context::Context() : terminal(detect_terminal()) {}
Context::~Context() = default;

void Context::declare(Arguments& top) {
  top.option(
      "--server", &server_,
      "the server's Unix socket, or tls://HOST:PORT of a pool joined (default: $SUBLET_SERVER, "
      "then server in ~/.config/sublet/config.toml, then /run/sublet/server.sock)",
      "PATH");
  top.flag("--json", &json, "print data as JSON; errors too");
  top.option("--timeout", &timeout_,
             "time limit for one call to the server (10 s); for wait: how long to wait", "TIME");
}

std::optional<int64_t> Context::timeout_ms() const {
  if (timeout_.empty()) return {};
  std::optional<int64_t> ms = parse_duration_ms(timeout_);
  if (!ms || *ms < 1)
    throw PoolError(ErrorKind::usage, "usage.timeout",
                    "--timeout: '" + timeout_ + "' is not a duration above 0",
                    "write it as 30 or \"2 min\"", timeout_);
  return ms;
}

std::string Context::server() const { return server_address(server_).address; }

std::string Context::user() const {
  if (const std::optional<Membership> ours = membership_at(server()))
    return read_certificate(ours->credentials.certificate).member.value().name;
  const passwd* entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_name : "uid" + std::to_string(geteuid());
}

PoolClient& Context::pool() {
  if (!client_) {
    Patience patience;
    std::optional<int64_t> ms = timeout_ms();
    if (ms && !timeout_is_mine_) {
      patience.call_timeout_ms = static_cast<int>(std::min(*ms, kCallTimeoutMax));
      patience.tries_after_timeout = 1;
    }
    client_ = std::make_unique<PoolClient>(server_address(server_), patience);
  }
  return *client_;
}

ServerAddress server_address(const std::string& option) {
  if (!option.empty()) return {option, "from --server"};
  const char* environment = getenv("SUBLET_SERVER");
  if (environment != nullptr && *environment != '\0') return {environment, "from $SUBLET_SERVER"};
  return configured_server().value_or(ServerAddress{kMachinesServer, "the default"});
}

void Selection::declare(Arguments& arguments) {
  arguments.positional("JOB", &jobs, "ids of jobs: 17, 17-20 or 17,19", false);
  arguments.option("--batch", &batch, "all jobs of this batch", "B");
}

JobFilter Selection::filter() const {
  if (jobs.empty() == batch.empty())
    throw PoolError(ErrorKind::usage, "usage.jobs",
                    jobs.empty() ? "which jobs?" : "give either job ids or --batch, not both",
                    "give ids such as 17-20, or --batch 7");
  JobFilter filter;
  filter.ids = parse_ids(jobs);
  if (!batch.empty()) filter.batch = parse_number(batch, "batch id");
  return filter;
}

std::string Selection::words(const JobFilter& filter) {
  return filter.batch != 0 ? "--batch " + std::to_string(filter.batch) : format_ids(filter.ids);
}

std::optional<PoolError> missing_jobs(PoolClient& pool, const JobFilter& filter) {
  if (filter.ids.empty()) {
    if (filter.batch == 0 || pool.count(filter).total() > 0) return {};
    std::string batch = std::to_string(filter.batch);
    return PoolError(ErrorKind::not_found, "batch.unknown", "there is no batch " + batch,
                     "see `sublet ls --all`", "batch " + batch);
  }
  if (pool.count(filter).total() >= count_ids(filter.ids)) return {};
  std::vector<IdRange> rest = filter.ids;  // the ids not yet seen or known as missing
  std::vector<IdRange> missing;
  auto before = [&](uint64_t id) {  // all ids of `rest` below id are missing
    while (!rest.empty() && rest.front().first < id) {
      IdRange& r = rest.front();
      uint64_t n = std::min(r.count, id - r.first);
      missing.push_back({r.first, n});
      r = {r.first + n, r.count - n};
      if (r.count == 0) rest.erase(rest.begin());
    }
  };
  std::string cursor;
  do {
    JobPage page = pool.list(filter, cursor, kPageLimit);
    for (const JobSummary& job : page.jobs) {
      before(job.id);
      if (!rest.empty() && rest.front().first == job.id) {
        ++rest.front().first;
        if (--rest.front().count == 0) rest.erase(rest.begin());
      }
    }
    cursor = page.next;
  } while (!cursor.empty());
  missing.insert(missing.end(), rest.begin(), rest.end());
  if (missing.empty()) return {};
  std::string ids = format_ids(missing);
  return PoolError(ErrorKind::not_found, "job.unknown", "there is no job " + ids,
                   "see `sublet ls --all`", "job " + ids);
}

int run_command_line(int argc, const char* const* argv) {
  Arguments top(
      "sublet",
      "Submits jobs to a pool of idle workstations, watches them and fetches their outputs. Every "
      "command also takes --server, --json and --timeout; see `sublet COMMAND --help`.",
      SUBLET_VERSION);
  Context context;
  context.declare(top);
  std::vector<Command> commands = {
      submit_command(top),  list_command(top),     show_command(top),    why_command(top),
      logs_command(top),    wait_command(top),     fetch_command(top),   hold_command(top),
      release_command(top), priority_command(top), remove_command(top),  machines_command(top),
      top_command(top),     report_command(top),   metrics_command(top), about_command(top),
      join_command(top)};
  Arguments& admin = top.command(
      "admin", "Administer the pool: its machines, policies, shares, quotas and members");
  for (Command (*command)(Arguments&) :
       {drain_command, resume_command, evict_command, policy_command, shares_command, quota_command,
        invite_command, revoke_command, members_command})
    commands.push_back(command(admin));
  Arguments& owner = top.command("owner", "Say whether jobs may run at this machine now");
  for (Command (*command)(Arguments&) :
       {owner_pause_command, owner_resume_command, owner_reclaim_command, owner_lend_command,
        owner_until_command, owner_status_command, owner_rules_command, owner_history_command})
    commands.push_back(command(owner));
  Arguments& checkpoint =
      top.command("checkpoint", "Look into checkpoint files; save and load those of shell scripts");
  for (Command (*command)(Arguments&) :
       {checkpoint_show_command, checkpoint_verify_command, checkpoint_diff_command,
        checkpoint_save_command, checkpoint_load_command})
    commands.push_back(command(checkpoint));
  commands.push_back(rehearse_command(top));
  commands.push_back(completion_command(top));
  top.manual(command_manual());
  std::ostringstream out;
  std::ostringstream err;
  std::optional<int> ended =
      top.parse(std::vector<std::string>(argv + std::min(argc, 1), argv + argc), out, err);
  print(out.str());
  if (ended && *ended != 0 && wants_json(argc, argv)) {
    std::string text = err.str();
    while (text.ends_with('\n')) text.pop_back();
    size_t line = std::min(text.find('\n'), text.size());
    print(error_json({ErrorKind::usage, "usage", text.substr(0, line),
                      text.substr(std::min(line + 1, text.size()))}));
    return *ended;
  }
  if (ended) {
    print_error(JobText(true).feed(err.str()));  // it repeats words of the command line
    return *ended;
  }
  for (const Command& command : commands)
    if (command.arguments->chosen()) return run_safely(command, context);
  for (const Arguments* group : {&admin, &owner, &checkpoint})
    if (group->chosen()) {
      print(group->help());
      return kExitUsage;
    }
  print(top.help());
  return kExitUsage;
}

}  // namespace sublet::cli
