#include "base/options/settings_arguments.h"

#include <iostream>
#include <utility>

namespace sublet {

void SettingsArguments::declare(Arguments& arguments, const std::string& file) {
  arguments.option("--config", &config, "settings file (" + file + ")", "FILE");
  arguments.option("--set", &sets, "override one setting of the file", "KEY=VALUE");
  arguments.flag("--print-settings", &print, "print the settings in effect and exit");
}

Settings SettingsArguments::read(std::vector<SettingSpec> specs) const {
  Settings settings(std::move(specs));
  if (!config.empty()) settings.load_file(config);
  for (const std::string& assignment : sets) settings.override_with(assignment);
  return settings;
}

int refuse_settings(const std::string& program, const SettingError& error) {
  std::cerr << program << ": " << error.what() << "\n";
  return kExitUsage;
}

}  // namespace sublet
