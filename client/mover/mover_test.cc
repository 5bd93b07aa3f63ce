// With real processes and cgroups; only the server is a folder (client/testing/mover_on_disk.cc).
#include "client/mover/mover.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "attempt/cpu_weight.h"
#include "base/testing/temporary_folder.h"
#include "client/mover/process.h"
#include "client/testing/memory_server.h"

namespace sublet::client {
namespace {

constexpr uint64_t kLarge = Mover::kMostHere + 12345;
constexpr char kPipe[] = "pipe";  // whoever reads this waits

class FolderServer : public MemoryServer {
 public:
  explicit FolderServer(const std::string& folder) : folder_(folder) {}
  ContentDoor content_door() override {
    ContentDoor door;
    door.socket = folder_;
    return door;
  }

 private:
  const std::string folder_;
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string some_bytes(uint64_t size) {
  std::string bytes(size, '\0');
  for (uint64_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  return bytes;
}

class MoverTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(MoverTest);
  CPPUNIT_TEST(moves_little_itself);
  CPPUNIT_TEST(many_small_files_are_not_little);
  CPPUNIT_TEST(receives);
  CPPUNIT_TEST(goes_on_where_it_stood);
  CPPUNIT_TEST(a_copy_that_lacks_something_is_given_up);
  CPPUNIT_TEST(what_arrives_damaged_is_not_kept);
  CPPUNIT_TEST(copies_and_sends);
  CPPUNIT_TEST(errors_are_told);
  CPPUNIT_TEST(it_has_the_weight_of_a_job);
  CPPUNIT_TEST(it_is_stopped_at_once);
  CPPUNIT_TEST(it_is_stopped_between_chunks);
  CPPUNIT_TEST(a_checkpoint_is_moved_here_beside_the_owner);
  CPPUNIT_TEST(what_was_received_is_closed);
  CPPUNIT_TEST(it_goes_with_its_keeper);
  CPPUNIT_TEST(if_it_dies_all_is_moved_here);
  CPPUNIT_TEST(if_it_cannot_start_all_is_moved_here);
  CPPUNIT_TEST(another_version_is_not_served);
  CPPUNIT_TEST(it_ends_with_the_client);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  FolderServer server_{folder_.path()};
  std::atomic<bool> free_{true};
  Pace pace_{1, free_};
  MoverSettings settings_{{SUBLET_MOVER},
                          SUBLET_SHEPHERD,
                          AttemptCgroups::of_machine("t" + std::to_string(getpid()), true)};
  AttemptWork work_{std::make_shared<Assignment>(), folder_.path()};
  uint64_t offset_ = 0;
  uint64_t passed_ = 0;

 public:
  void setUp() override { signal(SIGPIPE, SIG_IGN); }

 private:
  UniqueFd file(const std::string& name, int flags = O_CREAT | O_RDWR) const {
    return UniqueFd(open((folder_ / name).c_str(), flags | O_CLOEXEC, 0600));
  }
  UniqueFd file_with(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name) << bytes;
    return file(name, O_RDWR);
  }
  WantedContent wanted(const std::string& name, const std::string& bytes, uint64_t offset = 0) {
    FilePlace place;
    place.name = name;
    return {place, bytes.size(), digest_of(bytes), offset};
  }
  // Of a file whose first chunk does not arrive.
  WantedContent never() {
    CPPUNIT_ASSERT_EQUAL(0, mkfifo((folder_ / kPipe).c_str(), 0600));
    WantedContent content = wanted(kPipe, "");
    content.size = kLarge;
    return content;
  }
  std::string read(const std::string& name) const { return text_of(folder_ / name); }

  // Until `found` returns something that counts as true.
  template <typename Found>
  static auto await(Found found) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (;;) {
      if (auto what = found()) return what;
      if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("it never came");
      std::this_thread::yield();
    }
  }
  static pid_t child_of(pid_t pid) {
    std::error_code error;
    const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
    for (const auto& thread : std::filesystem::directory_iterator(tasks, error)) {
      std::istringstream children(text_of(thread.path() / "children"));
      pid_t child = 0;
      if (children >> child) return child;
    }
    return 0;
  }
  // The only child of this process's only child.
  static pid_t process() {
    const pid_t keeper = await([] { return child_of(getpid()); });
    return await([=] { return child_of(keeper); });
  }
  struct Writer {
    UniqueFd fd;
    explicit operator bool() const { return fd.valid(); }
  };
  // Until it reads the pipe, so that everything before has been done.
  Writer hear_reader() const {
    return await([this] {
      return Writer{UniqueFd(open((folder_ / kPipe).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC))};
    });
  }
  static bool gone(pid_t pid) { return kill(pid, 0) != 0; }
  void assert_no_cgroups() const {
    AttemptOrder order;
    settings_.cgroups.set_helper_folders(&order);
    for (const std::string& cgroup : {order.cgroup_unified, order.cgroup_cpu}) {
      if (cgroup.empty()) continue;
      const std::filesystem::path path(cgroup);
      const std::string of_this_process = path.stem();
      for (const auto& one : std::filesystem::directory_iterator(path.parent_path()))
        CPPUNIT_ASSERT(one.path().stem() != of_this_process);
    }
  }

  void moves_little_itself() {
    settings_.shepherd_program = "/nonexistent";
    Mover mover(work_, server_, pace_, settings_);
    const std::string bytes = some_bytes(2 << 20);
    CPPUNIT_ASSERT(digest_of(bytes) == mover.digest(file_with("a", bytes).get(), bytes.size()));
    CPPUNIT_ASSERT(!work_.moves_here);
  }

  void many_small_files_are_not_little() {
    settings_.shepherd_program = "/nonexistent";
    Mover mover(work_, server_, pace_, settings_);
    const std::string bytes = some_bytes(1 << 20);
    for (int i = 0; i < 5; ++i) {
      CPPUNIT_ASSERT(!work_.moves_here);
      mover.digest(file_with("a", bytes).get(), bytes.size());
    }
    CPPUNIT_ASSERT(work_.moves_here);  // it tried to start one
  }

  void receives() {
    const std::string bytes = some_bytes(kLarge);
    file_with("there", bytes);
    Mover mover(work_, server_, pace_, settings_);
    mover.on_progress([this](uint64_t count) { passed_ += count; });
    const ReceivedContent received =
        mover.receive(wanted("there", bytes), file("here").get(), file("copy").get(), &offset_);
    CPPUNIT_ASSERT(received.intact && received.copied);
    CPPUNIT_ASSERT(bytes == read("here"));
    CPPUNIT_ASSERT(bytes == read("copy"));
    CPPUNIT_ASSERT_EQUAL(kLarge, offset_);
    CPPUNIT_ASSERT_EQUAL(kLarge, passed_);
    CPPUNIT_ASSERT(!work_.moves_here);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, server_.got);
    // From now on the small ones, too.
    file_with("there", "abc");
    CPPUNIT_ASSERT(mover.receive(wanted("there", "abc"), file("small").get(), -1, &offset_).intact);
    CPPUNIT_ASSERT_EQUAL(std::string("abc"), read("small"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, server_.got);
  }

  // What is beyond the offset, from a try that was cut off, is not believed.
  void goes_on_where_it_stood() {
    const std::string bytes = some_bytes(2 * kLarge);
    const std::string begun = bytes.substr(0, 100'000);
    file_with("there", bytes);
    Mover mover(work_, server_, pace_, settings_);
    const ReceivedContent received =
        mover.receive(wanted("there", bytes, begun.size()), file_with("here", begun + "xyz").get(),
                      file_with("copy", begun + "x").get(), &offset_);
    CPPUNIT_ASSERT(received.intact && received.copied);
    CPPUNIT_ASSERT(bytes == read("here"));
    CPPUNIT_ASSERT(bytes == read("copy"));
  }

  void a_copy_that_lacks_something_is_given_up() {
    const std::string bytes = some_bytes(kLarge);
    file_with("there", bytes);
    Mover mover(work_, server_, pace_, settings_);
    const std::string begun = bytes.substr(0, 1000);
    for (const char* copy : {"short", "/dev/full"}) {
      const ReceivedContent received = mover.receive(
          wanted("there", bytes, 1000), file_with("here", begun).get(),
          *copy == '/' ? open(copy, O_WRONLY | O_CLOEXEC) : file_with(copy, begun.substr(1)).get(),
          &offset_);
      CPPUNIT_ASSERT(received.intact && !received.copied);
    }
  }

  void what_arrives_damaged_is_not_kept() {
    const std::string bytes = some_bytes(kLarge);
    file_with("there", bytes.substr(1) + "x");
    Mover mover(work_, server_, pace_, settings_);
    ReceivedContent received =
        mover.receive(wanted("there", bytes), file("a").get(), file("b").get(), &offset_);
    CPPUNIT_ASSERT(!received.intact && !received.copied);
    file_with("there", bytes.substr(1));
    received = mover.receive(wanted("there", bytes), file("c").get(), file("d").get(), &offset_);
    CPPUNIT_ASSERT(!received.intact && !received.copied);
    CPPUNIT_ASSERT_EQUAL(kLarge - 1, offset_);
  }

  void copies_and_sends() {
    const std::string bytes = some_bytes(kLarge);
    Mover mover(work_, server_, pace_, settings_);
    const UniqueFd from = file_with("from", bytes);
    CPPUNIT_ASSERT(digest_of(bytes) == mover.digest(from.get(), kLarge));
    CPPUNIT_ASSERT(mover.copy(from.get(), file("to").get(), kLarge, digest_of(bytes)));
    CPPUNIT_ASSERT(bytes == read("to"));
    lseek(from.get(), 0, SEEK_SET);
    CPPUNIT_ASSERT(!mover.copy(from.get(), file("other").get(), kLarge, digest_of("")));
    mover.send(from.get(), kLarge, 7, 1000);
    CPPUNIT_ASSERT(bytes.substr(1000) == read("sent"));
    CPPUNIT_ASSERT(server_.files.empty());
  }

  void errors_are_told() {
    Mover mover(work_, server_, pace_, settings_);
    const std::string bytes = some_bytes(kLarge);
    try {
      mover.receive(wanted("refused", bytes), file("here").get(), -1, &offset_);
      CPPUNIT_FAIL("received");
    } catch (const ServerError& error) {
      CPPUNIT_ASSERT(error.kind() == ServerError::Kind::kNotFound);
      CPPUNIT_ASSERT_EQUAL(std::string("spool.unknown"), error.code());
      CPPUNIT_ASSERT_EQUAL(std::string("No such file."), std::string(error.what()));
    }
    const UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
    try {
      mover.copy(file_with("from", bytes).get(), full.get(), kLarge, digest_of(bytes));
      CPPUNIT_FAIL("copied");
    } catch (const FileError& error) {
      CPPUNIT_ASSERT_EQUAL(ENOSPC, error.code());
      CPPUNIT_ASSERT_EQUAL(std::string("an input of a job"), error.subject());
    }
    try {
      mover.send(file_with("short", "abc").get(), kLarge, 7, 0);
      CPPUNIT_FAIL("sent");
    } catch (const FileError& error) {
      CPPUNIT_ASSERT_EQUAL(EIO, error.code());
    }
  }

  // Runs it while the process waits for its first chunk.
  template <typename Check>
  void while_it_waits(Mover& mover, Check check) {
    const WantedContent content = never();
    const UniqueFd here = file("here");
    auto watcher = std::async(std::launch::async, [&] {
      try {
        const pid_t pid = process();
        const Writer writer = hear_reader();
        check(pid);
      } catch (...) {
        work_.stop = true;  // or the mover would wait for ever
        throw;
      }
    });
    try {
      mover.receive(content, here.get(), -1, &offset_);
      CPPUNIT_FAIL("received");
    } catch (const TaskStopped&) {
      CPPUNIT_ASSERT(work_.stop);
    } catch (const ServerError& error) {
      CPPUNIT_ASSERT(error.kind() == ServerError::Kind::kAway);
    }
    watcher.get();
  }

  bool has_no_weight(pid_t pid) const {
    const std::string proc = "/proc/" + std::to_string(pid);
    AttemptOrder order;
    settings_.cgroups.set_helper_folders(&order);
    if (order.cgroup_cpu.empty() && autogroups_count())
      return text_of(proc + "/autogroup").ends_with(" nice 19\n");
    if (order.cgroup_cpu.empty()) return sched_getscheduler(pid) == SCHED_IDLE;
    const std::string cgroups = text_of(proc + "/cgroup");
    const auto at = cgroups.find("sublet-");
    const std::string name = cgroups.substr(at, cgroups.find('\n', at) - at);
    return at != std::string::npos &&
           text_of(std::filesystem::path(order.cgroup_cpu).parent_path() / name / "cpu.idle") ==
               "1\n";
  }

  // By autogroups the kernel may refuse it for 100 ms.
  void it_has_the_weight_of_a_job() {
    Mover mover(work_, server_, pace_, settings_);
    while_it_waits(mover, [&](pid_t pid) {
      await([&] { return has_no_weight(pid); });
      work_.stop = true;
    });
    assert_no_cgroups();
  }

  void it_is_stopped_at_once() {
    pid_t pid = 0;
    Mover mover(work_, server_, pace_, settings_);
    while_it_waits(mover, [&](pid_t of) {
      pid = of;
      work_.stop = true;
    });
    CPPUNIT_ASSERT(gone(pid));
    CPPUNIT_ASSERT(!work_.moves_here);
    CPPUNIT_ASSERT_THROW(mover.digest(file_with("a", "abc").get(), 3), TaskStopped);
  }

  // Reading it all would take an hour.
  void it_is_stopped_between_chunks() {
    const UniqueFd endless = file("endless");
    CPPUNIT_ASSERT_EQUAL(0, ftruncate(endless.get(), off_t{1} << 42));
    Mover mover(work_, server_, pace_, settings_);
    mover.on_progress([this](uint64_t count) {
      passed_ += count;
      work_.stop = true;
    });
    CPPUNIT_ASSERT_THROW(mover.digest(endless.get(), uint64_t{1} << 42), TaskStopped);
    CPPUNIT_ASSERT_EQUAL(uint64_t{kChunkLimit}, passed_);
  }

  // To whom it would leave no CPU time for what the server waits for.
  void a_checkpoint_is_moved_here_beside_the_owner() {
    const std::string bytes = some_bytes(kLarge);
    file_with("there", bytes);
    server_.inputs = {{0, bytes}};
    pid_t pid = 0;
    Mover mover(work_, server_, pace_, settings_);
    mover.move_checkpoint(true);
    while_it_waits(mover, [&](pid_t of) {
      pid = of;
      free_ = false;
    });
    CPPUNIT_ASSERT(gone(pid) && !work_.stop && !work_.moves_here);
    CPPUNIT_ASSERT(mover.receive(wanted("there", bytes), file("a").get(), -1, &offset_).intact);
    CPPUNIT_ASSERT_EQUAL(kLarge, server_.got);
    free_ = true;
    CPPUNIT_ASSERT(mover.receive(wanted("there", bytes), file("b").get(), -1, &offset_).intact);
    CPPUNIT_ASSERT_EQUAL(kLarge, server_.got);
  }

  // Executing a file fails while anybody has it open for writing.
  void what_was_received_is_closed() {
    const std::string bytes = text_of("/bin/true") + some_bytes(kLarge);
    file_with("there", bytes);
    Mover mover(work_, server_, pace_, settings_);
    CPPUNIT_ASSERT(
        mover.receive(wanted("there", bytes), file("program").get(), -1, &offset_).intact);
    CPPUNIT_ASSERT_EQUAL(0, chmod((folder_ / "program").c_str(), 0700));
    const SpawnedProcess program = spawn({folder_ / "program"}, {});
    int status = -1;
    CPPUNIT_ASSERT_EQUAL(program.id.pid, waitpid(program.id.pid, &status, 0));
    CPPUNIT_ASSERT_EQUAL(0, status);
  }

  void it_goes_with_its_keeper() {
    pid_t pid = 0;
    Mover mover(work_, server_, pace_, settings_);
    while_it_waits(mover, [&](pid_t of) {
      pid = of;
      kill(child_of(getpid()), SIGKILL);
      await([=] { return gone(pid); });
      work_.stop = true;
    });
    CPPUNIT_ASSERT(pid > 0);
    settings_.cgroups.remove_left_over();  // as the next start does
    assert_no_cgroups();
  }

  void if_it_dies_all_is_moved_here() {
    const std::string bytes = some_bytes(kLarge);
    {
      Mover mover(work_, server_, pace_, settings_);
      while_it_waits(mover, [](pid_t pid) { kill(pid, SIGKILL); });
      CPPUNIT_ASSERT(work_.moves_here);
    }
    assert_no_cgroups();
    Mover mover(work_, server_, pace_, settings_);
    server_.inputs = {{0, bytes}};
    CPPUNIT_ASSERT(mover.receive(wanted("in memory", bytes), file("b").get(), -1, &offset_).intact);
    CPPUNIT_ASSERT_EQUAL(kLarge, server_.got);
  }

  void if_it_cannot_start_all_is_moved_here() {
    settings_.shepherd_program = "/nonexistent";
    const std::string bytes = some_bytes(kLarge);
    Mover mover(work_, server_, pace_, settings_);
    CPPUNIT_ASSERT(digest_of(bytes) == mover.digest(file_with("a", bytes).get(), kLarge));
    CPPUNIT_ASSERT(work_.moves_here);
  }

  // The process of an installed mover, and this test's end of its socket.
  struct Direct {
    UniqueFd socket;
    SpawnedProcess process;
  };
  static Direct start() {
    int ends[2];
    CPPUNIT_ASSERT_EQUAL(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    UniqueFd ours(ends[0]);
    const UniqueFd others(ends[1]);
    SpawnOptions options;
    options.fds = {{others.get(), 0}};
    return {std::move(ours), spawn({SUBLET_MOVER}, {}, options)};
  }
  static int status_of(const Direct& one) {
    int status = -1;
    CPPUNIT_ASSERT_EQUAL(one.process.id.pid, waitpid(one.process.id.pid, &status, 0));
    return status;
  }

  void another_version_is_not_served() {
    for (const std::string& opening :
         {encode(MoverOpening{"0.0", {}}), std::string("nonsense"), std::string(1, '\0')}) {
      const Direct one = start();
      CPPUNIT_ASSERT(send_message(one.socket.get(), opening));
      CPPUNIT_ASSERT_EQUAL(std::nullopt == receive_message(one.socket.get()), true);
      const int status = status_of(one);
      CPPUNIT_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    }
  }

  void it_ends_with_the_client() {
    Direct one = start();
    CPPUNIT_ASSERT(send_message(one.socket.get(),
                                encode(MoverOpening{SUBLET_VERSION, server_.content_door()})));
    MoverTask task;
    task.content = never();
    CPPUNIT_ASSERT(send_message(one.socket.get(), encode(task), {file("here").get()}));
    const Writer writer = hear_reader();
    one.socket.reset();
    CPPUNIT_ASSERT_EQUAL(0, status_of(one));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(MoverTest);

}  // namespace
}  // namespace sublet::client
