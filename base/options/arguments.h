// Command lines. Declare flags, options, positionals and sub-commands with the
// variables they set, then parse. Every command has --help, the top --version; options
// of a command are also accepted after its sub-commands. The hidden --manual-page prints
// the program's page for man(1). Not thread-safe.
#ifndef SUBLET_BASE_OPTIONS_ARGUMENTS_H_
#define SUBLET_BASE_OPTIONS_ARGUMENTS_H_

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/options/argument_table.h"
#include "base/options/manual_page.h"

namespace sublet {

inline constexpr int kExitUsage = 2;

class Arguments {
 public:
  // `version` is what --version prints after the program's name.
  Arguments(const std::string& program, const std::string& description, const std::string& version);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // Names as "--json" or "-n,--count". The variable's initial value is the default,
  // which the help text should mention. The variable must outlive parse().
  void flag(const std::string& name, bool* value, const std::string& help);
  void option(const std::string& name, std::string* value, const std::string& help,
              const std::string& value_name);
  void option(const std::string& name, int64_t* value, const std::string& help,
              const std::string& value_name);
  void option(const std::string& name, double* value, const std::string& help,
              const std::string& value_name);
  // May be repeated, with one value each time.
  void option(const std::string& name, std::vector<std::string>* values, const std::string& help,
              const std::string& value_name);
  void positional(const std::string& name, std::string* value, const std::string& help,
                  bool required);
  void positional(const std::string& name, std::vector<std::string>* values,
                  const std::string& help, bool required);
  // Accepts everything after "--", unparsed. Otherwise "--" is refused.
  void passthrough(const std::string& name, std::vector<std::string>* values,
                   const std::string& help);
  // The values of this option or positional that shell completion offers.
  void words(const std::string& name, const std::vector<std::string>& words);
  // Refuses an empty value of this option.
  void not_empty(const std::string& name);
  // A sub-command; it belongs to this object. Commands may have commands.
  Arguments& command(const std::string& name, const std::string& help);

  // The program can be run without a command.
  void commands_are_optional();
  // Additional contents of the manual page; for the top object.
  void manual(Manual manual);

  // After parse(): whether this command was given.
  bool chosen() const;
  // The help text of this command.
  std::string help() const;
  // All declarations of this command and its sub-commands.
  ArgumentTable table() const;

  // None: continue. Else the status to exit with: 0 after --help or
  // --version (printed to `out`), kExitUsage after an error (one clear line
  // and a hint to `err`). Called on the top object.
  std::optional<int> parse(int argc, const char* const* argv);
  std::optional<int> parse(const std::vector<std::string>& arguments, std::ostream& out,
                           std::ostream& err);

 private:
  struct Node;
  explicit Arguments(std::unique_ptr<Node> node);
  std::unique_ptr<Node> node_;
};

}  // namespace sublet

#endif  // SUBLET_BASE_OPTIONS_ARGUMENTS_H_
