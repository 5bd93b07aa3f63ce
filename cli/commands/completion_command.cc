// completion: prints the completion script of a shell.
#include <map>

#include "cli/commands/commands.h"
#include "cli/commands/completion.h"

namespace sublet::cli {

namespace {

using Script = std::string (*)(const ArgumentTable&);
const std::map<std::string, Script> kShells = {
    {"bash", bash_completion}, {"fish", fish_completion}, {"zsh", zsh_completion}};

std::vector<std::string> shell_names() {
  std::vector<std::string> names;
  for (const auto& [name, script] : kShells) names.push_back(name);
  return names;
}

int run_completion(const std::string& shell, const Arguments& top) {
  const auto found = kShells.find(shell);
  if (found == kShells.end())
    throw PoolError(ErrorKind::usage, "usage.shell", "'" + shell + "' is not a supported shell",
                    "one of bash, fish, zsh", shell);
  print(found->second(top.table()));
  return 0;
}

}  // namespace

Command completion_command(Arguments& top) {
  auto shell = std::make_shared<std::string>();
  Arguments& a =
      top.command("completion",
                  "Print a script for command completion: for bash and zsh `source <(sublet "
                  "completion bash)`, for fish `sublet completion fish | source`");
  a.positional("SHELL", shell.get(), "bash, fish or zsh", true);
  a.words("SHELL", shell_names());
  return {&a, [&top, shell](Context&) { return run_completion(*shell, top); }};
}

}  // namespace sublet::cli
