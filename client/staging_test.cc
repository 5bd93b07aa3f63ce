#include "client/staging.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/stat.h>

#include "base/temporary_folder.h"
#include "client/testing/memory_server.h"

namespace sublet::client {
namespace {

class StagingTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(StagingTest);
  CPPUNIT_TEST(fetches_inputs_and_checkpoint);
  CPPUNIT_TEST(fetches_in_chunks_and_checks);
  CPPUNIT_TEST(an_older_checkpoint_or_none);
  CPPUNIT_TEST(a_server_that_is_away_is_waited_for);
  CPPUNIT_TEST(what_is_not_there_fails);
  CPPUNIT_TEST(stops_when_told);
  CPPUNIT_TEST(the_environment);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder state_;
  MemoryServer server_;
  Assignment what_;

  std::shared_ptr<AttemptWork> work() {
    what_.name = {7, 1};
    std::string folder = attempt_folder(state_.path(), what_.name);
    make_attempt_folder(system_files(), folder, -1, -1);
    return std::make_shared<AttemptWork>(std::make_shared<Assignment>(what_), folder);
  }
  std::string read(const AttemptWork& work, const char* name) {
    return system_files().read_file(work.folder + "/" + name, 16 << 20);
  }

  void fetches_inputs_and_checkpoint() {
    server_.inputs = {{1, "#!/bin/sh\n"}, {2, ""}};
    server_.checkpoint = "saved";
    what_.inputs = {{1, "bin/run", true}, {2, "empty", false}};
    what_.checkpoint_generation = 3;
    auto w = work();
    StagingOutcome outcome = stage(*w, server_);
    CPPUNIT_ASSERT_EQUAL(std::string(""), outcome.reason);
    CPPUNIT_ASSERT_EQUAL(std::string("#!/bin/sh\n"), read(*w, "work/bin/run"));
    CPPUNIT_ASSERT_EQUAL(std::string(""), read(*w, "work/empty"));
    CPPUNIT_ASSERT_EQUAL(std::string("saved"), read(*w, "checkpoint/checkpoint"));
    struct stat info;
    stat((w->folder + "/work/bin/run").c_str(), &info);
    CPPUNIT_ASSERT_EQUAL(0700u, unsigned{info.st_mode & 0777});
  }

  void fetches_in_chunks_and_checks() {
    server_.inputs = {{1, std::string(2 * kChunkBytes + 17, 'x')}};
    what_.inputs = {{1, "big", false}};
    server_.damage = 2;  // in the first try both chunks, then none
    auto w = work();
    CPPUNIT_ASSERT_EQUAL(std::string(""), stage(*w, server_).reason);
    CPPUNIT_ASSERT(server_.inputs[1] == read(*w, "work/big"));
    server_.damage = 1000;
    StagingOutcome outcome = stage(*w, server_);
    CPPUNIT_ASSERT_EQUAL(protocol::kEndStaging, outcome.failed);
  }

  void an_older_checkpoint_or_none() {
    server_.checkpoint = "before";
    server_.generation = 2;
    what_.checkpoint_generation = 3;
    auto w = work();
    CPPUNIT_ASSERT_EQUAL(std::string(""), stage(*w, server_).reason);
    CPPUNIT_ASSERT_EQUAL(std::string("before"), read(*w, "checkpoint/checkpoint"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, w->held_generation);
    server_.generation = 0;
    CPPUNIT_ASSERT_EQUAL(std::string(""), stage(*w, server_).reason);
    CPPUNIT_ASSERT(!system_files().exists(w->folder + "/checkpoint/checkpoint"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, w->held_generation);
  }

  void a_server_that_is_away_is_waited_for() {
    server_.inputs = {{1, "a"}};
    what_.inputs = {{1, "a", false}};
    auto w = work();
    for (int call = 0; call < 2; ++call) {
      server_.calls = 0;
      server_.away_at = call;
      CPPUNIT_ASSERT(stage(*w, server_).result == TaskResult::kAgain);
    }
    server_.away_at = -1;
    CPPUNIT_ASSERT(stage(*w, server_).result == TaskResult::kDone);
  }

  void what_is_not_there_fails() {
    what_.inputs = {{9, "a", false}};
    auto w = work();
    StagingOutcome outcome = stage(*w, server_);
    CPPUNIT_ASSERT(outcome.result == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(protocol::kEndStaging, outcome.failed);
    CPPUNIT_ASSERT_EQUAL(std::string("No such file."), outcome.reason);
  }

  void stops_when_told() {
    server_.inputs = {{1, "a"}};
    what_.inputs = {{1, "a", false}};
    auto w = work();
    w->stop = true;
    CPPUNIT_ASSERT(stage(*w, server_).result == TaskResult::kStopped);
  }

  void the_environment() {
    what_.name = {7, 1};
    what_.environment = {"HOME=/elsewhere", "SUBLET_JOB=99", "X=1"};
    std::vector<std::string> expected = {
        "HOME=/elsewhere", "X=1",          "TMPDIR=/w",       "PATH=/usr/local/bin:/usr/bin:/bin",
        "LANG=C.UTF-8",    "SUBLET_JOB=7", "SUBLET_ATTEMPT=1"};
    CPPUNIT_ASSERT(expected == job_environment(what_, "/w"));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(StagingTest);

}  // namespace
}  // namespace sublet::client
