#include "client/attempts/ending.h"

#include <cppunit/extensions/HelperMacros.h>

#include <cerrno>

namespace sublet::client {
namespace {

AttemptExit exited(int64_t outcome, int64_t code) {
  AttemptExit exit;
  exit.facts.outcome = outcome;
  exit.facts.code = code;
  exit.facts.progress_ppm = -1;
  exit.facts.told_ns = exit.facts.demoted_ns = exit.facts.save_asked_ns = -1;
  exit.facts.checkpointed_ns = exit.facts.quiesce_ns = -1;
  exit.facts.started_ns = 1'000'000'000;
  exit.facts.ended_ns = 3'000'000'000;
  exit.facts.cpu_user_us = 900'000;
  exit.facts.cpu_system_us = 100'000;
  exit.boot_id = "this";
  return exit;
}

class EndingTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(EndingTest);
  CPPUNIT_TEST(says_it_in_the_servers_words);
  CPPUNIT_TEST(sentences);
  CPPUNIT_TEST(sentences_of_limits);
  CPPUNIT_TEST(what_was_seen_without_a_shepherd);
  CPPUNIT_TEST(how_long_it_had_its_slot_before);
  CPPUNIT_TEST(cpu_in_the_checkpoint);
  CPPUNIT_TEST(cpu_that_no_checkpoint_holds);
  CPPUNIT_TEST_SUITE_END();

  AttemptEnd end_of(const AttemptExit& exit, const Shortage& disk = {}) {
    Assignment what;
    what.name = {7, 2};
    what.job.program = "train";
    ManualClock clock(1'000'000'000'000, 5'000'000'000);
    return end_from_exit(what, exit, disk, clock, "this");
  }

  void what_was_seen_without_a_shepherd() {
    const ManualClock clock(1'000'000'000'000, 5'000'000'000);
    const EndRecord record = {protocol::kEndOwner, "", 1'000'000'000'000};
    const SeenEviction seen = {.sensed = 2'000'000'000,
                               .frozen = 2'300'000'000,
                               .gone = 4'000'000'000,
                               .reason = SUBLET_PRESENCE_INPUT};
    AttemptEnd end = end_from_record({}, record);
    note_seen(seen, clock, &end);
    CPPUNIT_ASSERT((protocol::EvictionSteps{.demoted = 300'000, .gone = 2'000'000}) == end.steps);
    const protocol::EvictionNote note = note_of(end);
    CPPUNIT_ASSERT(end.steps == note.steps);
    CPPUNIT_ASSERT_EQUAL(uint32_t{SUBLET_PRESENCE_INPUT}, note.sensed);
    CPPUNIT_ASSERT_EQUAL(int64_t{1'000'000'000'000 - 3'000'000}, note.at_us);
    // Nothing was seen; it was still there; it did not have to leave.
    for (SeenEviction other : {SeenEviction{}, SeenEviction{.sensed = 2'000'000'000}}) {
      AttemptEnd bare = end_from_record({}, record);
      note_seen(other, clock, &bare);
      CPPUNIT_ASSERT(protocol::EvictionSteps() == bare.steps);
      CPPUNIT_ASSERT_EQUAL(int64_t{1'000'000'000'000}, bare.finished_us);
    }
    AttemptEnd lost = end_from_record({}, {protocol::kEndLost, "", 1'000'000'000'000});
    note_seen(seen, clock, &lost);
    CPPUNIT_ASSERT(protocol::EvictionSteps() == lost.steps);
  }

  void says_it_in_the_servers_words() {
    AttemptEnd end = end_of(exited(SUBLET_OUTCOME_EXITED, 0));
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndDone}, end.end);
    CPPUNIT_ASSERT_EQUAL(0, end.exit_status);
    CPPUNIT_ASSERT_EQUAL(int64_t{1'000'000}, end.cpu_us);
    CPPUNIT_ASSERT_EQUAL(int64_t{1'000'000'000'000 - 4'000'000}, end.started_us);
    CPPUNIT_ASSERT_EQUAL(int64_t{1'000'000'000'000 - 2'000'000}, end.finished_us);
    CPPUNIT_ASSERT(protocol::EvictionSteps() == end.steps);
    AttemptExit suspended = exited(SUBLET_OUTCOME_EXITED, 0);
    suspended.facts.wall_us = 2'000'000;
    suspended.facts.frozen_ms = 1'500;
    CPPUNIT_ASSERT_EQUAL(int64_t{500}, end_of(suspended).wall_ms);
    AttemptExit left = exited(SUBLET_OUTCOME_EXITED, 75);
    left.facts.told_ns = 1'999;
    left.facts.save_asked_ns = 2'000;
    left.facts.checkpointed_ns = 3'000;
    left.facts.quiesce_ns = 4'000;
    CPPUNIT_ASSERT((protocol::EvictionSteps{
                       .told = 1, .demoted = -1, .save_asked = 2, .saved = 3, .gone = 4}) ==
                   end_of(left).steps);
    end = end_of(exited(SUBLET_OUTCOME_SIGNALLED, 11));
    CPPUNIT_ASSERT_EQUAL(-1, end.exit_status);
    CPPUNIT_ASSERT_EQUAL(11, end.signal);
    AttemptExit old = exited(SUBLET_OUTCOME_EXITED, 0);
    old.boot_id = "another boot";  // its times mean nothing in this one
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, end_of(old).finished_us);
  }

  void how_long_it_had_its_slot_before() {
    const ManualClock clock(1'000'000'000'000, 5'000'000'000);
    AttemptExit exit = exited(SUBLET_OUTCOME_EXITED, 0);
    Assignment what;
    const auto staging = [&] { return end_from_exit(what, exit, {}, clock, "this").staging_ms; };
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, staging());  // not known
    what.accepted_us = 1'000'000'000'000 - 4'000'000 - 250'000;
    CPPUNIT_ASSERT_EQUAL(int64_t{250}, staging());
    what.accepted_us += 1'000'000;  // the clock was set back
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, staging());
    what.accepted_us -= 1'000'000;
    exit.facts.started_ns = 0;  // it never was
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, staging());
  }

  void sentences() {
    CPPUNIT_ASSERT_EQUAL(std::string("The program ended with exit status 3."),
                         end_of(exited(SUBLET_OUTCOME_EXITED, 3)).reason);
    AttemptExit failed = exited(SUBLET_OUTCOME_FAILED, ENOENT);
    failed.step = "exec";
    CPPUNIT_ASSERT_EQUAL(
        std::string("The program 'train' is in no folder of PATH on this machine."),
        end_of(failed).reason);
    failed.facts.code = EACCES;
    CPPUNIT_ASSERT_EQUAL(
        std::string("The program 'train' could not be started: exec: Permission denied."),
        end_of(failed).reason);
    AttemptExit evicted = exited(SUBLET_OUTCOME_SIGNALLED, 9);
    evicted.facts.asked = evicted.facts.killed = 1;
    evicted.facts.reason = SUBLET_LEAVE_OWNER;
    evicted.facts.save_errno = ENOSPC;
    CPPUNIT_ASSERT_EQUAL(
        std::string("The owner came back. Its last save failed: No space left on device."),
        end_of(evicted).reason);
    const Shortage disk = {Shortage::Of::kDisk, 3ull << 30, 12 << 20};
    // The owner came back while it left.
    CPPUNIT_ASSERT_EQUAL(end_of(evicted).reason, end_of(evicted, disk).reason);
    evicted.facts.save_errno = 0;
    evicted.facts.reason = SUBLET_LEAVE_DRAIN;
    CPPUNIT_ASSERT_EQUAL(std::string("The client was stopped."), end_of(evicted).reason);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndDrained}, end_of(evicted, disk).end);
    CPPUNIT_ASSERT_EQUAL(std::string("The machine's disk was nearly full (12 MiB left); "
                                     "of its jobs, this one used the most (3 GiB)."),
                         end_of(evicted, disk).reason);
    const Shortage memory = {Shortage::Of::kMemory, 3ull << 30, 12 << 20};
    CPPUNIT_ASSERT_EQUAL(std::string("The machine's memory was nearly used up (12 MiB left); "
                                     "of its jobs, this one used the most (3 GiB)."),
                         end_of(evicted, memory).reason);
    CPPUNIT_ASSERT(end_of(evicted, memory).memory_short);
    CPPUNIT_ASSERT(!end_of(evicted, disk).memory_short);
    CPPUNIT_ASSERT(!end_of(evicted).memory_short);
    const Shortage waits = {Shortage::Of::kMemoryWaits, 3ull << 30, 8ull << 30};
    CPPUNIT_ASSERT_EQUAL(
        std::string("Other programs on the machine waited for memory (8 GiB left); "
                    "of its jobs, this one used the most (3 GiB)."),
        end_of(evicted, waits).reason);
    CPPUNIT_ASSERT(end_of(evicted, waits).memory_short);
    evicted.facts.reason = SUBLET_LEAVE_OWNER;
    CPPUNIT_ASSERT(!end_of(evicted, memory).memory_short);
  }

  void sentences_of_limits() {
    const auto sentence = [](int64_t limit, int64_t bound, uint64_t memory_limit = 0) {
      AttemptExit over = exited(SUBLET_OUTCOME_SIGNALLED, 9);
      over.facts.killed = 1;
      over.facts.limit = limit;
      over.facts.bound = bound;
      over.facts.reason = SUBLET_LEAVE_LIMIT;
      Assignment what;
      what.name = {7, 2};
      what.job.bounds.memory = memory_limit;
      return end_from_exit(what, over, {}, ManualClock(1, 1), "this").reason;
    };
    CPPUNIT_ASSERT_EQUAL(
        std::string("It exceeded its CPU time limit (10 s). --cpu-limit gives it more."),
        sentence(SUBLET_LIMIT_CPU, 10));
    CPPUNIT_ASSERT_EQUAL(
        std::string("It exceeded its running time limit (not known). --wall-limit gives it more."),
        sentence(SUBLET_LIMIT_WALL, 0));
    CPPUNIT_ASSERT_EQUAL(std::string("It used all of its slot's part of this machine's memory (1 "
                                     "GiB). Say with --memory how much it needs."),
                         sentence(SUBLET_LIMIT_MEMORY, 1 << 30));
    CPPUNIT_ASSERT_EQUAL(std::string("It used all of its memory limit (1 GiB). If it needs more, "
                                     "say how much with --memory and --memory-limit."),
                         sentence(SUBLET_LIMIT_MEMORY, 1 << 30, 1 << 30));
    CPPUNIT_ASSERT_EQUAL(std::string("It reached its limit of 512 processes and threads. "
                                     "--processes-limit gives it more."),
                         sentence(SUBLET_LIMIT_PROCESSES, 512));
    CPPUNIT_ASSERT_EQUAL(std::string("It used more than 1 GiB of this machine's disk. Say with "
                                     "--disk how much it needs."),
                         sentence(SUBLET_LIMIT_DISK, 1 << 30));
    CPPUNIT_ASSERT_EQUAL(
        std::string("It used 3 GiB of this machine's disk; it may use 2 GiB. Say "
                    "with --disk how much it needs."),
        leave_sentence(SUBLET_LEAVE_LIMIT,
                       {Shortage::Of::kDiskBound, uint64_t{3} << 30, uint64_t{2} << 30}));
    CPPUNIT_ASSERT(sentence(SUBLET_LIMIT_CPU, INT64_MAX).starts_with("It exceeded its CPU"));
  }

  void cpu_in_the_checkpoint() {
    AttemptExit exit = exited(SUBLET_OUTCOME_EXITED, 75);
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, cpu_at_checkpoint(exit, 0, 0));
    exit.facts.generation = exit.facts.resumed_generation = 4;
    exit.facts.saved_ns = 1;
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, cpu_at_checkpoint(exit, 4, 5));  // made by an earlier attempt
    exit.facts.generation = 5;
    exit.facts.saved_ns = 2'000'000'000;  // half-way
    CPPUNIT_ASSERT_EQUAL(int64_t{500'000}, cpu_at_checkpoint(exit, 4, 1));
    CPPUNIT_ASSERT_EQUAL(int64_t{700'000}, cpu_at_checkpoint(exit, 5, 700'000));
    exit.facts.left = 1;
    CPPUNIT_ASSERT_EQUAL(int64_t{1'000'000}, cpu_at_checkpoint(exit, 5, 700'000));
  }

  void cpu_that_no_checkpoint_holds() {
    AttemptWork work(std::make_shared<Assignment>(), "/nowhere");
    work.started_us = 1'000'000;
    const auto at_risk = [&](int64_t cpu_ms) { return cpu_at_risk_ms(work, cpu_ms, 5'000'000); };
    CPPUNIT_ASSERT_EQUAL(int64_t{900}, at_risk(900));
    work.stored_cpu_us = 600'000;
    CPPUNIT_ASSERT_EQUAL(int64_t{300}, at_risk(900));
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, at_risk(500));  // measured before
    work.stored_files_us = 4'000'000;                // after three of four seconds
    CPPUNIT_ASSERT_EQUAL(int64_t{200}, at_risk(800));
    work.started_us = 6'000'000;  // the clock was set back
    CPPUNIT_ASSERT_EQUAL(int64_t{800}, at_risk(800));
    work.adopted = true;
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, at_risk(800));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(EndingTest);

}  // namespace
}  // namespace sublet::client
