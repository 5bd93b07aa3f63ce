#include "server/policy_settings.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/text.h"
#include "job/description.h"
#include "scheduling/machine_limits.h"
#include "scheduling/policies/job_policies.h"
#include "scheduling/policies/machine_policies.h"
#include "scheduling/policies/victim_policies.h"
#include "scheduling/queries/text.h"
#include "server/refusal.h"

namespace sublet::server {
namespace {

using scheduling::PolicyChoice;

const std::string kSection = "scheduling.";

struct PolicySetting {
  std::string name;
  SettingSpec spec;  // its key is set by policy_setting_specs()
  void (*read)(const Settings& settings, PolicyChoice& choice);
  std::string (*word)(const PolicyChoice& choice);
};

SettingSpec one_of(const std::vector<std::string>& choices, const char* doc) {
  return {.default_value = choices.front(), .doc = doc, .choices = choices};
}

std::string exact_duration(int64_t ms) {
  const std::string text = format_duration_ms(ms);
  return parse_duration_ms(text) == ms ? text : std::to_string(ms) + " ms";
}

constexpr char kOff[] = "off";

// "10/s", "100/30 s": places and their span.
void read_throttle(const Settings& settings, PolicyChoice& choice) {
  constexpr uint64_t kMost = 1'000'000;
  constexpr int64_t kLongestMs = 86'400'000;
  const std::string key = kSection + "throttle", text = settings.text(key);
  choice.throttle = 0;
  if (text == kOff) return;
  const size_t slash = std::min(text.find('/'), text.size());
  std::string span = text.substr(std::min(slash + 1, text.size()));
  if (!span.empty() && std::isalpha(static_cast<unsigned char>(span.front()))) span = "1 " + span;
  const char* const count_end = text.data() + slash;
  const auto [end, error] = std::from_chars(text.data(), count_end, choice.throttle);
  const bool counts =
      error == std::errc() && end == count_end && choice.throttle >= 1 && choice.throttle <= kMost;
  const auto ms = parse_duration_ms(span);
  if (!counts || !ms || *ms < 1 || *ms > kLongestMs)
    throw settings.wrong({key}, "\"" + key +
                                    "\" must be off, or a number of places and a span up to 1 d, "
                                    "such as \"10/s\" or \"100/30 s\"");
  choice.throttle_span = *ms * 1000;
}

std::string throttle_word(const PolicyChoice& choice) {
  if (choice.throttle == 0) return kOff;
  const std::string span = exact_duration(choice.throttle_span / 1000);
  return std::to_string(choice.throttle) + "/" + (span.starts_with("1 ") ? span.substr(2) : span);
}

const std::string kNoLicences = "none";

// "ansys=3, matlab=10"
void read_licences(const Settings& settings, PolicyChoice& choice) {
  const std::string key = kSection + "licences", text = settings.text(key);
  try {
    choice.licences = text == kNoLicences ? "" : rules::NamedAmounts::parse(text).text();
  } catch (const rules::AmountError& e) {
    throw settings.wrong({key}, "\"" + key + "\": " + e.what());
  }
}

// "4 curly=2"
void read_machine_limits(const Settings& settings, PolicyChoice& choice) {
  const std::string key = kSection + "most_per_machine", text = settings.text(key);
  const auto limits = scheduling::parse_machine_limits(text == kOff ? "" : text);
  if (!limits || text.empty())
    throw settings.wrong({key}, "\"" + key +
                                    "\" must be off, or a number from 1 to 1000000 and, for single "
                                    "machines, NAME=NUMBER, such as \"4\" or \"4 curly=2\"");
  choice.most_per_machine = limits->text();
}

std::string machine_limits_word(const PolicyChoice& choice) {
  return choice.most_per_machine.empty() ? kOff : choice.most_per_machine;
}

const std::vector<PolicySetting>& policy_settings() {
  using S = const Settings&;
  using P = PolicyChoice&;
  using C = const PolicyChoice&;
  using T = SettingType;
  // In the order of server.toml.
  static const std::vector<PolicySetting> kSettings = {
      {"jobs", one_of(scheduling::known_job_policies(), "the policy that chooses the next job"),
       [](S s, P p) { p.job_policy = s.text("scheduling.jobs"); },
       [](C p) { return p.job_policy; }},
      {"machines",
       one_of(scheduling::known_machine_policies(), "the policy that chooses the machine"),
       [](S s, P p) { p.machine_policy = s.text("scheduling.machines"); },
       [](C p) { return p.machine_policy; }},
      {"victims",
       one_of(scheduling::known_victim_policies(),
              "the policy that chooses who gives way to others' jobs"),
       [](S s, P p) { p.victim_policy = s.text("scheduling.victims"); },
       [](C p) { return p.victim_policy; }},
      {"candidates",
       {.type = T::integer,
        .default_value = "64",
        .min = 1,
        .max = 10'000,
        .doc = "how many idle machines that fit a job are compared"},
       [](S s, P p) { p.candidates = static_cast<uint64_t>(s.integer("scheduling.candidates")); },
       [](C p) { return std::to_string(p.candidates); }},
      {"half_life",
       {.type = T::duration,
        .default_value = "24 h",
        .min = 1000,
        .max = 1e12,
        .doc = "half-life of usage; K1 = 2^(-tick / half_life)"},
       [](S s, P p) { p.half_life = s.duration_ms("scheduling.half_life") * 1000; },
       [](C p) { return exact_duration(p.half_life / 1000); }},
      {"floor",
       {.type = T::real,
        .default_value = "0.25",
        .min = 0,
        .max = 1,
        .doc = "fair-share: the guaranteed fraction of the cores due to a user; 0: no guarantee"},
       [](S s, P p) { p.floor = s.real("scheduling.floor"); },
       [](C p) { return plain_number(p.floor); }},
      {"cost",
       one_of({"held", "cpu"},
              "fair-share: what counts as used: held (the core time of a job, if that is more than "
              "its CPU time) or cpu"),
       [](S s, P p) { p.cost_cpu = s.text("scheduling.cost") == "cpu"; },
       [](C p) { return std::string(p.cost_cpu ? "cpu" : "held"); }},
      {"initial_priority",
       one_of({"standing", "zero"},
              "priority of a new job: standing (as if it had just returned) or zero"),
       [](S s, P p) { p.initial_priority_zero = s.text("scheduling.initial_priority") == "zero"; },
       [](C p) { return std::string(p.initial_priority_zero ? "zero" : "standing"); }},
      {"turns",
       one_of({"best", "machine"},
              "fair-share-1998: best (job of all) or machine (best job of the head requesting "
              "machine)"),
       [](S s, P p) { p.turns_by_machine = s.text("scheduling.turns") == "machine"; },
       [](C p) { return std::string(p.turns_by_machine ? "machine" : "best"); }},
      {"charge",
       one_of({"kept", "all"}, "CPU time to charge: kept (work that was not lost) or all"),
       [](S s, P p) { p.charge_all = s.text("scheduling.charge") == "all"; },
       [](C p) { return std::string(p.charge_all ? "all" : "kept"); }},
      {"drift",
       {.type = T::boolean,
        .default_value = "true",
        .doc = "whether the priorities of waiting jobs drift towards the front"},
       [](S s, P p) { p.drift = s.boolean("scheduling.drift"); },
       [](C p) { return std::string(p.drift ? "true" : "false"); }},
      {"throttle",
       {.type = T::text,
        .default_value = kOff,
        .doc = "how many places a user is given within a span at most: 10/s, 100/30 s; off: any "
               "number"},
       read_throttle,
       throttle_word},
      {"wide_wait",
       {.type = T::duration,
        .default_value = "10 min",
        .min = 0,
        .max = 1e12,
        .doc = "after waiting for so long, a job that needs much of a machine is promised a place"},
       [](S s, P p) { p.wide_wait = s.duration_ms("scheduling.wide_wait") * 1000; },
       [](C p) { return exact_duration(p.wide_wait / 1000); }},
      {"licences",
       {.type = T::text,
        .default_value = kNoLicences,
        .doc = "the licences of the pool, which jobs ask for by name: ansys=3, matlab=10; none"},
       read_licences,
       [](C p) { return p.licences.empty() ? kNoLicences : p.licences; }},
      {"most_per_user",
       {.type = T::integer,
        .default_value = "0",
        .min = 0,
        .max = 1'000'000,
        .doc = "how many jobs of one user are on machines at a time at most; 0: any number"},
       [](S s, P p) {
         p.most_per_user = static_cast<uint64_t>(s.integer("scheduling.most_per_user"));
       },
       [](C p) { return std::to_string(p.most_per_user); }},
      {"most_per_machine",
       {.type = T::text,
        .default_value = kOff,
        .doc = "how many jobs are on a machine at a time at most, beside what its owner allows: 4, "
               "and for single machines NAME=NUMBER: 4 curly=2; off: what its owner allows"},
       read_machine_limits,
       machine_limits_word},
  };
  return kSettings;
}

const PolicySetting& setting_named(const std::string& name) {
  std::string known;
  for (const PolicySetting& setting : policy_settings()) {
    if (setting.name == name) return setting;
    known += (known.empty() ? "" : ", ") + setting.name;
  }
  throw Refusal(Refusal::Kind::kInvalid, "policy.unknown",
                "`" + name + "` cannot be changed while the server runs; what can: " + known,
                "The others are set in server.toml, for the next start of the server.", name);
}

}  // namespace

std::vector<SettingSpec> policy_setting_specs() {
  std::vector<SettingSpec> specs;
  for (const PolicySetting& setting : policy_settings()) {
    specs.push_back(setting.spec);
    specs.back().key = kSection + setting.name;
  }
  return specs;
}

scheduling::PolicyChoice read_policies(const Settings& settings) {
  PolicyChoice choice;
  for (const PolicySetting& setting : policy_settings()) setting.read(settings, choice);
  return choice;
}

PolicyWords words_of(const scheduling::PolicyChoice& choice) {
  PolicyWords words;
  for (const PolicySetting& setting : policy_settings())
    words.emplace_back(setting.name, setting.word(choice));
  return words;
}

scheduling::PolicyChoice changed(scheduling::PolicyChoice choice, const PolicyWords& words) {
  Settings settings(policy_setting_specs());
  for (const auto& [name, value] : words) {
    const PolicySetting& setting = setting_named(name);
    try {
      settings.override_with(kSection + name + "=" + value);
      setting.read(settings, choice);
    } catch (const SettingError& e) {
      throw Refusal(Refusal::Kind::kInvalid, "policy.invalid", e.what(), "Nothing was changed.",
                    name);
    }
  }
  return choice;
}

}  // namespace sublet::server
