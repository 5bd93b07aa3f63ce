#include "client/staging/hand_in.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>

#include "base/testing/temporary_folder.h"
#include "client/testing/memory_server.h"

namespace sublet::client {
namespace {

class HandInTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(HandInTest);
  CPPUNIT_TEST(a_finished_job_leaves_outputs_and_streams);
  CPPUNIT_TEST(a_repetition_is_no_progress);
  CPPUNIT_TEST(required_outputs_and_bounds);
  CPPUNIT_TEST(links_are_not_handed_in);
  CPPUNIT_TEST(folders_and_patterns_are_handed_in);
  CPPUNIT_TEST(a_hostile_folder_is_survived);
  CPPUNIT_TEST(an_evicted_job_leaves_its_checkpoint_only);
  CPPUNIT_TEST(an_old_checkpoint_stays);
  CPPUNIT_TEST(a_checkpoint_of_terabytes_is_not_even_read);
  CPPUNIT_TEST(what_a_job_asks_for_is_bounded_by_the_machine);
  CPPUNIT_TEST(a_start_that_the_machine_failed_is_a_loss);
  CPPUNIT_TEST(cut_off_at_any_call_it_goes_on);
  CPPUNIT_TEST(a_forgotten_upload_starts_afresh);
  CPPUNIT_TEST(killed_from_here_is_an_eviction);
  CPPUNIT_TEST(a_damaged_exit_record_is_a_lost_attempt);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder state_;
  MemoryServer server_;
  Assignment what_;
  JobSettings settings_;
  std::string why_;
  std::atomic<bool> away_{true};
  Pace pace_{1, away_};
  const MoverSettings mover_settings_;

  std::shared_ptr<AttemptWork> work(const AttemptExit& exit) {
    what_.name = {7, 1};
    std::string folder = attempt_folder(state_.path(), what_.name);
    make_attempt_folder(system_files(), folder, -1, -1);
    system_files().write_atomic(folder + "/exit", print_exit(exit));
    return std::make_shared<AttemptWork>(std::make_shared<Assignment>(what_), folder);
  }
  static AttemptExit exited(int64_t code) {
    AttemptExit exit;
    exit.facts.job = 7;
    exit.facts.attempt = 1;
    exit.facts.outcome = SUBLET_OUTCOME_EXITED;
    exit.facts.code = code;
    exit.boot_id = boot_id();
    return exit;
  }
  static AttemptExit evicted(int64_t generation) {
    AttemptExit exit = exited(75);
    exit.facts.asked = exit.facts.left = exit.facts.aware = 1;
    exit.facts.reason = SUBLET_LEAVE_OWNER;
    exit.facts.generation = generation;
    exit.facts.saved_ns = 1;
    return exit;
  }
  void write(const AttemptWork& work, const std::string& name, const std::string& bytes) {
    std::ofstream(work.folder + "/" + name) << bytes;
  }
  TaskResult go(AttemptWork& work) {
    Mover mover(work, server_, pace_, mover_settings_);
    return hand_in(work, server_, mover, system_files(), settings_, pace_, &why_);
  }

  void a_finished_job_leaves_outputs_and_streams() {
    what_.job.outputs = {{"out", true}, {"none", false}};
    auto w = work(exited(0));
    write(*w, "work/out", std::string(kChunkLimit + 5, 'o'));
    write(*w, "stdout", "hello");
    write(*w, "stderr", "");
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndDone}, w->end.end);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, w->end.outputs.size());
    CPPUNIT_ASSERT_EQUAL(size_t{kChunkLimit + 5},
                         server_.complete(FileKind::kOutput)[0].bytes.size());
    CPPUNIT_ASSERT_EQUAL(std::string("hello"), server_.complete(FileKind::kStdout)[0].bytes);
    CPPUNIT_ASSERT(server_.complete(FileKind::kStderr).empty());
  }

  // Else the server would wait for an upload that fails again and again.
  void a_repetition_is_no_progress() {
    what_.job.outputs = {{"out", true}};
    auto w = work(exited(0));
    write(*w, "work/out", std::string(1000, 'o'));
    CPPUNIT_ASSERT(w->delivery == AttemptWork::Delivery::kNotBegun);
    for (int i = 0; i < 3; ++i) {
      CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
      CPPUNIT_ASSERT(w->delivery == AttemptWork::Delivery::kOutputs);
      CPPUNIT_ASSERT_EQUAL(uint64_t{2000}, w->delivered.load());  // read once and sent once
    }
    write(*w, "stdout", "hello");
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2010}, w->delivered.load());
    // A checkpoint is no delivery.
    w = work(evicted(7));
    write(*w, "checkpoint/checkpoint", "bytes");
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, server_.complete(FileKind::kCheckpoint).size());
    CPPUNIT_ASSERT(w->delivery == AttemptWork::Delivery::kNothing);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, w->delivered.load());
  }

  void required_outputs_and_bounds() {
    what_.job.outputs = {{"out", true}};
    auto w = work(exited(0));
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndOutput}, w->end.end);
    CPPUNIT_ASSERT_EQUAL(std::string("The output 'out' was not produced."), w->end.reason);
    what_.job.bounds.output_file = 3;
    w = work(exited(0));
    write(*w, "work/out", "1234");
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndOutput}, w->end.end);
    // A job that has already failed keeps its reason.
    w = work(exited(3));
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndExit}, w->end.end);
  }

  void links_are_not_handed_in() {
    what_.job.outputs = {{"out", false}};
    auto w = work(exited(0));
    CPPUNIT_ASSERT_EQUAL(0, symlink("/etc/passwd", (w->folder + "/work/out").c_str()));
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndOutput}, w->end.end);
    CPPUNIT_ASSERT(server_.files.empty());
  }

  std::vector<std::string> handed_in() const {
    std::vector<std::string> names;
    for (const auto& file : server_.complete(FileKind::kOutput)) names.push_back(file.place.name);
    return names;
  }

  void folders_and_patterns_are_handed_in() {
    what_.job.outputs = {{"r/", true}, {"r/*.png", true}, {"*.log", false}, {"a\\*", true}};
    auto w = work(exited(0));
    CPPUNIT_ASSERT_EQUAL(0, mkdir((w->folder + "/work/r").c_str(), 0700));
    for (const char* name : {"r/new\nline", "r/x.png", "r/\xff", "a*", "ab"})
      write(*w, "work/" + std::string(name), name);
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(std::string(), w->end.reason);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndDone}, w->end.end);
    const std::vector<std::string> all = {"r/new\nline", "r/x.png", "r/\xff", "a*"};
    CPPUNIT_ASSERT(all == handed_in());
    what_.job.outputs = {{"*.none", true}};
    w = work(exited(0));
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(std::string("The output '*.none' was not produced."), w->end.reason);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndOutput}, w->end.end);
  }

  void a_hostile_folder_is_survived() {
    what_.job.outputs = {{"r/", true}};
    auto w = work(exited(0));
    CPPUNIT_ASSERT_EQUAL(0, symlink("/etc", (w->folder + "/work/r").c_str()));
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(
        std::string("The output 'r/' was not produced. 'r' is not a file of the job."),
        w->end.reason);
    CPPUNIT_ASSERT_EQUAL(0, unlink((w->folder + "/work/r").c_str()));
    CPPUNIT_ASSERT_EQUAL(0, mkdir((w->folder + "/work/r").c_str(), 0700));
    CPPUNIT_ASSERT_EQUAL(0, symlink("/etc/passwd", (w->folder + "/work/r/p").c_str()));
    write(*w, "work/r/good", "good");
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndDone}, w->end.end);
    CPPUNIT_ASSERT(handed_in() == std::vector<std::string>{"r/good"});
    // A sparse file of terabytes is not read.
    write(*w, "work/r/sparse", "");
    CPPUNIT_ASSERT_EQUAL(0, truncate((w->folder + "/work/r/sparse").c_str(), 4ll << 40));
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndOutput}, w->end.end);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, w->end.outputs.size());
  }

  void an_evicted_job_leaves_its_checkpoint_only() {
    what_.job.outputs = {{"out", true}};
    auto w = work(evicted(4));
    write(*w, "checkpoint/checkpoint", "state");
    write(*w, "stdout", "hello");
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndOwner}, w->end.end);
    CPPUNIT_ASSERT_EQUAL(uint64_t{4}, w->end.generation);
    CPPUNIT_ASSERT_EQUAL(uint64_t{5}, w->end.checkpoint_bytes);
    CPPUNIT_ASSERT_EQUAL(uint64_t{4}, server_.complete(FileKind::kCheckpoint)[0].place.generation);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, server_.files.size());
  }

  void an_old_checkpoint_stays() {
    what_.checkpoint_generation = 4;
    auto w = work(evicted(4));
    write(*w, "checkpoint/checkpoint", "state");
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, w->end.generation);
    CPPUNIT_ASSERT(server_.files.empty());
  }

  // Reading it would take hours: the test passes if it ends.
  void a_checkpoint_of_terabytes_is_not_even_read() {
    auto w = work(evicted(4));
    write(*w, "checkpoint/checkpoint", "");
    CPPUNIT_ASSERT_EQUAL(0, truncate((w->folder + "/checkpoint/checkpoint").c_str(), 4ll << 40));
    w->reported_generation = 5;
    Mover mover(*w, server_, pace_, mover_settings_);
    CPPUNIT_ASSERT(hand_in_checkpoint(*w, server_, mover, settings_, pace_, &why_) ==
                   TaskResult::kDone);
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, w->end.generation);
    CPPUNIT_ASSERT(server_.files.empty());
    settings_.checkpoint_largest = 5;
    write(*w, "checkpoint/checkpoint", "state");
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint64_t{5}, w->end.generation);
  }

  void what_a_job_asks_for_is_bounded_by_the_machine() {
    what_.job.outputs = {{"a", true}, {"b", true}};
    what_.job.bounds.output_file = what_.job.bounds.output_text = UINT64_MAX;
    auto w = work(exited(0));
    write(*w, "work/a", "1234");
    write(*w, "work/b", "1234");
    write(*w, "stdout", "hello");
    settings_.output_file_most = 8;
    settings_.output_text_most = 4;
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndDone}, w->end.end);
    CPPUNIT_ASSERT_EQUAL(std::string("hell"), server_.complete(FileKind::kStdout)[0].bytes);
    CPPUNIT_ASSERT(w->end.stdout_cut);
    CPPUNIT_ASSERT_EQUAL(int64_t{4}, make_order(*w, settings_, 0, "").stdout_limit);
    settings_.output_file_most = 7;  // enough for each, but not for both
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndOutput}, w->end.end);
    settings_.output_file_most = 3;
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndOutput}, w->end.end);
  }

  void a_start_that_the_machine_failed_is_a_loss() {
    AttemptExit failed = exited(ENOSPC);
    failed.facts.outcome = SUBLET_OUTCOME_FAILED;
    failed.step = "output";
    auto w = work(failed);
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndLost}, w->end.end);
    CPPUNIT_ASSERT_EQUAL(
        std::string("The machine could not start it: output: No space left on device."),
        w->end.reason);
    for (const char* step : {"exec", "chdir", "limits"}) {
      failed.step = step;
      w = work(failed);
      CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
      CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndStart}, w->end.end);
    }
  }

  void cut_off_at_any_call_it_goes_on() {
    what_.job.outputs = {{"a", true}, {"b", true}};
    auto w = work(exited(0));
    write(*w, "work/a", std::string(kChunkLimit + 1, 'a'));
    write(*w, "work/b", "b");
    for (int call = 0; call < 7; ++call) {
      server_ = MemoryServer();
      server_.away_at = call;
      CPPUNIT_ASSERT(go(*w) == TaskResult::kAgain);
      server_.away_at = -1;
      CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
      // The same uploads as before.
      CPPUNIT_ASSERT_EQUAL(size_t{2}, server_.requests.size());
      CPPUNIT_ASSERT_EQUAL(size_t{2}, server_.complete(FileKind::kOutput).size());
    }
    // After a restart, too.
    auto outputs = w->end.outputs;
    w = work(exited(0));
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT(outputs == w->end.outputs);
  }

  void a_forgotten_upload_starts_afresh() {
    auto w = work(exited(0));
    write(*w, "stdout", std::string(kChunkLimit + 1, 'a'));
    server_.away_at = 2;
    CPPUNIT_ASSERT(go(*w) == TaskResult::kAgain);
    server_.away_at = -1;
    server_.files.clear();  // but the request's answer is remembered
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, w->end.outputs.size());
  }

  void killed_from_here_is_an_eviction() {
    AttemptExit exit = exited(SIGKILL);
    exit.facts.outcome = SUBLET_OUTCOME_SIGNALLED;
    auto w = work(exit);
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndSignal}, w->end.end);
    w->leave_reason = SUBLET_LEAVE_OWNER;
    w->seen = {.sensed = 1'000'000, .frozen = 0, .gone = 5'000'000};
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndOwner}, w->end.end);
    CPPUNIT_ASSERT(protocol::EvictionSteps{.gone = 4000} == w->end.steps);
  }

  void a_damaged_exit_record_is_a_lost_attempt() {
    auto w = work(exited(0));
    write(*w, "exit", "nonsense");
    CPPUNIT_ASSERT(go(*w) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndLost}, w->end.end);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(HandInTest);

}  // namespace
}  // namespace sublet::client
