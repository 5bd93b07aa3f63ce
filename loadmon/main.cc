// sublet-loadmon: detects whether the owner is present. See docs/load-monitor.md.

#include <pwd.h>

#include <csignal>
#include <iostream>
#include <set>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/options/settings_arguments.h"
#include "base/standard_streams.h"
#include "base/start_up_memory.h"
#include "loadmon/daemon_settings.h"
#include "loadmon/job_terminals.h"
#include "loadmon/monitor.h"
#include "loadmon/protection.h"
#include "loadmon/senses/cpu.h"
#include "loadmon/senses/desktops.h"
#include "loadmon/senses/input_devices.h"
#include "loadmon/senses/load.h"
#include "loadmon/senses/media.h"
#include "loadmon/senses/owners_word.h"
#include "loadmon/senses/scripted.h"
#include "loadmon/senses/sessions.h"
#include "loadmon/senses/terminals.h"
#include "loadmon/visitor.h"

namespace sublet::loadmon {
namespace {
constexpr const char* kVersion = SUBLET_VERSION;
constexpr uint64_t kLargestScript = 4 << 20;
constexpr double kNoLimit = -1;

struct CommandLine {
  SettingsArguments settings;
  std::string socket, attempts, script, control;
  double alone_s = kNoLimit;
};

Manual manual() {
  return {8,
          {settings_section("Written in the file of `--config` (TOML), each as `KEY = VALUE`; "
                            "`--set` overrides them.",
                            Settings(setting_specs())),
           {"SIGNALS", {{"SIGTERM, SIGINT", "Exit; its listeners then evict."}}},
           {"EXIT STATUS",
            {{"`0`", "Ended by a signal or by `--exit-when-alone`."},
             {"`1`", "Could not watch, or another monitor uses this socket."},
             {"`2`", "The command line or a setting is wrong."}}},
           {"SEE ALSO", {{"", "`sublet-client`(8)"}}}}};
}

std::optional<int> read_command_line(int argc, char** argv, CommandLine* line) {
  Arguments arguments("sublet-loadmon", "Watches this machine for its owner.", kVersion);
  arguments.manual(manual());
  arguments.option("--socket", &line->socket, "socket to listen on (monitor.sock)", "PATH");
  arguments.option("--attempts", &line->attempts, "the client's attempts folder", "FOLDER");
  line->settings.declare(arguments, "loadmon.toml");
  arguments.option("--exit-when-alone", &line->alone_s,
                   "exit when nobody has been connected for this long", "SECONDS");
  arguments.option("--script", &line->script, "simulate the owner from lines of `seconds value`",
                   "FILE");
  arguments.option("--control", &line->control,
                   "simulate the owner from the current content of this file", "FILE");
  if (const std::optional<int> code = arguments.parse(argc, argv)) return code;
  const auto usage = [](const std::string& what) {
    std::cerr << "sublet-loadmon: " << what << "\n";
    return kExitUsage;
  };
  if (line->socket.empty() && !line->settings.print) return usage("--socket PATH is required");
  if (!line->script.empty() && !line->control.empty())
    return usage("--script and --control cannot be used together");
  while (line->attempts.size() > 1 && line->attempts.back() == '/') line->attempts.pop_back();
  if (!line->attempts.empty() && line->attempts != "attempts" &&
      !line->attempts.ends_with("/attempts"))
    return usage("--attempts must name a folder called attempts");
  return std::nullopt;
}

// Keys, pointers and touches, as far as no desktop tells of them, and who is logged in.
void add_input_senses(Senses& senses, const Desktops& desktops, const Settings& settings,
                      const JobsHere& jobs) {
  const std::string& root = settings.text("root");
  auto devices = std::make_unique<InputDevices>(root);
  // Both live as long as the sense that asks them.
  Sessions::Others others = {.desktops = [&desktops] { return desktops.live(); },
                             .devices_see = [&devices = *devices] { return devices.can_see(); },
                             .jobs_run = [jobs] { return !jobs.attempts().empty(); }};
  senses.push_back(std::move(devices));
  senses.push_back(std::make_unique<Terminals>(
      root, [jobs] { return find_job_terminals(jobs.processes(), jobs.daemons()); }));
  senses.push_back(
      std::make_unique<Sessions>(std::move(others), settings.duration_ms("full_screen")));
  senses.push_back(
      std::make_unique<Media>(root, [jobs](pid_t pid) { return is_process_of_job(pid, jobs); }));
}

std::vector<ScriptLine> read_script(const std::string& path) {
  if (path.empty()) return {};
  return parse_script(system_files().read_file(path, kLargestScript), path);
}

Senses make_senses(const CommandLine& line, const std::vector<ScriptLine>& script,
                   const Settings& settings, const JobsHere& jobs,
                   const Monitor::Describe& describe, OwnersRules& rules,
                   const std::set<uid_t>& owners) {
  Senses senses;
  const std::string& root = settings.text("root");
  const std::string folder = folder_of(line.socket);
  senses.push_back(
      std::make_unique<OwnersWord>(folder, system_files(), jobs, describe, rules, owners));
  auto desktops = std::make_unique<Desktops>(folder, root, jobs);
  if (!script.empty()) {
    senses.push_back(std::make_unique<ScriptSense>(script, system_clock().boot_ns()));
  } else if (!line.control.empty()) {
    senses.push_back(std::make_unique<ControlSense>(line.control));
  } else {
    // Also if this rule ignores them: the owner's own rules may ask.
    add_input_senses(senses, *desktops, settings, jobs);
    // Needed even if the rule has no threshold for it: every frame has the owner's CPU use.
    senses.push_back(std::make_unique<CpuSense>(root));
    senses.push_back(std::make_unique<LoadSense>());
  }
  senses.push_back(std::move(desktops));
  return senses;
}

std::unique_ptr<OwnersRules> make_rules(std::vector<RulePair> pairs, const std::string& root,
                                        const std::string& folder, const JobsHere& jobs) {
  return std::make_unique<OwnersRules>(
      std::move(pairs),
      [files = std::make_shared<MachineStateFiles>(root, folder)](
          int64_t now, const std::vector<pid_t>& of_jobs) { return files->read(now, of_jobs); },
      jobs);
}

// An account that does not exist (yet) is logged.
std::set<uid_t> owner_accounts(const std::vector<std::string>& names) {
  std::set<uid_t> accounts;
  for (const std::string& name : names) {
    if (const passwd* entry = getpwnam(name.c_str()))
      accounts.insert(entry->pw_uid);
    else
      log(Severity::warning) << "owners: there is no account '" << name << "' on this machine";
  }
  return accounts;
}

// Before any thread is started, so that all inherit the mask.
void block_end_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

int run(const CommandLine& line) {
  const Settings settings = line.settings.read(setting_specs());
  MonitorOptions options;
  options.rule = presence_rule(settings);
  std::vector<RulePair> pairs = rule_pairs(settings);
  if (line.settings.print) {
    with_values_of(options.rule, settings).print(std::cout);
    return 0;
  }
  require_log_file(settings);
  options.socket = line.socket;
  options.attempts = line.attempts;
  options.sample_ms = settings.duration_ms("sample_period");
  options.save_deadline_ms = settings.duration_ms("save_deadline");
  options.alone_ms = line.alone_s < 0 ? -1 : static_cast<int64_t>(line.alone_s * 1000);
  options.most_connections = static_cast<size_t>(settings.integer("most_connections"));
  options.linger_slowdown = settings.real("linger_slowdown");
  options.root = settings.text("root");
  options.measures_jobs = line.script.empty() && line.control.empty();
  const std::vector<ScriptLine> script = read_script(line.script);
  block_end_signals();
  const std::string& root = settings.text("root");
  const std::set<uid_t> owners = owner_accounts(settings.texts("owners"));
  Monitor monitor(
      options,
      [&](const JobsHere& jobs, const Monitor::Describe& describe, OwnersRules& rules) {
        return make_senses(line, script, settings, jobs, describe, rules, owners);
      },
      [&](const JobsHere& jobs) {
        return make_rules(std::move(pairs), root, folder_of(line.socket), jobs);
      });
  log_start({.component = "loadmon",
             .file = settings.text("log.file"),
             .level = *severity_from(settings.text("log.level"))});
  protect_process();
  log(Severity::info) << "watching for the owner by the rule '" << settings.text("rule")
                      << "', socket " << line.socket;
  const int code = monitor.run();
  return code;
}
}  // namespace
}  // namespace sublet::loadmon

int main(int argc, char** argv) {
  sublet::share_heaps();
  sublet::keep_standard_streams();
  using namespace sublet;
  loadmon::CommandLine line;
  if (const std::optional<int> code = loadmon::read_command_line(argc, argv, &line)) return *code;
  int code = 1;
  try {
    code = loadmon::run(line);
  } catch (const SettingError& error) {
    code = refuse_settings("sublet-loadmon", error);
  } catch (const std::exception& error) {
    std::cerr << "sublet-loadmon: " << error.what() << "\n";
  }
  log_stop();
  return code;
}
