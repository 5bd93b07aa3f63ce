#include "cli/rehearse/program.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/text.h"
#include "checkpoint-api/sublet_status.h"

namespace sublet::cli {

namespace {

namespace fs = std::filesystem;

constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin";

void copy_input(const PlannedInput& input, const std::string& work) {
  const fs::path to = fs::path(work) / input.name;
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  if (!error) fs::copy_file(input.path, to, error);
  if (!error) fs::permissions(to, input.executable ? fs::perms(0700) : fs::perms(0600), error);
  if (error)
    throw PoolError(
        ErrorKind::invalid, "input.missing",
        "the input " + escape_for_terminal(input.path) + " cannot be copied: " + error.message(),
        "", input.path);
}

// Those that the pool and the rehearsal set themselves.
bool is_ours(std::string_view variable) {
  static constexpr std::string_view kOurs[] = {"SUBLET_JOB=",
                                               "SUBLET_ATTEMPT=",
                                               "SUBLET_STATUS=",
                                               "SUBLET_CHECKPOINT_DIR=",
                                               "SUBLET_CHECKPOINT_FILES=",
                                               "SUBLET_CHECKPOINT_STOP_AT="};
  return std::ranges::any_of(kOurs,
                             [&](std::string_view name) { return variable.starts_with(name); });
}

bool sets(const std::vector<std::string>& environment, const std::string& name) {
  return std::ranges::any_of(
      environment, [&](const std::string& variable) { return variable.starts_with(name + "="); });
}

}  // namespace

AttemptFolder make_attempt_folder(const Rehearsed& program, const std::string& path) {
  const AttemptFolder folder{path};
  for (const std::string& made : {folder.work(), folder.checkpoint()})
    system_files().make_folders(made, 0700, Files::Outlives::kProcess);
  system_files().write_atomic(folder.status(), std::string(SUBLET_STATUS_BYTES, '\0'), 0600,
                              Files::Outlives::kProcess);
  for (const PlannedInput& input : program.job.inputs) copy_input(input, folder.work());
  return folder;
}

std::vector<std::string> attempt_environment(const Rehearsed& program, const AttemptFolder& folder,
                                             uint64_t attempt) {
  std::vector<std::string> environment;
  for (const std::string& variable : program.job.what.environment)
    if (!is_ours(variable)) environment.push_back(variable);
  for (const auto& [name, value] : {std::pair<std::string, std::string>{"HOME", folder.work()},
                                    {"TMPDIR", folder.work()},
                                    {"PATH", kDefaultPath},
                                    {"LANG", "C.UTF-8"}})
    if (!sets(environment, name)) environment.push_back(name + "=" + value);
  environment.push_back("SUBLET_JOB=1");
  environment.push_back("SUBLET_ATTEMPT=" + std::to_string(attempt));
  environment.push_back("SUBLET_CHECKPOINT_DIR=" + folder.checkpoint());
  environment.push_back("SUBLET_STATUS=" + folder.status());
  std::string files;
  for (const std::string& file : program.job.what.own_checkpoint.files)
    files += (files.empty() ? "" : "\n") + file;
  if (!files.empty()) environment.push_back("SUBLET_CHECKPOINT_FILES=" + files);
  return environment;
}

std::string find_program(const Rehearsed& program, const std::vector<std::string>& environment) {
  const std::string& name = program.job.what.program;
  if (name.find('/') != std::string::npos) return name;
  for (const std::string& variable : environment) {
    if (!variable.starts_with("PATH=")) continue;
    const std::string folders = variable.substr(5) + ":";
    for (size_t at = 0; at < folders.size();) {
      const size_t end = folders.find(':', at);
      const std::string path = folders.substr(at, end - at) + "/" + name;
      if (access(path.c_str(), X_OK) == 0 && !fs::is_directory(path)) return path;
      at = end + 1;
    }
  }
  throw PoolError(
      ErrorKind::invalid, "rehearse.start",
      "the program '" + escape_for_terminal(name) + "' is in no folder of PATH",
      "a file of yours needs a slash in its name: ./" + name + "; --env PATH copies your own PATH",
      name);
}

}  // namespace sublet::cli
