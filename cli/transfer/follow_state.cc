#include "cli/transfer/follow_state.h"

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "base/hash.h"
#include "cli/pool/pool.h"

namespace sublet::cli {

namespace {

constexpr const char* kTitle = "sublet-fetch 1";
constexpr uint64_t kMostBytes = 1 << 20;

std::string path_in(const std::string& folder) { return folder + "/state"; }

// nullopt: not a state file, or incomplete.
std::optional<FollowState> parse(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  if (!std::getline(in, line) || line != kTitle) return {};
  FollowState state;
  std::string key;
  while (in >> key) {
    if (key == "end") return state;
    uint64_t value = 0;
    if (!(in >> value)) return {};
    if (key == "since") state.since = value;
    if (key == "at") state.at_us = static_cast<int64_t>(value);
    if (key == "pending") state.pending[value] = false;
    if (key == "pending_by_job") state.pending[value] = true;
  }
  return {};
}

}  // namespace

std::string follow_folder(const std::string& server) {
  const char* state = getenv("XDG_STATE_HOME");
  const char* home = getenv("HOME");
  std::string base;
  if (state != nullptr && *state == '/')
    base = state;
  else if (home != nullptr && *home == '/')
    base = std::string(home) + "/.local/state";
  else
    throw PoolError(ErrorKind::invalid, "fetch.home", "neither $HOME nor $XDG_STATE_HOME is set",
                    "set one: `fetch --follow` records there what has been fetched");
  return base + "/sublet/fetch-" + hex(digest_of(server)).substr(0, 16);
}

FollowState read_follow_state(Files& files, const std::string& folder, std::string* damage) {
  const std::string path = path_in(folder);
  if (!files.exists(path)) return {};
  try {
    if (auto state = parse(files.read_file(path, kMostBytes))) return *state;
  } catch (const FileError& e) {
    if (e.code() != EFBIG) throw;
  }
  files.move(path, path + ".damaged");
  *damage = path + " is damaged; it was set aside as " + path + ".damaged";
  return {};
}

void write_follow_state(Files& files, const std::string& folder, const FollowState& state) {
  std::ostringstream out;
  out << kTitle << "\nsince " << state.since << "\nat " << state.at_us << "\n";
  for (const auto& [id, by_job] : state.pending)
    out << (by_job ? "pending_by_job " : "pending ") << id << "\n";
  out << "end\n";
  files.write_atomic(path_in(folder), out.str());
}

}  // namespace sublet::cli
