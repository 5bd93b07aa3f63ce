#include "protocol/shepherd.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include "protocol/lease.h"

using namespace sublet::protocol;

namespace {

constexpr int64_t kMs = kNsPerMs;
constexpr int64_t kStart = 1'000'000 * kMs;

ShepherdTerms some_terms() {
  ShepherdTerms terms;
  terms.lease_ns = kStart + 30'000 * kMs;
  return terms;
}

sublet_frame presence(uint32_t state, int64_t instant = 0) {
  sublet_frame frame = {};
  frame.kind = SUBLET_FRAME_PRESENCE;
  frame.state = state;
  frame.instant = instant;
  return frame;
}

sublet_frame control(uint16_t kind, uint32_t reason = 0, int64_t instant = 0, int64_t arg = 0) {
  sublet_frame frame = {};
  frame.kind = kind;
  frame.reason = reason;
  frame.instant = instant;
  frame.arg[0] = arg;
  return frame;
}

// A machine whose program started at kStart, with contact to the monitor at every step.
struct Running {
  explicit Running(const ShepherdTerms& terms = some_terms()) : machine(terms, kStart) {
    CPPUNIT_ASSERT(machine.monitor_frame(presence(SUBLET_PRESENCE_AWAY), kStart) & kActStart);
  }
  uint32_t owner(int64_t now) {
    return machine.monitor_frame(presence(SUBLET_PRESENCE_ACTIVE, now), now);
  }
  // The owner returns to a job that answers SIGTERM so; returns what is done with the job.
  uint32_t owner_meets(TermAnswer answer, int64_t now) {
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActAssess | kActAck | kActStatus}, owner(now));
    return machine.assessed(answer, now);
  }
  // Advances time with heartbeats of the monitor; returns the actions of all ticks.
  uint32_t pass(int64_t from, int64_t to) {
    uint32_t actions = 0;
    for (int64_t now = from; now <= to; now += 100 * kMs) {
      machine.monitor_frame(presence(SUBLET_PRESENCE_AWAY), now);
      actions |= machine.tick(now);
    }
    return actions;
  }
  ShepherdMachine machine;
};

class ShepherdTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ShepherdTest);
  CPPUNIT_TEST(starts_only_when_the_owner_is_away);
  CPPUNIT_TEST(silence_before_the_start_ends_blind);
  CPPUNIT_TEST(without_a_handler_it_is_frozen_and_killed_at_once);
  CPPUNIT_TEST(with_a_handler_it_stays_demoted_until_the_deadline);
  CPPUNIT_TEST(with_a_page_it_is_lifted_for_its_handler_then_for_its_save);
  CPPUNIT_TEST(a_handler_that_runs_late_is_lifted_then);
  CPPUNIT_TEST(who_saves_files_is_lifted_within_its_ration);
  CPPUNIT_TEST(without_an_allowance_it_is_never_lifted);
  CPPUNIT_TEST(allowance_spent_freezes_and_kills);
  CPPUNIT_TEST(freeze_comes_before_lift_and_lift_before_kill);
  CPPUNIT_TEST(lost_or_silent_monitor_is_the_owner);
  CPPUNIT_TEST(other_leaves_keep_the_full_deadline);
  CPPUNIT_TEST(owner_during_another_leave);
  CPPUNIT_TEST(removed_and_replaced_are_killed);
  CPPUNIT_TEST(lease_saves_freezes_thaws);
  CPPUNIT_TEST(patience_ends);
  CPPUNIT_TEST(owner_kills_a_frozen_job);
  CPPUNIT_TEST(suspended_until_the_owner_goes);
  CPPUNIT_TEST(suspended_until_its_time_is_over);
  CPPUNIT_TEST(suspended_and_its_lease_ends);
  CPPUNIT_TEST(suspended_and_asked_to_leave);
  CPPUNIT_TEST(lingers_until_it_is_a_burden);
  CPPUNIT_TEST(lingers_and_is_killed);
  CPPUNIT_TEST(lingers_until_its_lease_ends);
  CPPUNIT_TEST(killed_without_a_save);
  CPPUNIT_TEST(the_quiet_time_starts_nothing);
  CPPUNIT_TEST(frozen_job_is_not_asked_to_save);
  CPPUNIT_TEST(exit_kills_the_rest);
  CPPUNIT_TEST(a_failed_start_heard_of_after_the_end_changes_nothing);
  CPPUNIT_TEST(wall_limit_kills);
  CPPUNIT_TEST(killing_goes_on_until_all_are_gone);
  CPPUNIT_TEST(the_owner_always_wins);
  CPPUNIT_TEST_SUITE_END();

  void starts_only_when_the_owner_is_away() {
    for (uint32_t state : {0u, 1u, 77u}) {
      ShepherdMachine machine(some_terms(), kStart);
      uint32_t actions = machine.monitor_frame(presence(state, kStart), kStart);
      CPPUNIT_ASSERT(!(actions & kActStart));
      CPPUNIT_ASSERT(actions & kActKill);
      CPPUNIT_ASSERT(!machine.started());
      CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_OWNER, machine.reason());
      CPPUNIT_ASSERT(!(machine.monitor_frame(presence(SUBLET_PRESENCE_AWAY), kStart) & kActStart));
    }
    ShepherdTerms late = some_terms();
    late.lease_ns = kStart;
    ShepherdMachine machine(late, kStart);
    CPPUNIT_ASSERT_EQUAL(0u, machine.monitor_frame(presence(SUBLET_PRESENCE_AWAY), kStart));
    CPPUNIT_ASSERT(machine.tick(kStart) & kActKill);
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_LEASE, machine.reason());
  }

  static Running running(sublet_leaving leaving, int64_t suspend_ms = 10'000) {
    ShepherdTerms terms = some_terms();
    terms.leaving = leaving;
    terms.suspend_ms = suspend_ms;
    return Running(terms);
  }
  // The owner is back, for a reason.
  static uint32_t back(Running& run, int64_t now, uint32_t reason = SUBLET_PRESENCE_INPUT,
                       uint32_t state = SUBLET_PRESENCE_ACTIVE) {
    sublet_frame frame = presence(state, now);
    frame.reason = reason;
    return run.machine.monitor_frame(frame, now) & ~uint32_t{kActAck};
  }

  void suspended_until_the_owner_goes() {
    Running run = running(SUBLET_LEAVING_SUSPEND);
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActFreeze | kActStatus}, back(run, kStart + kMs));
    CPPUNIT_ASSERT_EQUAL(SUBLET_SHEPHERD_SUSPENDED, run.machine.state());
    CPPUNIT_ASSERT_EQUAL(0u, back(run, kStart + 500 * kMs));
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_NONE, run.machine.reason());
    const int64_t gone = kStart + 900 * kMs;
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActThaw | kActStatus},
                         run.machine.monitor_frame(presence(SUBLET_PRESENCE_AWAY), gone));
    CPPUNIT_ASSERT_EQUAL(SUBLET_SHEPHERD_RUNNING, run.machine.state());
    CPPUNIT_ASSERT_EQUAL(899 * kMs, run.machine.frozen_ns());
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActFreeze | kActStatus}, back(run, kStart + 950 * kMs));
  }

  void suspended_until_its_time_is_over() {
    Running run = running(SUBLET_LEAVING_SUSPEND, 1000);
    back(run, kStart);
    for (int64_t at = 250; at < 1000; at += 250) {
      back(run, kStart + at * kMs);
      CPPUNIT_ASSERT_EQUAL(0u, run.machine.tick(kStart + at * kMs));
    }
    const int64_t over = kStart + 1000 * kMs;
    CPPUNIT_ASSERT_EQUAL(over, run.machine.next_instant());
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActAssess | kActStatus}, run.machine.tick(over));
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActTerminate | kActLift | kActThaw},
                         run.machine.assessed(TermAnswer::kStatusPage, over));
    CPPUNIT_ASSERT_EQUAL(over, run.machine.leave_detected_ns());
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_OWNER, run.machine.reason());
    // Too late to stay.
    CPPUNIT_ASSERT_EQUAL(0u, run.machine.monitor_frame(presence(SUBLET_PRESENCE_AWAY), over + kMs));
    CPPUNIT_ASSERT_EQUAL(SUBLET_SHEPHERD_SAVING, run.machine.state());
  }

  void suspended_and_its_lease_ends() {
    Running run = running(SUBLET_LEAVING_SUSPEND, 3600'000);
    const ShepherdTerms terms = some_terms();
    const int64_t save_at = lease_save_at(terms.save_deadline_ms, terms.lease_ns);
    for (int64_t at = kStart; at < save_at; at += 250 * kMs) {
      back(run, at);
      CPPUNIT_ASSERT_EQUAL(0u, run.machine.tick(at));
    }
    back(run, save_at - 1);
    CPPUNIT_ASSERT(run.machine.next_instant() == save_at);
    CPPUNIT_ASSERT(run.machine.tick(save_at) & kActAssess);  // leaves while it may still run
    // Without a tick in time: it may not run any more.
    Running late = running(SUBLET_LEAVING_SUSPEND, 3600'000);
    back(late, kStart);
    CPPUNIT_ASSERT(late.machine.tick(terms.lease_ns) & kActKill);
    Running gone = running(SUBLET_LEAVING_SUSPEND, 3600'000);
    back(gone, kStart);
    const uint32_t actions =
        gone.machine.monitor_frame(presence(SUBLET_PRESENCE_AWAY), terms.lease_ns);
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActStatus}, actions);
    CPPUNIT_ASSERT_EQUAL(SUBLET_SHEPHERD_FROZEN, gone.machine.state());
    CPPUNIT_ASSERT(
        gone.machine.control_frame(control(SUBLET_FRAME_LEASE, 0, terms.lease_ns + 30'000 * kMs),
                                   terms.lease_ns + kMs) &
        kActThaw);
  }

  void suspended_and_asked_to_leave() {
    for (auto reason : {SUBLET_LEAVE_PREEMPT, SUBLET_LEAVE_DRAIN, SUBLET_LEAVE_HELD}) {
      Running run = running(SUBLET_LEAVING_SUSPEND);
      back(run, kStart + kMs);
      const uint32_t actions =
          run.machine.control_frame(control(SUBLET_FRAME_VACATE, reason), kStart + 2 * kMs);
      CPPUNIT_ASSERT_EQUAL(uint32_t{kActAssess | kActAck | kActStatus}, actions);
      CPPUNIT_ASSERT_EQUAL(reason, run.machine.reason());
      // It runs again, but not before it has been asked to save.
      CPPUNIT_ASSERT(kActTerminate < kActThaw && kActDemote < kActThaw);
      CPPUNIT_ASSERT_EQUAL(uint32_t{kActTerminate | kActDemote | kActThaw},
                           run.machine.assessed(TermAnswer::kHandler, kStart + 2 * kMs));
    }
    Running removed = running(SUBLET_LEAVING_SUSPEND);
    back(removed, kStart + kMs);
    CPPUNIT_ASSERT(removed.machine.control_frame(control(SUBLET_FRAME_VACATE, SUBLET_LEAVE_REMOVED),
                                                 kStart + 2 * kMs) &
                   kActKill);
    // By the owner's word, by a rule, by a monitor that is lost.
    for (auto strict : {SUBLET_PRESENCE_PAUSED, SUBLET_PRESENCE_RULE, SUBLET_PRESENCE_SLEEP,
                        SUBLET_PRESENCE_BLIND, SUBLET_PRESENCE_UNSEEN}) {
      Running run = running(SUBLET_LEAVING_SUSPEND);
      back(run, kStart + kMs);
      CPPUNIT_ASSERT(back(run, kStart + 2 * kMs, strict) & kActAssess);
    }
    // By a burden, whichever job it is: monitor and client accept no stay then.
    Running burden = running(SUBLET_LEAVING_SUSPEND);
    back(burden, kStart + kMs);
    CPPUNIT_ASSERT(back(burden, kStart + 2 * kMs, SUBLET_PRESENCE_INPUT, SUBLET_PRESENCE_BURDENED) &
                   kActAssess);
    Running killed = running(SUBLET_LEAVING_SUSPEND);
    back(killed, kStart + kMs);
    killed.machine.main_exited(false, kStart + 2 * kMs);
    CPPUNIT_ASSERT(killed.machine.killed());
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_OWNER, killed.machine.reason());
    Running lost = running(SUBLET_LEAVING_SUSPEND);
    back(lost, kStart + kMs);
    CPPUNIT_ASSERT(lost.machine.monitor_lost(kStart + 2 * kMs) & kActAssess);
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_BLIND, lost.machine.reason());
  }

  void lingers_until_it_is_a_burden() {
    Running run = running(SUBLET_LEAVING_LINGER);
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActStatus}, back(run, kStart + kMs));
    CPPUNIT_ASSERT_EQUAL(SUBLET_SHEPHERD_LINGERING, run.machine.state());
    CPPUNIT_ASSERT_EQUAL(0u, back(run, kStart + 2 * kMs, SUBLET_PRESENCE_CPU));
    CPPUNIT_ASSERT(run.machine.runs());
    CPPUNIT_ASSERT_EQUAL(
        uint32_t{kActStatus},
        run.machine.monitor_frame(presence(SUBLET_PRESENCE_AWAY), kStart + 3 * kMs));
    CPPUNIT_ASSERT_EQUAL(SUBLET_SHEPHERD_RUNNING, run.machine.state());
    back(run, kStart + 4 * kMs);
    CPPUNIT_ASSERT_EQUAL(
        uint32_t{kActAssess | kActStatus},
        back(run, kStart + 5 * kMs, SUBLET_PRESENCE_INPUT, SUBLET_PRESENCE_BURDENED));
    CPPUNIT_ASSERT_EQUAL(SUBLET_SHEPHERD_SAVING, run.machine.state());
  }

  void lingers_and_is_killed() {
    // Beside the owner it was in the way, whoever killed it; what ends by itself does so.
    for (const bool by_others : {false, true}) {
      Running run = running(SUBLET_LEAVING_LINGER);
      back(run, kStart + kMs);
      run.machine.main_exited(by_others, kStart + 2 * kMs);
      CPPUNIT_ASSERT_EQUAL(by_others, run.machine.killed());
      CPPUNIT_ASSERT_EQUAL(by_others ? SUBLET_LEAVE_OWNER : SUBLET_LEAVE_NONE,
                           run.machine.reason());
    }
    Running alone = running(SUBLET_LEAVING_LINGER);
    alone.machine.main_exited(true, kStart + kMs);
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_NONE, alone.machine.reason());
  }

  // As a suspended one: frozen beside the owner it would be killed with what it has not saved.
  void lingers_until_its_lease_ends() {
    Running run = running(SUBLET_LEAVING_LINGER);
    const int64_t save_at = lease_save_at(2000, some_terms().lease_ns);
    run.pass(kStart, save_at - 200 * kMs);
    back(run, save_at - kMs);
    CPPUNIT_ASSERT_EQUAL(save_at, run.machine.next_instant());
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActAssess | kActStatus}, run.machine.tick(save_at));
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_OWNER, run.machine.reason());
    // Also one that was asked to save before.
    Running asked = running(SUBLET_LEAVING_LINGER);
    asked.pass(kStart, save_at + 100 * kMs);
    back(asked, save_at + 200 * kMs);
    CPPUNIT_ASSERT(asked.machine.next_instant() <= save_at + 200 * kMs);
    CPPUNIT_ASSERT(asked.machine.tick(save_at + 200 * kMs) & kActAssess);
  }

  void killed_without_a_save() {
    Running run = running(SUBLET_LEAVING_KILL);
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActFreeze | kActLift | kActKill | kActStatus},
                         back(run, kStart + kMs));
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_OWNER, run.machine.reason());
  }

  // The owner has gone again, but only what stayed may run.
  void the_quiet_time_starts_nothing() {
    sublet_frame settling = presence(SUBLET_PRESENCE_AWAY);
    settling.reason = SUBLET_PRESENCE_SETTLING;
    ShepherdMachine fresh(some_terms(), kStart);
    CPPUNIT_ASSERT(fresh.monitor_frame(settling, kStart) & kActKill);
    CPPUNIT_ASSERT(!fresh.started());
    Running run = running(SUBLET_LEAVING_SUSPEND);
    back(run, kStart + kMs);
    CPPUNIT_ASSERT(run.machine.monitor_frame(settling, kStart + 2 * kMs) & kActThaw);
  }

  void silence_before_the_start_ends_blind() {
    ShepherdMachine machine(some_terms(), kStart);
    int64_t due = machine.next_instant();
    CPPUNIT_ASSERT(due == kStart + SUBLET_MONITOR_SILENCE_NS);
    CPPUNIT_ASSERT_EQUAL(0u, machine.tick(due - 1));
    CPPUNIT_ASSERT(machine.tick(due) & kActKill);
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_BLIND, machine.reason());
    CPPUNIT_ASSERT(!machine.started());
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActWriteExit}, machine.all_gone(due + kMs));
  }

  void without_a_handler_it_is_frozen_and_killed_at_once() {
    Running run;
    uint32_t actions = run.owner_meets(TermAnswer::kNone, kStart + kMs);
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActFreeze | kActLift | kActKill | kActStatus}, actions);
    CPPUNIT_ASSERT(run.machine.killed());
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_OWNER, run.machine.reason());
  }

  void with_a_handler_it_stays_demoted_until_the_deadline() {
    Running run;
    int64_t seen = kStart + 500 * kMs;
    uint32_t actions =
        run.machine.monitor_frame(presence(SUBLET_PRESENCE_ACTIVE, seen - kMs), seen);
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActAssess | kActAck | kActStatus}, actions);
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActTerminate | kActDemote},
                         run.machine.assessed(TermAnswer::kHandler, seen));
    CPPUNIT_ASSERT_EQUAL(seen - kMs, run.machine.leave_detected_ns());
    CPPUNIT_ASSERT(!run.machine.counting_cpu());
    CPPUNIT_ASSERT(!run.machine.awaiting_handler());
    CPPUNIT_ASSERT_EQUAL(0u, run.machine.handler_ran(seen));
    CPPUNIT_ASSERT_EQUAL(0u, run.machine.cpu_used(1000 * kMs, seen));
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActAck}, run.owner(seen + kMs));
    int64_t end = seen + 2000 * kMs;
    CPPUNIT_ASSERT_EQUAL(end, run.machine.next_instant());
    CPPUNIT_ASSERT_EQUAL(0u, run.machine.tick(end - 1));
    actions = run.machine.tick(end);
    CPPUNIT_ASSERT((actions & (kActFreeze | kActKill)) == (kActFreeze | kActKill));
    CPPUNIT_ASSERT(run.machine.killed());
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_OWNER, run.machine.reason());
  }

  void with_a_page_it_is_lifted_for_its_handler_then_for_its_save() {
    Running run;
    int64_t now = kStart + kMs;
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActTerminate | kActLift},
                         run.owner_meets(TermAnswer::kStatusPage, now));
    CPPUNIT_ASSERT(run.machine.awaiting_handler());
    CPPUNIT_ASSERT(run.machine.next_instant() <= now + kMs);
    CPPUNIT_ASSERT_EQUAL(0u, run.machine.cpu_used(kUnseenNs - 1, now));
    CPPUNIT_ASSERT_EQUAL(0u, run.machine.handler_ran(now));  // it is lifted already
    CPPUNIT_ASSERT(!run.machine.awaiting_handler());
    CPPUNIT_ASSERT_EQUAL(0u, run.machine.cpu_used(50 * kMs - 1, now + 60 * kMs));
    CPPUNIT_ASSERT(run.machine.tick(now + 2000 * kMs) & kActKill);
  }

  void a_handler_that_runs_late_is_lifted_then() {
    Running run;
    int64_t now = kStart + kMs;
    run.owner_meets(TermAnswer::kStatusPage, now);
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActDemote}, run.machine.cpu_used(kUnseenNs, now));
    CPPUNIT_ASSERT(!run.machine.counting_cpu());
    CPPUNIT_ASSERT(run.machine.awaiting_handler());
    CPPUNIT_ASSERT(run.machine.next_instant() <= now + 10 * kMs);
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActLift}, run.machine.handler_ran(now + 5 * kMs));
    CPPUNIT_ASSERT_EQUAL(0u, run.machine.handler_ran(now + 5 * kMs));  // once
    CPPUNIT_ASSERT_EQUAL(0u, run.machine.cpu_used(50 * kMs - 1, now + 60 * kMs));
    CPPUNIT_ASSERT(run.machine.cpu_used(50 * kMs, now + 61 * kMs) & kActKill);
  }

  // A program that uses all that it gets is lifted for its start, and for a fifth of a core from
  // then on: whatever it does, it has used no more than its ration and what one look misses.
  void who_saves_files_is_lifted_within_its_ration() {
    ShepherdTerms terms = some_terms();
    terms.saves_files = true;
    Running run(terms);
    const int64_t asked = kStart + 10 * kMs;
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActLift | kActTerminate},
                         run.owner_meets(TermAnswer::kHandler, asked));
    CPPUNIT_ASSERT(run.machine.rationed() && !run.machine.awaiting_handler());
    bool lifted = true;
    int64_t used = 0, lifts = 1;
    for (int64_t now = asked + kMs; now < asked + 2000 * kMs; now += kMs) {
      used += lifted ? kMs : 0;
      CPPUNIT_ASSERT(run.machine.next_instant() <= now + 10 * kMs);
      CPPUNIT_ASSERT_EQUAL(0u, run.machine.tick(now));
      const uint32_t actions = run.machine.cpu_used(used, now);
      CPPUNIT_ASSERT_EQUAL(actions, actions & (lifted ? kActDemote : kActLift));
      if (actions != 0) lifted = !lifted;
      lifts += actions == kActLift;
      CPPUNIT_ASSERT(used <= save_ration_ns(now - asked) + kMs);
    }
    CPPUNIT_ASSERT(used >= 395 * kMs && lifts > 50);
    CPPUNIT_ASSERT(run.machine.tick(asked + 2000 * kMs) & kActKill);
    // Who has nobody to ask is killed as before; who reports its saves is lifted as before.
    Running silent(terms);
    CPPUNIT_ASSERT(silent.owner_meets(TermAnswer::kNone, asked) & kActKill);
    Running reporting(terms);
    reporting.owner_meets(TermAnswer::kStatusPage, asked);
    CPPUNIT_ASSERT(!reporting.machine.rationed() && reporting.machine.awaiting_handler());
  }

  void without_an_allowance_it_is_never_lifted() {
    ShepherdTerms terms = some_terms();
    terms.cpu_allowance_ms = 0;
    Running run(terms);
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActTerminate | kActDemote},
                         run.owner_meets(TermAnswer::kStatusPage, kStart + kMs));
    CPPUNIT_ASSERT_EQUAL(0u, run.machine.handler_ran(kStart + kMs));
  }

  void allowance_spent_freezes_and_kills() {
    Running run;
    run.owner_meets(TermAnswer::kStatusPage, kStart + kMs);
    run.machine.handler_ran(kStart + kMs);
    CPPUNIT_ASSERT_EQUAL(0u, run.machine.cpu_used(50 * kMs - 1, kStart + 60 * kMs));
    uint32_t actions = run.machine.cpu_used(50 * kMs, kStart + 61 * kMs);
    CPPUNIT_ASSERT((actions & (kActFreeze | kActKill)) == (kActFreeze | kActKill));
  }

  // Actions are carried out in the order of their bits.
  void freeze_comes_before_lift_and_lift_before_kill() {
    CPPUNIT_ASSERT(kActFreeze < kActLift && kActLift < kActKill);
    uint32_t all = kActFreeze | kActLift | kActKill;
    Running exited, spent, late;
    CPPUNIT_ASSERT_EQUAL(all, exited.machine.main_exited(false, kStart) & all);
    spent.machine.control_frame(control(SUBLET_FRAME_VACATE, SUBLET_LEAVE_PREEMPT, 0, 10), kStart);
    CPPUNIT_ASSERT_EQUAL(all, spent.machine.tick(kStart + 10 * kMs) & all);
    CPPUNIT_ASSERT_EQUAL(all, late.machine.over_limit(kStart) & all);
  }

  void lost_or_silent_monitor_is_the_owner() {
    Running lost;
    CPPUNIT_ASSERT(lost.machine.monitor_lost(kStart + kMs) & kActAssess);
    CPPUNIT_ASSERT(lost.machine.assessed(TermAnswer::kHandler, kStart + kMs) & kActTerminate);
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_BLIND, lost.machine.reason());
    Running silent;
    int64_t due = silent.machine.next_instant();
    CPPUNIT_ASSERT(due == kStart + SUBLET_MONITOR_SILENCE_NS);
    CPPUNIT_ASSERT(silent.machine.tick(due) & kActAssess);
    CPPUNIT_ASSERT(silent.machine.assessed(TermAnswer::kStatusPage, due) & kActTerminate);
    CPPUNIT_ASSERT(silent.machine.counting_cpu());
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_BLIND, silent.machine.reason());
  }

  void other_leaves_keep_the_full_deadline() {
    for (uint32_t reason : {SUBLET_LEAVE_PREEMPT, SUBLET_LEAVE_DRAIN, SUBLET_LEAVE_HELD,
                            SUBLET_LEAVE_ADMINISTRATOR}) {
      Running run;
      uint32_t actions =
          run.machine.control_frame(control(SUBLET_FRAME_VACATE, reason, 0, 5000), kStart + kMs);
      CPPUNIT_ASSERT_EQUAL(uint32_t{kActTerminate | kActAck | kActStatus}, actions);
      CPPUNIT_ASSERT(!run.machine.counting_cpu());
      CPPUNIT_ASSERT_EQUAL(0u, run.machine.cpu_used(1000 * kMs, kStart + 2 * kMs));
      CPPUNIT_ASSERT(!(run.pass(kStart + 2 * kMs, kStart + 5000 * kMs) & kActKill));
      CPPUNIT_ASSERT(run.machine.tick(kStart + 5001 * kMs) & kActKill);
    }
  }

  void owner_during_another_leave() {
    Running run;
    run.machine.control_frame(control(SUBLET_FRAME_VACATE, SUBLET_LEAVE_DRAIN, 0, 60'000), kStart);
    uint32_t actions = run.owner_meets(TermAnswer::kStatusPage, kStart + 100 * kMs);
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActLift}, actions);  // it got a SIGTERM before
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_OWNER, run.machine.reason());
    CPPUNIT_ASSERT(run.machine.tick(kStart + 2100 * kMs) & kActKill);
  }

  void removed_and_replaced_are_killed() {
    for (uint32_t reason : {SUBLET_LEAVE_REMOVED, SUBLET_LEAVE_REPLACED}) {
      Running run;
      CPPUNIT_ASSERT(run.machine.control_frame(control(SUBLET_FRAME_VACATE, reason), kStart) &
                     kActKill);
    }
    Running run;
    CPPUNIT_ASSERT(
        run.machine.control_frame(control(SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED), kStart) &
        kActKill);
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_REMOVED, run.machine.reason());
  }

  void lease_saves_freezes_thaws() {
    Running run;
    // An older lease does not shorten the current one.
    CPPUNIT_ASSERT_EQUAL(
        uint32_t{kActAck},
        run.machine.control_frame(control(SUBLET_FRAME_LEASE, 0, kStart + 9'000 * kMs), kStart));
    CPPUNIT_ASSERT_EQUAL(0u, run.pass(kStart, kStart + 26'900 * kMs));
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActSave},
                         run.pass(kStart + 27'000 * kMs, kStart + 29'900 * kMs));
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActFreeze | kActStatus},
                         run.pass(kStart + 30'000 * kMs, kStart + 40'000 * kMs));
    CPPUNIT_ASSERT_EQUAL(SUBLET_SHEPHERD_FROZEN, run.machine.state());
    int64_t now = kStart + 40'000 * kMs;
    // Neither an older lease nor one that has already expired thaws.
    for (int64_t until : {kStart, now})
      CPPUNIT_ASSERT_EQUAL(uint32_t{kActAck},
                           run.machine.control_frame(control(SUBLET_FRAME_LEASE, 0, until), now));
    uint32_t actions =
        run.machine.control_frame(control(SUBLET_FRAME_LEASE, 0, now + 30'000 * kMs), now);
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActThaw | kActAck | kActStatus}, actions);
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_NONE, run.machine.reason());
    CPPUNIT_ASSERT_EQUAL(10'000 * kMs, run.machine.frozen_ns());
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActSave}, run.pass(now, now + 29'900 * kMs));
  }

  void patience_ends() {
    Running run;
    int64_t end = kStart + 3'630'000 * kMs;
    CPPUNIT_ASSERT(!(run.pass(kStart, end - 100 * kMs) & kActKill));
    CPPUNIT_ASSERT(run.machine.tick(end) & kActKill);
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_LEASE, run.machine.reason());
  }

  void owner_kills_a_frozen_job() {
    Running run;
    run.pass(kStart, kStart + 31'000 * kMs);
    uint32_t actions = run.owner(kStart + 31'001 * kMs);
    CPPUNIT_ASSERT(actions & kActKill);
    CPPUNIT_ASSERT(!(actions & (kActThaw | kActTerminate)));
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_OWNER, run.machine.reason());
  }

  void frozen_job_is_not_asked_to_save() {
    Running run;
    run.pass(kStart, kStart + 31'000 * kMs);
    uint32_t actions = run.machine.control_frame(control(SUBLET_FRAME_VACATE, SUBLET_LEAVE_DRAIN),
                                                 kStart + 31'001 * kMs);
    CPPUNIT_ASSERT(actions & kActKill);
    CPPUNIT_ASSERT(!(actions & kActTerminate));
  }

  void exit_kills_the_rest() {
    Running run;
    CPPUNIT_ASSERT(run.machine.main_exited(false, kStart + kMs) & kActKill);
    CPPUNIT_ASSERT(!run.machine.killed());
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_NONE, run.machine.reason());
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActWriteExit}, run.machine.all_gone(kStart + 2 * kMs));
    CPPUNIT_ASSERT_EQUAL(0u, run.machine.all_gone(kStart + 3 * kMs));
    CPPUNIT_ASSERT_EQUAL(INT64_MAX, run.machine.next_instant());
  }

  void a_failed_start_heard_of_after_the_end_changes_nothing() {
    Running run;
    run.machine.main_exited(false, kStart + kMs);
    CPPUNIT_ASSERT_EQUAL(uint32_t{kActWriteExit}, run.machine.all_gone(kStart + kMs));
    CPPUNIT_ASSERT_EQUAL(0u, run.machine.start_failed(kStart + 2 * kMs));
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, run.machine.leave_detected_ns());
    CPPUNIT_ASSERT_EQUAL(SUBLET_SHEPHERD_ENDED, run.machine.state());
  }

  void wall_limit_kills() {
    ShepherdTerms terms = some_terms();
    terms.limit_wall_s = 3;
    Running run(terms);
    CPPUNIT_ASSERT(!(run.pass(kStart, kStart + 2900 * kMs) & kActKill));
    CPPUNIT_ASSERT(run.machine.next_instant() <= kStart + 3000 * kMs);
    CPPUNIT_ASSERT(run.machine.tick(kStart + 3000 * kMs) & kActKill);
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_LIMIT, run.machine.reason());
  }

  void killing_goes_on_until_all_are_gone() {
    Running run;
    run.machine.main_exited(false, kStart);
    int64_t now = kStart;
    for (int i = 0; i < 50; ++i) {
      int64_t next = run.machine.next_instant();
      CPPUNIT_ASSERT(next > now && next - now <= 100 * kMs);
      CPPUNIT_ASSERT(run.machine.tick(next) & kActKill);
      now = next;
    }
  }

  // Whatever happened before: after the owner's return the job never thaws, never
  // starts, and is killed within the deadline unless it has ended.
  void the_owner_always_wins() {
    CPPUNIT_ASSERT(rc::check([] {
      ShepherdTerms terms = some_terms();
      terms.lease_ns = kStart + *rc::gen::inRange<int64_t>(0, 20'000) * kMs;
      ShepherdMachine machine(terms, kStart);
      int64_t now = kStart, back = 0;
      bool killed = false;
      uint32_t starts = 0;
      auto steps = *rc::gen::container<std::vector<std::pair<int, int>>>(
          rc::gen::pair(rc::gen::inRange(0, 9), rc::gen::inRange(0, 900)));
      for (auto [what, wait] : steps) {
        now += wait * kMs;
        uint32_t actions = machine.tick(now);
        bool owner = false;
        if (what <= 2) actions |= machine.monitor_frame(presence(SUBLET_PRESENCE_AWAY), now);
        if (what == 3)
          owner = true, actions |= machine.monitor_frame(presence(SUBLET_PRESENCE_ACTIVE), now);
        if (what == 4) owner = true, actions |= machine.monitor_lost(now);
        if (what == 5)
          actions |= machine.control_frame(control(SUBLET_FRAME_LEASE, 0, now + 9000 * kMs), now);
        if (what == 6)
          actions |= machine.control_frame(
              control(SUBLET_FRAME_VACATE, static_cast<uint32_t>(wait % 10)), now);
        if (what == 7) actions |= machine.handler_ran(now);
        if (what == 8) actions |= machine.cpu_used(wait * kMs / 10, now);
        const auto answer = static_cast<TermAnswer>(wait % 3);
        if (actions & kActAssess) actions |= machine.assessed(answer, now);
        // Only who reports its saves is lifted, unless it is frozen first to die.
        if (answer != TermAnswer::kStatusPage && (actions & kActAssess))
          RC_ASSERT(!(actions & kActLift) || (actions & kActFreeze));
        starts += (actions & kActStart) != 0;
        killed |= (actions & kActKill) != 0;
        if (back) RC_ASSERT(!(actions & (kActThaw | kActStart | kActSave)));
        if (owner && !back) back = now;
        if (back && now >= back + 2000 * kMs) RC_ASSERT(killed || (machine.tick(now) & kActKill));
        RC_ASSERT(machine.next_instant() > now - 1 || machine.tick(now) != 0);
      }
      RC_ASSERT(starts <= 1u);
    }));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ShepherdTest);

}  // namespace
