#include "scheduling/books/program_book.h"

#include <cppunit/extensions/HelperMacros.h>

#include <cmath>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::kStart;
using testing::TestPool;

MachineRecord machine(double speed, const std::string& architecture = "x86_64") {
  MachineRecord record;
  record.architecture = architecture;
  record.speed = speed;
  return record;
}

class ProgramBookTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ProgramBookTest);
  CPPUNIT_TEST(without_runs_there_the_speed_predicts);
  CPPUNIT_TEST(runs_there_count_more_and_more);
  CPPUNIT_TEST(one_odd_run_does_little);
  CPPUNIT_TEST(what_says_nothing_is_not_learnt);
  CPPUNIT_TEST(the_oldest_is_forgotten);
  CPPUNIT_TEST(rows_that_cannot_be_are_left_out);
  CPPUNIT_TEST(only_whole_runs_are_learnt);
  CPPUNIT_TEST(what_was_observed_chooses_the_machine);
  CPPUNIT_TEST_SUITE_END();

  Changes changes_;
  ProgramBook book_{changes_};

  // Seconds; 0: nothing is expected.
  double expected(uint64_t program, const MachineRecord& m) const {
    const auto e = book_.expected(program, m);
    return e ? std::exp(e->log_seconds) : 0;
  }
  void runs(int count, uint64_t program, const MachineRecord& m, Micros cpu) {
    for (; count > 0; --count) {
      changes_.begin(kStart);
      book_.note_run(program, m, cpu);
      last_ = changes_.finish();
    }
  }
  Outcome last_;

 public:
  void without_runs_there_the_speed_predicts() {
    CPPUNIT_ASSERT_EQUAL(0.0, expected(1, machine(2)));
    runs(1, 1, machine(1), 60 * kSecond);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(60, expected(1, machine(1)), 1e-9);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(30, expected(1, machine(2)), 1e-9);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(60, expected(1, machine(1, "aarch64")), 1e-9);
    CPPUNIT_ASSERT_EQUAL(0.0, expected(2, machine(2)));
    CPPUNIT_ASSERT_EQUAL(0.0, expected(1, machine(0)));
    const auto e = book_.expected(1, machine(2));
    CPPUNIT_ASSERT(e->here == 0 && e->elsewhere == 1);
  }

  // At speed 1 it takes 100 s, at speed 4 not 25 s, but 50 s (memory is slow there, too).
  void runs_there_count_more_and_more() {
    runs(4, 1, machine(1), 100 * kSecond);
    runs(4, 1, machine(4), 50 * kSecond);
    const auto e = book_.expected(1, machine(4));
    CPPUNIT_ASSERT(e->here == 4 && e->elsewhere == 4);
    // All runs: 100 and 200 s at speed 1, in the mean 141.4; 35.36 at speed 4, which counts
    // like 4 runs beside the 4 of 50 s.
    CPPUNIT_ASSERT_DOUBLES_EQUAL(std::sqrt(std::sqrt(100.0 * 200) / 4 * 50),
                                 expected(1, machine(4)), 1e-9);
    runs(400, 1, machine(4), 50 * kSecond);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(50, expected(1, machine(4)), 0.1);
  }

  void one_odd_run_does_little() {
    runs(20, 1, machine(1), 100 * kSecond);
    runs(1, 1, machine(1), 10'000 * kSecond);
    const double seconds = expected(1, machine(1));
    CPPUNIT_ASSERT_MESSAGE(std::to_string(seconds), seconds < 130);
  }

  void what_says_nothing_is_not_learnt() {
    runs(1, 0, machine(1), 60 * kSecond);
    runs(1, 1, machine(0), 60 * kSecond);
    runs(1, 1, machine(1), ProgramBook::kLeastCpu - 1);
    CPPUNIT_ASSERT(last_.records.empty());
    CPPUNIT_ASSERT_EQUAL(0.0, expected(1, machine(1)));
    runs(1, 1, machine(1), ProgramBook::kLeastCpu);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(1, expected(1, machine(1)), 1e-9);
  }

  // All at one instant, so that the keys decide, too; never what was just noted.
  void the_oldest_is_forgotten() {
    const auto forgotten = [&] {
      size_t count = 0;
      for (const Record& record : last_.records)
        if (const auto* p = std::get_if<ProgramRecord>(&record)) count += p->forgotten;
      return count;
    };
    for (size_t i = 0; i < ProgramBook::kMostKinds + 3; ++i)
      runs(1, 9'000'000, machine(std::exp2(-static_cast<double>(i))), 60 * kSecond);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, forgotten());
    const auto e = book_.expected(9'000'000, machine(1));
    CPPUNIT_ASSERT_EQUAL(uint64_t{ProgramBook::kMostKinds}, e->here + e->elsewhere);
    for (size_t i = 0; i < ProgramBook::kMostPrograms - 1; ++i)
      runs(1, 5000 - i, machine(1), 60 * kSecond);
    CPPUNIT_ASSERT_EQUAL(size_t{0}, forgotten());
    CPPUNIT_ASSERT(expected(5000, machine(1)) > 0);
    runs(1, 7, machine(1), 60 * kSecond);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, forgotten());
    CPPUNIT_ASSERT(expected(7, machine(1)) > 0);
    CPPUNIT_ASSERT_EQUAL(0.0, expected(5001 - (ProgramBook::kMostPrograms - 1), machine(1)));
  }

  void rows_that_cannot_be_are_left_out() {
    const ProgramRecord good{7, "x86_64", 0, 2, std::log(60.0), kStart};
    CPPUNIT_ASSERT(book_.restore(good));
    CPPUNIT_ASSERT(!book_.restore(good));
    CPPUNIT_ASSERT_DOUBLES_EQUAL(60, expected(7, machine(1)), 1e-9);
    ProgramRecord odd = good;
    odd.program = 0;
    CPPUNIT_ASSERT(!book_.restore(odd));
    odd = good;
    odd.speed = 1;
    odd.runs = 0;
    CPPUNIT_ASSERT(!book_.restore(odd));
    odd.runs = 1;
    for (const double log : {std::nan(""), 1e300, -51.0}) {
      odd.log_cpu = log;
      CPPUNIT_ASSERT(!book_.restore(odd));
    }
    odd.log_cpu = good.log_cpu;
    odd.runs = UINT64_MAX;
    CPPUNIT_ASSERT(!book_.restore(odd));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, book_.expected(7, machine(2))->here);
  }

  void only_whole_runs_are_learnt() {
    TestPool t;
    const MachineId curly = t.join("curly");
    t.apply(MachineReported{curly, true, 0, 100ull << 30, 1});
    Submitted::Job wanted;
    wanted.program = 7;
    const auto ends = [&](EndReason how, Micros cpu, Micros saved = -1) {
      const JobId job = t.submit("ann", 1, wanted);
      t.start(job);
      t.end(job, how, cpu, saved);
      return job;
    };
    ends(EndReason::kExit, 60 * kSecond);
    CPPUNIT_ASSERT(t.books.programs.empty());
    const JobId kept = ends(EndReason::kOwner, 60 * kSecond, 50 * kSecond);
    t.end(kept, EndReason::kDone, 10 * kSecond);
    CPPUNIT_ASSERT(t.state(kept) == JobState::kDone);
    CPPUNIT_ASSERT(t.books.programs.empty());
    // What was lost is begun anew.
    const JobId lost = ends(EndReason::kOwner, 60 * kSecond);
    t.end(lost, EndReason::kDone, 70 * kSecond);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, t.books.programs.size());
    const ProgramRecord& record = t.books.programs.begin()->second;
    CPPUNIT_ASSERT_DOUBLES_EQUAL(std::log(70.0), record.log_cpu, 1e-9);
    CPPUNIT_ASSERT(record.program == 7 && record.runs == 1 && record.architecture == "x86_64");
    ends(EndReason::kDone, 70 * kSecond);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, t.books.programs.begin()->second.runs);
  }

  // `fast` has the faster core, and yet needs more time for this program. Also after a restart.
  void what_was_observed_chooses_the_machine() {
    Parameters parameters;
    parameters.machine_policy = "fastest";
    TestPool t(parameters);
    const MachineId slow = t.join("slow", 1, false), fast = t.join("fast", 1, false);
    const auto report = [&](MachineId machine, bool away) {
      t.apply(MachineReported{machine, away, 0, 100ull << 30, machine == fast ? 2.0 : 1.0});
    };
    Submitted::Job wanted;
    wanted.program = 7;
    const auto learn = [&](MachineId machine, Micros cpu) {
      report(slow, machine == slow);
      report(fast, machine == fast);
      for (int i = 0; i < 10; ++i) {
        const JobId job = t.submit("ann", 1, wanted);
        t.start(job);
        t.end(job, EndReason::kDone, cpu);
      }
    };
    learn(slow, 10 * kSecond);
    learn(fast, 40 * kSecond);
    report(slow, true);
    wanted.program = 8;
    const JobId other = t.submit("ann", 1, wanted);
    CPPUNIT_ASSERT_EQUAL(fast, t.machine_of(other));
    t.end(other, EndReason::kDone);
    wanted.program = 7;
    const JobId job = t.submit("ann", 1, wanted);
    CPPUNIT_ASSERT_EQUAL(slow, t.machine_of(job));
    const std::string reason = t.pool.attempt(job)->reason.text();
    CPPUNIT_ASSERT_MESSAGE(
        reason, reason.ends_with("; machine slow, which is the fastest for its program: 13.5 CPU s "
                                 "expected by 10 runs on such machines and 10 on others; speed 1"));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, t.books.programs.size());
    t.end(job, EndReason::kExit);
    TestPool restored(parameters);
    CPPUNIT_ASSERT(restored.pool.restore(t.books.snapshot()).empty());
    restored.books = t.books;
    restored.now = t.now;
    restored.apply(ServerStarted());
    for (const MachineId machine : {fast, slow})
      restored.apply(MachineReported{machine, true, 0, 100ull << 30});
    CPPUNIT_ASSERT_EQUAL(slow, restored.machine_of(restored.submit("ann", 1, wanted)));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ProgramBookTest);
}  // namespace
}  // namespace sublet::scheduling
