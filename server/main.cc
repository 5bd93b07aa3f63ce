// sublet-server: the central server of a pool.
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "base/files.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/options/arguments.h"
#include "base/options/settings_arguments.h"
#include "base/standard_streams.h"
#include "server/members/authority.h"
#include "server/repair_commands.h"
#include "server/server.h"
#include "server/settings.h"
#include "server/supervisor.h"

namespace {

using namespace sublet;
using namespace sublet::server;

struct CommandLine {
  SettingsArguments settings;
  std::string state;
  std::string socket;
  bool init = false;
  bool check = false;
  bool contents = false;
  bool salvage = false;
  bool replay = false;
  bool once = false;
  int64_t supervised = -1;  // descriptor of the vital signs; -1: not the child
};

// Not under a sanitizer: its shadow memory takes terabytes of address space.
void limit_memory(uint64_t bytes) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
  // Each of malloc's arenas takes 64 MiB of address space.
  mallopt(M_ARENA_MAX, 8);
#else
  (void)bytes;
#endif
}

// A connection takes a descriptor, over TLS three; the soft limit is often 1024.
void use_all_descriptors() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

int make_authority(const ServerSettings& settings) {
  system_files().make_folders(settings.state_folder);
  const bool made =
      make_authority_files(settings.state_folder, settings.pool_name, settings.authority_valid_us);
  const auto authority = read_authority(settings.state_folder);
  std::cout << (made ? "created the authority of the pool '"
                     : "there is already an authority of the pool '")
            << authority->pool << "' in " << settings.state_folder << "/authority\n"
            << "fingerprint " << hex(authority->fingerprint) << "\n";
  return 0;
}

int serve_and_log(const ServerSettings& settings, VitalSigns* signs) {
  limit_memory(settings.memory_limit);
  use_all_descriptors();
  log_start(settings.log);
  int status = 1;
  try {
    FolderLock lock(settings.state_folder);
    status = serve(settings, signs);
  } catch (const std::exception& e) {
    log(Severity::error) << e.what();
  }
  log_stop();
  return status;
}

Settings read(const CommandLine& line) {
  Settings settings = line.settings.read(server_setting_specs());
  if (!line.state.empty()) settings.override_with("server.state=" + line.state);
  if (!line.socket.empty()) settings.override_with("server.socket=" + line.socket);
  return settings;
}

Manual manual() {
  return {8,
          {settings_section("Written in the file of `--config` (TOML), each under its table; "
                            "`--set` overrides them. `--print-settings` prints such a file.",
                            Settings(server_setting_specs())),
           {"FILES",
            {{"`/var/lib/sublet-server`", "State folder, for root: database, spool, authority."},
             {"`/run/sublet/server.sock`",
              "Socket, for root: where `sublet` and `sublet-client` look for a server."},
             {"`~/.local/state/sublet-server`",
              "State folder, for other users; or `sublet-server` under `$XDG_STATE_HOME`."},
             {"`$XDG_RUNTIME_DIR/sublet/server.sock`",
              "Socket, for other users; or `server.sock` in the state folder. `sublet` and "
              "`sublet-client` need it as `--server`; the server's log says so."}}},
           {"SIGNALS", {{"SIGTERM, SIGINT", "Stop normally. Jobs keep running."}}},
           {"EXIT STATUS",
            {{"`0`", "Ended by a signal."},
             {"`1`", "Could not start; `check`: something is damaged."},
             {"`2`", "The command line or a setting is wrong; not restarted."}}},
           {"SEE ALSO", {{"", "`sublet`(1), `sublet-client`(8)"}}}}};
}

// self: the command line to restart this program with.
int run(const CommandLine& line, const std::vector<std::string>& self) {
  const Settings read_settings = read(line);
  const ServerSettings settings = read_server_settings(read_settings);
  if (line.settings.print) {
    read_settings.print(std::cout);
    return 0;
  }
  if (line.init) return make_authority(settings);
  if (line.check) return check_pool(settings, line.contents);
  if (line.salvage) return salvage_pool(settings);
  if (line.replay) return replay_history(settings);
  require_log_file(read_settings);
  scheduling::Pool check(settings.policies);  // throws for unknown policies
  system_files().make_folders(settings.state_folder);
  system_files().make_folders(folder_of(settings.socket), 0755);
  if (!line.once && line.supervised < 0) {
    ServiceNotify manager = ServiceNotify::from_environment();
    return supervise({settings.socket, settings.watchdog_ms}, self, manager);
  }
  if (line.supervised >= 0)
    return serve_and_log(settings, supervised(static_cast<int>(line.supervised)));
  VitalSigns signs;
  return serve_and_log(settings, &signs);
}

}  // namespace

int main(int argc, char** argv) {
  sublet::keep_standard_streams();
  CommandLine line;
  Arguments arguments("sublet-server", "The central server of a Sublet pool.", SUBLET_VERSION);
  arguments.manual(manual());
  line.settings.declare(arguments, "server.toml");
  arguments.option("--state", &line.state, "folder for the database and the spool", "FOLDER");
  arguments.option("--socket", &line.socket, "Unix socket to listen on", "PATH");
  arguments.flag("--no-supervisor", &line.once, "exit when the server ends; do not restart it");
  arguments.option("--supervised", &line.supervised, "internal: used by the supervisor", "FD");
  Arguments& init =
      arguments.command("init", "create the pool's certificate authority, once for each pool");
  Arguments& check = arguments.command(
      "check",
      "look for damage in the pool's database, spool and history; a server may be running");
  check.flag("--contents", &line.contents,
             "also read all files in the spool, and compare them with their digests");
  Arguments& salvage = arguments.command(
      "salvage", "make a new database of what can be read of a damaged one, and keep the old one");
  Arguments& replay = arguments.command(
      "replay", "replay the history of events, and check that each file leads to the next");
  arguments.commands_are_optional();
  if (auto status = arguments.parse(argc, argv)) return *status;
  line.init = init.chosen();
  line.check = check.chosen();
  line.salvage = salvage.chosen();
  line.replay = replay.chosen();
  std::vector<std::string> self(argv, argv + argc);
  self[0] = std::filesystem::read_symlink("/proc/self/exe").string();
  try {
    return run(line, self);
  } catch (const SettingError& e) {
    return refuse_settings("sublet-server", e);
  } catch (const std::exception& e) {
    std::cerr << "sublet-server: " << e.what() << "\n";
    return 1;
  }
}
