#include "cli/rehearse/outcome.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/pool/pool.h"
#include "job/output_name.h"

extern char** environ;

namespace sublet::cli {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestFile = uint64_t{4} << 30;
constexpr size_t kShown = 40;  // bytes of a line

struct Place {
  uint64_t byte;  // from 0
  uint64_t line;  // from 1
  size_t line_begin;
};

Place first_difference(const std::string& a, const std::string& b) {
  const auto at = static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(std::min(a.size(), b.size())),
                    b.begin())
          .first -
      a.begin());
  const size_t newline = at == 0 ? std::string::npos : a.rfind('\n', at - 1);
  return {at,
          1 + static_cast<uint64_t>(
                  std::count(a.begin(), a.begin() + static_cast<ptrdiff_t>(at), '\n')),
          newline == std::string::npos ? 0 : newline + 1};
}

std::string line_at(const std::string& text, size_t begin) {
  if (begin >= text.size()) return "nothing";
  std::string line = text.substr(begin, std::min(text.find('\n', begin) - begin, kShown));
  return "\"" + escape_for_terminal(line) + "\"";
}

std::string difference_of(const std::string& name, const std::string& whole,
                          const std::string& other) {
  if (whole == other) return "";
  const Place place = first_difference(whole, other);
  return name + " differs at byte " + std::to_string(place.byte) + ", line " +
         std::to_string(place.line) + ": " + line_at(other, place.line_begin) + " instead of " +
         line_at(whole, place.line_begin) +
         (whole.size() == other.size() ? ""
                                       : "; " + std::to_string(other.size()) +
                                             " bytes instead of " + std::to_string(whole.size()));
}

std::vector<std::string> end_differences(const Outcome& a, const Outcome& b) {
  if (a.end == b.end) return {};
  return {b.end + " instead of " + a.end};
}

void copy_files(const Outcome& outcome, const fs::path& folder) {
  for (const auto& [name, path] : outcome.files) {
    fs::create_directories((folder / name).parent_path());
    fs::copy_file(path, folder / name, fs::copy_options::overwrite_existing);
  }
}

}  // namespace

std::map<std::string, std::string> find_files(const std::string& folder,
                                              const std::vector<std::string>& names) {
  std::map<std::string, std::string> found;
  for (auto at =
           fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied);
       at != fs::recursive_directory_iterator(); ++at) {
    if (!at->is_regular_file() || at->is_symlink()) continue;
    const std::string name = at->path().lexically_relative(folder).string();
    if (std::ranges::any_of(names, [&](const std::string& n) { return covers(n, name); }))
      found[name] = at->path().string();
  }
  return found;
}

std::map<std::string, std::string> find_outputs(const std::string& folder,
                                                const std::vector<OutputFile>& outputs) {
  std::vector<std::string> names;
  for (const OutputFile& output : outputs) names.push_back(output.name);
  return find_files(folder, names);
}

std::vector<std::string> differences(const Outcome& undisturbed, const Outcome& interrupted) {
  std::vector<std::string> found = end_differences(undisturbed, interrupted);
  std::set<std::string> names;
  for (const Outcome* outcome : {&undisturbed, &interrupted})
    for (const auto& [name, path] : outcome->files) names.insert(name);
  for (const std::string& name : names) {
    const auto whole = undisturbed.files.find(name), other = interrupted.files.find(name);
    const std::string shown = escape_for_terminal(name);
    if (other == interrupted.files.end())
      found.push_back(shown + " is missing");
    else if (whole == undisturbed.files.end())
      found.push_back(shown + " is there, but not after an undisturbed run");
    else if (std::string difference =
                 difference_of(shown, system_files().read_file(whole->second, kLargestFile),
                               system_files().read_file(other->second, kLargestFile));
             !difference.empty())
      found.push_back(difference);
  }
  return found;
}

std::vector<std::string> differences_by(const std::string& command, const Outcome& undisturbed,
                                        const Outcome& interrupted, const std::string& folder) {
  std::vector<std::string> found = end_differences(undisturbed, interrupted);
  const std::string whole = folder + "/undisturbed", other = folder + "/interrupted";
  for (const auto& [outcome, to] : {std::pair{&undisturbed, whole}, {&interrupted, other}}) {
    system_files().remove_tree(to);
    system_files().make_folders(to, 0700, Files::Outlives::kProcess);
    copy_files(*outcome, to);
  }
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable)
    environment.push_back(*variable);
  const SpawnedProcess shell = spawn({"/bin/sh", "-c", command + " \"$@\"", "sh", whole, other},
                                     environment, {.fds = {{2, 1}}});
  int status = 0;
  while (waitpid(shell.id.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    found.push_back("the outputs differ, says the command of --compare (" +
                    (WIFEXITED(status) ? "exit status " + std::to_string(WEXITSTATUS(status))
                                       : "signal " + std::to_string(WTERMSIG(status))) +
                    ")");
  return found;
}

}  // namespace sublet::cli
