#include "job/dependences.h"

#include <cppunit/extensions/HelperMacros.h>

#include <chrono>

#include "job/check.h"
#include "job/codec.h"
#include "job/description.h"

namespace sublet {
namespace {

class DependencesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(DependencesTest);
  CPPUNIT_TEST(a_graph_without_cycles);
  CPPUNIT_TEST(cycles_are_named);
  CPPUNIT_TEST(itself);
  CPPUNIT_TEST(jobs_that_the_batch_does_not_have);
  CPPUNIT_TEST(sources_are_waited_for_once);
  CPPUNIT_TEST(too_many_sources);
  CPPUNIT_TEST(large_batches_take_well_under_a_second);
  CPPUNIT_TEST(stored_with_the_description);
  CPPUNIT_TEST_SUITE_END();

  static SpecRange job(const std::string& name, JobReferences after = {}, uint64_t count = 1) {
    SpecRange range;
    range.spec.name = name;
    range.spec.program = "x";
    range.spec.waits_for.after = std::move(after);
    range.is_array = count > 1;
    range.count = count;
    return range;
  }
  static JobReference batch(uint64_t first, uint64_t count = 1) { return {true, first, count}; }

  static std::string refused(const std::vector<SpecRange>& specs) {
    try {
      check_dependences(specs);
    } catch (const JobError& e) {
      return e.code + ": " + e.what();
    }
    return "";
  }

 public:
  void a_graph_without_cycles() {
    CPPUNIT_ASSERT_EQUAL(std::string(), refused({job("a", {batch(1, 6)}), job("b", {}, 5),
                                                 job("c", {batch(1), batch(2)})}));
    // An id is no index.
    CPPUNIT_ASSERT_EQUAL(std::string(), refused({job("a", {{false, 0, 1}})}));
  }

  void cycles_are_named() {
    CPPUNIT_ASSERT_EQUAL(
        std::string("relation.cycle: jobs of the batch wait for each other: job 1 (b) -> job 2 (c) "
                    "-> job 1 (b)"),
        refused({job("a", {batch(1)}), job("b", {batch(2)}), job("c", {batch(1)})}));
    std::vector<SpecRange> other = {job("a"), job("b", {batch(9)}, 8), job("c")};
    other[2].spec.waits_for.after_start = {batch(4)};
    CPPUNIT_ASSERT_EQUAL(
        std::string("relation.cycle: jobs of the batch wait for each other: job 1 (b) -> job 9 (c) "
                    "-> job 1 (b)"),
        refused(other));
  }

  void itself() {
    CPPUNIT_ASSERT_EQUAL(std::string("relation.itself: job 1 (b) of the batch waits for itself"),
                         refused({job("a"), job("b", {batch(0, 2)})}));
    CPPUNIT_ASSERT_EQUAL(std::string("relation.itself: job 0 (a) of the batch waits for itself: "
                                     "for jobs of its own array"),
                         refused({job("a", {batch(3)}, 5)}));
  }

  void jobs_that_the_batch_does_not_have() {
    CPPUNIT_ASSERT_EQUAL(
        std::string("relation.unknown: job 0 (a) of the batch waits for job 2 of it, but it has 2"),
        refused({job("a", {batch(1, 2)}), job("b")}));
  }

  void sources_are_waited_for_once() {
    SpecRange range = job("a", {batch(2), batch(5, 3)});
    range.spec.inputs = {{0, "x", false, {true, 2, "x"}},
                         {0, "y", false, {false, 2, "y"}},
                         {0, "z", false, {false, 2, "z"}},
                         {9, "sent"}};
    wait_for_sources(range.spec);
    CPPUNIT_ASSERT(
        (range.spec.waits_for.after == JobReferences{batch(2), batch(5, 3), {false, 2, 1}}));
  }

  void too_many_sources() {
    SpecRange range = job("b", {batch(0)});
    range.spec.inputs.assign(2000, {0, "x", false, {true, 0, "x"}});
    std::vector<SpecRange> specs(101, range);
    specs[0] = job("a");
    CPPUNIT_ASSERT_EQUAL(std::string(), refused(specs));
    specs.push_back(range);
    CPPUNIT_ASSERT(refused(specs).starts_with("relation.too_many: the batch: more than 200,000"));
  }

  // 10^5 jobs, in the shapes that are hardest for a search: one long cycle, and each job after
  // all before it.
  void large_batches_take_well_under_a_second() {
    constexpr uint64_t kJobs = 100'000;
    std::vector<SpecRange> ring, pyramid;
    for (uint64_t i = 0; i < kJobs; ++i) {
      ring.push_back(job("r", {batch((i + 1) % kJobs)}));
      pyramid.push_back(i == 0 ? job("p") : job("p", {batch(0, i)}));
    }
    const auto begin = std::chrono::steady_clock::now();
    const std::string cycle = refused(ring);
    CPPUNIT_ASSERT(
        cycle.starts_with("relation.cycle: jobs of the batch wait for each other: job 0 "
                          "(r) -> job 1 (r) -> job 2 (r) -> job 3 (r) -> ... 99992 "
                          "more ... -> job 99996 (r)"));
    CPPUNIT_ASSERT(cycle.ends_with("-> job 99999 (r) -> job 0 (r)"));
    CPPUNIT_ASSERT_EQUAL(std::string(), refused(pyramid));
    pyramid[0].spec.waits_for.after = {batch(kJobs - 1)};
    CPPUNIT_ASSERT(refused(pyramid).starts_with("relation.cycle"));
    const auto took = std::chrono::steady_clock::now() - begin;
    printf("(3 checks of 100,000 jobs: %lld ms) ",
           static_cast<long long>(
               std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
  }

  void stored_with_the_description() {
    SpecRange range = job("a", {batch(7, 3), {false, 1ull << 40, 1}});
    range.spec.waits_for.after_any = {{false, 5, 2}};
    range.spec.waits_for.after_start = {{true, 0, 1}};
    range.spec.standard_input = "in";
    range.spec.inputs = {{3, "in"}, {0, "grid", true, {true, 4, "out/grid.bin"}}};
    const auto decoded = decode_specs(encode({&range, 1}));
    CPPUNIT_ASSERT(decoded.at(0) == range);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(DependencesTest);
}  // namespace
}  // namespace sublet
