// checkpoint save and load: the checkpoint of a shell script. They need no server.
#include "cli/checkpoint/shell.h"

#include "base/json.h"
#include "cli/commands/commands.h"

namespace sublet::cli {

namespace {

// What save and load have in common.
struct ShellOptions {
  void declare(Arguments& arguments) {
    arguments.option("--path", &path,
                     "the file to use without a pool (where $SUBLET_CHECKPOINT_DIR is not set)",
                     "FILE");
    arguments.not_empty("--path");
    arguments.option("--program", &program, "the script's name in the checkpoint (sh)", "NAME");
    arguments.option("--layout", &layout,
                     "increase it when the meaning of the variables changes (1)", "N");
  }
  ShellProgram owner() const {
    if (layout < 0 || layout > UINT32_MAX)
      throw PoolError(ErrorKind::usage, "usage.layout",
                      "--layout must be between 0 and " + std::to_string(UINT32_MAX), "",
                      std::to_string(layout));
    return {program, static_cast<uint32_t>(layout)};
  }

  std::string path;
  std::string program = "sh";
  int64_t layout = 1;
};

int run_save(const ShellOptions& options, const std::vector<std::string>& words,
             const Context& context) {
  const ShellVariables variables = parse_variables(words);
  const std::optional<CheckpointPlace> place = checkpoint_place(options.path);
  if (!place)
    throw PoolError(ErrorKind::usage, "usage.place",
                    "there is no place to save: $SUBLET_CHECKPOINT_DIR is not set",
                    "without a pool, name a file: --path FILE");
  const SavedVariables saved = save_variables(*place, options.owner(), variables);
  if (context.json) {
    JsonWriter json;
    json.begin_object().field("file", saved.file).field("generation", saved.generation);
    json.field("bytes", saved.bytes).end_object();
    print(json.str() + "\n");
  }
  return 0;
}

int run_load(const ShellOptions& options, const std::vector<std::string>& names,
             const Context& context) {
  const std::optional<CheckpointPlace> place = checkpoint_place(options.path);
  std::optional<LoadedVariables> loaded;
  if (place) loaded = load_variables(*place, options.owner(), names);
  if (context.json) {
    JsonWriter json;
    json.begin_object().field("generation", loaded ? loaded->generation : 0);
    json.key("variables").begin_object();
    if (loaded)
      for (const auto& [name, value] : loaded->variables) json.field(name, value);
    json.end_object().end_object();
    print(json.str() + "\n");
  } else if (loaded) {
    print(shell_assignments(loaded->variables));
  }
  return loaded ? 0 : kExitNoCheckpoint;
}

}  // namespace

Command checkpoint_save_command(Arguments& checkpoint) {
  auto options = std::make_shared<ShellOptions>();
  auto words = std::make_shared<std::vector<std::string>>();
  Arguments& a = checkpoint.command(
      "save", "Save variables of a shell script as the next generation of its checkpoint");
  a.positional("NAME=VALUE", words.get(), "a variable, such as i=\"$i\"", true);
  options->declare(a);
  return {&a, [options, words](Context& context) { return run_save(*options, *words, context); }};
}

Command checkpoint_load_command(Arguments& checkpoint) {
  auto options = std::make_shared<ShellOptions>();
  auto names = std::make_shared<std::vector<std::string>>();
  Arguments& a = checkpoint.command(
      "load",
      "Print the variables saved last as assignments for `eval`; status 1 if there are none");
  a.positional("NAME", names.get(), "a variable (all)", false);
  options->declare(a);
  return {&a, [options, names](Context& context) { return run_load(*options, *names, context); }};
}

}  // namespace sublet::cli
