// The command line and settings of sublet-client (etc/client.toml documents
// each). Main thread.
#ifndef SUBLET_CLIENT_SETTINGS_H_
#define SUBLET_CLIENT_SETTINGS_H_

#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/options/settings.h"
#include "job/description.h"
#include "job/leaving.h"
#include "job/network.h"
#include "transport/tls/dial.h"

namespace sublet::client {

struct ClientSettings {
  std::string server_socket;
  std::optional<Membership> membership;  // if set, used instead of server_socket
  std::string join_token;                // if not empty: only join this pool and exit
  int64_t server_uid = -1;               // -1: detected
  std::string name;                      // "": the host's name
  int64_t slots = 0;                     // 0: one per core
  rules::NamedAmounts resources;         // that this machine offers besides
  std::string root;                      // of the device files and the load; "": this machine's
  std::string state_folder;
  std::string monitor_script;
  std::string monitor_control;
  std::string monitor_config;
  std::vector<std::string> monitor_sets;
  std::string monitor_program;   // "": in this program's folder
  std::string shepherd_program;  // "": in this program's folder

  int64_t slot_uids = 61184;
  int64_t workers = 4;
  uint64_t outbox_limit = 1000;
  int64_t ahead = 0;  // orders taken ahead of time for each slot
  uint64_t memory_reserve = 0;
  uint64_t disk_reserve = 0;
  uint64_t input_cache = 0;
  int64_t disk_check_ms = 0;
  double upload_cpu = 0;
  int64_t checkpoint_interval_ms = 0;
  int64_t save_deadline_ms = 0;
  int64_t save_deadline_most_ms = 0;
  int64_t cpu_allowance_ms = 0;
  int64_t patience_ms = 0;
  Leaving leaving = Leaving::kSave;  // what jobs do when the owner is back, unless stricter
  int64_t suspend_ms = 0;
  std::vector<std::string> grants;  // places of this machine that jobs see
  Network network = Network::kAny;  // what jobs reach at most
  uint64_t bandwidth = 0;           // bytes per second of each job; 0: not bounded
  bool weak = false;                // without root, take jobs also where they can have no walls
  bool pool_logins = false;  // tell other machines' owners who is logged in here, and ask them
  int64_t drain_ms = 0;
  uint64_t output_text = 0;
  uint64_t output_file = 0;
  uint64_t output_text_most = 0;
  uint64_t output_file_most = 0;
  uint64_t checkpoint_largest = 0;
  LogSettings log;
};

// Returns nullopt to continue with *out, else the exit code. Prints errors.
std::optional<int> read_client_settings(int argc, char** argv, ClientSettings* out);

std::vector<SettingSpec> client_setting_specs();

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_SETTINGS_H_
