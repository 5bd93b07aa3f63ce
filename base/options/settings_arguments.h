// The options with which every daemon takes its settings: --config FILE, --set KEY=VALUE
// and --print-settings.
#ifndef SUBLET_BASE_OPTIONS_SETTINGS_ARGUMENTS_H_
#define SUBLET_BASE_OPTIONS_SETTINGS_ARGUMENTS_H_

#include <string>
#include <vector>

#include "base/options/arguments.h"
#include "base/options/settings.h"

namespace sublet {

struct SettingsArguments {
  std::string config = {};             // file; empty: none
  std::vector<std::string> sets = {};  // KEY=VALUE
  bool print = false;

  // `file` is the usual name of the file, for the help text.
  void declare(Arguments& arguments, const std::string& file);
  // The defaults, changed by the file, then by --set. Throws SettingError, FileError.
  Settings read(std::vector<SettingSpec> specs) const;
};

// Throws SettingError if the file that `log.file` names cannot be written; creates it. Before
// log_start().
void require_log_file(const Settings& settings);

// For a SettingError that ends the program: prints it, and returns the exit status that
// keeps supervisor and systemd from restarting the daemon.
int refuse_settings(const std::string& program, const SettingError& error);

}  // namespace sublet

#endif  // SUBLET_BASE_OPTIONS_SETTINGS_ARGUMENTS_H_
