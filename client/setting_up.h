// Prepares the daemon: its state folder, the accounts of its slots, and the
// settings of each of its parts. Main thread.
// Each function throws std::exception, whose text can be shown to users.
#ifndef SUBLET_CLIENT_SETTING_UP_H_
#define SUBLET_CLIENT_SETTING_UP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attempt/cgroup.h"
#include "attempt/walls_trial.h"
#include "client/attempts/order_desk.h"
#include "client/attempts/slot_accounts.h"
#include "client/link/corba_server.h"
#include "client/machine/disk_watch.h"
#include "client/machine/memory_watch.h"
#include "client/machine/monitor_link.h"
#include "client/settings.h"
#include "client/staging/staging.h"

namespace sublet::client {

// Creates the folder and returns its real path. Its mode lets the slots' accounts
// traverse it but not list it; the folders above keep their modes.
std::string make_state_folder(const std::string& path);

// Without root, all slots run under the client's own account.
MachineFacts facts_of(const ClientSettings& settings, const std::string& state);
SlotAccounts reserve_accounts(const ClientSettings& settings, uint32_t slots,
                              const std::string& state);

// SettingError if jobs cannot have walls here and would run under the client's own account, unless
// the owner wants them all the same; or if they are to have no network and that cannot be kept.
void check_walls(const ClientSettings& settings, const WallsTrial& walls);

// `state`: the state folder's real path.
ServerPlace server_place(const ClientSettings& settings, const std::string& state);
// Orders taken ahead of time: at most as many as the server lets a machine have.
uint32_t ahead_of(const ClientSettings& settings, uint32_t slots);
DeskSettings desk_settings(const ClientSettings& settings, const std::string& state,
                           const MachineFacts& facts, const SlotAccounts& accounts,
                           const NetworkRules& network);
DiskSettings disk_settings(const ClientSettings& settings, const std::string& state);
MemorySettings memory_settings(const ClientSettings& settings, const MachineFacts& facts);
MonitorSettings monitor_settings(const ClientSettings& settings, const std::string& state);
// Tells the shepherds what jobs see of this machine.
void set_up_places(const ClientSettings& settings, const std::string& state);
NetworkRules network_rules(const ClientSettings& settings, const AttemptCgroups& cgroups,
                           const WallsTrial& walls);
// Throws SettingError if the traffic of jobs cannot be kept as the settings say.
void check_traffic(const ClientSettings& settings, const AttemptCgroups& cgroups);
JobSettings job_settings(const ClientSettings& settings, const std::string& state,
                         const MachineFacts& facts, const AttemptCgroups& cgroups,
                         const WallsTrial& walls, const NetworkRules& network,
                         std::function<int64_t()> mean_idle_s);
// The path of sublet-shepherd.
std::string shepherd_program(const ClientSettings& settings);
// Of the process that moves large files.
std::vector<std::string> mover_command();

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_SETTING_UP_H_
