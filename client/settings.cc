#include "client/settings.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>

#include "base/files.h"
#include "base/options/arguments.h"
#include "base/options/default_places.h"
#include "client/link/joining.h"
#include "transport/membership_file.h"

namespace sublet::client {
namespace {

constexpr double kDayMs = 24 * 3600 * 1000.0;
constexpr double kAny = std::numeric_limits<double>::infinity();
constexpr double kTiB = 1024.0 * 1024 * 1024 * 1024;

struct CommandLine {
  std::string server, name, state, config, script, control, token;
  int64_t slots = 0;
  std::vector<std::string> sets, monitor_sets;
  bool print_settings = false;
};

std::string default_state() {
  if (geteuid() == 0) return "/var/lib/sublet-client";
  const char* state = getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/sublet-client";
  const char* home = getenv("HOME");
  return std::string(home != nullptr ? home : ".") + "/.local/state/sublet-client";
}

Manual manual() {
  return {
      8,
      {settings_section("In the file of `--config` (TOML), each as `KEY = VALUE` or under its "
                        "table; `--set` says otherwise.",
                        declare_client_settings()),
       {"FILES",
        {{"`/var/lib/sublet-client`", "The state folder of root's client."},
         {"`~/.local/state/sublet-client`",
          "That of others, or `sublet-client` under `$XDG_STATE_HOME`."}}},
       {"SIGNALS",
        {{"SIGTERM, SIGINT",
          "Takes no more orders, asks the jobs to leave, reports their ends, withdraws, and "
          "ends; within `drain_time`."},
         {"a second one, SIGKILL", "Ends at once. Jobs go on; the next start takes them over."}}},
       {"EXIT STATUS",
        {{"`0`", "Stopped in good order."},
         {"`1`", "It could not start."},
         {"`2`", "The command line or a setting is wrong."}}},
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
  arguments.option("--name", &line->name, "shown to people (default: the host's name)", "NAME");
  arguments.option("--slots", &line->slots, "jobs at a time (default: one a core)", "N");
  arguments.option("--state", &line->state, "where records and jobs' files are kept", "FOLDER");
  arguments.option("--config", &line->config, "settings (client.toml)", "FILE");
  arguments.option("--set", &line->sets, "one setting, over the file's", "KEY=VALUE");
  arguments.option("--monitor-script", &line->script, "the load monitor's --script", "FILE");
  arguments.option("--monitor-control", &line->control, "the load monitor's --control", "FILE");
  arguments.option("--monitor-set", &line->monitor_sets, "the load monitor's --set", "KEY=VALUE");
  arguments.flag("--print-settings", &line->print_settings, "print all settings, and end");
  arguments.command("join", "make this machine a member of a pool elsewhere, and end")
      .positional("TOKEN", &line->token, "from `sublet admin invite`", true);
  arguments.commands_are_optional();
  arguments.manual(manual());
  if (auto code = arguments.parse(argc, argv)) return code;
  if (line->print_settings) {
    declare_client_settings().print_defaults(std::cout);
    return 0;
  }
  if (line->slots < 0 || line->slots > 1024) {
    std::cerr << "sublet-client: --slots must be 1 to 1024\n";
    return kExitUsage;
  }
  return std::nullopt;
}

void fill(const Settings& from, ClientSettings* out) {
  out->server_uid = from.integer("server_uid");
  out->slot_uids = from.integer("slot_uids");
  out->workers = from.integer("workers");
  out->outbox_limit = static_cast<uint64_t>(from.integer("outbox_limit"));
  out->disk_reserve = from.size_bytes("disk_reserve");
  out->input_cache = from.size_bytes("input_cache");
  out->disk_look_ms = from.duration_ms("disk_look");
  out->upload_cpu = from.real("upload_cpu");
  out->checkpoint_interval_ms = from.duration_ms("checkpoint_interval");
  out->save_deadline_ms = from.duration_ms("save_deadline");
  out->save_deadline_most_ms = from.duration_ms("save_deadline_most");
  out->cpu_allowance_ms = from.duration_ms("cpu_allowance");
  out->patience_ms = from.duration_ms("patience");
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

// The Unix socket named, else the pool that this machine has joined, else the server of
// this machine, which may be started later.
std::optional<int> find_server(ClientSettings* out) {
  std::string& socket = out->server_socket;
  if (socket.starts_with("unix:")) socket.erase(0, 5);
  // Absolute, because shepherds and monitor do not share our folder.
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
    std::cerr << "sublet-client: this machine has joined no pool and has no server of its own at "
              << socket
              << " yet. If it belongs to a server elsewhere, stop this client and run "
                 "`sublet-client join TOKEN`; --server names another socket.\n";
  return std::nullopt;
}

}  // namespace

std::vector<SettingSpec> client_setting_specs() {
  using T = SettingType;
  return {
      {"server", T::text, "", -kAny, kAny,
       "the server's Unix socket; empty: the pool joined, else this machine's own; --server says "
       "otherwise"},
      {"server_uid", T::integer, "-1", -1, 4294967293,
       "whose socket is the server's; -1: the owner of the folder it lies in"},
      {"name", T::text, "", -kAny, kAny, "shown to people; empty: the host's name"},
      {"slots", T::integer, "0", 0, 1024, "jobs at a time; 0: one a core"},
      {"slot_uids", T::integer, "61184", 1, 4294967293,
       "where the search for free user ids for the slots begins (a client that is root)"},
      {"workers", T::integer, "4", 1, 64,
       "threads that fetch files and start jobs, and as many that hand in"},
      {"outbox_limit", T::integer, "1000", 1, 1e6,
       "ended attempts not yet acknowledged; beyond it no order is taken"},
      {"disk_reserve", T::size, "256 MiB", 0, kTiB,
       "disk that is never given to jobs; when less is left, the one that uses the most leaves"},
      {"input_cache", T::size, "2 GiB", 0, kTiB,
       "inputs kept for later jobs, so that each content is fetched once; 0: none"},
      {"disk_look", T::duration, "2 s", 100, 3'600'000,
       "at most between two looks at the free disk while jobs are here"},
      {"upload_cpu", T::real, "0.1", 0.001, 64,
       "of one core, for handing in what jobs leave behind while the owner is here"},
      {"checkpoint_interval", T::duration, "30 s", 0, kDayMs,
       "between two checkpoints of a running job handed in"},
      {"save_deadline", T::duration, "2 s", 0, kDayMs,
       "time to save in when asked to leave, for jobs that give none"},
      {"save_deadline_most", T::duration, "10 s", 0, kDayMs,
       "and at most, whatever a job asks for"},
      {"cpu_allowance", T::duration, "50 ms", 1, 60'000,
       "CPU time that a job may use while it saves beside the owner"},
      {"patience", T::duration, "1 h", 0, 30 * kDayMs,
       "how long a job frozen for want of the server is kept"},
      {"drain_time", T::duration, "20 s", 0, kDayMs,
       "how long an orderly stop waits for jobs to leave and be reported"},
      {"output_text", T::size, "1 MiB", 0, kTiB,
       "of stdout and stderr each, kept for jobs that give no bound"},
      {"output_file", T::size, "1 GiB", 0, kTiB, "of an output file, for jobs that give no bound"},
      {"output_text_most", T::size, "64 MiB", 0, kTiB,
       "the most kept of stdout and stderr each, whatever a job asks for"},
      {"output_file_most", T::size, "4 GiB", 0, kTiB,
       "the most that an attempt's output files may have together, whatever a job asks for"},
      {"checkpoint_largest", T::size, "1 GiB", 0, kTiB, "a larger checkpoint is not handed in"},
      {"shepherd_program", T::text, "", -kAny, kAny, "sublet-shepherd; empty: beside this program"},
      {"monitor.program", T::text, "", -kAny, kAny, "sublet-loadmon; empty: beside this program"},
      {"monitor.config", T::text, "", -kAny, kAny, "the load monitor's settings file; empty: none"},
      {"log.file", T::text, "", -kAny, kAny, "empty: stderr"},
      {"log.level",
       T::text,
       "info",
       -kAny,
       kAny,
       "the least that is written",
       {"debug", "info", "warning", "error"}},
  };
}

Settings declare_client_settings() { return Settings(client_setting_specs()); }

std::optional<int> read_client_settings(int argc, char** argv, ClientSettings* out) {
  CommandLine line;
  if (auto code = parse(argc, argv, &line)) return code;
  try {
    Settings settings = declare_client_settings();
    if (!line.config.empty()) settings.load_file(line.config);
    for (const auto& assignment : line.sets) settings.override_with(assignment);
    fill(settings, out);
    out->server_socket = line.server.empty() ? settings.text("server") : line.server;
    out->name = line.name.empty() ? settings.text("name") : line.name;
    out->slots = line.slots > 0 ? line.slots : settings.integer("slots");
  } catch (const std::exception& error) {
    std::cerr << "sublet-client: " << error.what() << "\n";
    return kExitUsage;
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
