#include "server/commit/crash_point.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>

namespace sublet::server {
namespace {
std::string g_place;
std::atomic<int> g_left{0};
}  // namespace

void set_crash_point(const std::string& where) {
  if (where.empty()) return;
  const size_t colon = where.find(':');
  if (colon == std::string::npos) throw std::invalid_argument("debug.crash_at must be PLACE:N");
  g_left = std::stoi(where.substr(colon + 1));
  g_place = where.substr(0, colon);
}

void crash_point(const char* place) {
  if (g_place.empty() || g_place != place) return;
  if (--g_left == 0) kill(getpid(), SIGKILL);
}

}  // namespace sublet::server
