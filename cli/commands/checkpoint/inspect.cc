// checkpoint show, verify and diff: what is in a checkpoint file. They need no server.
#include "base/json.h"
#include "cli/checkpoint/check.h"
#include "cli/checkpoint/description.h"
#include "cli/checkpoint/difference.h"
#include "cli/commands/commands.h"

namespace sublet::cli {

namespace {

int run_show(const std::string& path, const std::string& values, const Context& context) {
  const CheckpointFile file(path);
  if (!values.empty()) {
    const CheckpointSection* section = file.find(values);
    if (section == nullptr)
      throw PoolError(ErrorKind::not_found, "checkpoint.section",
                      path + " has no section '" + values + "'",
                      "see `sublet checkpoint show " + path + "`", values);
    print_values(file, *section, context.json);
  } else if (context.json) {
    JsonWriter json;
    write_json(json, file);
    print(json.str() + "\n");
  } else {
    print(checkpoint_text(file, context.terminal.columns, context.terminal.colour));
  }
  return 0;
}

int run_verify(const std::vector<std::string>& paths, const Context& context) {
  const std::vector<CheckedFile> checked = check_checkpoints(paths);
  JsonWriter json;
  json.begin_object().key("files").begin_array();
  std::string text;
  bool all_whole = true;
  for (const CheckedFile& file : checked) {
    all_whole = all_whole && file.whole;
    write_json(json, file);
    text += check_line(file) + "\n";
  }
  json.end_array().end_object();
  print(context.json ? json.str() + "\n" : text);
  return all_whole ? 0 : kExitNotWhole;
}

// The exit statuses of diff(1).
enum { kExitEqual = 0, kExitDifferent = 1, kExitTrouble = 2 };

int run_diff(const std::string& before, const std::string& after, const Context& context) {
  try {
    const CheckpointFile old(before);
    const CheckpointFile now(after);
    const CheckpointDifference difference = compare(old, now);
    if (context.json) {
      JsonWriter json;
      write_json(json, difference, old, now);
      print(json.str() + "\n");
    } else {
      print(difference_text(difference, old, now));
    }
    return difference.none() ? kExitEqual : kExitDifferent;
  } catch (const PoolError& error) {
    report_error(error, context.json);
    return kExitTrouble;
  }
}

}  // namespace

Command checkpoint_show_command(Arguments& checkpoint) {
  auto path = std::make_shared<std::string>();
  auto values = std::make_shared<std::string>();
  Arguments& a = checkpoint.command(
      "show", "Show what is in a checkpoint file: its program, generation and sections");
  a.positional("FILE", path.get(), "the file", true);
  a.option("--values", values.get(), "print only this section: all its values, one a line", "NAME");
  a.not_empty("--values");
  return {&a, [path, values](Context& context) { return run_show(*path, *values, context); }};
}

Command checkpoint_verify_command(Arguments& checkpoint) {
  auto paths = std::make_shared<std::vector<std::string>>();
  Arguments& a = checkpoint.command(
      "verify", "Say whether checkpoint files are whole, and what is wrong where if not");
  a.positional("FILE", paths.get(), "a file, or a folder: the generations in it", true);
  return {&a, [paths](Context& context) { return run_verify(*paths, context); }};
}

Command checkpoint_diff_command(Arguments& checkpoint) {
  auto before = std::make_shared<std::string>();
  auto after = std::make_shared<std::string>();
  Arguments& a = checkpoint.command(
      "diff", "Say which sections of two checkpoints differ, in how many values and by how much");
  a.positional("OLD", before.get(), "a checkpoint file", true);
  a.positional("NEW", after.get(), "another, such as the next generation", true);
  return {&a, [before, after](Context& context) { return run_diff(*before, *after, context); }};
}

}  // namespace sublet::cli
