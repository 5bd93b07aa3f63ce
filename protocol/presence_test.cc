#include "protocol/presence.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <vector>

namespace sublet::protocol {
namespace {
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1000 * kMs;
constexpr int64_t kMinute = 60 * kSecond;

PresenceRule quick_rule() {
  PresenceRule rule = *PresenceRule::preset("default");
  rule.idle_time_ms = 60'000;
  return rule;
}

PresenceSample cpu_at(int64_t instant, double cores) {
  PresenceSample sample;
  sample.instant = instant;
  sample.cpu = cores;
  return sample;
}

PresenceSample load_at(int64_t instant, double load) {
  PresenceSample sample;
  sample.instant = instant;
  sample.load = {load, load, load};
  return sample;
}

PresenceSample scripted_at(int64_t instant, ScriptedOwner owner) {
  PresenceSample sample;
  sample.instant = instant;
  sample.scripted = owner;
  return sample;
}

// Quiet samples, half a second apart, from `from` to `to`.
PresenceVerdict stay_quiet(OwnerPresence* presence, int64_t from, int64_t to) {
  PresenceVerdict last;
  for (int64_t at = from; at <= to; at += kSecond / 2) last = presence->update(cpu_at(at, 0.02));
  return last;
}

// A history of samples that may hold anything: jumps, unknown values, scripts.
PresenceSample any_sample(int64_t before) {
  PresenceSample sample;
  const int64_t step = *rc::gen::weightedOneOf<int64_t>(
      {{20, rc::gen::just(kSecond / 2)},
       {2, rc::gen::inRange<int64_t>(1, 3 * kSecond)},
       {1, rc::gen::inRange<int64_t>(-5 * kSecond, 200 * kSecond)}});
  sample.instant = before + step;
  sample.cpu = *rc::gen::weightedElement<double>(
      {{30, 0.0}, {20, 0.05}, {2, 0.1}, {2, 0.2}, {2, 0.25}, {1, 0.26}, {1, 2.0}, {1, -1.0}});
  sample.input_age_ms = *rc::gen::weightedElement<int64_t>(
      {{20, -1}, {20, 100'000}, {1, 0}, {1, 2'000}, {1, 4'999}, {1, 5'000}});
  sample.scripted = *rc::gen::weightedElement<ScriptedOwner>(
      {{60, ScriptedOwner::kNone}, {1, ScriptedOwner::kActive}, {1, ScriptedOwner::kAway}});
  sample.blind = *rc::gen::weightedElement<bool>({{60, false}, {1, true}});
  sample.paused = *rc::gen::weightedElement<bool>({{60, false}, {1, true}});
  return sample;
}

// A direct reimplementation of the rule: whether this sample, together with the one
// before it, is a reason to evict, and whether it is quiet.
bool unseen(const PresenceRule& rule, const PresenceSample* before, const PresenceSample& sample) {
  if (sample.blind) return true;
  if (before != nullptr && sample.instant <= before->instant) return true;
  if (before != nullptr && sample.instant - before->instant > rule.max_gap_ms * kMs) return true;
  return sample.scripted == ScriptedOwner::kNone && sample.cpu < 0;
}
bool violates(const PresenceRule& rule, const PresenceSample& sample) {
  if (sample.paused) return true;
  if (sample.scripted != ScriptedOwner::kNone) return sample.scripted == ScriptedOwner::kActive;
  return sample.cpu > rule.cpu_stay ||
         (sample.input_age_ms >= 0 && sample.input_age_ms < rule.idle_time_ms);
}
bool quiet(const PresenceRule& rule, const PresenceSample& sample) {
  if (sample.paused) return false;
  if (sample.scripted != ScriptedOwner::kNone) return sample.scripted == ScriptedOwner::kAway;
  return sample.cpu < rule.cpu_become;
}
}  // namespace

// The jobs' part of a larger load.
double jobs_part(const LoadCorrection& correction, size_t i) {
  return 1000 - correction.owners(1000, i);
}

class PresenceTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PresenceTest);
  CPPUNIT_TEST(presets);
  CPPUNIT_TEST(rules_that_make_no_sense);
  CPPUNIT_TEST(active_until_quiet_for_long_enough);
  CPPUNIT_TEST(cpu_has_two_thresholds);
  CPPUNIT_TEST(classic_follows_the_load);
  CPPUNIT_TEST(input_evicts_and_delays);
  CPPUNIT_TEST(script_acts_at_once_unless_told_to_wait);
  CPPUNIT_TEST(the_owners_word_counts_first);
  CPPUNIT_TEST(an_unseen_session_counts_if_input_does);
  CPPUNIT_TEST(sleep_counts_under_any_rule);
  CPPUNIT_TEST(rules_evict_and_withhold);
  CPPUNIT_TEST(the_pool_withholds);
  CPPUNIT_TEST(a_rule_begins_while_jobs_that_stayed_go_on);
  CPPUNIT_TEST(after_a_rule_has_evicted_there_is_a_rest);
  CPPUNIT_TEST(blindness_is_the_owner);
  CPPUNIT_TEST(suspend_starts_afresh);
  CPPUNIT_TEST(jobs_that_stayed_go_on_first);
  CPPUNIT_TEST(news);
  CPPUNIT_TEST(silence_is_the_owner);
  CPPUNIT_TEST(not_a_number_is_blindness);
  CPPUNIT_TEST(away_only_after_uninterrupted_quiet);
  CPPUNIT_TEST(active_at_once_on_a_violation);
  CPPUNIT_TEST(never_flaps);
  CPPUNIT_TEST(correction_follows_the_kernel);
  CPPUNIT_TEST(correction_decays_after_the_jobs);
  CPPUNIT_TEST_SUITE_END();

 public:
  void presets() {
    const PresenceRule usual = *PresenceRule::preset("default");
    CPPUNIT_ASSERT_EQUAL(0.25, usual.cpu_stay);
    CPPUNIT_ASSERT(usual.cpu_become < usual.cpu_stay);
    CPPUNIT_ASSERT(usual.input);
    CPPUNIT_ASSERT(!usual.uses_load());
    CPPUNIT_ASSERT_EQUAL(int64_t{900'000}, usual.idle_time_ms);
    const PresenceRule classic = *PresenceRule::preset("classic");
    CPPUNIT_ASSERT_EQUAL(1.0, classic.load_become[0]);
    CPPUNIT_ASSERT_EQUAL(2.30, classic.load_stay[0]);
    CPPUNIT_ASSERT_EQUAL(int64_t{900'000}, classic.idle_time_ms);
    CPPUNIT_ASSERT(!classic.uses_cpu());
    CPPUNIT_ASSERT(classic.uses_load());
    CPPUNIT_ASSERT(!PresenceRule::preset("Default"));
    CPPUNIT_ASSERT(usual.problem().empty() && classic.problem().empty());
  }

  void rules_that_make_no_sense() {
    PresenceRule rule = quick_rule();
    rule.cpu_become = 0.5;
    CPPUNIT_ASSERT(!rule.problem().empty());
    rule = quick_rule();
    rule.load_stay[1] = 1;
    CPPUNIT_ASSERT(!rule.problem().empty());
    rule = quick_rule();
    rule.cpu_stay = std::numeric_limits<double>::quiet_NaN();
    CPPUNIT_ASSERT(!rule.problem().empty());
    rule = quick_rule();
    rule.idle_time_ms = -1;
    CPPUNIT_ASSERT(!rule.problem().empty());
    rule = quick_rule();
    rule.max_gap_ms = 0;
    CPPUNIT_ASSERT(!rule.problem().empty());
  }

  void active_until_quiet_for_long_enough() {
    OwnerPresence presence(quick_rule());
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, presence.at(kSecond).state);
    const PresenceVerdict settling = stay_quiet(&presence, kSecond, kSecond + 59 * kSecond);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, settling.state);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_SETTLING, settling.reason);
    CPPUNIT_ASSERT_EQUAL(int64_t{1000}, settling.ms_until_idle);
    const PresenceVerdict away = presence.update(cpu_at(61 * kSecond, 0.02));
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, away.state);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_QUIET, away.reason);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, away.ms_until_idle);
    CPPUNIT_ASSERT_EQUAL(61 * kSecond, away.since);
  }

  void cpu_has_two_thresholds() {
    OwnerPresence presence(quick_rule());
    stay_quiet(&presence, kSecond, 61 * kSecond);
    // Between the two thresholds and at the upper one it stays idle; above it does not.
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, presence.update(cpu_at(62 * kSecond, 0.2)).state);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, presence.update(cpu_at(63 * kSecond, 0.25)).state);
    const PresenceVerdict back = presence.update(cpu_at(64 * kSecond, 0.2501));
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, back.state);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_CPU, back.reason);
    CPPUNIT_ASSERT_EQUAL(int64_t{60'000}, back.ms_until_idle);  // if it is quiet from now on
    // Between the two it does not become idle again, and the quiet time restarts.
    for (int64_t at = 65; at < 300; ++at) {
      CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE,
                           presence.update(cpu_at(at * kSecond, 0.2)).state);
    }
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE,
                         stay_quiet(&presence, 300 * kSecond, 359 * kSecond).state);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, presence.update(cpu_at(360 * kSecond, 0.0)).state);
  }

  void classic_follows_the_load() {
    OwnerPresence presence(*PresenceRule::preset("classic"));
    int64_t at = kSecond;
    for (; at < 15 * kMinute; at += 5 * kSecond) {
      CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, presence.update(load_at(at, 0.9)).state);
    }
    at += 5 * kSecond;
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, presence.update(load_at(at, 0.9)).state);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, presence.update(load_at(at + kSecond, 2.30)).state);
    const PresenceVerdict back = presence.update(load_at(at + 2 * kSecond, 2.31));
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, back.state);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_LOAD, back.reason);
    // "Idle below 1.0": 1.0 is not.
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_LOAD,
                         presence.update(load_at(at + 3 * kSecond, 1.0)).reason);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_SETTLING,
                         presence.update(load_at(at + 4 * kSecond, 0.99)).reason);
  }

  void input_evicts_and_delays() {
    OwnerPresence presence(quick_rule());
    PresenceSample sample = cpu_at(0, 0);
    for (int64_t at = kSecond; at <= 61 * kSecond; at += kSecond) {
      sample.instant = at;
      sample.input_age_ms = (at - kSecond) / kMs / 2;  // the last input was after the start
      CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, presence.update(sample).state);
    }
    CPPUNIT_ASSERT_EQUAL(int64_t{30'000}, presence.at(61 * kSecond).ms_until_idle);
    sample.instant = 62 * kSecond;
    sample.input_age_ms = 60'000;
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, presence.update(sample).state);
    sample.instant = 63 * kSecond;
    sample.input_age_ms = 300;
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_INPUT, presence.update(sample).reason);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, presence.at(63 * kSecond).state);
  }

  void script_acts_at_once_unless_told_to_wait() {
    PresenceRule rule = quick_rule();
    OwnerPresence at_once(rule);
    const PresenceVerdict away = at_once.update(scripted_at(kSecond, ScriptedOwner::kAway));
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, away.state);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_SCRIPT, away.reason);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE,
                         at_once.update(scripted_at(kSecond + 1, ScriptedOwner::kActive)).state);
    rule.script_waits = true;
    OwnerPresence waits(rule);
    for (int64_t at = 1; at <= 60; ++at) {
      CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE,
                           waits.update(scripted_at(at * kSecond, ScriptedOwner::kAway)).state);
    }
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY,
                         waits.update(scripted_at(61 * kSecond, ScriptedOwner::kAway)).state);
  }

  // A machine that is idle by this rule, and then this sample.
  static sublet_presence_reason reason_after_idle(const PresenceRule& rule, PresenceSample sample) {
    OwnerPresence presence(rule);
    int64_t at = 1;
    PresenceSample quiet;
    quiet.cpu = 0;
    do {
      quiet.instant = at++ * kSecond;
    } while (presence.update(quiet).state != SUBLET_PRESENCE_AWAY);
    sample.cpu = 0;
    sample.instant = at * kSecond;
    return presence.update(sample).reason;
  }

  void an_unseen_session_counts_if_input_does() {
    PresenceSample unseen;
    unseen.unseen = true;
    PresenceRule rule = quick_rule();
    rule.input = true;
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_UNSEEN, reason_after_idle(rule, unseen));
    rule.input = false;
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_QUIET, reason_after_idle(rule, unseen));
  }

  void sleep_counts_under_any_rule() {
    PresenceSample sleeps;
    sleeps.sleeps = true;
    PresenceRule rule = quick_rule();
    rule.input = false;
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_SLEEP, reason_after_idle(rule, sleeps));
  }

  void the_owners_word_counts_first() {
    PresenceRule rule = quick_rule();
    rule.script_waits = true;
    OwnerPresence presence(rule);
    int64_t at = 1;
    const auto next = [&](bool paused) {
      PresenceSample sample = scripted_at(at++ * kSecond, ScriptedOwner::kAway);
      sample.paused = paused;
      return presence.update(sample);
    };
    while (at <= 61) next(false);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, next(false).state);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, next(true).state);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_PAUSED, next(true).reason);
    // Afterwards the quiet time begins anew.
    for (int n = 0; n < 60; ++n) CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_SETTLING, next(false).reason);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, next(false).state);
  }

  static PresenceSample ruled_at(int64_t instant, bool evicts, bool withholds) {
    PresenceSample sample = cpu_at(instant, 0.02);
    sample.rule_evicts = evicts;
    sample.rule_withholds = withholds;
    return sample;
  }

  void rules_evict_and_withhold() {
    OwnerPresence presence(quick_rule());
    // The owner is away for long while a rule withholds the machine.
    PresenceVerdict verdict;
    int64_t at = kSecond;
    for (; at < 62 * kSecond; at += kSecond / 2) {
      verdict = presence.update(ruled_at(at, false, true));
      CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, verdict.state);
      CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_WITHHELD, verdict.reason);
      CPPUNIT_ASSERT(!verdict.is_strict());  // what stayed, stays
    }
    // When it ends, nobody waits for the quiet time again.
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, presence.update(ruled_at(at, false, false)).state);
    // What only withholds, evicts nobody.
    at += kSecond / 2;
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, presence.update(ruled_at(at, false, true)).state);
    at += kSecond / 2;
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_RULE, presence.update(ruled_at(at, true, true)).reason);
    // The owner counts first.
    at += kSecond / 2;
    PresenceSample busy = ruled_at(at, true, true);
    busy.cpu = 1;
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_CPU, presence.update(busy).reason);
    // But what stayed must leave by the rule.
    busy.instant += kSecond / 2;
    busy.jobs_stay = true;
    CPPUNIT_ASSERT(presence.update(busy).is_strict());
    busy.instant += kSecond / 2;
    busy.rule_evicts = false;
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_CPU, presence.update(busy).reason);
  }

  // What is known of the pool drives nobody away, but nobody else comes, even if the machine is
  // idle.
  void the_pool_withholds() {
    OwnerPresence presence(quick_rule());
    stay_quiet(&presence, kSecond, 62 * kSecond);
    int64_t at = 62 * kSecond;
    const auto next = [&](bool pool, bool rule) {
      PresenceSample sample = ruled_at(at += kSecond / 2, false, rule);
      sample.pool_withholds = pool;
      return presence.update(sample);
    };
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_QUIET, next(false, true).reason);
    const PresenceVerdict before = presence.at(at);
    const PresenceVerdict withheld = next(true, true);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, withheld.state);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_WITHHELD, withheld.reason);
    CPPUNIT_ASSERT(!sublet_jobs_may_come(withheld.state, withheld.reason));
    CPPUNIT_ASSERT(is_news(before, withheld) && is_news(withheld, before));
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_WITHHELD, next(true, true).reason);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_QUIET, next(false, false).reason);
    // The owner comes and goes meanwhile.
    next(true, true);
    PresenceSample busy = cpu_at(at += kSecond / 2, 2.0);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_CPU, presence.update(busy).reason);
    for (int n = 0; n < 200; ++n) {
      const PresenceVerdict here = next(true, true);
      CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, here.state);
      CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_WITHHELD, here.reason);
    }
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_QUIET, next(false, false).reason);
  }

  // Those that stayed go on; the quiet time that others wait for ends in the midst of a rule.
  void a_rule_begins_while_jobs_that_stayed_go_on() {
    PresenceRule rule = quick_rule();
    rule.resume_time_ms = 10'000;
    OwnerPresence presence(rule);
    stay_quiet(&presence, kSecond, 62 * kSecond);
    int64_t at = 62 * kSecond;
    presence.update(cpu_at(at += kSecond / 2, 2.0));
    const auto next = [&](bool withholds) {
      PresenceSample sample = ruled_at(at += kSecond / 2, false, withholds);
      sample.jobs_stay = true;
      return presence.update(sample);
    };
    for (int n = 0; n < 40; ++n) next(false);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_SETTLING, next(true).reason);
    for (int n = 0; n < 200; ++n) {
      const PresenceVerdict verdict = next(true);
      CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, verdict.state);
      CPPUNIT_ASSERT(!sublet_jobs_may_come(verdict.state, verdict.reason));
    }
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_WITHHELD, next(true).reason);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_QUIET, next(false).reason);
  }

  // Otherwise a job that a rule is about would come and go for ever.
  void after_a_rule_has_evicted_there_is_a_rest() {
    PresenceRule rule = quick_rule();
    rule.idle_time_ms = 600'000;
    OwnerPresence presence(rule);
    int64_t at = kSecond;
    for (; at < 602 * kSecond; at += kSecond / 2) presence.update(ruled_at(at, false, false));
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, presence.at(at).state);
    const int64_t last = at + 10 * kSecond;
    for (; at <= last; at += kSecond / 2) presence.update(ruled_at(at, true, true));
    for (; at < last + PresenceRule::kRuleRestMs * kMs; at += kSecond / 2)
      CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_RULE,
                           presence.update(ruled_at(at, false, false)).reason);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, presence.update(ruled_at(at, false, false)).state);
  }

  void blindness_is_the_owner() {
    OwnerPresence presence(quick_rule());
    stay_quiet(&presence, kSecond, 61 * kSecond);
    PresenceSample sample = cpu_at(62 * kSecond, 0);
    sample.blind = true;
    const PresenceVerdict blind = presence.update(sample);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, blind.state);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_BLIND, blind.reason);
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, blind.ms_until_idle);
    // An unknown value is blindness, too, if the rule needs it.
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_BLIND, presence.update(cpu_at(63 * kSecond, -1)).reason);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_SETTLING, presence.update(cpu_at(64 * kSecond, 0)).reason);
    // A script does not override a failed source.
    sample = scripted_at(65 * kSecond, ScriptedOwner::kAway);
    sample.blind = true;
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, presence.update(sample).state);
  }

  // A minute of quiet is enough for them; others come after 15.
  void jobs_that_stayed_go_on_first() {
    PresenceRule rule = *PresenceRule::preset("default");
    OwnerPresence presence(rule);
    int64_t at = 0;
    const auto quiet = [&](int64_t seconds, bool jobs_stay) {
      PresenceVerdict last;
      for (const int64_t end = at + seconds * kSecond; at < end; at += kSecond / 2) {
        PresenceSample sample = cpu_at(at + 1, 0.02);
        sample.jobs_stay = jobs_stay;
        last = presence.update(sample);
      }
      return last;
    };
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_QUIET, quiet(15 * 60 + 2, false).reason);
    PresenceSample key = cpu_at(at + 1, 0.02);
    key.input_age_ms = 0;
    key.jobs_stay = true;
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_INPUT, presence.update(key).reason);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, quiet(59, true).state);
    const PresenceVerdict gone = quiet(3, true);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, gone.state);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_SETTLING, gone.reason);
    CPPUNIT_ASSERT(gone.ms_until_idle > 13 * 60'000 && gone.ms_until_idle < 14 * 60'000);
    // It stays so when they have ended, until the owner comes or the time is over.
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_SETTLING, quiet(60, false).reason);
    PresenceSample old = cpu_at(++at, 0.02);
    old.input_age_ms = 125'000;
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, presence.update(old).state);
    PresenceSample again = cpu_at(++at, 0.02);
    again.input_age_ms = 10;
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, presence.update(again).state);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_SETTLING, quiet(70, true).reason);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_QUIET, quiet(14 * 60, false).reason);
    // Nobody stayed: the owner's quiet time is whole.
    presence.update(again = cpu_at(++at, 2.0));
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, quiet(14 * 60, false).state);
  }

  void news() {
    const auto verdict = [](sublet_presence state, sublet_presence_reason reason,
                            bool burdened = false) {
      PresenceVerdict v;
      v.state = state;
      v.reason = reason;
      v.burdened = burdened;
      return v;
    };
    const auto here = verdict(SUBLET_PRESENCE_ACTIVE, SUBLET_PRESENCE_INPUT);
    const auto paused = verdict(SUBLET_PRESENCE_ACTIVE, SUBLET_PRESENCE_PAUSED);
    const auto burdened = verdict(SUBLET_PRESENCE_ACTIVE, SUBLET_PRESENCE_INPUT, true);
    const auto settling = verdict(SUBLET_PRESENCE_AWAY, SUBLET_PRESENCE_SETTLING);
    const auto idle = verdict(SUBLET_PRESENCE_AWAY, SUBLET_PRESENCE_QUIET);
    for (const auto& [before, after, expected] : {std::tuple(here, here, false),
                                                  {here, paused, true},
                                                  {here, burdened, true},
                                                  {paused, here, false},
                                                  {paused, burdened, false},
                                                  {here, settling, true},
                                                  {settling, idle, true},
                                                  {settling, here, true},
                                                  {idle, idle, false},
                                                  {idle, here, true},
                                                  {settling, settling, false}})
      CPPUNIT_ASSERT_EQUAL(expected, is_news(before, after));
  }

  void suspend_starts_afresh() {
    OwnerPresence presence(quick_rule());
    stay_quiet(&presence, kSecond, 61 * kSecond);
    const int64_t woken = 61 * kSecond + 8 * 3600 * kSecond;
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_BLIND, presence.update(cpu_at(woken, 0)).reason);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE,
                         stay_quiet(&presence, woken + kSecond, woken + 60 * kSecond).state);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY,
                         presence.update(cpu_at(woken + 61 * kSecond, 0)).state);
    // A clock that runs backwards is blindness, too.
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_BLIND, presence.update(cpu_at(woken, 0)).reason);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, presence.update(cpu_at(woken + kSecond, 0)).state);
  }

  void silence_is_the_owner() {
    OwnerPresence presence(quick_rule());
    stay_quiet(&presence, kSecond, 61 * kSecond);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_AWAY, presence.at(71 * kSecond).state);
    const PresenceVerdict silent = presence.at(71 * kSecond + 1);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, silent.state);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_BLIND, silent.reason);
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_ACTIVE, presence.at(60 * kSecond).state);
  }

  void not_a_number_is_blindness() {
    OwnerPresence presence(quick_rule());
    stay_quiet(&presence, kSecond, 61 * kSecond);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    CPPUNIT_ASSERT_EQUAL(SUBLET_PRESENCE_BLIND, presence.update(cpu_at(62 * kSecond, nan)).reason);
  }

  // Whenever the state becomes AWAY without a script, every sample of the last
  // idle_time was seen, quiet and less than max_gap from the one before.
  void away_only_after_uninterrupted_quiet() {
    CPPUNIT_ASSERT(rc::check("away only after uninterrupted quiet", [] {
      PresenceRule rule = *PresenceRule::preset("default");
      rule.idle_time_ms = 5'000;
      rule.script_waits = *rc::gen::arbitrary<bool>();
      OwnerPresence presence(rule);
      std::vector<PresenceSample> history;
      sublet_presence before = SUBLET_PRESENCE_ACTIVE;
      for (int i = 0; i < 200; ++i) {
        history.push_back(any_sample(history.empty() ? kSecond : history.back().instant));
        const PresenceVerdict verdict = presence.update(history.back());
        const bool returned = before == SUBLET_PRESENCE_AWAY;
        before = verdict.state;
        if (returned || verdict.state != SUBLET_PRESENCE_AWAY) continue;
        const bool scripted = history.back().scripted == ScriptedOwner::kAway;
        if (scripted && !rule.script_waits) continue;
        const int64_t start = history.back().instant - rule.idle_time_ms * kMs;
        for (size_t k = history.size(); k-- > 0;) {
          RC_ASSERT(quiet(rule, history[k]));
          if (history[k].instant <= start) break;
          RC_ASSERT(k > 0);
          RC_ASSERT(!unseen(rule, &history[k - 1], history[k]));
        }
        RC_ASSERT(scripted || history.back().input_age_ms < 0 ||
                  history.back().input_age_ms >= rule.idle_time_ms);
      }
    }));
  }

  // The owner never waits: a sample that violates the rule or lacks data makes the
  // verdict ACTIVE at once, whatever came before.
  void active_at_once_on_a_violation() {
    CPPUNIT_ASSERT(rc::check("active at once", [] {
      PresenceRule rule = *PresenceRule::preset("default");
      rule.idle_time_ms = 5'000;
      OwnerPresence presence(rule);
      PresenceSample last;
      for (int i = 0; i < 200; ++i) {
        const PresenceSample sample = any_sample(i == 0 ? kSecond : last.instant);
        const PresenceVerdict verdict = presence.update(sample);
        if (unseen(rule, i == 0 ? nullptr : &last, sample) || violates(rule, sample)) {
          RC_ASSERT(verdict.state == SUBLET_PRESENCE_ACTIVE);
        }
        RC_ASSERT((verdict.ms_until_idle == 0) == (verdict.state == SUBLET_PRESENCE_AWAY));
        last = sample;
      }
    }));
  }

  // Without scripts: two changes to AWAY are at least idle_time apart.
  void never_flaps() {
    CPPUNIT_ASSERT(rc::check("never flaps", [] {
      PresenceRule rule = *PresenceRule::preset("default");
      rule.idle_time_ms = 5'000;
      OwnerPresence presence(rule);
      int64_t at = kSecond;
      int64_t returned = -1;
      sublet_presence before = SUBLET_PRESENCE_ACTIVE;
      for (int i = 0; i < 300; ++i) {
        PresenceSample sample = any_sample(at);
        sample.scripted = ScriptedOwner::kNone;
        if (sample.instant <= at) sample.instant = at + 1;
        at = sample.instant;
        const PresenceVerdict verdict = presence.update(sample);
        if (before == SUBLET_PRESENCE_AWAY && verdict.state == SUBLET_PRESENCE_ACTIVE)
          returned = at;
        if (before == SUBLET_PRESENCE_ACTIVE && verdict.state == SUBLET_PRESENCE_AWAY)
          RC_ASSERT(returned < 0 || at - returned >= rule.idle_time_ms * kMs);
        before = verdict.state;
      }
    }));
  }

  // Against the kernel's own arithmetic: once every 5 s, load = load·e + n·(1 − e).
  void correction_follows_the_kernel() {
    CPPUNIT_ASSERT(rc::check("the correction equals the load of jobs alone", [] {
      LoadCorrection correction;
      std::array<double, 3> kernel = {0, 0, 0};
      const std::array<double, 3> seconds = {60, 300, 900};
      for (int i = 0; i < 100; ++i) {
        const int jobs = *rc::gen::inRange(0, 9);
        for (int part = 0; part < 10; ++part) correction.add(0.5, jobs);
        for (size_t k = 0; k < 3; ++k) {
          const double keep = std::exp(-5 / seconds[k]);
          kernel[k] = kernel[k] * keep + jobs * (1 - keep);
          RC_ASSERT(std::abs(jobs_part(correction, k) - kernel[k]) < 1e-6);
          RC_ASSERT(std::abs(correction.owners(kernel[k] + 0.7, k) - 0.7) < 1e-6);
        }
      }
    }));
  }

  void correction_decays_after_the_jobs() {
    LoadCorrection correction;
    for (int i = 0; i < 1200; ++i) correction.add(0.5, 4);  // ten minutes
    CPPUNIT_ASSERT_DOUBLES_EQUAL(4.0, jobs_part(correction, 0), 0.01);
    // A minute later the kernel still shows e^-1 of them: not the owner's.
    for (int i = 0; i < 120; ++i) correction.add(0.5, 0);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(4.0 * std::exp(-1.0), jobs_part(correction, 0), 0.01);
    CPPUNIT_ASSERT_EQUAL(0.0, correction.owners(1.0, 0));
    // Invalid values change nothing.
    const double before = jobs_part(correction, 2);
    correction.add(-1, 100);
    correction.add(1, -100);
    correction.add(std::numeric_limits<double>::quiet_NaN(), 1);
    correction.add(1, std::numeric_limits<double>::quiet_NaN());
    CPPUNIT_ASSERT_EQUAL(before, jobs_part(correction, 2));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(PresenceTest);

}  // namespace sublet::protocol
