#include "transport/guard/connection_guard.h"

namespace sublet {

bool ConnectionGuard::call_is_new() {
  if (++served_ <= came_) return true;
  refuse("the ORB could not parse a request");
  ::shutdown(socket_, SHUT_RDWR);
  return false;
}

void ConnectionGuard::refuse(const char* why) {
  ++g_guard->violations;
  g_guard->report((accepted_ ? "connection of " : "connection to a server of ") + identity_ +
                  " closed: " + why);
}

}  // namespace sublet
