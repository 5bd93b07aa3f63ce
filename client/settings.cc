#include "client/settings.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>

#include "base/files.h"
#include "base/options/default_places.h"
#include "base/options/settings_arguments.h"
#include "client/link/joining.h"
#include "transport/membership_file.h"

namespace sublet::client {
namespace {

constexpr double kDayMs = 24 * 3600 * 1000.0;
constexpr double kAny = std::numeric_limits<double>::infinity();
constexpr double kTiB = 1024.0 * 1024 * 1024 * 1024;

struct CommandLine {
  SettingsArguments settings;
  std::string server, name, slots, state, script, control, token;
  std::vector<std::string> monitor_sets;
};

std::string default_state() {
  if (geteuid() == 0) return kMachinesClient;
  return users_client_state().value_or("./.local/state/sublet-client");
}

Manual manual() {
  return {8,
          {settings_section("Written in the file of `--config` (TOML), each as `KEY = VALUE` or "
                            "under its table; `--set` overrides them.",
                            Settings(client_setting_specs())),
           {"FILES",
            {{"`/var/lib/sublet-client`", "State folder, for root."},
             {"`~/.local/state/sublet-client`",
              "State folder, for other users; or `sublet-client` under `$XDG_STATE_HOME`."}}},
           {"SIGNALS",
            {{"SIGTERM, SIGINT",
              "Accept no more orders, ask the jobs to leave, report their ends, withdraw, and "
              "exit; within `drain_time`."},
             {"a second one, SIGKILL",
              "Exit at once. Jobs keep running; the next client adopts them."}}},
           {"EXIT STATUS",
            {{"`0`", "Stopped normally."},
             {"`1`", "Could not start."},
             {"`2`", "The command line or a setting is wrong; not restarted."}}},
           {"SEE ALSO",
            {{"", "`sublet`(1), `sublet-loadmon`(8), `sublet-server`(8), `sublet-shepherd`(8)"}}}}};
}

std::optional<int> parse(int argc, char** argv, CommandLine* line) {
  Arguments arguments("sublet-client", "Adds this workstation to a pool.", SUBLET_VERSION);
  arguments.option(
      "--server", &line->server,
      "the server's Unix socket (default: the pool joined with `join`, else this machine's own "
      "server)",
      "REF");
  arguments.option("--name", &line->name, "name for display (default: the host's name)", "NAME");
  arguments.option("--slots", &line->slots, "jobs at a time (default: one per core)", "N");
  arguments.option("--state", &line->state, "folder for records and jobs' files", "FOLDER");
  line->settings.declare(arguments, "client.toml");
  arguments.option("--monitor-script", &line->script, "--script of the load monitor", "FILE");
  arguments.option("--monitor-control", &line->control, "--control of the load monitor", "FILE");
  arguments.option("--monitor-set", &line->monitor_sets, "--set of the load monitor", "KEY=VALUE");
  arguments.command("join", "make this machine a member of a remote pool and exit")
      .positional("TOKEN", &line->token, "token from `sublet admin invite`", true);
  arguments.commands_are_optional();
  arguments.manual(manual());
  return arguments.parse(argc, argv);
}

Settings read(const CommandLine& line) {
  Settings settings = line.settings.read(client_setting_specs());
  if (!line.server.empty()) settings.override_with("server=" + line.server);
  if (!line.name.empty()) settings.override_with("name=" + line.name);
  if (!line.slots.empty()) settings.override_with("slots=" + line.slots);
  return settings;
}

void fill(const Settings& from, ClientSettings* out) {
  out->server_socket = from.text("server");
  out->name = from.text("name");
  out->slots = from.integer("slots");
  try {
    out->resources = rules::NamedAmounts::parse(from.text("resources"));
  } catch (const rules::AmountError& error) {
    throw from.wrong({"resources"}, std::string("resources: ") + error.what());
  }
  out->root = from.text("root");
  out->server_uid = from.integer("server_uid");
  out->slot_uids = from.integer("slot_uids");
  out->workers = from.integer("workers");
  out->outbox_limit = static_cast<uint64_t>(from.integer("outbox_limit"));
  out->ahead = from.integer("ahead");
  out->memory_reserve = from.size_bytes("memory_reserve");
  out->disk_reserve = from.size_bytes("disk_reserve");
  out->input_cache = from.size_bytes("input_cache");
  out->disk_check_ms = from.duration_ms("disk_check");
  out->upload_cpu = from.real("upload_cpu");
  out->checkpoint_interval_ms = from.duration_ms("checkpoint_interval");
  out->save_deadline_ms = from.duration_ms("save_deadline");
  out->save_deadline_most_ms = from.duration_ms("save_deadline_most");
  if (out->save_deadline_ms > out->save_deadline_most_ms)
    throw from.wrong({"save_deadline", "save_deadline_most"},
                     "save_deadline and save_deadline_most are inconsistent: a job's time to save "
                     "must not be above the most that a job may ask for");
  out->cpu_allowance_ms = from.duration_ms("cpu_allowance");
  out->patience_ms = from.duration_ms("patience");
  out->leaving = *leaving_named(from.text("leaving"));
  out->grants = from.texts("grants");
  for (const std::string& path : out->grants)
    if (!path.starts_with('/'))
      throw from.wrong({"grants"}, "grants: '" + path + "' is not an absolute path");
  out->network = *network_named(from.text("network"));
  out->bandwidth = from.size_bytes("bandwidth");
  out->weak = from.boolean("weak");
  out->pool_logins = from.boolean("pool_logins");
  out->suspend_ms = from.duration_ms("suspend_for");
  out->drain_ms = from.duration_ms("drain_time");
  out->output_text = from.size_bytes("output_text");
  out->output_file = from.size_bytes("output_file");
  out->output_text_most = from.size_bytes("output_text_most");
  out->output_file_most = from.size_bytes("output_file_most");
  out->checkpoint_largest = from.size_bytes("checkpoint_largest");
  out->monitor_program = from.text("monitor.program");
  out->monitor_config = from.text("monitor.config");
  out->shepherd_program = from.text("shepherd_program");
  out->log.component = "client";
  out->log.file = from.text("log.file");
  out->log.level = *severity_from(from.text("log.level"));
}

// Chooses the Unix socket given, else the pool that this machine has joined, else this
// machine's own server, which may be started later.
std::optional<int> find_server(ClientSettings* out) {
  std::string& socket = out->server_socket;
  if (socket.starts_with("unix:")) socket.erase(0, 5);
  // Absolute, because shepherds and monitor do not share our working directory.
  if (!socket.empty()) socket = std::filesystem::absolute(socket).lexically_normal();
  if (!socket.empty() || !out->join_token.empty()) return std::nullopt;
  try {
    out->membership = read_membership(system_files(), membership_path(out->state_folder));
    if (out->membership && out->name.empty())
      out->name = read_certificate(out->membership->credentials.certificate).member.value().name;
  } catch (const std::exception& error) {
    std::cerr << "sublet-client: " << error.what() << "\n";
    return 1;
  }
  if (out->membership) return std::nullopt;
  socket = kMachinesServer;
  if (!system_files().exists(socket))
    std::cerr << "sublet-client: this machine has not joined a pool and has no server at " << socket
              << " yet. If its server is on another host, stop this client and run `sublet-client "
                 "join TOKEN`; use --server to name another socket.\n";
  return std::nullopt;
}

}  // namespace

std::vector<SettingSpec> client_setting_specs() {
  using T = SettingType;
  return {
      {"server", T::text, "", -kAny, kAny,
       "the server's Unix socket; empty: the pool joined, else this machine's own server; "
       "overridden by --server"},
      {"server_uid", T::integer, "-1", -1, 4294967293,
       "user id of the server; -1: the owner of the folder that contains its socket"},
      {"name", T::text, "", -kAny, kAny, "name for display; empty: the host's name"},
      {"slots", T::integer, "0", 0, 1024, "jobs at a time; 0: one per core"},
      {"resources", T::text, "", -kAny, kAny,
       "what this machine offers besides cores, memory and disk: gpu=2, matlab=1; its GPUs are "
       "counted unless gpu is named; gpu=0: none"},
      {"root", T::text, "", -kAny, kAny,
       "device files and the load are looked for below this folder: dev/, proc/loadavg; a number "
       "in its file speed is the speed of this machine; for tests"},
      {"slot_uids", T::integer, "61184", 1, 4294967293,
       "first user id to try for the slots (if the client runs as root)"},
      {"workers", T::integer, "4", 1, 64,
       "threads that fetch files and start jobs, and the same number for uploads"},
      {"outbox_limit", T::integer, "1000", 1, 1e6,
       "ended attempts not yet acknowledged; at this number no order is accepted"},
      {"ahead", T::integer, "16", 0, 64,
       "how many jobs may wait here for each slot (at most 64 in all) while jobs end quickly, so "
       "that "
       "the next one starts without asking the server; 0: none"},
      {"memory_reserve", T::size, "1 GiB", 0, kTiB,
       "memory set aside for the owner, at most half of the machine's; the rest, divided by the "
       "slots, limits a job that does not say how much it needs; when less than a quarter of it is "
       "available, the job that uses the most must leave"},
      {"disk_reserve", T::size, "256 MiB", 0, kTiB,
       "disk space that jobs never get; when less is left, the job that uses the most must leave"},
      {"input_cache", T::size, "2 GiB", 0, kTiB, "inputs cached for later jobs; 0: none"},
      {"disk_check", T::duration, "2 s", 100, 3'600'000,
       "longest time between two checks of the free disk space while jobs run"},
      {"upload_cpu", T::real, "0.1", 0.001, 64,
       "CPU limit, in cores, for uploads while the owner is present"},
      {"checkpoint_interval", T::duration, "30 s", 0, kDayMs,
       "least time between two checkpoint uploads of a running job"},
      {"save_deadline", T::duration, "2 s", 0, kDayMs,
       "time to save when asked to leave, for jobs that specify none"},
      {"save_deadline_most", T::duration, "10 s", 0, kDayMs,
       "longest time to save that a job may ask for"},
      {"cpu_allowance", T::duration, "50 ms", 1, 60'000,
       "CPU time at normal weight in which a program that uses the checkpoint library may save "
       "after the owner's return"},
      {"leaving", T::text, "leave", -kAny, kAny,
       "what jobs do when the owner is back: save and leave; be suspended, and leave if the owner "
       "stays; linger, as long as the owner is not slowed down; or be killed. A job may ask for a "
       "stricter way",
       leaving_names()},
      {"suspend_for", T::duration, "5 min", 1000, kDayMs,
       "how long a job stays suspended before it saves and leaves"},
      {"pool_logins", T::boolean, "false", -kAny, kAny,
       "whether the rules of other machines' owners may ask whether a user is logged in here, "
       "and this machine's rules whether a user is logged in elsewhere"},
      {"grants", T::texts, "", -kAny, kAny,
       "folders, files and devices that jobs see although they lie in a home folder, in /tmp or in "
       "/dev"},
      {"network", T::text, "any", -kAny, kAny,
       "the network of jobs; any: this machine's; server: only the pool's server, and this "
       "machine's loopback; none: only loopback among their own processes",
       network_names()},
      {"bandwidth", T::size, "0", 0, kTiB,
       "how much each job may send, and how much it may receive, in a second; 0: no limit"},
      {"weak", T::boolean, "false", -kAny, kAny,
       "whether a client without root takes jobs even where the kernel permits no user namespaces: "
       "they can then read and change all that its account can"},
      {"patience", T::duration, "1 h", 0, 30 * kDayMs,
       "how long to keep a job that is frozen because the server is unreachable"},
      {"drain_time", T::duration, "20 s", 0, kDayMs,
       "how long a normal stop waits for jobs to leave and be reported"},
      {"output_text", T::size, "1 MiB", 0, kTiB,
       "limit for stdout and for stderr, for jobs that specify none"},
      {"output_file", T::size, "1 GiB", 0, kTiB,
       "limit for an output file, for jobs that specify none"},
      {"output_text_most", T::size, "64 MiB", 0, kTiB,
       "highest limit for stdout and for stderr that a job may ask for"},
      {"output_file_most", T::size, "4 GiB", 0, kTiB,
       "highest limit for an attempt's output files together"},
      {"checkpoint_largest", T::size, "1 GiB", 0, kTiB, "largest checkpoint that is uploaded"},
      {"shepherd_program", T::text, "", -kAny, kAny,
       "path of sublet-shepherd; empty: in this program's folder"},
      {"monitor.program", T::text, "", -kAny, kAny,
       "path of sublet-loadmon; empty: in this program's folder"},
      {"monitor.config", T::text, "", -kAny, kAny, "the load monitor's settings file; empty: none"},
      {"log.file", T::text, "", -kAny, kAny, "log file; empty: standard error"},
      {"log.level",
       T::text,
       "info",
       -kAny,
       kAny,
       "lowest severity that is logged",
       {"debug", "info", "warning", "error"}},
  };
}

std::optional<int> read_client_settings(int argc, char** argv, ClientSettings* out) {
  CommandLine line;
  if (auto code = parse(argc, argv, &line)) return code;
  try {
    const Settings settings = read(line);
    if (line.settings.print) {
      settings.print(std::cout);
      return 0;
    }
    fill(settings, out);
    if (line.token.empty()) require_log_file(settings);
  } catch (const SettingError& error) {
    return refuse_settings("sublet-client", error);
  }
  std::string state = line.state.empty() ? default_state() : line.state;
  out->state_folder = std::filesystem::absolute(state).lexically_normal();
  while (out->state_folder.size() > 1 && out->state_folder.ends_with("/"))
    out->state_folder.pop_back();
  out->join_token = line.token;
  if (auto code = find_server(out)) return code;
  auto absolute = [](const std::string& path) {
    return path.empty() ? path : std::filesystem::absolute(path).string();
  };
  out->monitor_script = absolute(line.script);
  out->monitor_control = absolute(line.control);
  out->monitor_sets = line.monitor_sets;
  return std::nullopt;
}

}  // namespace sublet::client
