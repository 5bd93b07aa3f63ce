#include "client/setting_up.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "attempt/folder.h"
#include "base/files.h"
#include "base/log.h"
#include "base/options/settings.h"
#include "base/os_error.h"
#include "client/link/joining.h"
#include "client/machine/hidden_folders.h"
#include "client/machine/machine.h"
#include "client/mover/process.h"
#include "transport/membership_file.h"

namespace sublet::client {
namespace {

constexpr int64_t kMakeRoomMs = 2000;  // added to the time to save
constexpr char kReservedUids[] = "/run/sublet-slots";

// The path of a program of ours that is started later. A missing one is reported now
// rather than at the first job. `chosen`: the value of `setting`; empty: the program
// in this program's folder.
std::string companion(const char* name, const char* setting, const std::string& chosen) {
  std::string path = chosen;
  if (path.empty())
    path = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
  if (access(path.c_str(), X_OK) != 0)
    throw SettingError(path + " cannot be executed: " + std::strerror(errno) + ". Install " + name +
                       " beside sublet-client, or name its path with --set " + setting + "=PATH.");
  return path;
}

// Jobs open their status page and checkpoints by path: in a folder they cannot
// traverse every save would fail unnoticed.
void check_reachable(const std::string& state) {
  std::string closed = geteuid() == 0 ? SlotAccounts::in_the_way(state) : "";
  if (closed.empty()) return;
  throw std::runtime_error(
      "the jobs' accounts cannot traverse " + closed + " to reach the state folder " + state +
      ": choose another --state, or permit it with 'chmod o+x " + closed + "'");
}

// Whether all jobs have a network of their own. Those that may reach only a server on this machine
// need no other.
bool have_own_network(const ClientSettings& settings) {
  return settings.network == Network::kNone ||
         (settings.network == Network::kServer && !settings.membership);
}

}  // namespace

std::string make_state_folder(const std::string& path) {
  check_reachable(path);
  system_files().make_folders(path + "/attempts", 0711);
  for (const auto& folder : {path, path + "/attempts"})
    if (chmod(folder.c_str(), 0711) != 0) throw OsError(errno, "set the mode of", folder);
  std::string real = std::filesystem::canonical(path).string();
  // The kernel limits the length of a socket's path, here monitor.sock.
  if (real.size() + sizeof "/monitor.sock" > 108)
    throw std::runtime_error("the state folder's path is too long (at most 94 octets): " + real);
  return real;
}

MachineFacts facts_of(const ClientSettings& settings, const std::string& state) {
  MachineFacts facts = find_facts(settings.name, settings.slots, state);
  add_resources(settings.resources, settings.root, &facts);
  return facts;
}

SlotAccounts reserve_accounts(const ClientSettings& settings, uint32_t slots,
                              const std::string& state) {
  if (geteuid() != 0) return SlotAccounts::own(slots);
  return SlotAccounts::reserve(kReservedUids, settings.slot_uids, slots, state);
}

ServerPlace server_place(const ClientSettings& settings, const std::string& state) {
  ServerPlace place;
  place.membership = settings.membership;
  place.renewed = [state](const Membership& membership) {
    write_membership(system_files(), membership_path(state), membership);
  };
  if (place.membership) return place;
  place.socket = settings.server_socket;
  place.uid = settings.server_uid >= 0 ? static_cast<uint32_t>(settings.server_uid)
                                       : expected_server_uid(place.socket);
  return place;
}

uint32_t ahead_of(const ClientSettings& settings, uint32_t slots) {
  constexpr uint32_t kMost = 64;  // idl/machine_allocator.idl, MachineReport
  return std::min(static_cast<uint32_t>(settings.ahead) * std::min(slots, kMost), kMost);
}

DeskSettings desk_settings(const ClientSettings& settings, const std::string& state,
                           const MachineFacts& facts, const SlotAccounts& accounts,
                           const NetworkRules& network) {
  return {state,
          facts,
          accounts.uids(),
          settings.outbox_limit,
          ahead_of(settings, facts.slots),
          settings.disk_reserve,
          MemoryWatch::least(memory_settings(settings, facts)),
          network};
}

DiskSettings disk_settings(const ClientSettings& settings, const std::string& state) {
  return {state, settings.disk_reserve, settings.disk_check_ms,
          settings.save_deadline_most_ms + kMakeRoomMs};
}

MemorySettings memory_settings(const ClientSettings& settings, const MachineFacts& facts) {
  return {owners_memory(facts, settings.memory_reserve),
          settings.save_deadline_most_ms + kMakeRoomMs};
}

MonitorSettings monitor_settings(const ClientSettings& settings, const std::string& state) {
  MonitorSettings monitor;
  monitor.socket = state + "/monitor.sock";
  auto& argv = monitor.command;
  argv = {companion("sublet-loadmon", "monitor.program", settings.monitor_program),
          "--socket",
          monitor.socket,
          "--attempts",
          state + "/attempts",
          "--exit-when-alone",
          "10"};
  auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) argv.insert(argv.end(), {option, value});
  };
  add("--config", settings.monitor_config);
  for (const auto& assignment : settings.monitor_sets) add("--set", assignment);
  add("--script", settings.monitor_script);
  add("--control", settings.monitor_control);
  return monitor;
}

void set_up_places(const ClientSettings& settings, const std::string& state) {
  check_grants(settings.grants);
  size_t left_out = 0;
  AttemptPlaces places{folders_to_hide(state, "/etc/passwd", &left_out), settings.grants};
  if (left_out != 0)
    log(Severity::warning) << left_out << " home folders are not hidden from jobs: at most "
                           << SUBLET_MAX_PLACES << " folders can be";
  write_places(system_files(), state, places);
}

void check_walls(const ClientSettings& settings, const WallsTrial& walls) {
  if (have_own_network(settings) && !walls.can_cut_network())
    throw SettingError("network = " + network_name(settings.network) + ": " + walls.network_failed +
                       " cannot be created (" + std::strerror(walls.network_error) +
                       "), so this machine cannot keep jobs off the network");
  if (walls.possible() || settings.weak || geteuid() == 0) return;
  throw SettingError(
      std::string("this kernel does not let an ordinary user keep jobs apart from the rest of the "
                  "machine: ") +
      walls.failed + " cannot be created (" + std::strerror(walls.error) +
      "). Run the client as root, permit user namespaces (docs/guide-owner.md), or set 'weak = "
      "true': jobs can then read and change all that this account can");
}

NetworkRules network_rules(const ClientSettings& settings, const AttemptCgroups& cgroups,
                           const WallsTrial& walls) {
  return {settings.network, !settings.membership, walls.can_cut_network(),
          cgroups.can_watch_traffic()};
}

void check_traffic(const ClientSettings& settings, const AttemptCgroups& cgroups) {
  if (cgroups.can_watch_traffic()) return;
  if (settings.bandwidth > 0)
    throw SettingError("bandwidth: this machine cannot bound the traffic of jobs (" +
                       cgroups.no_traffic() + ")");
  if (settings.network == Network::kServer && !have_own_network(settings))
    throw SettingError("network = server: this machine cannot keep jobs from reaching others (" +
                       cgroups.no_traffic() + ")");
}

JobSettings job_settings(const ClientSettings& settings, const std::string& state,
                         const MachineFacts& facts, const AttemptCgroups& cgroups,
                         const WallsTrial& walls, const NetworkRules& network,
                         std::function<int64_t()> mean_idle_s) {
  JobSettings job;
  job.mean_idle_s = std::move(mean_idle_s);
  job.walls = walls.possible();
  job.network = network;
  job.bandwidth = settings.bandwidth;
  job.disk_reserve = settings.disk_reserve;
  job.slots = facts.slots;
  job.slot_memory = slot_memory(facts, settings.memory_reserve);
  job.monitor_socket = state + "/monitor.sock";
  job.cgroups = cgroups;
  job.save_deadline_ms = settings.save_deadline_ms;
  job.save_deadline_most_ms = settings.save_deadline_most_ms;
  job.cpu_allowance_ms = settings.cpu_allowance_ms;
  job.patience_ms = settings.patience_ms;
  job.leaving = static_cast<sublet_leaving>(settings.leaving);
  job.suspend_ms = settings.suspend_ms;
  job.output_text = settings.output_text;
  job.output_file = settings.output_file;
  job.output_text_most = settings.output_text_most;
  job.output_file_most = settings.output_file_most;
  job.checkpoint_largest = settings.checkpoint_largest;
  return job;
}

std::string shepherd_program(const ClientSettings& settings) {
  return companion("sublet-shepherd", "shepherd_program", settings.shepherd_program);
}

std::vector<std::string> mover_command() {
  // This very program, also if another has been installed since.
  return {"/proc/" + std::to_string(getpid()) + "/exe", kMoverOption};
}

}  // namespace sublet::client
