#include "cli/pool/idl_translation.h"

#include <cppunit/TestFixture.h>
#include <cppunit/extensions/HelperMacros.h>

namespace sublet::cli {
namespace {

class IdlTranslationTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(IdlTranslationTest);
  CPPUNIT_TEST(counts_of_states);
  CPPUNIT_TEST(an_unknown_state_is_not_final);
  CPPUNIT_TEST_SUITE_END();

  static v1::Counts counts(std::initializer_list<v1::Count> all) {
    v1::Counts out;
    out.length(static_cast<CORBA::ULong>(all.size()));
    std::copy(all.begin(), all.end(), out.get_buffer());
    return out;
  }

 public:
  void counts_of_states() {
    const JobCounts c =
        from_counts(counts({{v1::JOB_REMOVED, 7}, {v1::JOB_WAITING, 1}, {v1::JOB_DONE, 5}}));
    const JobCounts expected{.waiting = 1, .done = 5, .removed = 7};
    CPPUNIT_ASSERT(expected == c);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, c.unfinished());
    CPPUNIT_ASSERT(JobCounts{} == from_counts(counts({})));
  }

  // A command that waits for jobs waits for those in unknown states too.
  void an_unknown_state_is_not_final() {
    const JobCounts c = from_counts(counts({{v1::JOB_SUSPENDED, 2}, {4711, 3}, {v1::JOB_DONE, 1}}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{5}, c.unfinished());
    CPPUNIT_ASSERT_EQUAL(uint64_t{6}, c.total());
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(IdlTranslationTest);

}  // namespace
}  // namespace sublet::cli
