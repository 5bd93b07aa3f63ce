#include "server/jobs/brain_form.h"

#include <cppunit/extensions/HelperMacros.h>

namespace sublet::server {
namespace {

class BrainFormTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(BrainFormTest);
  CPPUNIT_TEST(a_job_in_the_brains_words);
  CPPUNIT_TEST_SUITE_END();

  void a_job_in_the_brains_words() {
    JobDescription job;
    job.needs = {"linux", "x86_64", 2, 100, 7};
    job.bounds.memory = 300;
    job.priority = -1;
    job.retries = 3;
    job.programs = {{"linux/x86_64", "./a"}, {"linux/aarch64", "./b"}};
    const auto form = brain_job(job);
    CPPUNIT_ASSERT((form.needs == scheduling::Requirements{"linux", "x86_64", 2, 300, 7,
                                                           "linux/aarch64 linux/x86_64"}));
    CPPUNIT_ASSERT(form.priority == -1 && form.retries == 3);
    CPPUNIT_ASSERT((brain_form({1, 2, "key"}) == scheduling::StopWhen{1, 2, "key"}));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(BrainFormTest);

}  // namespace
}  // namespace sublet::server
