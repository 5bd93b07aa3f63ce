// The commands of `sublet`. Each function declares one command and returns the function
// that runs it; run_command_line() runs the chosen one. Main thread.
#ifndef SUBLET_CLI_COMMANDS_COMMANDS_H_
#define SUBLET_CLI_COMMANDS_COMMANDS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/options/arguments.h"
#include "cli/pool/pool.h"
#include "cli/views/output.h"

namespace sublet::cli {

class PoolClient;
struct ServerAddress;

inline constexpr int kExitJobsFailed = 1;
inline constexpr int kExitNotWhole = 1;      // of checkpoint verify
inline constexpr int kExitNoCheckpoint = 1;  // of checkpoint load
inline constexpr int kExitRehearsalFailed = 1;
inline constexpr int kExitTimeout = 124;  // as timeout(1) does

// The options of all commands, and the connection to the server.
class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Declares --server, --json and --timeout, which all commands have.
  void declare(Arguments& top);
  // The connection is made by the first call. Throws PoolError.
  PoolClient& pool();
  // The address that pool() connects to. Throws PoolError.
  std::string server() const;
  // This user's name on that server: the name in the membership's certificate, or for a
  // server on this host the login name. Throws PoolError.
  std::string user() const;
  // --timeout in ms, if given. Throws PoolError (usage).
  std::optional<int64_t> timeout_ms() const;
  // For commands such as `wait`, whose --timeout is not the time limit of a call.
  void timeout_is_mine() { timeout_is_mine_ = true; }

  bool json = false;
  Terminal terminal;

 private:
  std::string server_;
  std::string timeout_;
  bool timeout_is_mine_ = false;
  std::unique_ptr<PoolClient> client_;
};

// --server, else $SUBLET_SERVER, else `server` in ~/.config/sublet/config.toml,
// else /run/sublet/server.sock. Throws PoolError.
ServerAddress server_address(const std::string& option);

struct Command {
  Arguments* arguments = nullptr;
  std::function<int(Context&)> run;  // returns the exit status
};

// Prints it, as one line on stderr or as JSON; returns its exit status.
int report_error(const PoolError& error, bool json);

// JOB… or --batch B, as most commands take them.
struct Selection {
  void declare(Arguments& arguments);
  // Throws PoolError (usage) if neither or both are given.
  JobFilter filter() const;
  // The filter as words of a command line: "--batch 7" or "17-20".
  static std::string words(const JobFilter& filter);

  std::vector<std::string> jobs;
  std::string batch;
};

// An error that names the ids that the server does not have; nullopt if all exist (or the
// filter names no ids).
std::optional<PoolError> missing_jobs(PoolClient& pool, const JobFilter& filter);
// Whether jobs follow the cursor: a full page may have been the last one.
bool any_jobs(PoolClient& pool, const JobFilter& filter, std::string cursor);
// In order of number, page by page.
std::vector<MachineInfo> all_machines(PoolClient& pool);
// Those with these names, in their order, each once; of several with a name, the one that is not
// gone.
// Throws PoolError if there is none.
std::vector<MachineInfo> machines_named(PoolClient& pool, const std::vector<std::string>& names);

Command submit_command(Arguments& top);
Command list_command(Arguments& top);
Command show_command(Arguments& top);
Command why_command(Arguments& top);
Command logs_command(Arguments& top);
Command remove_command(Arguments& top);
Command hold_command(Arguments& top);
Command release_command(Arguments& top);
Command priority_command(Arguments& top);
Command wait_command(Arguments& top);
Command fetch_command(Arguments& top);
Command machines_command(Arguments& top);
Command top_command(Arguments& top);
Command report_command(Arguments& top);
Command metrics_command(Arguments& top);
Command about_command(Arguments& top);
Command join_command(Arguments& top);
Command rehearse_command(Arguments& top);
Command completion_command(Arguments& top);
// The subcommands of `admin`.
Command invite_command(Arguments& admin);
Command revoke_command(Arguments& admin);
Command members_command(Arguments& admin);
Command drain_command(Arguments& admin);
Command resume_command(Arguments& admin);
Command evict_command(Arguments& admin);
Command policy_command(Arguments& admin);
Command shares_command(Arguments& admin);
Command quota_command(Arguments& admin);
// The subcommands of `owner`.
Command owner_pause_command(Arguments& owner);
Command owner_resume_command(Arguments& owner);
Command owner_status_command(Arguments& owner);
Command owner_reclaim_command(Arguments& owner);
Command owner_lend_command(Arguments& owner);
Command owner_until_command(Arguments& owner);
Command owner_rules_command(Arguments& owner);
Command owner_history_command(Arguments& owner);

// The subcommands of `checkpoint`.
Command checkpoint_show_command(Arguments& checkpoint);
Command checkpoint_verify_command(Arguments& checkpoint);
Command checkpoint_diff_command(Arguments& checkpoint);
Command checkpoint_save_command(Arguments& checkpoint);
Command checkpoint_load_command(Arguments& checkpoint);

// The text of the manual page besides the options (manual.cc).
Manual command_manual();

// The whole program; also prints errors. Returns the exit status.
int run_command_line(int argc, const char* const* argv);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_COMMANDS_COMMANDS_H_
