// The settings of section [scheduling] that an administrator may change while the server runs:
// their words, as in server.toml, and what they mean to the brain.
//
// Any thread.
#ifndef SUBLET_SERVER_POLICY_SETTINGS_H_
#define SUBLET_SERVER_POLICY_SETTINGS_H_

#include <string>
#include <utility>
#include <vector>

#include "base/options/settings.h"
#include "scheduling/parameters.h"

namespace sublet::server {

// Name and value: "floor", "0.25".
using PolicyWords = std::vector<std::pair<std::string, std::string>>;

// In the order of docs and of words_of(). The keys are "scheduling." and the name.
std::vector<SettingSpec> policy_setting_specs();
// From settings that were declared by these, among others.
scheduling::PolicyChoice read_policies(const Settings& settings);

// All of them; changed() with these gives the same choice.
PolicyWords words_of(const scheduling::PolicyChoice& choice);
// The choice with these words in place of its own. Throws Refusal: kInvalid "policy.unknown",
// which lists the names, and "policy.invalid", which says what is allowed.
scheduling::PolicyChoice changed(scheduling::PolicyChoice choice, const PolicyWords& words);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_POLICY_SETTINGS_H_
