// All settings of the server: etc/server.toml, --set KEY=VALUE.
#ifndef SUBLET_SERVER_SETTINGS_H_
#define SUBLET_SERVER_SETTINGS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/options/settings.h"
#include "scheduling/pool.h"
#include "transport/membership.h"

namespace sublet::server {

struct ServerSettings {
  std::string pool_name;
  std::string state_folder;
  std::string socket;
  std::optional<HostPort> listen;         // unset: no network
  std::optional<HostPort> address;        // for tokens; unset: derived from `listen`
  std::optional<uint16_t> loopback_port;  // unset: no such port
  int handshake_ms = 0;
  size_t max_strangers = 0;
  size_t max_strangers_of_host = 0;
  int64_t authority_valid_us = 0;
  int64_t certificate_valid_us = 0;
  std::vector<std::string> administrators;
  scheduling::Parameters policies;
  std::map<std::string, double> shares;
  uint64_t memory_limit = 0;
  uint64_t reserve = 0;
  uint64_t largest_file = 0;
  uint64_t quota = 0;
  std::map<std::string, double> quotas;
  int64_t keep_outputs = 0;  // microseconds; 0: for ever
  size_t queue_limit = 0;
  size_t group_limit = 0;
  size_t dispatcher_threads = 0;
  size_t questions = 0;
  size_t questions_waiting = 0;
  int64_t question_time_us = 0;
  size_t max_connections = 0;
  size_t max_connections_per_uid = 0;
  int call_timeout_ms = 0;
  int64_t watchdog_ms = 0;
  int64_t keep_events = 0;  // microseconds; 0: for ever
  uint64_t events_size = 0;
  int64_t keep_changes = 0;  // as keep_events
  int64_t keep_uses = 0;     // the same
  int64_t keep_jobs = 0;     // the same
  std::string crash_at;
  LogSettings log;
};

// All settings, each with its default, range and one line of documentation.
std::vector<SettingSpec> server_setting_specs();
// Throws SettingError if values contradict each other.
ServerSettings read_server_settings(const Settings& settings);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SETTINGS_H_
