#include "base/options/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iostream>
#include <list>
#include <utility>

#include "base/text.h"

namespace sublet {
namespace {

// CLI11 itself replaces a number that is too large by the largest one.
std::string whole_number(const std::string& text) {
  int64_t number;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? "" : "\"" + text + "\" is not a whole number, or too large";
}

}  // namespace

struct Arguments::Node {
  CLI::App* app = nullptr;
  Node* parent = nullptr;
  std::unique_ptr<CLI::App> top;  // of the top object only
  std::string version;            // of the top object only
  ArgumentTable table;            // without its commands
  Manual manual;
  std::vector<std::string>* passthrough = nullptr;
  std::list<std::unique_ptr<Arguments>> commands;

  // Also adds it to the table; value_name "": a flag.
  CLI::Option* option(CLI::Option* option, const std::string& help, const std::string& value_name,
                      bool repeatable = false) {
    ArgumentOption entry;
    for (const std::string& name : option->get_snames()) entry.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) entry.names.push_back("--" + name);
    entry.value_name = value_name;
    entry.help = help;
    entry.repeatable = repeatable;
    table.options.push_back(entry);
    return value_name.empty() ? option : option->type_name(value_name);
  }
  void positional(CLI::Option* option, const std::string& name, const std::string& help,
                  bool required, bool repeatable) {
    option->type_name("")->required(required);
    table.positionals.push_back({name, help, required, repeatable, {}});
  }
  // The innermost command that was given.
  Node* innermost() {
    for (const auto& command : commands) {
      if (command->node_->app->parsed()) return command->node_->innermost();
    }
    return this;
  }
  std::vector<std::string> command_names() const {
    std::vector<std::string> names;
    for (const auto& command : commands) names.push_back(command->node_->table.name);
    return names;
  }
  // The options accepted here, including those of the parent commands.
  std::vector<std::string> option_names() const {
    std::vector<std::string> names = parent ? parent->option_names() : std::vector<std::string>{};
    for (const ArgumentOption& option : table.options)
      names.insert(names.end(), option.names.begin(), option.names.end());
    return names;
  }
  // Whether this command, or one of its commands, has the option.
  bool has_option(const std::string& name) const {
    const auto has = [&](const ArgumentOption& option) {
      return std::ranges::find(option.names, name) != option.names.end();
    };
    return std::ranges::any_of(table.options, has) ||
           std::ranges::any_of(commands,
                               [&](const auto& one) { return one->node_->has_option(name); });
  }
  std::string explain(const CLI::ParseError& error) const;
};

Arguments::Arguments(std::unique_ptr<Node> node) : node_(std::move(node)) {}
Arguments::~Arguments() = default;

Arguments::Arguments(const std::string& program, const std::string& description,
                     const std::string& version)
    : node_(std::make_unique<Node>()) {
  node_->top = std::make_unique<CLI::App>(description, program);
  node_->app = node_->top.get();
  node_->version = version;
  node_->table.name = node_->table.path = program;
  node_->table.help = description;
  constexpr const char* kHelp = "Print this help and exit";
  constexpr const char* kVersion = "Print the version and exit";
  node_->option(node_->app->set_help_flag("-h,--help", kHelp), kHelp, "");
  node_->option(node_->app->set_version_flag("--version", program + " " + version, kVersion),
                kVersion, "");
  node_->app->set_help_all_flag("--manual-page")->group("");  // not shown by --help
}

void Arguments::flag(const std::string& name, bool* value, const std::string& help) {
  node_->option(node_->app->add_flag(name, *value, help), help, "");
}

void Arguments::option(const std::string& name, std::string* value, const std::string& help,
                       const std::string& value_name) {
  node_->option(node_->app->add_option(name, *value, help), help, value_name);
}

void Arguments::option(const std::string& name, int64_t* value, const std::string& help,
                       const std::string& value_name) {
  node_->option(node_->app->add_option(name, *value, help), help, value_name)->check(whole_number);
}

void Arguments::option(const std::string& name, double* value, const std::string& help,
                       const std::string& value_name) {
  node_->option(node_->app->add_option(name, *value, help), help, value_name);
}

void Arguments::option(const std::string& name, std::vector<std::string>* values,
                       const std::string& help, const std::string& value_name) {
  node_->option(node_->app->add_option(name, *values, help), help, value_name, true)
      ->allow_extra_args(false);
}

void Arguments::positional(const std::string& name, std::string* value, const std::string& help,
                           bool required) {
  node_->positional(node_->app->add_option(name, *value, help), name, help, required, false);
}

void Arguments::positional(const std::string& name, std::vector<std::string>* values,
                           const std::string& help, bool required) {
  node_->positional(node_->app->add_option(name, *values, help), name, help, required, true);
}

void Arguments::passthrough(const std::string& name, std::vector<std::string>* values,
                            const std::string& help) {
  node_->passthrough = values;
  node_->table.passthrough = name;
  node_->table.passthrough_help = help;
  node_->app->footer("-- " + name + "\n  " + help);
}

void Arguments::words(const std::string& name, const std::vector<std::string>& words) {
  for (ArgumentOption& option : node_->table.options)
    if (option.names.back() == name) option.words = words;
  for (ArgumentPositional& positional : node_->table.positionals)
    if (positional.name == name) positional.words = words;
}

void Arguments::not_empty(const std::string& name) {
  node_->app->get_option(name)->check(
      [](const std::string& text) { return text.empty() ? "the value is empty" : ""; });
}

Arguments& Arguments::command(const std::string& name, const std::string& help) {
  auto node = std::make_unique<Node>();
  node->app = node_->app->add_subcommand(name, help);
  node->app->fallthrough();
  node->app->set_help_all_flag();  // otherwise the command's --help would show it
  node->parent = node_.get();
  node->table.name = name;
  node->table.path = node_->table.path + " " + name;
  node->table.help = help;
  node_->app->require_subcommand(1);
  node_->commands.push_back(std::unique_ptr<Arguments>(new Arguments(std::move(node))));
  return *node_->commands.back();
}

void Arguments::commands_are_optional() {
  node_->app->require_subcommand(0, 1);
  node_->table.commands_are_optional = true;
}

void Arguments::manual(Manual manual) { node_->manual = std::move(manual); }

bool Arguments::chosen() const { return node_->app->parsed(); }

std::string Arguments::help() const {
  const std::string above = node_->parent ? node_->parent->table.path : "";
  return node_->app->help(above);
}

ArgumentTable Arguments::table() const {
  ArgumentTable table = node_->table;
  for (const auto& command : node_->commands) table.commands.push_back(command->table());
  return table;
}

// One sentence for an error found by CLI11 in the innermost command. The arguments it
// left unparsed are more informative than its own message.
std::string Arguments::Node::explain(const CLI::ParseError& error) const {
  const CLI::App* root = app;
  while (root->get_parent() != nullptr) root = root->get_parent();
  const std::vector<std::string> left = root->remaining(true);
  const bool missing_command = !commands.empty();
  if (left.empty()) {
    const bool no_value = dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr;
    return missing_command && !no_value ? "a command is missing"
                                        : escape_for_terminal(error.what());
  }
  std::string word = left.front();
  word = word.substr(0, word.starts_with("-") ? word.find('=') : word.npos);
  std::string sentence = "unexpected argument \"";
  std::string near;
  if (word.starts_with("-")) {
    sentence = "unknown option \"";
    // Not misspelt if another command has it.
    const Node* top = this;
    while (top->parent != nullptr) top = top->parent;
    if (!top->has_option(word)) near = nearest_word(word, option_names());
  } else if (missing_command) {
    sentence = "unknown command \"";
    near = nearest_word(word, command_names());
  }
  sentence += escape_for_terminal(word) + "\"";
  if (passthrough != nullptr && !word.starts_with("-"))
    sentence += "; a program and its arguments follow after \"--\"";
  return near.empty() ? sentence : sentence + "; did you mean \"" + near + "\"?";
}

std::optional<int> Arguments::parse(const std::vector<std::string>& arguments, std::ostream& out,
                                    std::ostream& err) {
  // Arguments after "--" are not parsed.
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> ours(arguments.begin(), dashes);
  std::reverse(ours.begin(), ours.end());  // CLI11 expects them in reverse order
  std::string problem;
  try {
    node_->app->parse(ours);
    Node* innermost = node_->innermost();
    if (dashes == arguments.end()) return std::nullopt;
    if (innermost->passthrough != nullptr) {
      innermost->passthrough->assign(dashes + 1, arguments.end());
      return std::nullopt;
    }
    problem = "no arguments may follow \"--\" here";
  } catch (const CLI::CallForHelp&) {
    const Node* innermost = node_->innermost();
    out << innermost->app->help(innermost->parent ? innermost->parent->table.path : "");
    return 0;
  } catch (const CLI::CallForAllHelp&) {
    out << manual_page(table(), node_->version, node_->manual);
    return 0;
  } catch (const CLI::CallForVersion& e) {
    out << e.what() << "\n";
    return 0;
  } catch (const CLI::ParseError& e) {
    problem = node_->innermost()->explain(e);
  }
  const std::string& path = node_->innermost()->table.path;
  err << path << ": " << problem << "\n"
      << "Try \"" << path << " --help\".\n";
  return kExitUsage;
}

std::optional<int> Arguments::parse(int argc, const char* const* argv) {
  return parse(std::vector<std::string>(argv + std::min(argc, 1), argv + argc), std::cout,
               std::cerr);
}

}  // namespace sublet
