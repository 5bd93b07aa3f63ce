// What can be set for the Load Monitor, and how settings become its rule.
#ifndef SUBLET_LOADMON_DAEMON_SETTINGS_H_
#define SUBLET_LOADMON_DAEMON_SETTINGS_H_

#include <vector>

#include "base/options/settings.h"
#include "protocol/presence.h"

namespace sublet::loadmon {

std::vector<SettingSpec> setting_specs();

// The named preset, with what is set beside it. Throws SettingError when the
// thresholds do not go together.
protocol::PresenceRule presence_rule(const Settings& settings);

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_DAEMON_SETTINGS_H_
