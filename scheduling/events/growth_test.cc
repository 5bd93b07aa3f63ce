// A job asks for the memory that it was seen to use; so do others with its description.
#include <cppunit/extensions/HelperMacros.h>

#include "scheduling/events/event_codec.h"
#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;

constexpr uint64_t kGiB = 1 << 30;

// With machines of 8 GiB, as TestPool::join makes them.
class GrowthTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(GrowthTest);
  CPPUNIT_TEST(goes_where_there_is_as_much);
  CPPUNIT_TEST(it_never_asks_for_less_again);
  CPPUNIT_TEST(only_jobs_that_go_back_to_the_queue);
  CPPUNIT_TEST(a_job_held_meanwhile_too);
  CPPUNIT_TEST(a_job_that_backs_off_goes_on_doing_so);
  CPPUNIT_TEST(no_more_than_its_machine_could_offer);
  CPPUNIT_TEST(the_others_of_its_array);
  CPPUNIT_TEST(others_only_if_memory_ran_short);
  CPPUNIT_TEST(others_with_another_description_are_left_alone);
  CPPUNIT_TEST(an_array_in_pieces_costs_a_bounded_time);
  CPPUNIT_TEST(why_names_what_it_used);
  CPPUNIT_TEST(replayed_from_the_stored_form);
  CPPUNIT_TEST_SUITE_END();

  static Submitted::Job asking(uint64_t memory, uint64_t count = 1, uint32_t retries = 0) {
    Submitted::Job job;
    job.needs.memory = memory;
    job.count = count;
    job.retries = retries;
    return job;
  }
  static AttemptEnded ending(const TestPool& t, JobId job, EndReason ended, uint64_t peak,
                             JobRange alike = {0, 0}) {
    AttemptEnded event;
    event.key = t.key(job);
    event.machine = t.machine_of(job);
    event.ended = ended;
    event.wall = 10 * kSecond;
    event.memory_peak = peak;
    event.alike = alike;
    return event;
  }
  static uint64_t asks(const TestPool& t, JobId job) { return t.record(job).needs.memory; }

  void goes_where_there_is_as_much() {
    TestPool t;
    const MachineId a = t.join("a", 1, false), b = t.join("b", 1, false);
    t.report(a, true, 1 * kGiB);
    const JobId job = t.submit("ann");
    CPPUNIT_ASSERT_EQUAL(a, t.machine_of(job));
    t.apply(ending(t, job, EndReason::kOwner, 3 * kGiB));
    CPPUNIT_ASSERT_EQUAL(3 * kGiB, asks(t, job));
    CPPUNIT_ASSERT(t.state(job) == JobState::kWaiting);
    t.report(b, true, 3 * kGiB - 1);
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(job));
    t.report(b, true, 3 * kGiB);
    CPPUNIT_ASSERT_EQUAL(b, t.machine_of(job));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, t.pool.groups());
  }

  void it_never_asks_for_less_again() {
    TestPool t;
    t.join("a");
    const JobId job = t.submit("ann", 1, asking(2 * kGiB));
    t.apply(ending(t, job, EndReason::kOwner, 1 * kGiB));
    CPPUNIT_ASSERT_EQUAL(2 * kGiB, asks(t, job));
    t.apply(ending(t, job, EndReason::kOwner, 3 * kGiB));
    t.apply(ending(t, job, EndReason::kOwner, 1 * kGiB));
    CPPUNIT_ASSERT_EQUAL(3 * kGiB, asks(t, job));
  }

  void only_jobs_that_go_back_to_the_queue() {
    TestPool t;
    t.join("a");
    const JobId job = t.submit("ann", 1, asking(0, 1, 1));
    t.apply(ending(t, job, EndReason::kSignal, 1 * kGiB));
    CPPUNIT_ASSERT_EQUAL(1 * kGiB, asks(t, job));
    t.apply(ending(t, job, EndReason::kSignal, 2 * kGiB));
    CPPUNIT_ASSERT(t.state(job) == JobState::kFailed);
    CPPUNIT_ASSERT_EQUAL(1 * kGiB, asks(t, job));
    const JobId other = t.submit("ann");
    t.apply(ending(t, other, EndReason::kDone, 2 * kGiB));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, asks(t, other));
  }

  void a_job_held_meanwhile_too() {
    for (const bool released : {false, true}) {
      TestPool t;
      const MachineId a = t.join("a");
      const JobId job = t.submit("ann");
      t.apply(JobsHeld{{job}});
      if (released) t.apply(JobsReleased{{job}});
      t.report(a, true, 1 * kGiB);
      t.apply(ending(t, job, EndReason::kHeld, 2 * kGiB));
      if (!released) t.apply(JobsReleased{{job}});
      CPPUNIT_ASSERT_EQUAL(2 * kGiB, asks(t, job));
      CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(job));
      t.report(a, true, 2 * kGiB);
      CPPUNIT_ASSERT_EQUAL(a, t.machine_of(job));
    }
  }

  // It is in no line while it waits for its instant.
  void a_job_that_backs_off_goes_on_doing_so() {
    TestPool t;
    const MachineId a = t.join("a");
    const JobId job = t.submit("ann", 2);
    for (int i = 0; i < 3; ++i) {
      const JobId refused = t.machine_of(job) != 0 ? job : job + 1;
      CPPUNIT_ASSERT_EQUAL(job, refused);
      t.apply(OrderAnswered{t.key(job), OrderAnswered::Answer::kRefused, "why"});
      t.report(a, true);
    }
    CPPUNIT_ASSERT_EQUAL(a, t.machine_of(job + 1));
    t.apply(ending(t, job + 1, EndReason::kDrained, 1 * kGiB, {job, 2}));
    CPPUNIT_ASSERT_EQUAL(1 * kGiB, asks(t, job));
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(job));
    t.end(job + 1, EndReason::kDone);
    t.pass(kSecond);
    t.report(a, true, 1 * kGiB);
    CPPUNIT_ASSERT_EQUAL(a, t.machine_of(job));
  }

  void no_more_than_its_machine_could_offer() {
    TestPool t;
    const MachineId a = t.join("a", 1, false);
    t.report(a, true, 6 * kGiB);
    const JobId job = t.submit("ann");
    t.apply(ending(t, job, EndReason::kOwner, 100 * kGiB));
    CPPUNIT_ASSERT_EQUAL(6 * kGiB, asks(t, job));
    CPPUNIT_ASSERT_EQUAL(a, t.machine_of(job));
    // Half of it: the server was restarted; it had little then and has more now.
    const JobId others = t.submit("ann", 2);
    t.apply(ending(t, job, EndReason::kDone, 0));
    t.apply(ServerStarted());
    t.apply(ending(t, others, EndReason::kOwner, ~uint64_t{0}));
    CPPUNIT_ASSERT_EQUAL(4 * kGiB, asks(t, others));
    t.report(a, true, 1 * kGiB);
    CPPUNIT_ASSERT_EQUAL(a, t.machine_of(others + 1));
    t.apply(ending(t, others + 1, EndReason::kOwner, 5 * kGiB));
    CPPUNIT_ASSERT_EQUAL(4 * kGiB, asks(t, others + 1));
    // No more than it has, whatever it reports.
    t.report(a, true, 12 * kGiB);
    const JobId held = t.machine_of(others) != 0 ? others : others + 1;
    t.apply(ending(t, held, EndReason::kOwner, 100 * kGiB));
    CPPUNIT_ASSERT_EQUAL(8 * kGiB, asks(t, held));
  }

  void the_others_of_its_array() {
    TestPool t;
    const MachineId a = t.join("a", 2);
    const JobId first = t.submit("ann", 1, asking(0, 10));  // the first two run
    t.apply(JobsHeld{{{first + 4, 2}}});
    const JobId last = first + 9;
    t.apply(JobsHeld{{last}});
    t.apply(JobsReleased{{last}});
    CPPUNIT_ASSERT(t.state(first + 1) == JobState::kPlaced);
    t.report(a, true, 1 * kGiB);
    t.apply(ending(t, first, EndReason::kDrained, 2 * kGiB, {first, 10}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, asks(t, first + 1));  // at work
    for (JobId id = first; id <= last; ++id)
      if (id != first + 1) CPPUNIT_ASSERT_EQUAL(2 * kGiB, asks(t, id));
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(first + 2));
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, t.books.rows.at(first + 2).count);  // in one piece
    t.report(a, true, 2 * kGiB);
    CPPUNIT_ASSERT(t.machine_of(first) == a || t.machine_of(first + 2) == a);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, t.pool.groups());
  }

  void others_only_if_memory_ran_short() {
    TestPool t;
    const MachineId a = t.join("a");
    const JobId first = t.submit("ann", 1, asking(0, 3));
    t.report(a, true, 1 * kGiB);
    t.apply(ending(t, first, EndReason::kOwner, 2 * kGiB));
    CPPUNIT_ASSERT_EQUAL(2 * kGiB, asks(t, first));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, asks(t, first + 2));
    CPPUNIT_ASSERT_EQUAL(a, t.machine_of(first + 1));
  }

  // One record may have the jobs of several descriptions.
  void others_with_another_description_are_left_alone() {
    TestPool t;
    const JobId first = t.submit("ann", 1, asking(0, 9));
    t.apply(JobsHeld{{{first, 9}}});
    t.apply(JobsReleased{{first + 5}});
    t.join("a");
    t.apply(ending(t, first + 5, EndReason::kDrained, 2 * kGiB, {first + 4, 3}));
    for (JobId id = first; id < first + 9; ++id) {
      const bool raised = id >= first + 4 && id <= first + 6;
      CPPUNIT_ASSERT_EQUAL(raised ? 2 * kGiB : 0, asks(t, id));
    }
    // A range that its job is not in.
    t.apply(ending(t, first + 5, EndReason::kDrained, 3 * kGiB, {first + 6, ~uint64_t{0}}));
    CPPUNIT_ASSERT_EQUAL(2 * kGiB, asks(t, first + 6));
  }

  void an_array_in_pieces_costs_a_bounded_time() {
    TestPool t;
    t.join("a");
    constexpr uint64_t kCount = 1000;
    const JobId first = t.submit("ann", 1, asking(0, kCount));
    for (JobId id = first + 2; id < first + kCount; id += 3) t.apply(JobsHeld{{id}});
    t.apply(ending(t, first, EndReason::kDrained, 2 * kGiB, {first, kCount}));
    uint64_t raised = 0;
    for (JobId id = first; id < first + kCount; ++id) raised += asks(t, id) > 0;
    CPPUNIT_ASSERT(raised > 256 && raised <= 1 + 2 * 256);
    CPPUNIT_ASSERT(t.last.records.size() < 300);
    // What is in one piece is raised at once, however many are at work before it.
    TestPool whole;
    for (int i = 0; i < 300; ++i) whole.join("m" + std::to_string(i));
    const JobId job = whole.submit("ann", 1, asking(0, 1'000'000));
    whole.apply(ending(whole, job, EndReason::kDrained, 2 * kGiB, {job, 1'000'000}));
    CPPUNIT_ASSERT_EQUAL(2 * kGiB, asks(whole, job + 999'999));
  }

  void why_names_what_it_used() {
    TestPool t;
    const MachineId a = t.join("a", 1, false);
    t.report(a, true, 1 * kGiB);
    const JobId job = t.submit("ann", 1, asking(0, 2));
    t.apply(ending(t, job, EndReason::kDrained, 3 * kGiB, {job, 2}));
    const auto why = [&](JobId id, uint64_t asked) { return t.pool.why(id, t.now, asked); };
    const std::string none = "no machine has 3 GiB of memory (largest: 1 GiB on a)";
    CPPUNIT_ASSERT_EQUAL("it used 3 GiB of memory before; " + none, why(job, 0));
    CPPUNIT_ASSERT_EQUAL("another of its array used 3 GiB of memory before; " + none,
                         why(job + 1, 0));
    CPPUNIT_ASSERT_EQUAL(none, why(job, 3 * kGiB));  // that is what was asked for
    CPPUNIT_ASSERT_EQUAL(none, t.pool.why(job, t.now));
    // It would wait anyway.
    CPPUNIT_ASSERT_EQUAL(std::string("no machine has 2 GiB of memory (largest: 1 GiB on a)"),
                         why(job, 2 * kGiB));
    // Others have as much, but are not free.
    const MachineId b = t.join("b", 1, false);
    t.report(b, false, 4 * kGiB);
    const std::string owners = "1 machine fits, used by its owner";
    CPPUNIT_ASSERT_EQUAL("it used 3 GiB of memory before; " + owners, why(job, 0));
    // It makes no difference.
    t.apply(MachineWithdrew{a});
    CPPUNIT_ASSERT_EQUAL(owners, why(job, 0));
  }

  void replayed_from_the_stored_form() {
    TestPool t;
    t.join("a", 2);
    const JobId first = t.submit("ann", 1, asking(0, 5));
    AttemptEnded event = ending(t, first, EndReason::kDrained, 3 * kGiB, {first, 5});
    const auto reread = [](const AttemptEnded& end) {
      return std::get<AttemptEnded>(decode_event(Event(end).index(), encode_event(end)));
    };
    const AttemptEnded same = reread(event);
    CPPUNIT_ASSERT_EQUAL(event.memory_peak, same.memory_peak);
    CPPUNIT_ASSERT(event.alike == same.alike);
    t.apply(same);
    CPPUNIT_ASSERT_EQUAL(3 * kGiB, asks(t, first + 4));
    // As older servers wrote it: without what the job used.
    event.left = "key";
    std::string older = encode_event(event);
    older.resize(older.size() - 3 * sizeof(uint64_t));
    const auto old = std::get<AttemptEnded>(decode_event(Event(event).index(), older));
    CPPUNIT_ASSERT_EQUAL(std::string("key"), old.left);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, old.memory_peak);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, old.alike.count);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(GrowthTest);
}  // namespace
}  // namespace sublet::scheduling
