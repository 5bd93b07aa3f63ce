#include "base/options/settings_arguments.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <utility>

#include "base/unique_fd.h"

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

void require_log_file(const Settings& settings) {
  const std::string& path = settings.text("log.file");
  if (path.empty()) return;
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640));
  if (!file.valid())
    throw settings.wrong({"log.file"},
                         "log.file: cannot write " + path + ": " + std::strerror(errno));
}

int refuse_settings(const std::string& program, const SettingError& error) {
  std::cerr << program << ": " << error.what() << "\n";
  return kExitUsage;
}

}  // namespace sublet
