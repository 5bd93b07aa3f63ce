// The whole terminal for a picture that changes. Nothing of it stays: ~Screen,
// leave() and the key q give the terminal back as it was.
#ifndef SUBLET_CLI_VIEWS_SCREEN_H_
#define SUBLET_CLI_VIEWS_SCREEN_H_

#include <termios.h>

#include <mutex>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "cli/interrupts.h"

namespace sublet::cli {

// One at a time, where Terminal::out_is_screen holds. show() from one thread.
class Screen {
 public:
  // Takes the terminal. Its keys are read only where stdin is a terminal, too: q
  // then ends the process (status 0), whatever else is going on. Ctrl-C and its
  // kin end it as ever; Ctrl-Z and Ctrl-\ do nothing meanwhile.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Lines that end in \n: at most as many as the terminal has, and a column less
  // wide, since what erases the rest of a full line erases its end, too.
  void show(const std::string& frame);
  // Any thread. Later calls of show() do nothing.
  void leave();

 private:
  void take_keys();
  void read_keys();

  std::mutex mutex_;
  bool left_ = false;  // guarded by mutex_
  bool has_keys_ = false;
  termios before_{};
  UniqueFd stop_;  // readable: no more keys are wanted
  std::thread keys_;
  WhenInterrupted restore_;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_SCREEN_H_
