#include "protocol/presence.h"

#include <algorithm>
#include <cmath>

namespace sublet::protocol {
namespace {
constexpr int64_t kMs = 1'000'000;
constexpr std::array<double, 3> kLoadSeconds = {60, 300, 900};

std::string pair_problem(const std::string& name, double become, double stay) {
  if (std::isnan(become) || std::isnan(stay)) return name + ": not a number";
  if ((become < 0) != (stay < 0)) return name + ": become and stay must both be set, or neither";
  if (become > stay) return name + ": become must not be above stay";
  return "";
}

// Known and above the threshold, if the measure counts.
bool above(double value, double threshold) { return threshold >= 0 && value > threshold; }
bool not_below(double value, double threshold) { return threshold >= 0 && value >= threshold; }
// The measure counts, but the value is missing (or not a number).
bool missing(double value, double threshold) { return threshold >= 0 && !(value >= 0); }
}  // namespace

bool is_news(const PresenceVerdict& before, const PresenceVerdict& after) {
  const bool others_may = sublet_jobs_may_come(after.state, after.reason);
  return before.state != after.state || (after.is_strict() && !before.is_strict()) ||
         others_may != sublet_jobs_may_come(before.state, before.reason);
}

Place PresenceSample::place_of(sublet_presence_reason reason) const {
  switch (reason) {
    case SUBLET_PRESENCE_INPUT:
      return input_place;
    case SUBLET_PRESENCE_MEDIA:
      return attends_place;
    case SUBLET_PRESENCE_UNSEEN:
      return unseen_place;
    default:
      return {};
  }
}

bool PresenceRule::uses_load() const {
  return std::any_of(load_stay.begin(), load_stay.end(), [](double t) { return t >= 0; });
}

std::optional<PresenceRule> PresenceRule::preset(const std::string& name) {
  PresenceRule rule;
  if (name == "default") {
    rule.cpu_become = 0.10;
    rule.cpu_stay = 0.25;
    rule.input = true;
  } else if (name == "classic") {
    rule.load_become[0] = 1.0;
    rule.load_stay[0] = 2.30;
  } else {
    return std::nullopt;
  }
  return rule;
}

std::string PresenceRule::problem() const {
  std::string found = pair_problem("cpu", cpu_become, cpu_stay);
  for (size_t i = 0; i < load_stay.size() && found.empty(); ++i) {
    found = pair_problem("load " + std::to_string(static_cast<int>(kLoadSeconds[i] / 60)) + " min",
                         load_become[i], load_stay[i]);
  }
  if (found.empty() && idle_time_ms < 0) found = "idle time must not be negative";
  if (found.empty() && resume_time_ms < 0) found = "resume time must not be negative";
  if (found.empty() && max_gap_ms <= 0) found = "the longest gap must be above 0";
  return found;
}

sublet_presence_reason OwnerPresence::blindness(const PresenceSample& sample) const {
  bool blind = sample.blind || (last_ && sample.instant <= *last_) ||
               (last_ && sample.instant - *last_ > rule_.max_gap_ms * kMs);
  if (sample.scripted == ScriptedOwner::kNone) {
    blind = blind || missing(sample.cpu, rule_.cpu_stay);
    for (size_t i = 0; i < sample.load.size(); ++i)
      blind = blind || missing(sample.load[i], rule_.load_stay[i]);
  }
  return blind ? SUBLET_PRESENCE_BLIND : SUBLET_PRESENCE_NONE;
}

bool OwnerPresence::load_disturbs(const PresenceSample& sample, bool idle) const {
  for (size_t i = 0; i < sample.load.size(); ++i) {
    if (idle ? above(sample.load[i], rule_.load_stay[i])
             : not_below(sample.load[i], rule_.load_become[i]))
      return true;
  }
  return false;
}

bool OwnerPresence::disturbs(sublet_presence_reason reason, const PresenceSample& sample,
                             bool idle) const {
  switch (reason) {
    case SUBLET_PRESENCE_PAUSED:
      return sample.paused;
    case SUBLET_PRESENCE_SLEEP:
      return sample.sleeps;
    case SUBLET_PRESENCE_SCRIPT:
      return sample.scripted == ScriptedOwner::kActive;
    case SUBLET_PRESENCE_INPUT:
      // An idle machine has had no input for so long, so any more recent input is new.
      return idle && rule_.input && sample.input_age_ms >= 0 &&
             sample.input_age_ms < (is_settling()
                                        ? std::min(rule_.resume_time_ms, rule_.idle_time_ms)
                                        : rule_.idle_time_ms);
    case SUBLET_PRESENCE_CPU:
      return idle ? above(sample.cpu, rule_.cpu_stay) : not_below(sample.cpu, rule_.cpu_become);
    case SUBLET_PRESENCE_LOAD:
      return load_disturbs(sample, idle);
    case SUBLET_PRESENCE_MEDIA:
      return rule_.input && sample.attends;
    case SUBLET_PRESENCE_UNSEEN:
      return rule_.input && sample.unseen;
    default:
      return false;
  }
}

sublet_presence_reason OwnerPresence::disturbance(const PresenceSample& sample, bool idle) const {
  const bool simulated_away = sample.scripted == ScriptedOwner::kAway;
  for (const auto reason : {SUBLET_PRESENCE_PAUSED, SUBLET_PRESENCE_SLEEP, SUBLET_PRESENCE_SCRIPT})
    if (disturbs(reason, sample, idle)) return reason;
  if (simulated_away) return SUBLET_PRESENCE_NONE;
  for (const auto reason : {SUBLET_PRESENCE_INPUT, SUBLET_PRESENCE_CPU, SUBLET_PRESENCE_LOAD,
                            SUBLET_PRESENCE_MEDIA, SUBLET_PRESENCE_UNSEEN})
    if (disturbs(reason, sample, idle)) return reason;
  return SUBLET_PRESENCE_NONE;
}

bool OwnerPresence::speaks_against_jobs(sublet_presence_reason reason,
                                        const PresenceSample& sample) const {
  return disturbs(reason, sample, false) || disturbs(reason, sample, true);
}

int64_t OwnerPresence::until_idle_after(sublet_presence_reason disturbed) const {
  const bool seen = disturbed == SUBLET_PRESENCE_CPU || disturbed == SUBLET_PRESENCE_LOAD ||
                    disturbed == SUBLET_PRESENCE_INPUT;
  return seen ? std::max<int64_t>(rule_.idle_time_ms, 1) : -1;
}

void OwnerPresence::enter(sublet_presence state, sublet_presence_reason reason,
                          int64_t ms_until_idle) {
  if (state != verdict_.state || verdict_.since == 0) verdict_.since = *last_;
  verdict_.state = state;
  verdict_.reason = reason;
  verdict_.ms_until_idle = ms_until_idle;
  verdict_.burdened = false;
}

// The owner may have been away for long when a rule ends, such as one for the night: then jobs need
// not wait for the quiet time once more.
bool OwnerPresence::rules_permit(const PresenceSample& sample, bool idle) {
  const int64_t rest = rule_.rule_rest_ms() * kMs;
  if (sample.rule_evicts && (idle || sample.instant < ruled_until_))
    ruled_until_ = sample.instant + rest;
  const bool rests = !idle && sample.instant < ruled_until_;
  const bool no_jobs = sample.rule_evicts || rests;
  if (!no_jobs && (idle || !sample.rule_withholds)) return true;
  enter(SUBLET_PRESENCE_ACTIVE, no_jobs ? SUBLET_PRESENCE_RULE : SUBLET_PRESENCE_WITHHELD, -1);
  verdict_.burdened = sample.burdened;
  return false;
}

const PresenceVerdict& OwnerPresence::update(const PresenceSample& sample) {
  const sublet_presence_reason blind = blindness(sample);
  last_ = sample.instant;
  const bool idle = verdict_.state == SUBLET_PRESENCE_AWAY;
  sublet_presence_reason disturbed =
      blind != SUBLET_PRESENCE_NONE ? blind : disturbance(sample, idle);
  if (disturbed != SUBLET_PRESENCE_NONE) {
    quiet_since_.reset();
    // The stricter word of the two.
    if (sample.jobs_stay && sample.rule_evicts && sublet_may_stay(disturbed))
      disturbed = SUBLET_PRESENCE_RULE;
    enter(SUBLET_PRESENCE_ACTIVE, disturbed, until_idle_after(disturbed));
    verdict_.burdened = sample.burdened;
    return verdict_;
  }
  const bool scripted = sample.scripted == ScriptedOwner::kAway;
  const sublet_presence_reason quiet = scripted ? SUBLET_PRESENCE_SCRIPT : SUBLET_PRESENCE_QUIET;
  if (!quiet_since_) quiet_since_ = sample.instant;
  if (!rules_permit(sample, idle)) return verdict_;
  const bool settling = is_settling();
  const bool withheld = sample.pool_withholds || (sample.rule_withholds && is_closed());
  if ((idle && !settling) || (scripted && !rule_.script_waits)) {
    enter(SUBLET_PRESENCE_AWAY, withheld ? SUBLET_PRESENCE_WITHHELD : quiet, withheld ? -1 : 0);
    return verdict_;
  }
  int64_t left = rule_.idle_time_ms - (sample.instant - *quiet_since_) / kMs;
  if (rule_.input && !scripted && sample.input_age_ms >= 0)
    left = std::max(left, rule_.idle_time_ms - sample.input_age_ms);
  if (left <= 0) {
    enter(SUBLET_PRESENCE_AWAY, withheld ? SUBLET_PRESENCE_WITHHELD : quiet, withheld ? -1 : 0);
  } else {
    const bool gone = sample.jobs_stay && rule_.idle_time_ms - left >= rule_.resume_time_ms;
    enter(settling || gone ? SUBLET_PRESENCE_AWAY : SUBLET_PRESENCE_ACTIVE,
          SUBLET_PRESENCE_SETTLING, left);
    verdict_.burdened = sample.burdened && verdict_.state == SUBLET_PRESENCE_ACTIVE;
  }
  return verdict_;
}

PresenceVerdict OwnerPresence::at(int64_t now) const {
  if (last_ && now >= *last_ && now - *last_ <= rule_.max_gap_ms * kMs) return verdict_;
  PresenceVerdict blind;
  blind.since = verdict_.state == SUBLET_PRESENCE_ACTIVE ? verdict_.since : now;
  return blind;
}

void LoadCorrection::add(double seconds, double runnable) {
  if (!(seconds > 0) || !(runnable >= 0)) return;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const double keep = std::exp(-seconds / kLoadSeconds[i]);
    jobs_[i] = jobs_[i] * keep + runnable * (1 - keep);
  }
}

double LoadCorrection::owners(double load, size_t i) const {
  return std::max(0.0, load - jobs_[i]);
}

}  // namespace sublet::protocol
