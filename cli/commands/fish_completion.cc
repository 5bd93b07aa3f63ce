// The completion script for fish: a line for each command, option and word.
#include "cli/commands/completion.h"

namespace sublet::cli {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// The fish options for the value of an option or the argument of a command.
std::string offer(const std::string& kind) {
  if (kind == "files") return " -F";
  if (kind == "folders") return " -f -a '(__fish_complete_directories)'";
  if (kind.starts_with("words ")) return " -f -a " + quoted(kind.substr(6));
  return " -f";
}

std::string names(const ArgumentTable& table) {
  std::string out;
  for (const ArgumentTable& command : table.commands) out += " " + command.name;
  return out;
}

// `seen`: the fish condition that this command is on the line.
void put(std::string& out, const ArgumentTable& table, const std::string& seen) {
  const std::string line = "complete -c sublet" + (seen.empty() ? "" : " -n " + quoted(seen));
  for (const ArgumentOption& option : table.options) {
    out += line;
    for (const std::string& name : option.names)
      out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (!option.value_name.empty())
      out += " -r" + offer(kind_of_value(option.value_name, option.words));
    out += " -d " + quoted(option.help) + "\n";
  }
  if (!table.positionals.empty()) {
    const ArgumentPositional& first = table.positionals.front();
    const std::string kind = kind_of_value(first.name, first.words);
    if (kind != "text") out += line + offer(kind) + "\n";
  }
  if (table.commands.empty()) return;
  const std::string none =
      (seen.empty() ? "" : seen + "; and ") + "not __fish_seen_subcommand_from" + names(table);
  for (const ArgumentTable& command : table.commands) {
    out += "complete -c sublet -n " + quoted(none) + " -a " + command.name + " -d " +
           quoted(command.help) + "\n";
    put(out, command,
        (seen.empty() ? "" : seen + "; and ") + "__fish_seen_subcommand_from " + command.name);
  }
}

}  // namespace

std::string fish_completion(const ArgumentTable& program) {
  std::string out = "# Made by `sublet completion fish`.\ncomplete -c sublet -f\n";
  put(out, program, "");
  return out;
}

}  // namespace sublet::cli
