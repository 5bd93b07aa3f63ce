#include "loadmon/senses/systemd_bus.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

namespace sublet::loadmon::systemd {
namespace {
constexpr const char* kLibrary = "libsystemd.so.0";
constexpr const char* kSocket = "/run/dbus/system_bus_socket";

// dlerror() names the library, and the function if one is missing.
std::string last_error() {
  const char* text = dlerror();
  return text == nullptr ? std::string(kLibrary) + " cannot be loaded" : text;
}
}  // namespace

#define SUBLET_DEFINE(name) decltype(&::sd_##name) name = nullptr;
SUBLET_SYSTEMD_FUNCTIONS(SUBLET_DEFINE)
#undef SUBLET_DEFINE

bool has_bus() {
  return getenv("DBUS_SYSTEM_BUS_ADDRESS") != nullptr || access(kSocket, F_OK) == 0;
}

std::string load() {
  // Never closed, and bound at once: nothing is looked up when the owner returns.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return last_error();
#define SUBLET_LOAD(name)                                               \
  name = reinterpret_cast<decltype(name)>(dlsym(library, "sd_" #name)); \
  if (name == nullptr) return last_error();
  SUBLET_SYSTEMD_FUNCTIONS(SUBLET_LOAD)
#undef SUBLET_LOAD
  return "";
}

}  // namespace sublet::loadmon::systemd
