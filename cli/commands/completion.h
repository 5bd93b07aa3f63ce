// Completion scripts for shells, generated from the declarations of the commands. Pure
// functions.
#ifndef SUBLET_CLI_COMMANDS_COMPLETION_H_
#define SUBLET_CLI_COMMANDS_COMPLETION_H_

#include <string>
#include <vector>

#include "base/options/argument_table.h"

namespace sublet::cli {

// To be sourced, or installed where the shell looks for it. bash 4 or later.
std::string bash_completion(const ArgumentTable& program);
std::string zsh_completion(const ArgumentTable& program);
std::string fish_completion(const ArgumentTable& program);

// The kind of a value: "words W...", "files", "folders", or "text", which cannot be
// completed. Derived from `words`, or from `name`: FILE, FILE[=NAME], FOLDER, PATH.
std::string kind_of_value(const std::string& name, const std::vector<std::string>& words);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_COMMANDS_COMPLETION_H_
