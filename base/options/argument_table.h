// A description of a command line as plain data, from which manual page and shell
// completion are generated, so that they agree with --help.
#ifndef SUBLET_BASE_OPTIONS_ARGUMENT_TABLE_H_
#define SUBLET_BASE_OPTIONS_ARGUMENT_TABLE_H_

#include <string>
#include <vector>

namespace sublet {

struct ArgumentOption {
  std::vector<std::string> names;  // "-n", "--count"; long ones last
  std::string value_name;          // "": a flag
  std::string help;
  bool repeatable = false;
  std::vector<std::string> words;  // allowed values; empty: any
};

struct ArgumentPositional {
  std::string name;
  std::string help;
  bool required = false;
  bool repeatable = false;
  std::vector<std::string> words;
};

// A program, or one of its commands.
struct ArgumentTable {
  std::string name;  // "ls"
  std::string path;  // "sublet ls"
  std::string help;
  std::vector<ArgumentOption> options;  // its own; those of its parents apply, too
  std::vector<ArgumentPositional> positionals;
  std::string passthrough;  // what may follow "--"; "": nothing
  std::string passthrough_help;
  bool commands_are_optional = false;
  std::vector<ArgumentTable> commands;
};

}  // namespace sublet

#endif  // SUBLET_BASE_OPTIONS_ARGUMENT_TABLE_H_
