#include "client/attempts/slot_accounts.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <stdexcept>

#include "attempt/folder.h"
#include "base/files.h"

namespace sublet::client {
namespace {

constexpr int64_t kMostTried = 4096;
constexpr int64_t kLargestUid = 0xfffffffd;

void check_account(int64_t uid) {
  if (uid < 1 || uid > kLargestUid)
    throw std::runtime_error("slot_uids: no user id " + std::to_string(uid) + " can be used");
  if (const passwd* entry = getpwuid(static_cast<uid_t>(uid)))
    throw std::runtime_error("slot_uids: user id " + std::to_string(uid) + " is " + entry->pw_name +
                             "'s: choose a free range");
}

std::string read_small(int fd) {
  char text[4096];
  ssize_t n = pread(fd, text, sizeof text, 0);
  return n > 0 ? std::string(text, static_cast<size_t>(n)) : "";
}

// Whether attempts are left, whose processes may outlive their client.
bool still_used(const std::string& state_folder) {
  if (state_folder.empty()) return false;
  try {
    return !list_attempts(system_files(), state_folder).empty();
  } catch (const FileError&) {
    return true;
  }
}

}  // namespace

std::string SlotAccounts::in_the_way(const std::string& folder) {
  std::filesystem::path at;
  for (const auto& part : std::filesystem::weakly_canonical(folder).parent_path()) {
    at /= part;
    struct stat info;
    if (stat(at.c_str(), &info) == 0 && (info.st_mode & S_IXOTH) == 0) return at.string();
  }
  return "";
}

SlotAccounts SlotAccounts::own(uint32_t slots) {
  SlotAccounts accounts;
  accounts.uids_.assign(slots, -1);
  return accounts;
}

bool SlotAccounts::take(const std::string& folder, int64_t uid, const std::string& state_folder,
                        bool only_old) {
  std::string path = folder + "/" + std::to_string(uid);
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) throw OsError(errno, "reserve the user id at", path);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return false;
  std::string user = read_small(fd.get());
  if (only_old ? user != state_folder : user != state_folder && still_used(user)) return false;
  bool written = ftruncate(fd.get(), 0) == 0 &&
                 pwrite(fd.get(), state_folder.data(), state_folder.size(), 0) ==
                     static_cast<ssize_t>(state_folder.size());
  if (!written) throw OsError(errno, "reserve the user id at", path);
  uids_.push_back(uid);
  locks_.push_back(std::move(fd));
  return true;
}

SlotAccounts SlotAccounts::reserve(const std::string& folder, int64_t first, uint32_t slots,
                                   const std::string& state_folder) {
  system_files().make_folders(folder, 0700);
  SlotAccounts accounts;
  std::vector<int64_t> known;
  for (const auto& entry : system_files().list(folder)) {
    int64_t uid = std::atoll(entry.name.c_str());
    if (uid >= first && uid < first + kMostTried) known.push_back(uid);
  }
  for (int64_t uid : known) {
    if (accounts.uids_.size() == slots) break;
    accounts.take(folder, uid, state_folder, true);
  }
  for (int64_t uid = first; uid < first + kMostTried && accounts.uids_.size() < slots; ++uid) {
    if (std::ranges::find(accounts.uids_, uid) != accounts.uids_.end()) continue;
    check_account(uid);
    accounts.take(folder, uid, state_folder, false);
  }
  if (accounts.uids_.size() < slots)
    throw std::runtime_error("slot_uids: other clients of this machine use all user ids from " +
                             std::to_string(first) + " on");
  std::ranges::sort(accounts.uids_);
  return accounts;
}

}  // namespace sublet::client
