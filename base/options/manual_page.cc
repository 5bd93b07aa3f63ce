#include "base/options/manual_page.h"

#include <algorithm>
#include <string_view>

namespace sublet {
namespace {

// Escapes characters that roff would change or interpret.
std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '"':
        out += "\\(dq";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '\n':
        out += ' ';
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + escaped(text) + "\\fR"; }

// One line of running text. A leading full stop is escaped, since it would be a request.
std::string running(std::string_view text) {
  std::string out;
  bool literal = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('`'), text.size());
    out += literal ? bold(text.substr(0, end)) : escaped(text.substr(0, end));
    if (end == text.size()) break;
    text.remove_prefix(end + 1);
    literal = !literal;
  }
  return (out.starts_with('.') ? "\\&" : "") + out + "\n";
}

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

// The first sentence, in a form that can follow the program's name.
std::string in_short(std::string_view help) {
  std::string text(help.substr(0, std::min(help.find(". "), help.size())));
  if (text.ends_with('.')) text.pop_back();
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z')
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

std::string sentence(std::string text) {
  if (!text.empty()) text[0] = upper(text[0]);
  if (!text.ends_with('.')) text += '.';
  return text;
}

std::string option_term(const ArgumentOption& option) {
  std::string term;
  for (const std::string& name : option.names) term += (term.empty() ? "" : ", ") + bold(name);
  if (!option.value_name.empty()) term += " " + italic(option.value_name);
  return term + (option.repeatable ? " ..." : "");
}

std::string positional_term(const ArgumentPositional& positional) {
  const std::string name = italic(positional.name) + (positional.repeatable ? " ..." : "");
  return positional.required ? name : "[" + name + "]";
}

void put_arguments(std::string& out, const ArgumentTable& table) {
  for (const ArgumentPositional& positional : table.positionals)
    out += ".TP\n" + positional_term(positional) + "\n" + running(sentence(positional.help));
  for (const ArgumentOption& option : table.options)
    out += ".TP\n" + option_term(option) + "\n" + running(sentence(option.help));
  if (!table.passthrough.empty())
    out += ".TP\n" + bold("--") + " " + italic(table.passthrough) + " ...\n" +
           running(sentence(table.passthrough_help));
}

std::string usage(const ArgumentTable& table) {
  std::string line = bold(table.path);
  if (!table.options.empty()) line += " [" + italic("OPTIONS") + "]";
  for (const ArgumentPositional& positional : table.positionals)
    line += " " + positional_term(positional);
  if (!table.passthrough.empty())
    line += " [" + bold("--") + " " + italic(table.passthrough) + " ...]";
  return line + "\n";
}

// Only commands that can be run themselves, not those that only have sub-commands.
void put_commands(std::string& out, const ArgumentTable& table) {
  for (const ArgumentTable& command : table.commands) {
    if (command.commands.empty()) {
      out += ".SS " + usage(command) + running(sentence(command.help));
      put_arguments(out, command);
    }
    put_commands(out, command);
  }
}

std::string synopsis(const ArgumentTable& program) {
  std::string out;
  if (program.commands.empty() || program.commands_are_optional) out += usage(program);
  if (program.commands_are_optional) {
    for (const ArgumentTable& command : program.commands) out += ".br\n" + usage(command);
  } else if (!program.commands.empty()) {
    out += bold(program.path) + " [" + italic("OPTIONS") + "] " + italic("COMMAND") + " [" +
           italic("ARGUMENTS") + "]\n";
  }
  return out;
}

}  // namespace

std::string manual_page(const ArgumentTable& program, const std::string& version,
                        const Manual& manual) {
  std::string title = program.name;
  std::transform(title.begin(), title.end(), title.begin(), upper);
  std::string out = ".TH " + title + " " + std::to_string(manual.section) + " \"\" \"Sublet " +
                    version + "\" \"Sublet\"\n" +
                    // Left-aligned, no hyphenation, so that words can be copied.
                    ".ad l\n.nh\n";
  out += ".SH NAME\n" + escaped(program.name) + " \\- " + escaped(in_short(program.help)) + "\n";
  out += ".SH SYNOPSIS\n" + synopsis(program);
  out += ".SH DESCRIPTION\n" + running(program.help);
  out += ".SH OPTIONS\n";
  put_arguments(out, program);
  if (!program.commands.empty()) out += ".SH COMMANDS\n";
  put_commands(out, program);
  for (const ManualSection& section : manual.more) {
    out += ".SH " + section.title + "\n";
    for (const ManualItem& item : section.items)
      out += (item.term.empty() ? ".PP\n" : ".TP\n" + running(item.term)) + running(item.text);
  }
  return out;
}

ManualSection settings_section(const std::string& intro, const Settings& settings) {
  ManualSection section{"SETTINGS", {{"", intro}}};
  for (const Settings::Description& setting : settings.descriptions()) {
    std::string text = sentence(setting.doc) + " Value: " + setting.takes;
    if (!setting.default_value.empty()) text += "; default `" + setting.default_value + "`";
    section.items.push_back({"`" + setting.key + "`", text + "."});
  }
  return section;
}

}  // namespace sublet
