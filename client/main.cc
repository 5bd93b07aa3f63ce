// sublet-client: adds this workstation to a pool. See docs/client.md.
#include <csignal>
#include <iostream>

#include "base/log.h"
#include "base/options/settings_arguments.h"
#include "base/standard_streams.h"
#include "base/start_up_memory.h"
#include "client/daemon.h"
#include "client/link/joining.h"
#include "client/settings.h"

int main(int argc, char** argv) {
  sublet::share_heaps();
  sublet::keep_standard_streams();
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
