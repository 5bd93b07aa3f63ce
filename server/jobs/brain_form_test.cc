#include "server/jobs/brain_form.h"

#include <cppunit/extensions/HelperMacros.h>

namespace sublet::server {
namespace {

class BrainFormTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(BrainFormTest);
  CPPUNIT_TEST(a_job_in_the_brains_words);
  CPPUNIT_TEST(programs_are_told_apart);
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

  void programs_are_told_apart() {
    JobDescription job;
    job.program = "./a";
    const uint64_t number = program_of(job, "ann");
    CPPUNIT_ASSERT(number > 0 && number < 1ull << 63);
    CPPUNIT_ASSERT(program_of(job, "bob") != number);
    job.arguments = {"7"};
    job.needs.cores = 3;
    CPPUNIT_ASSERT_EQUAL(number, program_of(job, "ann"));
    job.program = "./b";
    CPPUNIT_ASSERT(program_of(job, "ann") != number);
    job.program.clear();
    job.programs = {{"linux/x86_64", "./a"}, {"linux/aarch64", "./b"}};
    const uint64_t of_two = program_of(job, "ann");
    std::swap(job.programs[0], job.programs[1]);
    CPPUNIT_ASSERT_EQUAL(of_two, program_of(job, "ann"));
    std::swap(job.programs[0].second, job.programs[1].second);
    CPPUNIT_ASSERT(program_of(job, "ann") != of_two);
    // What is divided otherwise is something else.
    job.programs.clear();
    job.program = "c";
    const uint64_t of_c = program_of(job, "ab");
    job.program = "bc";
    CPPUNIT_ASSERT(program_of(job, "a") != of_c);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(BrainFormTest);

}  // namespace
}  // namespace sublet::server
