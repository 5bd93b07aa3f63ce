#include "loadmon/daemon_settings.h"

#include <array>
#include <string>
#include <vector>

namespace sublet::loadmon {
namespace {
const std::array<std::string, 3> kMinutes = {"1min", "5min", "15min"};

// `value`: of the rule "default".
SettingSpec threshold(const std::string& key, const std::string& value, const std::string& doc) {
  return {.key = key,
          .type = SettingType::real,
          .default_value = value,
          .min = -1,
          .max = 1e6,
          .doc = doc};
}

// The two settings that a text of PresenceRule::problem() is about: "cpu: ...",
// "load 5 min: ...".
std::vector<std::string> thresholds(const std::string& problem) {
  if (problem.starts_with("cpu")) return {"cpu.become_idle", "cpu.stay_idle"};
  for (const std::string& minutes : kMinutes) {
    const std::string number = minutes.substr(0, minutes.find('m'));
    if (!problem.starts_with("load " + number + " ")) continue;
    return {"load.become_idle_" + minutes, "load.stay_idle_" + minutes};
  }
  return {};
}

void take(const Settings& settings, const std::string& key, double* value) {
  if (settings.is_set(key)) *value = settings.real(key);
}
}  // namespace

std::vector<SettingSpec> setting_specs() {
  std::vector<SettingSpec> specs = {
      {.key = "rule",
       .default_value = "default",
       .doc = "default: the owner's CPU use and input; classic: load averages",
       .choices = {"default", "classic"}},
      {
          .key = "idle_time",
          .type = SettingType::duration,
          .default_value = "15 min",
          .doc = "how long a machine must be quiet before jobs may start",
      },
      {.key = "resume_time",
       .type = SettingType::duration,
       .default_value = "1 min",
       .doc =
           "how long a machine must be quiet before suspended and lingering jobs go on as usual"},
      {.key = "linger_slowdown",
       .type = SettingType::real,
       .default_value = "0.1",
       .min = 0,
       .max = 1,
       .doc = "jobs stay, suspended or lingering, as long as the owner's programs wait for CPU or "
              "memory for at most this part of the time"},
      {.key = "idle_when",
       .default_value = "",
       .doc = "jobs may come only when this rule holds, too; empty: always (docs/rules.md)"},
      {.key = "evict_when",
       .default_value = "",
       .doc = "jobs must leave when this rule holds; empty: when idle_when does not hold"},
      {.key = "owners",
       .type = SettingType::texts,
       .default_value = "",
       .doc = "accounts that may set this machine's rules and lend it, besides root and the "
              "client's own"},
      {.key = "input",
       .type = SettingType::boolean,
       .default_value = "true",
       .doc = "whether input counts; default depends on the rule (default: yes, classic: no)"},
      {.key = "full_screen",
       .type = SettingType::duration,
       .default_value = "4 h",
       .min = 0,
       .doc = "how long after the last input a full-screen program counts as a film; 0: never"},
      {.key = "script_waits",
       .type = SettingType::boolean,
       .default_value = "false",
       .doc = "whether a scripted `away` must also last idle_time"},
      {.key = "sample_period",
       .type = SettingType::duration,
       .default_value = "500 ms",
       .min = 100,
       .max = 5000,
       .doc = "time between two samples; half of it while jobs run"},
      {.key = "root",
       .default_value = "",
       .doc = "files of the kernel are looked for below this folder: dev/, proc/, sys/; for tests"},
      {.key = "save_deadline",
       .type = SettingType::duration,
       .default_value = "2 s",
       .min = 0,
       .max = 3600e3,
       .doc = "save deadline of jobs whose order has none"},
      {.key = "most_connections",
       .type = SettingType::integer,
       .default_value = "1024",
       .min = 1,
       .max = 16384,
       .doc = "most clients and shepherds connected at a time"},
      {.key = "log.file", .default_value = "", .doc = "log file; empty: standard error"},
      {.key = "log.level",
       .default_value = "info",
       .doc = "lowest severity that is logged",
       .choices = {"debug", "info", "warning", "error"}},
      threshold("cpu.become_idle", "0.1", "in cores; default depends on the rule; -1: not used"),
      threshold("cpu.stay_idle", "0.25", "in cores; above it the owner is back"),
  };
  for (const std::string& minutes : kMinutes) {
    specs.push_back(
        threshold("load.become_idle_" + minutes, "-1", "load average minus the jobs' share"));
    specs.push_back(threshold("load.stay_idle_" + minutes, "-1", "above it the owner is back"));
  }
  return specs;
}

protocol::PresenceRule presence_rule(const Settings& settings) {
  protocol::PresenceRule rule = *protocol::PresenceRule::preset(settings.text("rule"));
  rule.idle_time_ms = settings.duration_ms("idle_time");
  rule.resume_time_ms = settings.duration_ms("resume_time");
  rule.script_waits = settings.boolean("script_waits");
  if (settings.is_set("input")) rule.input = settings.boolean("input");
  take(settings, "cpu.become_idle", &rule.cpu_become);
  take(settings, "cpu.stay_idle", &rule.cpu_stay);
  for (size_t i = 0; i < kMinutes.size(); ++i) {
    take(settings, "load.become_idle_" + kMinutes[i], &rule.load_become[i]);
    take(settings, "load.stay_idle_" + kMinutes[i], &rule.load_stay[i]);
  }
  const std::string problem = rule.problem();
  if (!problem.empty()) {
    const std::vector<std::string> keys = thresholds(problem);
    throw settings.wrong(keys, keys.at(0) + " and " + keys.at(1) + " are inconsistent" +
                                   problem.substr(problem.find(':')));
  }
  return rule;
}

std::vector<RulePair> rule_pairs(const Settings& settings) {
  const std::string& idle = settings.text("idle_when");
  const std::string& evict = settings.text("evict_when");
  std::vector<RulePair> pairs;
  try {
    if (!idle.empty() || !evict.empty()) pairs.push_back(parse_pair("", idle, evict));
  } catch (const RuleRefusal& refusal) {
    throw settings.wrong({refusal.setting()}, refusal.what());
  }
  return pairs;
}

Settings with_values_of(const protocol::PresenceRule& rule, Settings settings) {
  const auto set = [&settings](const std::string& key, const std::string& value) {
    if (!settings.is_set(key)) settings.override_with(key + "=" + value);
  };
  set("input", rule.input ? "true" : "false");
  set("cpu.become_idle", std::to_string(rule.cpu_become));
  set("cpu.stay_idle", std::to_string(rule.cpu_stay));
  for (size_t i = 0; i < kMinutes.size(); ++i) {
    set("load.become_idle_" + kMinutes[i], std::to_string(rule.load_become[i]));
    set("load.stay_idle_" + kMinutes[i], std::to_string(rule.load_stay[i]));
  }
  return settings;
}

}  // namespace sublet::loadmon
