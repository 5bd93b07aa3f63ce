// sublet-client: adds this workstation to a pool. See docs/client.md.
#include <csignal>
#include <iostream>

#include "base/log.h"
#include "base/standard_streams.h"
#include "client/client_settings.h"
#include "client/daemon.h"

int main(int argc, char** argv) {
  sublet::keep_standard_streams();
  sublet::client::ClientSettings settings;
  if (auto code = sublet::client::read_client_settings(argc, argv, &settings)) return *code;
  signal(SIGPIPE, SIG_IGN);
  try {
    sublet::log_start(settings.log);
    int code = sublet::client::run_client(settings);
    sublet::log_stop();
    return code;
  } catch (const std::exception& error) {
    sublet::log_stop();
    std::cerr << "sublet-client: " << error.what() << "\n";
    return 1;
  }
}
