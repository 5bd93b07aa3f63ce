// Uses the whole terminal for a changing display. ~Screen, leave() and the key q restore
// the terminal.
#ifndef SUBLET_CLI_VIEWS_SCREEN_H_
#define SUBLET_CLI_VIEWS_SCREEN_H_

#include <termios.h>

#include <mutex>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "cli/interrupts.h"

namespace sublet::cli {

// One object at a time, and only if Terminal::out_is_screen. show() from one thread.
class Screen {
 public:
  // Switches the terminal. Keys are read only if stdin is a terminal, too: q then ends the
  // process (status 0) at any time. Ctrl-C and similar signals end it as usual; Ctrl-Z and
  // Ctrl-\ have no effect.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Lines that end in \n: at most as many as the terminal has, and one column narrower,
  // because erasing the rest of a full line would erase its last character.
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
  UniqueFd stop_;  // readable: stop reading keys
  std::thread keys_;
  WhenInterrupted restore_;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_SCREEN_H_
