#include "client/staging/own_files.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/testing/temporary_folder.h"
#include "checkpoint-api/sublet_status.h"
#include "client/staging/hand_in.h"
#include "client/testing/memory_server.h"

namespace sublet::client {
namespace {

constexpr uint64_t kLargest = 1 << 20;

class OwnFilesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(OwnFilesTest);
  CPPUNIT_TEST(they_go_on_elsewhere);
  CPPUNIT_TEST(only_whole_files_are_taken);
  CPPUNIT_TEST(of_a_save_that_was_cut_short_all_or_none);
  CPPUNIT_TEST(what_is_not_whole_is_kept_as_it_was);
  CPPUNIT_TEST(without_what_was_nothing_is_made);
  CPPUNIT_TEST(a_client_that_begins_anew);
  CPPUNIT_TEST(the_same_contents_are_nothing_new);
  CPPUNIT_TEST(while_it_runs);
  CPPUNIT_TEST(a_file_that_is_gone_makes_no_pack);
  CPPUNIT_TEST(a_copy_that_was_not_sent_is_not_the_last);
  CPPUNIT_TEST(the_next_copy_is_planned);
  CPPUNIT_TEST(none_is_made_beside_the_api);
  CPPUNIT_TEST(too_many);
  CPPUNIT_TEST(what_is_in_the_way);
  CPPUNIT_TEST(what_is_none_of_the_jobs);
  CPPUNIT_TEST(too_large);
  CPPUNIT_TEST(a_damaged_pack_is_refused);
  CPPUNIT_TEST(an_end_with_them);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder state_;
  MemoryServer server_;
  Assignment what_;
  uint32_t attempts_ = 0;
  const std::atomic<bool> away_{true};
  Pace pace_{1, away_};
  const MoverSettings none_;

  std::shared_ptr<AttemptWork> work() {
    what_.name = {7, ++attempts_};
    const std::string folder = attempt_folder(state_.path(), what_.name);
    make_attempt_folder(system_files(), folder, -1, -1);
    return std::make_shared<AttemptWork>(std::make_shared<Assignment>(what_), folder);
  }
  std::shared_ptr<AttemptWork> work_with(std::vector<std::string> files) {
    what_.job.own_checkpoint.files = std::move(files);
    return work();
  }
  // Written so long ago that it counts as unchanged.
  static void write(const AttemptWork& work, const std::string& name, const std::string& bytes,
                    int64_t second = 1000) {
    const std::string path = work.folder + "/work/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << bytes;
    const timespec times[] = {{second, 0}, {second, 7}};
    CPPUNIT_ASSERT_EQUAL(0, utimensat(AT_FDCWD, path.c_str(), times, 0));
  }
  static std::string read(const AttemptWork& work, const std::string& name) {
    return system_files().read_file(work.folder + "/work/" + name, 1 << 20);
  }
  static bool has(const AttemptWork& work, const std::string& name) {
    return system_files().exists(work.folder + "/work/" + name);
  }
  // As the shepherd writes it.
  static void all_are_whole(const AttemptWork& work) {
    system_files().write_atomic(work.folder + "/" SUBLET_WHOLE_FILE, "all");
  }
  static void whole(const AttemptWork& work, const std::vector<std::string>& names) {
    std::string entries;
    for (const std::string& name : names) {
      struct stat info;
      CPPUNIT_ASSERT_EQUAL(0, stat((work.folder + "/work/" + name).c_str(), &info));
      entries += std::to_string(info.st_size) + " " + std::to_string(info.st_ctim.tv_sec) + " " +
                 std::to_string(info.st_ctim.tv_nsec) + " " + name + '\0';
    }
    system_files().write_atomic(work.folder + "/" SUBLET_WHOLE_FILE, entries);
  }
  static std::shared_ptr<Pack> pack(const AttemptWork& work, bool runs = false) {
    return pack_own_files(work, runs, kLargest, [] {}).pack;
  }
  // Of a program that runs, while the owner is away.
  TaskResult copy(AttemptWork& work, const JobSettings& settings = {}) {
    std::string why;
    Mover mover(work, server_, pace_, none_);
    return hand_in_checkpoint(work, server_, mover, settings, pace_, &why);
  }
  // What is sent becomes the checkpoint from which another attempt begins.
  std::shared_ptr<AttemptWork> next(const Pack& pack) {
    auto to = work();
    const std::string bytes = read_content(pack.file.get(), 0, pack.size);
    system_files().write_atomic(to->folder + "/checkpoint/checkpoint", bytes);
    to->held_generation = pack.generation;
    CPPUNIT_ASSERT(unpack_own_files(*to, [] {}));
    return to;
  }

  static void end_of(const AttemptWork& work, int64_t status) {
    AttemptExit exit;
    exit.facts.job = 7;
    exit.facts.attempt = work.assignment->name.attempt;
    exit.facts.outcome = SUBLET_OUTCOME_EXITED;
    exit.facts.code = status;
    exit.facts.cpu_user_us = 100;
    exit.facts.started_ns = 1;
    exit.facts.ended_ns = 2'000'000;
    exit.boot_id = boot_id();
    system_files().write_atomic(work.folder + "/exit", print_exit(exit));
  }

  void they_go_on_elsewhere() {
    auto w = work_with({"state-*", "out/", "log"});
    write(*w, "state-1", "one");
    write(*w, "out/deep/x", "two");
    write(*w, "scratch", "not named");
    CPPUNIT_ASSERT_EQUAL(0, chmod((w->folder + "/work/state-1").c_str(), 0750));
    all_are_whole(*w);
    const auto made = pack(*w);
    CPPUNIT_ASSERT(made != nullptr);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, made->generation);
    CPPUNIT_ASSERT(made->changed_us > 1'000'000'000);  // not as old as the program says
    const auto then = next(*made);
    CPPUNIT_ASSERT_EQUAL(std::string("one"), read(*then, "state-1"));
    CPPUNIT_ASSERT_EQUAL(std::string("two"), read(*then, "out/deep/x"));
    CPPUNIT_ASSERT(!has(*then, "scratch") && !has(*then, "log"));
    CPPUNIT_ASSERT(!system_files().exists(then->folder + "/checkpoint/checkpoint"));
    struct stat info;
    CPPUNIT_ASSERT_EQUAL(0, stat((then->folder + "/work/state-1").c_str(), &info));
    CPPUNIT_ASSERT_EQUAL(0750u, unsigned{info.st_mode & 0777});
    CPPUNIT_ASSERT(info.st_mtim.tv_sec == 1000 && info.st_mtim.tv_nsec == 7);
  }

  void only_whole_files_are_taken() {
    auto w = work_with({"a", "b", "c"});
    write(*w, "a", "1");
    write(*w, "b", "2");
    CPPUNIT_ASSERT(pack(*w) == nullptr);  // the shepherd was killed
    whole(*w, {"b"});
    const PackedNow now = pack_own_files(*w, false, kLargest, [] {});
    CPPUNIT_ASSERT(now.pack != nullptr && now.pack->files.size() == 1);
    CPPUNIT_ASSERT_EQUAL(std::string("b"), now.pack->files[0].name);
    CPPUNIT_ASSERT_EQUAL(std::string("'a' was being written, and not taken."), now.left_out);
    write(*w, "c", "3");
    CPPUNIT_ASSERT_EQUAL(std::string("'a' and 1 other checkpoint file were being written, and not "
                                     "taken."),
                         pack_own_files(*w, false, kLargest, [] {}).left_out);
    whole(*w, {});
    CPPUNIT_ASSERT(pack(*w) == nullptr);
    // A process was frozen only after the shepherd had looked.
    whole(*w, {"b"});
    write(*w, "b", "22");
    CPPUNIT_ASSERT(pack(*w) == nullptr);
  }

  void of_a_save_that_was_cut_short_all_or_none() {
    auto w = work_with({"a", "b"});
    write(*w, "a", "1");
    write(*w, "b", "2");
    whole(*w, {"b"});
    w->exit.emplace();
    w->exit->facts.asked = w->exit->facts.killed = 1;
    const PackedNow now = pack_own_files(*w, false, kLargest, [] {});
    CPPUNIT_ASSERT(now.pack == nullptr);
    CPPUNIT_ASSERT_EQUAL(std::string("'a' was being written, and not taken. Killed while it saved, "
                                     "it may have changed the others: none was taken."),
                         now.left_out);
    whole(*w, {"a", "b"});
    CPPUNIT_ASSERT(pack(*w)->files.size() == 2);
    // A file that it had is gone, and would have been there a moment later.
    all_are_whole(*w);
    auto then = next(*pack(*w));
    write(*then, "b", "3");
    std::filesystem::remove(then->folder + "/work/a");
    whole(*then, {"b"});
    CPPUNIT_ASSERT(pack(*then)->files.size() == 1);
    then->exit = w->exit;
    const PackedNow without = pack_own_files(*then, false, kLargest, [] {});
    CPPUNIT_ASSERT(without.pack == nullptr);
    CPPUNIT_ASSERT_EQUAL(std::string("'a' was gone. Killed while it saved, it may have changed the "
                                     "others: none was taken."),
                         without.left_out);
    // One that was killed at once, and one that had ended.
    whole(*w, {"b"});
    w->exit->facts.no_handler = 1;
    CPPUNIT_ASSERT(pack(*w)->files.size() == 1);
    w->exit->facts.no_handler = w->exit->facts.killed = 0;
    CPPUNIT_ASSERT(pack(*w)->files.size() == 1);
  }

  void what_is_not_whole_is_kept_as_it_was() {
    auto w = work_with({"a", "b"});
    write(*w, "a", "old");
    write(*w, "b", "old");
    all_are_whole(*w);
    auto then = next(*pack(*w));
    write(*then, "a", "torn", 2000);
    write(*then, "b", "new", 2000);
    whole(*then, {"b"});
    auto last = next(*pack(*then));
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, last->held_generation);
    CPPUNIT_ASSERT_EQUAL(std::string("old"), read(*last, "a"));
    CPPUNIT_ASSERT_EQUAL(std::string("new"), read(*last, "b"));
    // What the program has removed is not kept.
    CPPUNIT_ASSERT_EQUAL(0, unlink((last->folder + "/work/a").c_str()));
    all_are_whole(*last);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, pack(*last)->files.size());
  }

  void without_what_was_nothing_is_made() {
    auto w = work_with({"a", "b"});
    write(*w, "a", "torn");
    write(*w, "b", "new");
    whole(*w, {"b"});
    w->held_generation = 4;  // of which a restarted client has nothing
    CPPUNIT_ASSERT(pack(*w) == nullptr);
    all_are_whole(*w);
    CPPUNIT_ASSERT_EQUAL(uint64_t{5}, pack(*w)->generation);
  }

  void the_same_contents_are_nothing_new() {
    auto w = work_with({"a"});
    write(*w, "a", "same");
    all_are_whole(*w);
    auto then = next(*pack(*w));
    all_are_whole(*then);
    CPPUNIT_ASSERT(pack(*then) == nullptr);
    CPPUNIT_ASSERT(pack(*then, true) == nullptr);
    write(*then, "a", "same", 3000);
    CPPUNIT_ASSERT(pack(*then) == nullptr);
    write(*then, "a", "more", 3000);
    CPPUNIT_ASSERT(pack(*then) != nullptr);
  }

  // As this client's next process sees it.
  static std::shared_ptr<AttemptWork> anew(const AttemptWork& work, uint64_t held_generation) {
    auto again = std::make_shared<AttemptWork>(work.assignment, work.folder);
    again->held_generation = held_generation;
    find_packed(*again, [] {});
    return again;
  }

  void a_client_that_begins_anew() {
    auto w = work_with({"a", "b"});
    write(*w, "a", "old");
    write(*w, "b", "old");
    all_are_whole(*w);
    auto then = next(*pack(*w));
    write(*then, "a", "new", 2000);
    write(*then, "b", "torn", 2000);
    whole(*then, {"a"});
    // What it fetched.
    auto again = anew(*then, 1);
    CPPUNIT_ASSERT(again->packed != nullptr);
    std::shared_ptr<Pack> made = pack(*again);
    auto last = next(*made);
    CPPUNIT_ASSERT_EQUAL(std::string("new"), read(*last, "a"));
    CPPUNIT_ASSERT_EQUAL(std::string("old"), read(*last, "b"));
    // What it sent.
    again->packed = made;
    keep_packed(*again);
    keep_packed(*again);
    CPPUNIT_ASSERT(anew(*then, 2)->packed != nullptr);
    const std::string kept = then->folder + "/packed";
    CPPUNIT_ASSERT(anew(*then, 1)->packed == nullptr);  // the server has another one
    CPPUNIT_ASSERT(!system_files().exists(kept));
    system_files().write_atomic(kept, "rubbish");
    CPPUNIT_ASSERT(anew(*then, 2)->packed == nullptr);
    CPPUNIT_ASSERT(!system_files().exists(kept));
    keep_packed(*again);
    forget_packed(*again);
    CPPUNIT_ASSERT(anew(*then, 2)->packed == nullptr);
  }

  void while_it_runs() {
    auto w = work_with({"a", "b"});
    write(*w, "a", "closed");
    write(*w, "b", "open");
    // The time of its last change (ctime) is now: it is taken a little later.
    const int64_t deadline = system_clock().boot_ns() + 60'000'000'000;
    std::shared_ptr<Pack> made;
    const UniqueFd writer(open((w->folder + "/work/b").c_str(), O_WRONLY | O_CLOEXEC));
    while (!made && system_clock().boot_ns() < deadline) made = pack(*w, true);
    CPPUNIT_ASSERT(made != nullptr && made->files.size() == 1);
    CPPUNIT_ASSERT_EQUAL(std::string("a"), made->files[0].name);
    // It changes while it is copied.
    w->packed = made;
    write(*w, "a", "changed");
    made = nullptr;
    while (system_clock().boot_ns() < deadline) {
      int turns = 0;
      const auto change = [&] {
        ++turns;
        write(*w, "a", "changing", 1000 + system_clock().boot_ns() % 1000);
      };
      made = pack_own_files(*w, true, kLargest, change).pack;
      CPPUNIT_ASSERT(made == nullptr);
      if (turns > 0) return;
    }
    CPPUNIT_FAIL("it was never copied");
  }

  // "state-5" is gone when its turn comes: a pack without it would replace the one before.
  void a_file_that_is_gone_makes_no_pack() {
    auto w = work_with({"a", "state-*"});
    write(*w, "a", "large");
    write(*w, "state-5", "5");
    const int64_t deadline = system_clock().boot_ns() + 60'000'000'000;
    int number = 5;
    const auto rotate = [&] {
      const std::string before = w->folder + "/work/state-" + std::to_string(number);
      write(*w, "state-" + std::to_string(++number), "more");
      CPPUNIT_ASSERT_EQUAL(0, unlink(before.c_str()));
    };
    while (number < 8 && system_clock().boot_ns() < deadline)
      CPPUNIT_ASSERT(pack_own_files(*w, true, kLargest, rotate).pack == nullptr);
    CPPUNIT_ASSERT(number >= 8);
    std::shared_ptr<Pack> made;
    while (!made && system_clock().boot_ns() < deadline) made = pack(*w, true);
    CPPUNIT_ASSERT(made != nullptr && made->files.size() == 2);
  }

  void a_copy_that_was_not_sent_is_not_the_last() {
    server_.generation = 0;
    auto w = work_with({"a"});
    write(*w, "a", "middle");
    const int64_t deadline = system_clock().boot_ns() + 60'000'000'000;
    // Until it counts as unchanged, nothing is sent at all.
    server_.away_at = 2;  // after stat() and open_upload()
    TaskResult result = TaskResult::kDone;
    while (result == TaskResult::kDone && system_clock().boot_ns() < deadline) {
      server_.calls = 0;
      result = copy(*w);
    }
    CPPUNIT_ASSERT(result == TaskResult::kAgain);
    server_.away_at = -1;
    write(*w, "a", "final");
    all_are_whole(*w);
    end_of(*w, 75);
    std::string why;
    Mover mover(*w, server_, pace_, none_);
    CPPUNIT_ASSERT(hand_in(*w, server_, mover, system_files(), {}, pace_, &why) ==
                   TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, server_.complete(FileKind::kCheckpoint).size());
    CPPUNIT_ASSERT(server_.complete(FileKind::kCheckpoint)[0].bytes.find("final") !=
                   std::string::npos);
  }

  // The interval is known in checkpoint-api/interval_test.cc; here, what counts as a copy.
  void the_next_copy_is_planned() {
    server_.generation = 0;
    auto w = work_with({"a"});
    w->started_us = system_clock().utc_us() - 36'000'000'000;
    write(*w, "a", "1");
    JobSettings settings;
    const int64_t deadline = system_clock().boot_ns() + 60'000'000'000;
    while (w->handed_in_generation == 0 && system_clock().boot_ns() < deadline)
      CPPUNIT_ASSERT(copy(*w, settings) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, w->handed_in_generation);
    const uint64_t cost_us = w->copy_costs.one_us;
    CPPUNIT_ASSERT(cost_us > 0);
    CPPUNIT_ASSERT(w->stored_files_us > 0);
    CPPUNIT_ASSERT(w->next_copy_ms >= SUBLET_INTERVAL_LEAST_MS &&
                   w->next_copy_ms < SUBLET_INTERVAL_MOST_MS);
    CPPUNIT_ASSERT(copy(*w, settings) == TaskResult::kDone);  // unchanged: it costs nothing
    CPPUNIT_ASSERT_EQUAL(cost_us, w->copy_costs.one_us);
    w->copy_costs.one_us = 50'000'000;  // the square root of 2 * 50 s * 7200 s is 848 s
    CPPUNIT_ASSERT(copy(*w, settings) == TaskResult::kDone);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_INTERVAL_MOST_MS}, w->next_copy_ms.load());
    w->copy_costs = {};
    settings.checkpoint_largest = 1;
    write(*w, "a", "too large");
    while (w->next_copy_ms < SUBLET_INTERVAL_MOST_MS && system_clock().boot_ns() < deadline)
      copy(*w, settings);
    CPPUNIT_ASSERT(w->next_copy_ms >= SUBLET_INTERVAL_MOST_MS);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, w->handed_in_generation);
  }

  // A program that saves by the API has only that checkpoint, from its start.
  void none_is_made_beside_the_api() {
    server_.generation = 0;
    auto w = work_with({"a"});
    write(*w, "a", "1");
    const auto made_within = [&](int64_t ms) {
      const int64_t deadline = system_clock().boot_ns() + ms * 1'000'000;
      while (w->handed_in_generation == 0 && system_clock().boot_ns() < deadline) {
        CPPUNIT_ASSERT(copy(*w) == TaskResult::kDone);
      }
      return w->handed_in_generation != 0;
    };
    const auto status = [&](uint32_t aware) {
      sublet_status page = {};
      page.magic = SUBLET_STATUS_MAGIC;
      page.version = SUBLET_STATUS_VERSION;
      page.aware = aware;
      system_files().write_atomic(w->folder + "/" SUBLET_STATUS_FILE,
                                  std::string(reinterpret_cast<const char*>(&page), sizeof page));
    };
    status(1);
    CPPUNIT_ASSERT(!made_within(200));
    status(0);
    CPPUNIT_ASSERT(made_within(60'000));
  }

  void too_many() {
    auto w = work_with({"d/", "state"});
    for (int i = 0; i < 4096; ++i) std::ofstream(w->folder + "/work/n" + std::to_string(i)) << i;
    std::filesystem::create_directory(w->folder + "/work/d");
    for (int i = 0; i < 4096; ++i)
      std::filesystem::rename(w->folder + "/work/n" + std::to_string(i),
                              w->folder + "/work/d/n" + std::to_string(i));
    all_are_whole(*w);
    CPPUNIT_ASSERT_EQUAL(size_t{4096}, pack(*w)->files.size());
    write(*w, "state", "1");
    CPPUNIT_ASSERT_THROW(pack(*w), std::runtime_error);
  }

  // An input has the name of what was a folder, and the reverse.
  void what_is_in_the_way() {
    auto w = work_with({"data/", "state"});
    write(*w, "data/x", "1");
    write(*w, "state", "2");
    all_are_whole(*w);
    const auto made = pack(*w);
    auto then = work();
    write(*then, "data", "an input");
    write(*then, "state/y", "another");
    system_files().write_atomic(then->folder + "/checkpoint/checkpoint",
                                read_content(made->file.get(), 0, made->size));
    CPPUNIT_ASSERT(unpack_own_files(*then, [] {}));
    CPPUNIT_ASSERT_EQUAL(std::string("1"), read(*then, "data/x"));
    CPPUNIT_ASSERT_EQUAL(std::string("2"), read(*then, "state"));
  }

  void what_is_none_of_the_jobs() {
    auto w = work_with({"link", "pipe", "folder", "way/x", "good"});
    CPPUNIT_ASSERT_EQUAL(0, symlink("/etc/passwd", (w->folder + "/work/link").c_str()));
    CPPUNIT_ASSERT_EQUAL(0, mkfifo((w->folder + "/work/pipe").c_str(), 0600));
    CPPUNIT_ASSERT_EQUAL(0, mkdir((w->folder + "/work/folder").c_str(), 0700));
    CPPUNIT_ASSERT_EQUAL(0, symlink("folder", (w->folder + "/work/way").c_str()));
    write(*w, "folder/x", "x");
    write(*w, "good", "1");
    all_are_whole(*w);
    const PackedNow now = pack_own_files(*w, false, kLargest, [] {});
    CPPUNIT_ASSERT(now.pack != nullptr && now.pack->files.size() == 1);
    CPPUNIT_ASSERT_EQUAL(std::string("good"), now.pack->files[0].name);
    CPPUNIT_ASSERT_EQUAL(
        std::string("A checkpoint file was not taken: 'folder' is not a regular file."),
        now.left_out);
  }

  void too_large() {
    auto w = work_with({"a", "b"});
    write(*w, "a", std::string(1000, 'x'));
    write(*w, "b", "");
    CPPUNIT_ASSERT_EQUAL(0, truncate((w->folder + "/work/b").c_str(), off_t{1} << 40));
    all_are_whole(*w);
    CPPUNIT_ASSERT_THROW(pack(*w), std::runtime_error);
  }

  void a_damaged_pack_is_refused() {
    auto w = work_with({"a"});
    write(*w, "a", "1");
    all_are_whole(*w);
    const auto made = pack(*w);
    std::string bytes = read_content(made->file.get(), 0, made->size);
    bytes.back() ^= 1;
    auto then = work();
    system_files().write_atomic(then->folder + "/checkpoint/checkpoint", bytes);
    CPPUNIT_ASSERT(!unpack_own_files(*then, [] {}));
    CPPUNIT_ASSERT(!has(*then, "a"));
    // A checkpoint of the API is left to the program.
    system_files().write_atomic(then->folder + "/checkpoint/checkpoint", "another");
    CPPUNIT_ASSERT(unpack_own_files(*then, [] {}));
    CPPUNIT_ASSERT(system_files().exists(then->folder + "/checkpoint/checkpoint"));
  }

  void an_end_with_them() {
    server_.generation = 0;
    auto w = work_with({"a", "b"});
    write(*w, "a", "state");
    write(*w, "b", "torn");
    whole(*w, {"a"});
    end_of(*w, 85);
    CPPUNIT_ASSERT(!has_nothing_to_send(*w, system_files()));
    std::string why;
    for (int i = 0; i < 2; ++i) {  // a repetition sends nothing twice
      Mover mover(*w, server_, pace_, none_);
      CPPUNIT_ASSERT(hand_in(*w, server_, mover, system_files(), {}, pace_, &why) ==
                     TaskResult::kDone);
      CPPUNIT_ASSERT_EQUAL(uint32_t{protocol::kEndSaved}, w->end.end);
      CPPUNIT_ASSERT_EQUAL(uint64_t{1}, w->end.generation);
      CPPUNIT_ASSERT_EQUAL(std::string("It ended with exit status 85, to be run again. 'b' was "
                                       "being written, and not taken."),
                           w->end.reason);
      CPPUNIT_ASSERT_EQUAL(int64_t{100}, w->end.cpu_saved_us);  // changed after it had ended
      CPPUNIT_ASSERT_EQUAL(size_t{1}, server_.complete(FileKind::kCheckpoint).size());
    }
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(OwnFilesTest);

}  // namespace
}  // namespace sublet::client
