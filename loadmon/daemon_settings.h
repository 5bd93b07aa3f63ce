// The load monitor's settings, and the presence rule that they define.
#ifndef SUBLET_LOADMON_DAEMON_SETTINGS_H_
#define SUBLET_LOADMON_DAEMON_SETTINGS_H_

#include <vector>

#include "base/options/settings.h"
#include "loadmon/owners_rules.h"
#include "protocol/presence.h"

namespace sublet::loadmon {

std::vector<SettingSpec> setting_specs();

// The named preset, modified by the other settings. Throws SettingError if the
// thresholds are inconsistent.
protocol::PresenceRule presence_rule(const Settings& settings);

// The rules of idle_when and evict_when; none: both are empty. Throws SettingError.
std::vector<RulePair> rule_pairs(const Settings& settings);

// The settings with what they leave to the rule, for printing them.
Settings with_values_of(const protocol::PresenceRule& rule, Settings settings);

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_DAEMON_SETTINGS_H_
