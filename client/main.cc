// sublet-client: adds this workstation to a pool. See docs/client.md.
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <iostream>

#include "base/log.h"
#include "base/options/settings_arguments.h"
#include "base/standard_streams.h"
#include "base/start_up_memory.h"
#include "client/daemon.h"
#include "client/link/corba_contents.h"
#include "client/link/joining.h"
#include "client/mover/process.h"
#include "client/settings.h"

namespace {

// Started by the client, with its socket (client/mover/process.h).
int move_files() {
  signal(SIGPIPE, SIG_IGN);
  sublet::client::end_with(STDIN_FILENO);
  return sublet::client::serve_mover(STDIN_FILENO, sublet::client::open_corba_contents);
}

}  // namespace

int main(int argc, char** argv) {
  sublet::share_heaps();
  sublet::keep_standard_streams();
  if (argc == 2 && strcmp(argv[1], sublet::client::kMoverOption) == 0) return move_files();
  try {
    sublet::client::ClientSettings settings;
    if (auto code = sublet::client::read_client_settings(argc, argv, &settings)) return *code;
    signal(SIGPIPE, SIG_IGN);
    if (!settings.join_token.empty())
      return sublet::client::join_pool_with(settings.join_token, settings.state_folder);
    sublet::log_start(settings.log);
    int code = sublet::client::run_client(settings);
    sublet::log_stop();
    return code;
  } catch (const sublet::SettingError& error) {
    sublet::log_stop();
    return sublet::refuse_settings("sublet-client", error);
  } catch (const std::exception& error) {
    sublet::log_stop();
    std::cerr << "sublet-client: " << error.what() << "\n";
    return 1;
  }
}
