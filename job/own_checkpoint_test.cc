#include "job/own_checkpoint.h"

#include <cppunit/extensions/HelperMacros.h>

#include <csignal>

#include "job/check.h"
#include "job/codec.h"

namespace sublet {
namespace {

OwnCheckpoint files(std::vector<std::string> names) { return {.files = std::move(names)}; }

class OwnCheckpointTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(OwnCheckpointTest);
  CPPUNIT_TEST(exit_statuses);
  CPPUNIT_TEST(what_is_wrong);
  CPPUNIT_TEST(signals_have_names);
  CPPUNIT_TEST(a_description_with_it_is_checked);
  CPPUNIT_TEST(it_is_stored);
  CPPUNIT_TEST_SUITE_END();

  void exit_statuses() {
    OwnCheckpoint own;
    CPPUNIT_ASSERT(!own.says_saved(85));
    own.files = {"state"};
    CPPUNIT_ASSERT(own.says_saved(75) && own.says_saved(85));
    CPPUNIT_ASSERT(!own.says_saved(0) && !own.says_saved(1) && !own.says_saved(-171));
    own.exit_codes = {7};
    CPPUNIT_ASSERT(own.says_saved(7) && !own.says_saved(75));
  }

  void what_is_wrong() {
    CPPUNIT_ASSERT_EQUAL(std::string(), wrong_with(OwnCheckpoint()));
    CPPUNIT_ASSERT_EQUAL(std::string(), wrong_with(files({"state-*.npz", "best.ckpt", "out/"})));
    const auto is_wrong = [](OwnCheckpoint own) { return !wrong_with(own).empty(); };
    for (const char* name : {"", "/etc/passwd", "../x", "a/../b", "stdout", "[a"})
      CPPUNIT_ASSERT_MESSAGE(name, is_wrong(files({name})));
    CPPUNIT_ASSERT(is_wrong(files({"a", "a"})));
    std::vector<std::string> many;
    for (int i = 0; i < 64; ++i) many.push_back("a" + std::to_string(i));
    CPPUNIT_ASSERT(!is_wrong(files(many)));
    many.push_back("b");
    CPPUNIT_ASSERT(is_wrong(files(many)));
    CPPUNIT_ASSERT(is_wrong(files({"two\nlines"})));
    for (auto& name : many) name += std::string(2000, 'x');
    many.pop_back();
    CPPUNIT_ASSERT(is_wrong(files(many)));
    CPPUNIT_ASSERT(is_wrong({.every_ms = 1000}));
    CPPUNIT_ASSERT(is_wrong({.exit_codes = {85}}));
    CPPUNIT_ASSERT(is_wrong({.files = {"a"}, .every_ms = 999}));
    CPPUNIT_ASSERT(is_wrong({.files = {"a"}, .every_ms = -1}));
    CPPUNIT_ASSERT(is_wrong({.files = {"a"}, .every_ms = kMostEveryMs + 1}));
    CPPUNIT_ASSERT(is_wrong({.files = {"a"}, .signal = SIGKILL}));
    for (const uint32_t code : {0u, 256u})
      CPPUNIT_ASSERT(is_wrong({.files = {"a"}, .exit_codes = {code}}));
    CPPUNIT_ASSERT(is_wrong({.files = {"a"}, .exit_codes = std::vector<uint32_t>(17, 3)}));
  }

  void signals_have_names() {
    for (const std::string& name : signal_names())
      CPPUNIT_ASSERT_EQUAL(name, signal_name(signal_named(name).value()));
    CPPUNIT_ASSERT(signal_named("sigusr1") == uint32_t{SIGUSR1});
    CPPUNIT_ASSERT(!signal_named("KILL") && !signal_named("") && !signal_named("10"));
    CPPUNIT_ASSERT_EQUAL(std::string(), signal_name(SIGKILL));
  }

  void a_description_with_it_is_checked() {
    JobDescription job;
    job.program = "true";
    job.own_checkpoint = files({"state"});
    check_description(job, "job 0");
    const size_t octets = octets_of(job);
    job.own_checkpoint.files.push_back("more");
    CPPUNIT_ASSERT_EQUAL(octets + 4, octets_of(job));
    job.own_checkpoint.files.push_back("../up");
    CPPUNIT_ASSERT_THROW(check_description(job, "job 0"), JobError);
  }

  void it_is_stored() {
    SpecRange range;
    range.spec.program = "true";
    CPPUNIT_ASSERT(decode_specs(encode(std::vector{range})) == std::vector{range});
    range.spec.own_checkpoint = {{"state-*", "out/"}, 600'000, SIGUSR2, {3, 85}};
    CPPUNIT_ASSERT(decode_specs(encode(std::vector{range})) == std::vector{range});
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(OwnCheckpointTest);

}  // namespace
}  // namespace sublet
