// The commands of `sublet`. Each function declares one on the command line and
// returns what runs it; main.cc picks the one that was chosen. Main thread.
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

inline constexpr int kExitJobsFailed = 1;
inline constexpr int kExitTimeout = 124;  // as timeout(1) does

// What every command may be told, and the way to the server.
class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // --server, --json, --timeout: everywhere.
  void declare(Arguments& top);
  // Connects at the first call that is made, not here. PoolError.
  PoolClient& pool();
  // The address that pool() connects to. PoolError.
  std::string server() const;
  // As that server calls this user: the name in the membership's certificate, on
  // this host the login name. PoolError.
  std::string user() const;
  // --timeout in ms, if given. PoolError (usage).
  std::optional<int64_t> timeout_ms() const;
  // What --timeout means to `wait` is not how long a call may take.
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
// else /run/sublet/server.sock. PoolError.
std::string server_address(const std::string& option);

struct Command {
  Arguments* arguments = nullptr;
  std::function<int(Context&)> run;  // the exit status; or throws
};

// JOB… or --batch B, as most commands take them.
struct Selection {
  void declare(Arguments& arguments);
  // PoolError (usage) when neither or both are given.
  JobFilter filter() const;
  // As one would write it again: "--batch 7" or "17-20".
  static std::string words(const JobFilter& filter);

  std::vector<std::string> jobs;
  std::string batch;
};

// Those of the ids that the server does not have, as an error; nothing when all
// exist (or the filter names no ids).
std::optional<PoolError> missing_jobs(PoolClient& pool, const JobFilter& filter);
// In order of number, page by page.
std::vector<MachineInfo> all_machines(PoolClient& pool);

Command submit_command(Arguments& top);
Command list_command(Arguments& top);
Command show_command(Arguments& top);
Command why_command(Arguments& top);
Command logs_command(Arguments& top);
Command remove_command(Arguments& top);
Command hold_command(Arguments& top);
Command release_command(Arguments& top);
Command wait_command(Arguments& top);
Command fetch_command(Arguments& top);
Command return_command(Arguments& top);
Command machines_command(Arguments& top);
Command top_command(Arguments& top);
Command report_command(Arguments& top);
Command about_command(Arguments& top);
Command join_command(Arguments& top);
Command completion_command(Arguments& top);
// Under `admin`.
Command invite_command(Arguments& admin);
Command revoke_command(Arguments& admin);
Command members_command(Arguments& admin);

// What the manual page says besides the command line (manual.cc).
Manual command_manual();

// The whole program: `arguments` without its name. Prints errors too.
int run_command_line(int argc, const char* const* argv);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_COMMANDS_COMMANDS_H_
