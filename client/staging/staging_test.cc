#include "client/staging/staging.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/stat.h>

#include "base/testing/temporary_folder.h"
#include "client/testing/memory_server.h"

namespace sublet::client {
namespace {

class StagingTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(StagingTest);
  CPPUNIT_TEST(fetches_inputs_and_checkpoint);
  CPPUNIT_TEST(fetches_in_chunks_and_checks);
  CPPUNIT_TEST(fetched_once_for_all_jobs);
  CPPUNIT_TEST(nothing_is_taken_without_the_server_s_word);
  CPPUNIT_TEST(an_altered_copy_is_fetched_again);
  CPPUNIT_TEST(goes_on_where_it_stood);
  CPPUNIT_TEST(an_older_checkpoint_or_none);
  CPPUNIT_TEST(a_checkpoint_found_damaged_on_its_way);
  CPPUNIT_TEST(a_server_that_is_away_is_waited_for);
  CPPUNIT_TEST(what_is_not_there_fails);
  CPPUNIT_TEST(stops_when_told);
  CPPUNIT_TEST(the_environment);
  CPPUNIT_TEST(the_standard_input);
  CPPUNIT_TEST(the_network);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder state_;
  MemoryServer server_;
  InputCache cache_{system_files(), {state_ / "cache", 8 << 20, 0}};
  Assignment what_;
  const std::atomic<bool> free_{true};
  Pace pace_{1, free_};
  const MoverSettings mover_settings_;

  std::shared_ptr<AttemptWork> work() {
    what_.name = {7, 1};
    std::string folder = attempt_folder(state_.path(), what_.name);
    make_attempt_folder(system_files(), folder, -1, -1);
    return std::make_shared<AttemptWork>(std::make_shared<Assignment>(what_), folder);
  }
  StagingOutcome go(AttemptWork& work) {
    Mover mover(work, server_, pace_, mover_settings_);
    return stage(work, server_, mover, cache_, pace_);
  }
  std::string read(const AttemptWork& work, const char* name) {
    return system_files().read_file(work.folder + "/" + name, 16 << 20);
  }

  void fetches_inputs_and_checkpoint() {
    server_.inputs = {{1, "#!/bin/sh\n"}, {2, ""}};
    server_.checkpoint = "saved";
    what_.job.inputs = {{1, "bin/run", true}, {2, "empty", false}};
    what_.checkpoint_generation = 3;
    auto w = work();
    StagingOutcome outcome = go(*w);
    CPPUNIT_ASSERT_EQUAL(std::string(""), outcome.reason);
    CPPUNIT_ASSERT_EQUAL(std::string("#!/bin/sh\n"), read(*w, "work/bin/run"));
    CPPUNIT_ASSERT_EQUAL(std::string(""), read(*w, "work/empty"));
    CPPUNIT_ASSERT_EQUAL(std::string("saved"), read(*w, "checkpoint/checkpoint"));
    struct stat info;
    stat((w->folder + "/work/bin/run").c_str(), &info);
    CPPUNIT_ASSERT_EQUAL(0700u, unsigned{info.st_mode & 0777});
  }

  void fetches_in_chunks_and_checks() {
    server_.inputs = {{1, std::string(2 * kChunkLimit + 17, 'x')}};
    what_.job.inputs = {{1, "big", false}};
    server_.damage = 2;  // damages two chunks of the first try
    auto w = work();
    CPPUNIT_ASSERT_EQUAL(std::string(""), go(*w).reason);
    CPPUNIT_ASSERT(server_.inputs[1] == read(*w, "work/big"));
    CPPUNIT_ASSERT_EQUAL(1, server_.suspected);
    // Cached by now: nothing is fetched, so damage in transit has no effect.
    server_.damage = 1000;
    CPPUNIT_ASSERT_EQUAL(std::string(""), go(*work()).reason);
    cache_.make_room(8 << 20);
    StagingOutcome outcome = go(*work());
    CPPUNIT_ASSERT_EQUAL(protocol::kEndStaging, outcome.failed);
  }

  void fetched_once_for_all_jobs() {
    server_.inputs = {{1, "program"}, {2, "data"}};
    for (int job = 0; job < 3; ++job) {
      what_.job.inputs = {{1, "run", true}, {2, "data", false}};
      auto w = work();
      CPPUNIT_ASSERT_EQUAL(std::string(""), go(*w).reason);
      CPPUNIT_ASSERT_EQUAL(std::string("program"), read(*w, "work/run"));
      CPPUNIT_ASSERT_EQUAL(std::string("data"), read(*w, "work/data"));
      struct stat info;
      stat((w->folder + "/work/run").c_str(), &info);
      CPPUNIT_ASSERT_EQUAL(0700u, unsigned{info.st_mode & 0777});
    }
    CPPUNIT_ASSERT_EQUAL(uint64_t{11}, server_.got);
  }

  // The cache must not bypass the server's access control.
  void nothing_is_taken_without_the_server_s_word() {
    server_.inputs = {{1, "secret"}};
    what_.job.inputs = {{1, "a", false}};
    CPPUNIT_ASSERT_EQUAL(std::string(""), go(*work()).reason);
    server_.inputs.clear();
    auto w = work();
    system_files().remove_file(w->folder + "/work/a");
    CPPUNIT_ASSERT_EQUAL(protocol::kEndStaging, go(*w).failed);
    CPPUNIT_ASSERT(!system_files().exists(w->folder + "/work/a"));
  }

  void an_altered_copy_is_fetched_again() {
    server_.inputs = {{1, "right"}};
    what_.job.inputs = {{1, "a", false}};
    CPPUNIT_ASSERT_EQUAL(std::string(""), go(*work()).reason);
    system_files().write_atomic(state_ / ("cache/" + hex(digest_of("right"))), "wrong");
    for (int time = 0; time < 2; ++time) {
      auto w = work();
      CPPUNIT_ASSERT_EQUAL(std::string(""), go(*w).reason);
      CPPUNIT_ASSERT_EQUAL(std::string("right"), read(*w, "work/a"));
    }
    CPPUNIT_ASSERT_EQUAL(uint64_t{10}, server_.got);
  }

  // The connection is cut before every chunk: each is fetched once.
  void goes_on_where_it_stood() {
    server_.inputs = {{1, "first"}, {2, std::string(3 * kChunkLimit, 'y')}};
    server_.checkpoint = std::string(2 * kChunkLimit, 'z');
    what_.job.inputs = {{1, "first", false}, {2, "big", false}};
    what_.checkpoint_generation = 3;
    bool cut = false;
    server_.before_get = [&](const FilePlace&) {
      cut = !cut;
      if (cut) throw ServerError(ServerError::Kind::kAway, "", "Nobody answers.");
    };
    auto w = work();
    int cuts = 0;
    while (go(*w).result == TaskResult::kAgain) ++cuts;
    CPPUNIT_ASSERT_EQUAL(6, cuts);
    CPPUNIT_ASSERT_EQUAL(uint64_t{5 + 5 * kChunkLimit}, server_.got);
    CPPUNIT_ASSERT(server_.inputs[2] == read(*w, "work/big"));
    CPPUNIT_ASSERT(server_.checkpoint == read(*w, "checkpoint/checkpoint"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{5 + 3 * kChunkLimit}, cache_.bytes());
  }

  void a_checkpoint_found_damaged_on_its_way() {
    server_.checkpoint = std::string(2 * kChunkLimit, 'z');
    what_.checkpoint_generation = 3;
    server_.before_get = [&](const FilePlace& place) {
      if (place.generation != 3 || server_.got == 0) return;
      server_.generation = 2;
      server_.checkpoint = "before";
      throw ServerError(ServerError::Kind::kNotFound, "spool.damaged", "It is damaged.");
    };
    auto w = work();
    CPPUNIT_ASSERT_EQUAL(std::string(""), go(*w).reason);
    CPPUNIT_ASSERT_EQUAL(std::string("before"), read(*w, "checkpoint/checkpoint"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, w->held_generation);
  }

  void an_older_checkpoint_or_none() {
    server_.checkpoint = "before";
    server_.generation = 2;
    what_.checkpoint_generation = 3;
    auto w = work();
    CPPUNIT_ASSERT_EQUAL(std::string(""), go(*w).reason);
    CPPUNIT_ASSERT_EQUAL(std::string("before"), read(*w, "checkpoint/checkpoint"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, w->held_generation);
    server_.generation = 0;
    CPPUNIT_ASSERT_EQUAL(std::string(""), go(*w).reason);
    CPPUNIT_ASSERT(!system_files().exists(w->folder + "/checkpoint/checkpoint"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, w->held_generation);
  }

  void a_server_that_is_away_is_waited_for() {
    server_.inputs = {{1, "a"}};
    what_.job.inputs = {{1, "a", false}};
    auto w = work();
    for (int call = 0; call < 2; ++call) {
      server_.calls = 0;
      server_.away_at = call;
      CPPUNIT_ASSERT(go(*w).result == TaskResult::kAgain);
    }
    server_.away_at = -1;
    CPPUNIT_ASSERT(go(*w).result == TaskResult::kDone);
  }

  void what_is_not_there_fails() {
    what_.job.inputs = {{9, "a", false}};
    auto w = work();
    StagingOutcome outcome = go(*w);
    CPPUNIT_ASSERT(outcome.result == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(protocol::kEndStaging, outcome.failed);
    CPPUNIT_ASSERT_EQUAL(std::string("No such file."), outcome.reason);
  }

  void stops_when_told() {
    server_.inputs = {{1, "a"}};
    what_.job.inputs = {{1, "a", false}};
    auto w = work();
    w->stop = true;
    CPPUNIT_ASSERT(go(*w).result == TaskResult::kStopped);
  }

  void the_environment() {
    what_.name = {7, 1};
    what_.job.environment = {"HOME=/elsewhere", "SUBLET_JOB=99", "X=1"};
    std::vector<std::string> expected = {
        "HOME=/elsewhere", "X=1",          "TMPDIR=/w",       "PATH=/usr/local/bin:/usr/bin:/bin",
        "LANG=C.UTF-8",    "SUBLET_JOB=7", "SUBLET_ATTEMPT=1"};
    CPPUNIT_ASSERT(expected == job_environment(what_, "/w", 0));
    // Only who has GPUs is told which.
    what_.job.environment = {"CUDA_VISIBLE_DEVICES=7", "SUBLET_GPUS=7", "SUBLET_RESOURCES=x",
                             "SUBLET_MEAN_IDLE=1"};
    CPPUNIT_ASSERT_EQUAL(std::string("CUDA_VISIBLE_DEVICES=7"),
                         job_environment(what_, "/w", 0).at(0));
    what_.job.needs.resources = rules::NamedAmounts::parse("gpu=2 ansys=1");
    what_.gpus = {"0", "3"};
    expected = {"HOME=/w",
                "TMPDIR=/w",
                "PATH=/usr/local/bin:/usr/bin:/bin",
                "LANG=C.UTF-8",
                "SUBLET_JOB=7",
                "SUBLET_ATTEMPT=1",
                "SUBLET_RESOURCES=ansys=1 gpu=2",
                "SUBLET_GPUS=0,3",
                "CUDA_VISIBLE_DEVICES=0,3"};
    CPPUNIT_ASSERT(expected == job_environment(what_, "/w", 0));
    what_.gpus.clear();
    CPPUNIT_ASSERT_EQUAL(std::string("SUBLET_MEAN_IDLE=5400"),
                         job_environment(what_, "/w", 5400).at(7));
  }

  void the_standard_input() {
    CPPUNIT_ASSERT_EQUAL(std::string(), make_order(*work(), {}, 0, "").standard_input);
    what_.job.standard_input = "data/a";
    CPPUNIT_ASSERT_EQUAL(std::string("data/a"), make_order(*work(), {}, 0, "").standard_input);
  }

  void the_network() {
    JobSettings settings;
    settings.network = {Network::kAny, false, true, true};
    const auto ordered = [&](Network wish) {
      what_.job.network = wish;
      const AttemptOrder order = make_order(*work(), settings, 0, "10.0.0.1:9740");
      return std::string(order.no_network    ? "none"
                         : order.only_server ? "only "
                                             : "any") +
             order.server;
    };
    CPPUNIT_ASSERT_EQUAL(std::string("any"), ordered(Network::kDefault));
    CPPUNIT_ASSERT_EQUAL(std::string("only 10.0.0.1:9740"), ordered(Network::kServer));
    CPPUNIT_ASSERT_EQUAL(std::string("none"), ordered(Network::kNone));
    settings.network.most = Network::kServer;
    CPPUNIT_ASSERT_EQUAL(std::string("only 10.0.0.1:9740"), ordered(Network::kDefault));
    settings.network.server_is_here = true;
    CPPUNIT_ASSERT_EQUAL(std::string("none"), ordered(Network::kDefault));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(StagingTest);

}  // namespace
}  // namespace sublet::client
