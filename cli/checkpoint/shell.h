// The checkpoint of a shell script: its variables, saved by one run of the command and loaded
// by another. Each is a section of type stream with the bytes of its value. One thread.
#ifndef SUBLET_CLI_CHECKPOINT_SHELL_H_
#define SUBLET_CLI_CHECKPOINT_SHELL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sublet::cli {

using ShellVariables = std::vector<std::pair<std::string, std::string>>;  // name, value

// The folder and the name of a checkpoint's files, as the checkpoint API chooses them.
struct CheckpointPlace {
  std::string folder;
  std::string name;
  std::string newest() const { return folder + "/" + name; }
  std::string previous() const { return newest() + ".previous"; }
};
// In the pool's folder, $SUBLET_CHECKPOINT_DIR, else at `path`; nullopt if both are empty.
// Throws PoolError (usage) if `path` names a folder.
std::optional<CheckpointPlace> checkpoint_place(const std::string& path);

// What a checkpoint must belong to.
struct ShellProgram {
  std::string name;
  uint32_t layout = 1;
};

struct SavedVariables {
  std::string file;
  uint64_t generation = 0;
  uint64_t bytes = 0;
};
// Writes the next generation, as durable as the checkpoint API does. A save waits for another
// one that is at work in the folder. Throws PoolError: checkpoint.refused if the newest
// generation is of another program or layout, checkpoint.save if the system refuses; the
// generations on disk are then unchanged.
SavedVariables save_variables(const CheckpointPlace& place, const ShellProgram& program,
                              const ShellVariables& variables);

struct LoadedVariables {
  uint64_t generation = 0;
  ShellVariables variables;
};
// Those named, or all, of the newest generation that is whole; says on stderr which are not.
// nullopt: there is none. Throws PoolError: checkpoint.refused, checkpoint.section,
// checkpoint.shell (a name or a value that no shell variable can have).
std::optional<LoadedVariables> load_variables(const CheckpointPlace& place,
                                              const ShellProgram& program,
                                              const std::vector<std::string>& names);

// A letter or _, then letters, digits and _; at most 47 characters.
bool is_shell_name(std::string_view name);
// Parts NAME=VALUE at the first =. Throws PoolError (usage): no name, or one that is given twice.
ShellVariables parse_variables(const std::vector<std::string>& words);
// A line NAME='VALUE' for each, safe for eval whatever the values are.
std::string shell_assignments(const ShellVariables& variables);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_CHECKPOINT_SHELL_H_
