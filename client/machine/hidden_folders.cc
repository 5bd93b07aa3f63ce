#include "client/machine/hidden_folders.h"

#include <pwd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "attempt/format.h"
#include "base/options/settings.h"

namespace sublet::client {
namespace {

namespace fs = std::filesystem;

// Debian's range for people (policy, 9.2.2).
constexpr uid_t kFirstPerson = 1000, kLastPerson = 59999;

std::vector<std::string> homes_of_people(const std::string& passwd) {
  std::vector<std::string> homes;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(passwd.c_str(), "re"), fclose);
  while (file) {
    const struct passwd* one = fgetpwent(file.get());
    if (one == nullptr) break;
    if (one->pw_uid >= kFirstPerson && one->pw_uid <= kLastPerson) homes.push_back(one->pw_dir);
  }
  return homes;
}

// "": there is no such folder.
std::string real_folder(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return !error && fs::is_directory(real, error) ? real.string() : std::string();
}

bool lies_in(const std::string& path, const std::string& folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

// Sorted, and without what lies in another of them.
std::vector<std::string> without_inner(std::vector<std::string> folders) {
  std::ranges::sort(folders);
  std::vector<std::string> outer;
  for (std::string& folder : folders)
    if (std::ranges::none_of(outer, [&](const auto& other) { return lies_in(folder, other); }))
      outer.push_back(std::move(folder));
  return outer;
}

// Some accounts of people have a home that everybody uses, or needs.
bool everybody_needs(const std::string& path) {
  constexpr const char* kPlaces[] = {"/bin", "/dev/shm", "/etc",      "/lib",     "/lib64",
                                     "/opt", "/proc",    "/run/lock", "/sbin",    "/srv",
                                     "/sys", "/tmp",     "/usr",      "/var/lib", "/var/tmp"};
  return path.empty() || path == "/" || lies_in(path, "/usr") ||
         std::ranges::any_of(kPlaces, [&](const char* place) { return lies_in(place, path); });
}

}  // namespace

std::vector<std::string> folders_to_hide(const std::string& state_folder, const std::string& passwd,
                                         size_t* left_out) {
  // These also if they do not exist yet, and before all others if there are too many.
  std::vector<std::string> hidden = {
      "/home", "/root", "/run/dbus", "/run/user", "/var/lib/sublet-server", state_folder};
  for (std::string& path : hidden)
    if (const std::string real = real_folder(path); !real.empty()) path = real;
  std::vector<std::string> homes;
  for (const std::string& home : homes_of_people(passwd))
    if (const std::string real = real_folder(home); !everybody_needs(real)) homes.push_back(real);
  std::ranges::sort(homes);  // a folder comes before what lies in it
  *left_out = 0;
  for (const std::string& home : homes) {
    const auto holds = [&](const std::string& other) { return lies_in(home, other); };
    if (std::ranges::any_of(hidden, holds)) continue;
    if (hidden.size() < SUBLET_MAX_PLACES)
      hidden.push_back(home);
    else
      ++*left_out;
  }
  return without_inner(std::move(hidden));
}

void check_grants(const std::vector<std::string>& grants) {
  if (grants.size() > SUBLET_MAX_PLACES)
    throw SettingError("grants has " + std::to_string(grants.size()) + " places, at most " +
                       std::to_string(SUBLET_MAX_PLACES) +
                       " are possible: name the folders that contain them");
  for (const std::string& path : grants) {
    std::error_code error;
    const std::string real = fs::canonical(path, error).string();
    if (error) {
      const bool at_home = lies_in(path, "/home") || lies_in(path, "/root");
      throw SettingError("grants: " + path + ": " + error.message() +
                         ". Make it, or take it out of the list." +
                         (at_home ? " If it exists: ProtectHome=yes in the service's unit hides "
                                    "home folders from the client, too."
                                  : ""));
    }
    if (real != path)
      throw SettingError("grants: " + path + " leads through a symbolic link: use " + real +
                         " instead");
  }
}

}  // namespace sublet::client
