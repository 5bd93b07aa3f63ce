#include "cli/views/screen.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/os_error.h"
#include "cli/views/output.h"

namespace sublet::cli {

namespace {

// Switches to the alternate screen without a cursor, and back.
constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";

// Overwrites the screen line by line, so that nothing flickers. The last line gets no
// newline, which would scroll the screen.
std::string drawn(const std::string& frame) {
  std::string out = "\x1b[H";
  for (size_t at = 0; at < frame.size();) {
    const size_t end = std::min(frame.find('\n', at), frame.size());
    out += frame.substr(at, end - at) + "\x1b[K";
    at = end + 1;
    if (at < frame.size()) out += "\r\n";
  }
  return out + "\x1b[J";
}

}  // namespace

Screen::Screen() : stop_(eventfd(0, EFD_CLOEXEC)), restore_([this] { leave(); }) {
  if (!stop_.valid()) throw OsError(errno, "make", "an event descriptor");
  std::lock_guard lock(mutex_);
  print(kEnter);
  has_keys_ = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &before_) == 0;
  if (has_keys_) take_keys();
}

Screen::~Screen() {
  leave();
  eventfd_write(stop_.get(), 1);
  if (keys_.joinable()) keys_.join();
}

void Screen::take_keys() {
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  // Ctrl-Z or Ctrl-\ would leave the terminal in this state.
  raw.c_cc[VSUSP] = raw.c_cc[VQUIT] = _POSIX_VDISABLE;
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  keys_ = std::thread([this] { read_keys(); });
}

void Screen::read_keys() {
  pollfd waiting[] = {{STDIN_FILENO, POLLIN, 0}, {stop_.get(), POLLIN, 0}};
  while (true) {
    if (poll(waiting, 2, -1) < 0 && errno != EINTR) return;
    if (waiting[1].revents != 0) return;
    if (waiting[0].revents == 0) continue;
    char key = 0;
    if (read(STDIN_FILENO, &key, 1) != 1) return;
    if (key != 'q' && key != 'Q') continue;
    leave();
    _exit(0);
  }
}

void Screen::show(const std::string& frame) {
  std::lock_guard lock(mutex_);
  if (!left_) print(drawn(frame));
}

void Screen::leave() {
  std::lock_guard lock(mutex_);
  if (left_) return;
  left_ = true;
  if (has_keys_) {
    tcflush(STDIN_FILENO, TCIFLUSH);  // the shell must not read the keys typed here
    tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  [[maybe_unused]] const ssize_t n = ::write(STDOUT_FILENO, kLeave, strlen(kLeave));
}

}  // namespace sublet::cli
