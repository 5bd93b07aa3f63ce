#include "protocol/attempt.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <csignal>
#include <functional>
#include <limits>
#include <map>
#include <sstream>
#include <utility>

namespace sublet::protocol {
namespace {

using State = AttemptState;
using Machine = AttemptMachine;

enum class Event {
  kBegin,
  kStaged,
  kStagingFailed,
  kShepherdStarted,
  kShepherdFailed,
  kNewCheckpoint,
  kCheckpointOver,
  kLeaveOwner,
  kLeavePreempt,
  kLeaveRemoved,
  kEnded,
  kVanished,
  kHandedIn,
  kRenewed,
  kSuperseded,
  kReportLater,
  kCleared,
  kCount
};

uint32_t feed(Machine& m, Event event) {
  switch (event) {
    case Event::kBegin:
      return m.begin();
    case Event::kStaged:
      return m.staged();
    case Event::kStagingFailed:
      return m.staging_failed(kEndStaging);
    case Event::kShepherdStarted:
      return m.shepherd_started();
    case Event::kShepherdFailed:
      return m.shepherd_failed(kEndStart);
    case Event::kNewCheckpoint:
      return m.generation(m.held_generation() + 1, 0);
    case Event::kCheckpointOver:
      return m.checkpoint_done(m.held_generation() + 1, 0);
    case Event::kLeaveOwner:
      return m.leave(SUBLET_LEAVE_OWNER);
    case Event::kLeavePreempt:
      return m.leave(SUBLET_LEAVE_PREEMPT);
    case Event::kLeaveRemoved:
      return m.leave(SUBLET_LEAVE_REMOVED);
    case Event::kEnded:
      return m.ended();
    case Event::kVanished:
      return m.vanished();
    case Event::kHandedIn:
      return m.handed_in();
    case Event::kRenewed:
      return m.lease_renewed();
    case Event::kSuperseded:
      return m.superseded();
    case Event::kReportLater:
      return m.report_later();
    case Event::kCleared:
      return m.cleared();
    case Event::kCount:
      break;
  }
  return 0;
}

// The states of the table, each with the events that lead to it.
using Way = std::vector<Event>;
const std::map<std::string, Way> kStations = {
    {"accepted", {}},
    {"staging", {Event::kBegin}},
    {"starting", {Event::kBegin, Event::kStaged}},
    {"running", {Event::kBegin, Event::kStaged, Event::kShepherdStarted}},
    {"saving on", {Event::kBegin, Event::kStaged, Event::kShepherdStarted, Event::kNewCheckpoint}},
    {"leaving, staging", {Event::kBegin, Event::kLeavePreempt}},
    {"leaving, starting", {Event::kBegin, Event::kStaged, Event::kLeavePreempt}},
    {"leaving", {Event::kBegin, Event::kStaged, Event::kShepherdStarted, Event::kLeavePreempt}},
    {"killed", {Event::kBegin, Event::kStaged, Event::kShepherdStarted, Event::kSuperseded}},
    {"handing in", {Event::kBegin, Event::kStaged, Event::kShepherdStarted, Event::kEnded}},
    {"clearing, saving on",
     {Event::kBegin, Event::kStaged, Event::kShepherdStarted, Event::kNewCheckpoint,
      Event::kVanished}},
    {"clearing",
     {Event::kBegin, Event::kStaged, Event::kShepherdStarted, Event::kNewCheckpoint,
      Event::kVanished, Event::kCheckpointOver}},
    {"killed, clearing, saving on",
     {Event::kBegin, Event::kStaged, Event::kShepherdStarted, Event::kNewCheckpoint,
      Event::kSuperseded, Event::kVanished}},
    {"killed, clearing",
     {Event::kBegin, Event::kStaged, Event::kShepherdStarted, Event::kNewCheckpoint,
      Event::kSuperseded, Event::kVanished, Event::kCheckpointOver}},
    {"reporting",
     {Event::kBegin, Event::kStaged, Event::kShepherdStarted, Event::kEnded, Event::kHandedIn}},
    {"forgotten",
     {Event::kBegin, Event::kStaged, Event::kShepherdStarted, Event::kEnded, Event::kHandedIn,
      Event::kSuperseded}},
};

struct Cell {
  State next;
  uint32_t actions;
};

// State -> event -> expected result. An event without a cell changes nothing.
const std::map<std::string, std::map<Event, Cell>> kTable = {
    {"accepted",
     {{Event::kBegin, {State::kStaging, kStage}},
      {Event::kLeaveOwner, {State::kReporting, kRecordEnd | kReport}},
      {Event::kLeavePreempt, {State::kReporting, kRecordEnd | kReport}},
      {Event::kLeaveRemoved, {State::kReporting, kRecordEnd | kReport}},
      {Event::kSuperseded, {State::kForgotten, kRemove}}}},
    {"staging",
     {{Event::kStaged, {State::kStarting, kStart}},
      {Event::kStagingFailed, {State::kReporting, kRecordEnd | kReport}},
      {Event::kLeaveOwner, {State::kLeaving, kStopWork}},
      {Event::kLeavePreempt, {State::kLeaving, kStopWork}},
      {Event::kLeaveRemoved, {State::kLeaving, kStopWork}},
      {Event::kSuperseded, {State::kLeaving, kStopWork}}}},
    {"starting",
     {{Event::kShepherdStarted, {State::kRunning, kConnect | kTellStarted}},
      {Event::kShepherdFailed, {State::kReporting, kRecordEnd | kReport}},
      {Event::kLeaveOwner, {State::kLeaving, 0}},
      {Event::kLeavePreempt, {State::kLeaving, 0}},
      {Event::kLeaveRemoved, {State::kLeaving, 0}},
      {Event::kSuperseded, {State::kLeaving, 0}}}},
    {"running",
     {{Event::kNewCheckpoint, {State::kRunning, kCheckpoint}},
      {Event::kLeaveOwner, {State::kLeaving, kSendVacate}},
      {Event::kLeavePreempt, {State::kLeaving, kSendVacate}},
      {Event::kLeaveRemoved, {State::kLeaving, kSendKill}},
      {Event::kEnded, {State::kHandingIn, kHandIn}},
      {Event::kVanished, {State::kHandingIn, kKillTenant | kRecordEnd | kHandIn}},
      {Event::kRenewed, {State::kRunning, kSendLease}},
      {Event::kSuperseded, {State::kLeaving, kSendKill}}}},
    {"saving on",
     {{Event::kCheckpointOver, {State::kRunning, 0}},
      {Event::kLeaveOwner, {State::kLeaving, kStopWork | kSendVacate}},
      {Event::kLeavePreempt, {State::kLeaving, kStopWork | kSendVacate}},
      {Event::kLeaveRemoved, {State::kLeaving, kStopWork | kSendKill}},
      {Event::kEnded, {State::kHandingIn, kStopWork}},
      {Event::kVanished, {State::kHandingIn, kKillTenant | kRecordEnd | kStopWork}},
      {Event::kRenewed, {State::kRunning, kSendLease}},
      {Event::kSuperseded, {State::kLeaving, kStopWork | kSendKill}}}},
    {"leaving, staging",
     {{Event::kStaged, {State::kReporting, kRecordEnd | kReport}},
      {Event::kStagingFailed, {State::kReporting, kRecordEnd | kReport}},
      {Event::kLeaveOwner, {State::kLeaving, 0}},
      {Event::kLeaveRemoved, {State::kLeaving, 0}},
      {Event::kSuperseded, {State::kLeaving, kStopWork}}}},
    {"leaving, starting",
     {{Event::kShepherdStarted, {State::kLeaving, kConnect | kSendVacate}},
      {Event::kShepherdFailed, {State::kReporting, kRecordEnd | kReport}},
      {Event::kLeaveOwner, {State::kLeaving, 0}},
      {Event::kLeaveRemoved, {State::kLeaving, 0}},
      {Event::kSuperseded, {State::kLeaving, 0}}}},
    {"leaving",
     {{Event::kLeaveOwner, {State::kLeaving, kSendVacate}},
      {Event::kLeaveRemoved, {State::kLeaving, kSendKill}},
      {Event::kEnded, {State::kHandingIn, kHandIn}},
      {Event::kVanished, {State::kHandingIn, kKillTenant | kRecordEnd | kHandIn}},
      {Event::kRenewed, {State::kLeaving, kSendLease}},
      {Event::kSuperseded, {State::kLeaving, kSendKill}}}},
    {"killed",
     {{Event::kEnded, {State::kForgotten, kRemove}},
      {Event::kVanished, {State::kForgotten, kKillTenant | kRemove}}}},
    {"handing in",
     {{Event::kHandedIn, {State::kReporting, kReport}},
      {Event::kSuperseded, {State::kHandingIn, kStopWork}}}},
    {"clearing, saving on",
     {{Event::kCheckpointOver, {State::kHandingIn, 0}},
      {Event::kCleared, {State::kHandingIn, 0}},
      {Event::kSuperseded, {State::kHandingIn, kStopWork}}}},
    {"clearing",
     {{Event::kCleared, {State::kHandingIn, kHandIn}},
      {Event::kSuperseded, {State::kHandingIn, kStopWork}}}},
    {"killed, clearing, saving on",
     {{Event::kCheckpointOver, {State::kHandingIn, 0}}, {Event::kCleared, {State::kHandingIn, 0}}}},
    {"killed, clearing", {{Event::kCleared, {State::kForgotten, kRemove}}}},
    {"reporting",
     {{Event::kReportLater, {State::kHandingIn, kHandIn}},
      {Event::kSuperseded, {State::kForgotten, kRemove}}}},
    {"forgotten", {}},
};

Machine at(const std::string& station) {
  Machine m(30'000, 0);
  for (Event event : kStations.at(station)) feed(m, event);
  return m;
}

class AttemptTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(AttemptTest);
  CPPUNIT_TEST(every_cell_of_the_table);
  CPPUNIT_TEST(after_a_restart);
  CPPUNIT_TEST(reasons_decide_the_end);
  CPPUNIT_TEST(one_checkpoint_an_interval);
  CPPUNIT_TEST(files_are_copied_every_so_often);
  CPPUNIT_TEST(work_under_way_is_waited_for);
  CPPUNIT_TEST(any_history_ends_once);
  CPPUNIT_TEST(classification);
  CPPUNIT_TEST(ends_have_names);
  CPPUNIT_TEST(who_stays_goes_on_or_leaves);
  CPPUNIT_TEST(who_fetches_nothing_starts_at_once);
  CPPUNIT_TEST_SUITE_END();

  void every_cell_of_the_table() {
    for (const auto& [station, cells] : kTable) {
      for (int e = 0; e < static_cast<int>(Event::kCount); ++e) {
        Machine m = at(station);
        auto event = static_cast<Event>(e);
        auto cell = cells.find(event);
        Cell expected = cell == cells.end() ? Cell{m.state(), 0} : cell->second;
        uint32_t actions = feed(m, event);
        std::string where = station + ", event " + std::to_string(e);
        CPPUNIT_ASSERT_EQUAL_MESSAGE(where, static_cast<int>(expected.next),
                                     static_cast<int>(m.state()));
        CPPUNIT_ASSERT_EQUAL_MESSAGE(where, expected.actions, actions);
      }
    }
    CPPUNIT_ASSERT_EQUAL(kStations.size(), kTable.size());
  }

  void restart(FolderFacts facts, State state, uint32_t actions, EndCode end = kEndNone) {
    Machine m(30'000, 0);
    CPPUNIT_ASSERT_EQUAL(actions, m.restored(facts));
    CPPUNIT_ASSERT(state == m.state());
    CPPUNIT_ASSERT_EQUAL(end, m.end());
    CPPUNIT_ASSERT_EQUAL(0u, m.restored(facts));  // once
  }

  void after_a_restart() {
    restart({}, State::kStaging, kStage);
    restart({.end_recorded = true}, State::kHandingIn, kHandIn);
    restart({.exit_recorded = true, .shepherd_known = true}, State::kHandingIn, kHandIn);
    // The exit record counts even while the shepherd is still exiting.
    restart({.exit_recorded = true, .shepherd_known = true, .shepherd_alive = true},
            State::kHandingIn, kHandIn);
    restart({.shepherd_known = true, .shepherd_alive = true}, State::kRunning,
            kConnect | kTellStarted);
    restart({.shepherd_known = true}, State::kHandingIn, kKillTenant | kRecordEnd | kHandIn,
            kEndLost);
  }

  void reasons_decide_the_end() {
    Machine m = at("leaving, staging");
    m.staging_failed(kEndNone);
    CPPUNIT_ASSERT_EQUAL(kEndPreempted, m.end());
    m = at("staging");
    m.staging_failed(kEndStaging);
    CPPUNIT_ASSERT_EQUAL(kEndStaging, m.end());
    m = at("running");
    m.vanished();
    CPPUNIT_ASSERT_EQUAL(kEndLost, m.end());
    m = at("running");
    m.leave(SUBLET_LEAVE_OWNER);
    m.vanished();
    CPPUNIT_ASSERT_EQUAL(kEndOwner, m.end());
    m = at("leaving");  // the owner's return replaces a pre-emption
    m.leave(SUBLET_LEAVE_BLIND);
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_BLIND, m.leave_reason());
    m = at("starting");
    m.superseded();
    CPPUNIT_ASSERT_EQUAL(uint32_t{kConnect | kSendKill}, m.shepherd_started());
  }

  void one_checkpoint_an_interval() {
    constexpr int64_t never = std::numeric_limits<int64_t>::max();
    Machine m(30'000, 5);
    for (Event event : kStations.at("running")) feed(m, event);
    CPPUNIT_ASSERT_EQUAL(0u, m.generation(5, 1000));  // the server has it
    CPPUNIT_ASSERT_EQUAL(never, m.checkpoint_due_ms());
    CPPUNIT_ASSERT_EQUAL(uint32_t{kCheckpoint}, m.generation(6, 2000));
    CPPUNIT_ASSERT_EQUAL(0u, m.generation(7, 3000));  // one at a time
    m.checkpoint_done(6, 4000);
    CPPUNIT_ASSERT_EQUAL(int64_t{34'000}, m.checkpoint_due_ms());
    CPPUNIT_ASSERT_EQUAL(0u, m.tick(33'999));
    CPPUNIT_ASSERT_EQUAL(uint32_t{kCheckpoint}, m.tick(34'000));
    m.checkpoint_done(0, 35'000);  // not handed in: retried after the interval
    CPPUNIT_ASSERT_EQUAL(int64_t{65'000}, m.checkpoint_due_ms());
    CPPUNIT_ASSERT_EQUAL(uint64_t{6}, m.held_generation());
  }

  void files_are_copied_every_so_often() {
    constexpr int64_t never = std::numeric_limits<int64_t>::max();
    Machine m(30'000, 5);
    m.copy_every(10'000);
    CPPUNIT_ASSERT_EQUAL(never, m.checkpoint_due_ms());
    for (Event event : kStations.at("running")) feed(m, event);
    CPPUNIT_ASSERT_EQUAL(0u, m.tick(7'000));  // the first interval begins
    CPPUNIT_ASSERT_EQUAL(int64_t{17'000}, m.checkpoint_due_ms());
    CPPUNIT_ASSERT_EQUAL(uint32_t{kCheckpoint}, m.tick(17'000));
    CPPUNIT_ASSERT_EQUAL(never, m.checkpoint_due_ms());
    m.checkpoint_done(0, 18'000);  // nothing new
    CPPUNIT_ASSERT_EQUAL(int64_t{28'000}, m.checkpoint_due_ms());
    m.copy_every(60'000);
    CPPUNIT_ASSERT_EQUAL(int64_t{78'000}, m.checkpoint_due_ms());
    m.copy_every(10'000);
    m.stays(true);  // suspended: nothing changes
    CPPUNIT_ASSERT_EQUAL(never, m.checkpoint_due_ms());
    m.resumed();
    CPPUNIT_ASSERT_EQUAL(uint32_t{kCheckpoint}, m.tick(40'000));
    m.checkpoint_done(6, 41'000);
    CPPUNIT_ASSERT_EQUAL(uint64_t{6}, m.held_generation());
    m.ended();
    CPPUNIT_ASSERT_EQUAL(never, m.checkpoint_due_ms());
  }

  void work_under_way_is_waited_for() {
    Machine m = at("saving on");
    m.ended();
    CPPUNIT_ASSERT_EQUAL(uint32_t{kHandIn}, m.checkpoint_done(0, 0));
    m = at("saving on");
    m.superseded();
    CPPUNIT_ASSERT_EQUAL(uint32_t{kStopWork}, m.ended());
    CPPUNIT_ASSERT_EQUAL(uint32_t{kRemove}, m.checkpoint_done(0, 0));
    m = at("clearing, saving on");
    m.cleared();
    CPPUNIT_ASSERT_EQUAL(uint32_t{kHandIn}, m.checkpoint_done(0, 0));
    m = at("killed, clearing, saving on");
    m.cleared();
    CPPUNIT_ASSERT_EQUAL(uint32_t{kRemove}, m.checkpoint_done(0, 0));
    m = at("clearing");
    m.superseded();
    CPPUNIT_ASSERT_EQUAL(uint32_t{kRemove}, m.cleared());
    m = at("handing in");
    m.superseded();
    CPPUNIT_ASSERT_EQUAL(uint32_t{kRemove}, m.handed_in());
    m = at("leaving, staging");
    m.superseded();
    CPPUNIT_ASSERT_EQUAL(uint32_t{kRemove}, m.staged());
  }

  void any_history_ends_once() {
    CPPUNIT_ASSERT(rc::check("work never overlaps, nothing follows kRemove", [] {
      auto events = *rc::gen::container<std::vector<int>>(
          rc::gen::inRange(0, static_cast<int>(Event::kCount)));
      Machine m(0, 0);
      uint32_t under_way = 0;  // the worker's current work
      bool clearing = false;   // beside it
      bool removed = false;
      for (int e : events) {
        auto event = static_cast<Event>(e);
        // A worker reports only the end of its current work.
        bool ends_stage = event == Event::kStaged || event == Event::kStagingFailed;
        bool ends_start = event == Event::kShepherdStarted || event == Event::kShepherdFailed;
        if (ends_stage && under_way != kStage) continue;
        if (ends_start && under_way != kStart) continue;
        if (event == Event::kCheckpointOver && under_way != kCheckpoint) continue;
        if (event == Event::kHandedIn && under_way != kHandIn) continue;
        if (event == Event::kCleared && !std::exchange(clearing, false)) continue;
        if (ends_stage || ends_start || event == Event::kCheckpointOver ||
            event == Event::kHandedIn)
          under_way = 0;
        uint32_t actions = feed(m, event);
        RC_ASSERT(!removed || actions == 0);
        if (actions & (kHandIn | kReport | kRemove)) RC_ASSERT(!clearing);
        if (under_way == kCheckpoint && (actions & kKillTenant)) clearing = true;
        uint32_t work = actions & (kStage | kStart | kCheckpoint | kHandIn);
        if (work != 0) {
          RC_ASSERT(under_way == 0);
          under_way = work;
        }
        if (actions & kRemove) {
          RC_ASSERT(under_way == 0);
          RC_ASSERT(m.state() == State::kForgotten);
          removed = true;
        }
      }
    }));
  }

  static EndCode ends(std::function<void(ExitFacts&)> change) {
    ExitFacts facts;
    change(facts);
    return classify(facts);
  }

  void classification() {
    using Outcome = ExitFacts::Outcome;
    CPPUNIT_ASSERT_EQUAL(kEndDone, ends([](ExitFacts&) {}));
    CPPUNIT_ASSERT_EQUAL(kEndExit, ends([](ExitFacts& f) { f.code = 75; }));  // was not asked
    CPPUNIT_ASSERT_EQUAL(kEndSaved, ends([](ExitFacts& f) {
                           f.code = 85;
                           f.says_saved = true;
                         }));
    // Nor has it asked to be run again when it was asked to leave, killed or over a limit.
    CPPUNIT_ASSERT_EQUAL(kEndOwner, ends([](ExitFacts& f) {
                           f.code = 85;
                           f.says_saved = f.asked = true;
                           f.reason = SUBLET_LEAVE_OWNER;
                         }));
    CPPUNIT_ASSERT_EQUAL(kEndLimit, ends([](ExitFacts& f) {
                           f.code = 85;
                           f.says_saved = f.over_limit = true;
                           f.reason = SUBLET_LEAVE_LIMIT;
                         }));
    CPPUNIT_ASSERT_EQUAL(kEndSignal, ends([](ExitFacts& f) {
                           f.outcome = Outcome::kSignalled;
                           f.code = SIGSEGV;
                         }));
    CPPUNIT_ASSERT_EQUAL(kEndStart, ends([](ExitFacts& f) { f.outcome = Outcome::kFailed; }));
    CPPUNIT_ASSERT_EQUAL(kEndLost, ends([](ExitFacts& f) {
                           f.outcome = Outcome::kFailed;
                           f.own_step = false;
                         }));
    CPPUNIT_ASSERT_EQUAL(kEndBlind, ends([](ExitFacts& f) {
                           f.outcome = Outcome::kUnstarted;
                           f.reason = SUBLET_LEAVE_BLIND;
                         }));
    CPPUNIT_ASSERT_EQUAL(kEndLimit, ends([](ExitFacts& f) {
                           f.over_limit = f.killed = true;
                           f.reason = SUBLET_LEAVE_LIMIT;
                           f.outcome = Outcome::kSignalled;
                           f.code = SIGKILL;
                         }));
    // Asked to leave first, exceeded a limit afterwards: evicted.
    CPPUNIT_ASSERT_EQUAL(kEndOwner, ends([](ExitFacts& f) {
                           f.over_limit = f.asked = f.killed = true;
                           f.reason = SUBLET_LEAVE_OWNER;
                         }));
    CPPUNIT_ASSERT_EQUAL(kEndRemoved, ends([](ExitFacts& f) {
                           f.killed = true;
                           f.reason = SUBLET_LEAVE_REMOVED;
                           f.outcome = Outcome::kSignalled;
                           f.code = SIGKILL;
                         }));
    after_being_asked();
  }

  void after_being_asked() {
    using Outcome = ExitFacts::Outcome;
    auto asked = [](bool aware, Outcome outcome, int64_t code, bool left, bool killed = false) {
      return ends([=](ExitFacts& f) {
        f.asked = true;
        f.reason = SUBLET_LEAVE_PREEMPT;
        f.aware = aware;
        f.outcome = outcome;
        f.code = code;
        f.left = left;
        f.killed = killed;
      });
    };
    CPPUNIT_ASSERT_EQUAL(kEndPreempted, asked(true, Outcome::kExited, 75, true));
    CPPUNIT_ASSERT_EQUAL(kEndDone, asked(true, Outcome::kExited, 0, false));
    CPPUNIT_ASSERT_EQUAL(kEndPreempted, asked(false, Outcome::kExited, 0, false));
    CPPUNIT_ASSERT_EQUAL(kEndPreempted, asked(false, Outcome::kExited, 3, false));
    CPPUNIT_ASSERT_EQUAL(kEndPreempted, asked(false, Outcome::kSignalled, SIGTERM, false));
    CPPUNIT_ASSERT_EQUAL(kEndExit, asked(true, Outcome::kExited, 3, false));
    CPPUNIT_ASSERT_EQUAL(kEndSignal, asked(true, Outcome::kSignalled, SIGSEGV, false));
    CPPUNIT_ASSERT_EQUAL(kEndPreempted, asked(true, Outcome::kSignalled, SIGKILL, false, true));
    // It ended in the moment in which it was killed.
    CPPUNIT_ASSERT_EQUAL(kEndDone, asked(true, Outcome::kExited, 0, false, true));
    CPPUNIT_ASSERT_EQUAL(kEndPreempted, asked(true, Outcome::kExited, 0, true, true));
    for (const bool killed : {false, true}) {
      const auto unaware = [&](sublet_leave_reason reason, int64_t code, bool no_handler) {
        return ends([=](ExitFacts& f) {
          f.asked = true;
          f.reason = reason;
          f.code = code;
          f.killed = killed;
          f.no_handler = no_handler;
        });
      };
      CPPUNIT_ASSERT_EQUAL(kEndDone, unaware(SUBLET_LEAVE_OWNER, 0, true));
      CPPUNIT_ASSERT_EQUAL(kEndOwner, unaware(SUBLET_LEAVE_OWNER, 0, false));
      CPPUNIT_ASSERT_EQUAL(kEndOwner, unaware(SUBLET_LEAVE_OWNER, 1, true));
      CPPUNIT_ASSERT_EQUAL(kEndRemoved, unaware(SUBLET_LEAVE_REMOVED, 0, true));
      CPPUNIT_ASSERT_EQUAL(kEndSuperseded, unaware(SUBLET_LEAVE_REPLACED, 0, true));
    }
  }

  void ends_have_names() {
    CPPUNIT_ASSERT_EQUAL(std::string("done"), end_name(kEndDone));
    CPPUNIT_ASSERT_EQUAL(std::string("over its limits"), end_name(kEndLimit));
    CPPUNIT_ASSERT_EQUAL(std::string("owner came back"), end_name(kEndOwner));
    CPPUNIT_ASSERT_EQUAL(std::string("superseded"), end_name(kEndSuperseded));
    CPPUNIT_ASSERT_EQUAL(std::string("evicted by an administrator"), end_name(kEndAdministrator));
    CPPUNIT_ASSERT_EQUAL(std::string("saved to go on"), end_name(kEndSaved));
    for (uint32_t unknown : {8, 15, 28})
      CPPUNIT_ASSERT_EQUAL(std::to_string(unknown), end_name(unknown));
  }

  void who_fetches_nothing_starts_at_once() {
    AttemptMachine m(0, 0);
    CPPUNIT_ASSERT_EQUAL(uint32_t{kStart}, m.begin(false));
    CPPUNIT_ASSERT(m.state() == AttemptState::kStarting);
    CPPUNIT_ASSERT_EQUAL(0u, m.begin(false));
    CPPUNIT_ASSERT_EQUAL(0u, m.staged());
    CPPUNIT_ASSERT_EQUAL(uint32_t{kConnect | kTellStarted}, m.shepherd_started());
    // Told to leave meanwhile, it is urged as soon as it has started.
    AttemptMachine early(0, 0);
    early.begin(false);
    CPPUNIT_ASSERT_EQUAL(0u, early.leave(SUBLET_LEAVE_OWNER));
    CPPUNIT_ASSERT_EQUAL(uint32_t{kConnect | kSendVacate}, early.shepherd_started());
  }

  void who_stays_goes_on_or_leaves() {
    AttemptMachine m(0, 0);
    m.begin();
    m.staged();
    m.shepherd_started();
    // The client may hear of it before or after it has passed on that the owner is here.
    CPPUNIT_ASSERT_EQUAL(uint32_t{kSendVacate}, m.leave(SUBLET_LEAVE_OWNER));
    CPPUNIT_ASSERT_EQUAL(0u, m.stays(true));
    CPPUNIT_ASSERT(m.state() == AttemptState::kSuspended);
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_NONE, m.leave_reason());
    CPPUNIT_ASSERT(m.holds_slot());
    CPPUNIT_ASSERT_EQUAL(uint32_t{kSendLease}, m.lease_renewed());
    m.resumed();
    CPPUNIT_ASSERT(m.state() == AttemptState::kRunning);
    m.stays(true);
    CPPUNIT_ASSERT_EQUAL(0u, m.leaves_by_itself(SUBLET_LEAVE_OWNER));
    CPPUNIT_ASSERT(m.state() == AttemptState::kLeaving);
    CPPUNIT_ASSERT_EQUAL(SUBLET_LEAVE_OWNER, m.leave_reason());
    m.resumed();
    CPPUNIT_ASSERT(m.state() == AttemptState::kLeaving);
    // Who must leave for another reason does not stay.
    AttemptMachine other(0, 0);
    other.begin();
    other.staged();
    other.shepherd_started();
    other.leave(SUBLET_LEAVE_PREEMPT);
    other.stays(true);
    CPPUNIT_ASSERT(other.state() == AttemptState::kLeaving);
    // A suspended one can end, vanish, be removed or superseded.
    for (const int end : {0, 1, 2, 3}) {
      AttemptMachine one(0, 0);
      one.begin();
      one.staged();
      one.shepherd_started();
      one.stays(true);
      if (end == 0) CPPUNIT_ASSERT_EQUAL(uint32_t{kHandIn}, one.ended());
      if (end == 1) {
        CPPUNIT_ASSERT(one.vanished() & kKillTenant);
        CPPUNIT_ASSERT_EQUAL(kEndOwner, one.end());
      }
      if (end == 2) CPPUNIT_ASSERT_EQUAL(uint32_t{kSendKill}, one.leave(SUBLET_LEAVE_REMOVED));
      if (end == 3) CPPUNIT_ASSERT_EQUAL(uint32_t{kSendKill}, one.superseded());
    }
    // The shepherd of one that lingers vanishes: while the owner is here, and when he has gone.
    for (const bool gone : {false, true}) {
      AttemptMachine one(0, 0);
      one.begin();
      one.staged();
      one.shepherd_started();
      one.stays(false);
      CPPUNIT_ASSERT(one.state() == AttemptState::kRunning);
      if (gone) one.resumed();
      one.vanished();
      CPPUNIT_ASSERT_EQUAL(gone ? kEndLost : kEndOwner, one.end());
    }
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(AttemptTest);

}  // namespace
}  // namespace sublet::protocol
