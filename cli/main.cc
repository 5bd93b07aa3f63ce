// sublet: the one command for users, owners and administrators.
#include <csignal>
#include <cstdlib>
#include <exception>

#include "base/standard_streams.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/interrupts.h"
#include "cli/views/output.h"

int main(int argc, char** argv) {
  sublet::keep_standard_streams();
  // A closed pipe is handled where a write fails with EPIPE.
  signal(SIGPIPE, SIG_IGN);
  sublet::cli::watch_interrupts();
  try {
    return sublet::cli::run_command_line(argc, argv);
  } catch (const sublet::cli::PoolError& e) {
    sublet::cli::say(sublet::cli::error_line(e));
    return sublet::cli::exit_status(e.kind);
  } catch (const std::exception& e) {
    sublet::cli::say("sublet: " + sublet::escape_for_terminal(e.what()));
    return sublet::cli::exit_status(sublet::cli::ErrorKind::unavailable);
  }
}
