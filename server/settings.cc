#include "server/settings.h"

#include <unistd.h>

#include <cstdlib>

#include "base/options/default_places.h"
#include "scheduling/accounts.h"
#include "server/policy_settings.h"

namespace sublet::server {
namespace {

constexpr double kTiB = 1024.0 * 1024 * 1024 * 1024;
constexpr double kPiB = 1024 * kTiB;
const std::string kNoAccounts = "none";

// Root's state folder is system-wide; for other users it is in their home.
std::string default_state() {
  if (geteuid() == 0) return "/var/lib/sublet-server";
  if (const char* state = getenv("XDG_STATE_HOME")) return std::string(state) + "/sublet-server";
  const char* home = getenv("HOME");
  return std::string(home ? home : "/tmp") + "/.local/state/sublet-server";
}

std::string default_socket() {
  if (geteuid() == 0) return kMachinesServer;
  if (const char* run = getenv("XDG_RUNTIME_DIR")) return std::string(run) + "/sublet/server.sock";
  return default_state() + "/server.sock";
}

}  // namespace

std::vector<SettingSpec> server_setting_specs() {
  using T = SettingType;
  std::vector<SettingSpec> specs;
  auto add = [&specs](const char* key, T type, const std::string& value, double min, double max,
                      const char* doc) {
    SettingSpec spec;
    spec.key = key;
    spec.type = type;
    spec.default_value = value;
    if (min != max) {
      spec.min = min;
      spec.max = max;
    }
    spec.doc = doc;
    specs.push_back(spec);
  };
  add("pool.name", T::text, "sublet", 0, 0, "the pool's name, for display");
  add("pool.administrators", T::texts, "", 0, 0,
      "user names, in addition to root and the server's own user");
  add("server.state", T::text, default_state(), 0, 0, "folder for the database and the spool");
  add("server.socket", T::text, default_socket(), 0, 0,
      "Unix socket; the folder around it decides who may connect");
  add("server.listen", T::text, "", 0, 0,
      "HOST:PORT to listen on for remote members, by TLS; 0.0.0.0: all interfaces; empty: no "
      "network");
  add("server.address", T::text, "", 0, 0,
      "HOST:PORT written into join tokens; empty: server.listen, or the host's name");
  add("server.loopback", T::boolean, "false", 0, 0,
      "plain TCP on 127.0.0.1 for IIOP programs on this host, identified by their uid");
  add("server.loopback_port", T::integer, "9741", 1, 65535, "the port of server.loopback");
  add("server.handshake", T::duration, "5 s", 100, 600'000,
      "time within which a network connection must present a certificate");
  add("server.max_strangers", T::integer, "256", 4, 100'000,
      "connections that have not presented a certificate; beyond this many the oldest is closed");
  add("server.max_strangers_per_host", T::integer, "32", 1, 100'000,
      "connections from one address that have not presented a certificate");
  add("server.memory_limit", T::size, "4 GiB", 64 << 20, kPiB,
      "address space of the server; it is restarted when it needs more");
  add("server.reserve", T::size, "16 MiB", 1 << 20, kTiB,
      "disk space reserved so that running jobs can end when the disk is full");
  add("server.queue_limit", T::integer, "100000", 100, 10'000'000,
      "work items that may wait for the committer");
  add("server.group_limit", T::integer, "1024", 1, 100'000, "work items in one transaction");
  add("server.dispatcher_threads", T::integer, "8", 1, 256,
      "concurrent calls to workstations; at most half of them read job output");
  add("server.questions", T::integer, "4", 1, 64,
      "lists, counts and reports that are answered at a time, one of each user");
  add("server.questions_waiting", T::integer, "64", 1, 100'000,
      "questions of one user that may wait for their turn");
  add("server.question_time", T::duration, "10 s", 100, 600'000,
      "longest time that an answer may take");
  add("server.call_timeout", T::duration, "5 s", 100, 600'000,
      "longest time a call to a workstation may take");
  add("server.watchdog", T::duration, "15 s", 1000, 3'600'000,
      "a server that does not answer for this long is restarted");
  add("server.max_connections", T::integer, "12000", 128, 1'000'000,
      "connections in all; each takes a file descriptor, over TLS three");
  add("server.max_connections_per_user", T::integer, "64", 4, 1'000'000,
      "connections of one user, except root and the server's own user");
  add("membership.authority_valid", T::duration, "3650 d", 3'600'000, 1e12,
      "validity of the authority that 'sublet-server init' creates");
  add("membership.certificate_valid", T::duration, "365 d", 1000, 1e12,
      "validity of a member's certificate; clients renew the certificates of machines");
  add("spool.largest_file", T::size, "50 GiB", 1024, kPiB, "largest file that may be stored");
  add("spool.quota", T::size, "50 GiB", 0, kPiB,
      "for each user: inputs, outputs and open batches together, and the same again for "
      "checkpoints");
  add("spool.keep_outputs", T::duration, "30 d", 0, 1e13,
      "how long to keep outputs after their job's end; 0: for ever");
  add("history.keep_events", T::duration, "400 d", 0, 1e13,
      "how long to keep every event of the pool, for replay, in files in STATE/history; 0: for "
      "ever");
  add("history.events_size", T::size, "10 GiB", 1 << 20, kPiB,
      "bound of all these files together; the oldest are removed first");
  add("history.keep_changes", T::duration, "30 d", 0, 1e13,
      "how long to keep jobs' state changes, for waiting commands; 0: for ever");
  add("history.keep_uses", T::duration, "365 d", 0, 1e13,
      "how long to keep usage for reports; older days are moved to files in STATE/history; 0: for "
      "ever");
  add("history.keep_jobs", T::duration, "30 d", 0, 1e13,
      "how long to keep finished jobs in the database; older ones are moved to files in "
      "STATE/history, where commands still find them; 0: for ever");
  for (SettingSpec& spec : policy_setting_specs()) specs.push_back(std::move(spec));
  add("scheduling.tick", T::duration, "60 s", 100, 86'400'000,
      "t1: period of the Alarm Sender, at which usage decays");
  add("scheduling.default_shares", T::real, "1", 1e-6, 1e6,
      "shares of a user or account not named in [shares]");
  add("scheduling.accounts", T::text, kNoAccounts, 0, 0,
      "accounts, whose users are scheduled as one user, named \"@\" and the account's name: "
      "lab-f=jones smith, lab-g=ann; none: no accounts");
  add("scheduling.lease", T::duration, "30 s", 3'000, 3'600'000,
      "D: a client that cannot reach the server for this long freezes its jobs");
  add("scheduling.leaving_wait", T::duration, "60 s", 100, 86'400'000,
      "how long to wait for an announced checkpoint before using the older generation, and for a "
      "delivery that makes no progress");
  add("scheduling.refusal_pause", T::duration, "1 s", 0, 3'600'000,
      "a machine that refused an order gets none for this long");
  add("scheduling.rest_least", T::duration, "5 min", 0, 86'400'000,
      "a machine that fails three times in a row gets no orders for this long, and for twice as "
      "long at each further failure; 0: it does not rest");
  add("scheduling.rest_most", T::duration, "1 h", 0, 86'400'000,
      "the longest that a machine rests after failures");
  add("scheduling.short_run", T::duration, "50 ms", 0, 60'000,
      "while a machine's jobs end within this time, it is sent more of them than it has slots, and "
      "starts each as another ends, without asking; 0: never");
  add("scheduling.ahead_wait", T::duration, "100 ms", 10, 60'000,
      "a job that has waited there for this long without another ending goes back to the queue");
  add("scheduling.ahead_return", T::duration, "60 s", 100, 86'400'000,
      "a job that was called back from there, and after this long is neither started nor given "
      "back, runs elsewhere once its lease is over");
  add("shares", T::reals, "", 1e-6, 1e6,
      "shares of single users, and of accounts: ann = 3, \"@lab-f\" = 2");
  add("quotas", T::sizes, "", 0, kPiB, "spool.quota of single users: ann = \"200 GiB\"");
  add("log.file", T::text, "", 0, 0, "log file; empty: standard error");
  add("log.level", T::text, "info", 0, 0,
      "lowest severity that is logged: debug, info, warning or error");
  specs.back().choices = {"debug", "info", "warning", "error"};
  add("debug.crash_at", T::text, "", 0, 0,
      "for tests: the first server process ends at this step, PLACE:N");
  return specs;
}

namespace {

// "lab-f=jones smith, lab-g=ann"
scheduling::Accounts read_accounts(const Settings& s) {
  const std::string key = "scheduling.accounts", text = s.text(key);
  scheduling::Accounts accounts;
  try {
    if (text != kNoAccounts) accounts = scheduling::Accounts::parse(text);
  } catch (const scheduling::AccountError& e) {
    throw s.wrong({key}, "\"" + key + "\": " + e.what());
  }
  for (const auto& [name, shares] : s.reals("shares"))
    if (const std::string why = accounts.why_uncounted(name); !why.empty())
      throw s.wrong({"shares", key}, "[shares]: " + why);
  return accounts;
}

scheduling::Parameters read_parameters(const Settings& s) {
  scheduling::Parameters p{read_policies(s)};
  p.tick = s.duration_ms("scheduling.tick") * 1000;
  p.default_shares = s.real("scheduling.default_shares");
  p.accounts = read_accounts(s).text();
  p.lease = s.duration_ms("scheduling.lease") * 1000;
  p.leaving_wait = s.duration_ms("scheduling.leaving_wait") * 1000;
  p.refusal_pause = s.duration_ms("scheduling.refusal_pause") * 1000;
  p.rest_least = s.duration_ms("scheduling.rest_least") * 1000;
  p.rest_most = s.duration_ms("scheduling.rest_most") * 1000;
  p.short_run = s.duration_ms("scheduling.short_run") * 1000;
  p.ahead_wait = s.duration_ms("scheduling.ahead_wait") * 1000;
  p.ahead_return = s.duration_ms("scheduling.ahead_return") * 1000;
  if (p.rest_most < p.rest_least)
    throw s.wrong({"scheduling.rest_least", "scheduling.rest_most"},
                  "scheduling.rest_most must not be less than scheduling.rest_least");
  return p;
}

std::optional<HostPort> read_address(const Settings& s, const std::string& key) {
  const std::string text = s.text(key);
  if (text.empty()) return std::nullopt;
  const auto address = host_port_from(text);
  if (!address)
    throw s.wrong({key},
                  key + ": '" + text + "' is not a HOST:PORT such as 0.0.0.0:9740 or [::]:9740");
  return address;
}

}  // namespace

ServerSettings read_server_settings(const Settings& s) {
  ServerSettings out;
  out.pool_name = s.text("pool.name");
  out.administrators = s.texts("pool.administrators");
  out.state_folder = s.text("server.state");
  out.socket = s.text("server.socket");
  out.listen = read_address(s, "server.listen");
  out.address = read_address(s, "server.address");
  if (s.boolean("server.loopback"))
    out.loopback_port = static_cast<uint16_t>(s.integer("server.loopback_port"));
  out.handshake_ms = static_cast<int>(s.duration_ms("server.handshake"));
  out.max_strangers = static_cast<size_t>(s.integer("server.max_strangers"));
  out.max_strangers_of_host = static_cast<size_t>(s.integer("server.max_strangers_per_host"));
  out.authority_valid_us = s.duration_ms("membership.authority_valid") * 1000;
  out.certificate_valid_us = s.duration_ms("membership.certificate_valid") * 1000;
  out.memory_limit = s.size_bytes("server.memory_limit");
  out.reserve = s.size_bytes("server.reserve");
  out.largest_file = s.size_bytes("spool.largest_file");
  out.quota = s.size_bytes("spool.quota");
  out.quotas = s.sizes("quotas");
  out.keep_outputs = s.duration_ms("spool.keep_outputs") * 1000;
  out.queue_limit = s.integer("server.queue_limit");
  out.group_limit = s.integer("server.group_limit");
  out.dispatcher_threads = s.integer("server.dispatcher_threads");
  out.questions = s.integer("server.questions");
  out.questions_waiting = s.integer("server.questions_waiting");
  out.question_time_us = s.duration_ms("server.question_time") * 1000;
  out.call_timeout_ms = static_cast<int>(s.duration_ms("server.call_timeout"));
  out.watchdog_ms = s.duration_ms("server.watchdog");
  out.max_connections = s.integer("server.max_connections");
  out.max_connections_per_uid = s.integer("server.max_connections_per_user");
  out.policies = read_parameters(s);
  out.shares = s.reals("shares");
  out.keep_events = s.duration_ms("history.keep_events") * 1000;
  out.events_size = s.size_bytes("history.events_size");
  out.keep_changes = s.duration_ms("history.keep_changes") * 1000;
  out.keep_uses = s.duration_ms("history.keep_uses") * 1000;
  out.keep_jobs = s.duration_ms("history.keep_jobs") * 1000;
  out.crash_at = s.text("debug.crash_at");
  const size_t colon = out.crash_at.find(':');
  const bool counts = colon != std::string::npos && colon + 1 < out.crash_at.size() &&
                      out.crash_at.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  if (!out.crash_at.empty() && !counts)
    throw s.wrong({"debug.crash_at"}, "debug.crash_at: '" + out.crash_at + "' is not PLACE:N");
  out.log.component = "server";
  out.log.file = s.text("log.file");
  out.log.level = *severity_from(s.text("log.level"));
  return out;
}

}  // namespace sublet::server
