// Jobs that run to their end: environment, endings, limits, output, refusals.
#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>

#include "attempt/walls_trial.h"
#include "checkpoint-api/sublet_status.h"
#include "client/shepherd/test_rig.h"

using namespace sublet;
using namespace sublet::shepherd;

namespace {

class ShepherdRunTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ShepherdRunTest);
  CPPUNIT_TEST(environment_is_exactly_the_ordered_one);
  CPPUNIT_TEST(job_starts_clean);
  CPPUNIT_TEST(standard_input_is_the_ordered_file);
  CPPUNIT_TEST(a_busy_program_is_tried_again);
  CPPUNIT_TEST(exit_codes_and_signals);
  CPPUNIT_TEST(what_cannot_be_started_says_the_step);
  CPPUNIT_TEST(a_program_is_looked_for_in_the_path);
  CPPUNIT_TEST(nobody_learns_of_programs_that_he_may_not_see);
  CPPUNIT_TEST(output_is_bounded);
  CPPUNIT_TEST(a_stranger_who_holds_stdout_holds_up_nobody);
  CPPUNIT_TEST(memory_goes_with_the_job);
  CPPUNIT_TEST(room_is_kept_for_the_exit_record);
  CPPUNIT_TEST(limits_have_defaults);
  CPPUNIT_TEST(limits_are_told_apart);
  CPPUNIT_TEST(memory_limit_of_a_cgroup);
  CPPUNIT_TEST(copies_of_files_keep_the_bound);
  CPPUNIT_TEST(a_child_that_goes_over_it_ends_the_job);
  CPPUNIT_TEST(processes_are_bounded);
  CPPUNIT_TEST(without_traffic_it_says_so);
  CPPUNIT_TEST(peaks_are_of_all_processes_together);
  CPPUNIT_TEST(what_a_program_says);
  CPPUNIT_TEST(no_start_without_the_monitors_word);
  CPPUNIT_TEST(an_attempt_runs_once);
  CPPUNIT_TEST(bad_orders_are_refused);
  CPPUNIT_TEST(nothing_is_left_behind);
  CPPUNIT_TEST(a_lying_status_page_does_no_harm);
  CPPUNIT_TEST(job_cannot_reach_what_is_not_its_own);
  CPPUNIT_TEST(cgroup_folders_go_with_the_attempt);
  CPPUNIT_TEST(what_is_not_asked_of_the_kernel);
  CPPUNIT_TEST(who_asks_to_be_traced_is_let_go);
  CPPUNIT_TEST(keys_of_a_login_are_not_the_jobs);
  CPPUNIT_TEST(what_is_left_is_removed);
  CPPUNIT_TEST_SUITE_END();

  void environment_is_exactly_the_ordered_one() {
    Rig rig;
    AttemptOrder order = rig.order({});
    order.program = "/usr/bin/env";
    order.arguments = {"env"};
    order.environment = {"PATH=/bin", "ODD=a b%\xff", "EMPTY="};
    std::string folder = rig.start(order);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_EXITED}, rig.finish(folder).facts.outcome);
    CPPUNIT_ASSERT_EQUAL("PATH=/bin\nODD=a b%\xff\nEMPTY=\nSUBLET_CHECKPOINT_DIR=" + folder +
                             "/checkpoint\nSUBLET_STATUS=" + folder + "/status\n",
                         rig.read(folder + "/stdout"));
  }

  // 1, but 0 where it is 0 already and may not be raised.
  static std::string limit_of_cores() {
    const bool raised = std::system("ulimit -Sc 0; ulimit -Hc 1 2>&-") == 0;
    return raised ? "1" : "0";
  }

  void job_starts_clean() {
    Rig rig;
    AttemptOrder order = rig.order({"inspect"});
    order.umask = 027;
    std::string folder = rig.start(order);
    rig.finish(folder);
    CPPUNIT_ASSERT_EQUAL("signals 0 files 0 session 1 group 1 umask 027 core " + limit_of_cores() +
                             " death 9 new_privs 1\n",
                         rig.read(folder + "/stdout"));
    order = rig.order({});
    order.program = "/bin/sh";
    order.arguments = {"sh", "-c",
                       "pwd; readlink /proc/self/fd/0; cat /proc/self/oom_score_adj; ionice"};
    order.environment = {"PATH=/usr/bin:/bin"};
    folder = rig.start(order);
    rig.finish(folder);
    CPPUNIT_ASSERT_EQUAL(folder + "/work\n/dev/null\n1000\nidle\n", rig.read(folder + "/stdout"));
  }

  static void fill(const std::string& folder) {
    constexpr int kDeep = 3000;
    CPPUNIT_ASSERT_EQUAL(0, mkdir(folder.c_str(), 0700));
    for (const char* odd : {"-rf", "a\nb", "\xff", "*"})
      system_files().write_atomic(folder + "/" + odd, "");
    CPPUNIT_ASSERT_EQUAL(0, mkdir((folder + "/closed").c_str(), 0));
    UniqueFd at(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (int i = 0; i < kDeep; ++i) {
      CPPUNIT_ASSERT_EQUAL(0, mkdirat(at.get(), "d", 0700));
      at.reset(openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
  }

  // However deep and odd it is, by a process with the attempt's cgroups.
  void what_is_left_is_removed() {
    for (const bool by_cgroup : {true, false}) {
      Rig rig;
      AttemptOrder order = rig.order({});
      if (by_cgroup) rig.use_cgroups(&order);
      const std::string left = rig.base() + "/left";
      fill(left);
      const SpawnedProcess removal = start_removal(SUBLET_SHEPHERD, left, order);
      int status = -1;
      CPPUNIT_ASSERT_EQUAL(removal.id.pid, waitpid(removal.id.pid, &status, 0));
      CPPUNIT_ASSERT_EQUAL(0, status);
      CPPUNIT_ASSERT(access(left.c_str(), F_OK) != 0);
      for (const std::string& cgroup : {order.cgroup_unified, order.cgroup_cpu})
        CPPUNIT_ASSERT(cgroup.empty() || access(cgroup.c_str(), F_OK) != 0);
    }
  }

  // Makes work/ of the order with a file in data/ and a symbolic link to each of the two.
  static void put_input(const Rig& rig, const AttemptOrder& order) {
    const std::string work = rig.folder(order) + "/work";
    make_attempt_folder(system_files(), rig.folder(order), order.uid, order.gid);
    system_files().make_folders(work + "/data", 0755);
    system_files().write_atomic(work + "/data/a b", "first\nsecond\n", 0644);
    std::filesystem::create_symlink("data/a b", work + "/link");
    std::filesystem::create_symlink("data", work + "/folder");
  }

  void standard_input_is_the_ordered_file() {
    Rig rig;
    AttemptOrder order = rig.order({});
    order.program = "/bin/sh";
    order.arguments = {"sh", "-c",
                       "read line; cat; echo $line; echo more 2>&- >&0 || echo refused"};
    order.standard_input = "data/a b";
    put_input(rig, order);
    const std::string folder = rig.start(order);
    rig.finish(folder);
    CPPUNIT_ASSERT_EQUAL(std::string("second\nfirst\nrefused\n"), rig.read(folder + "/stdout"));
    for (const char* name : {"link", "folder/a b", "none", "data/a b/c"}) {
      order = rig.order({"exit", "0"});
      order.standard_input = name;
      put_input(rig, order);
      const AttemptExit end = rig.run(order);
      CPPUNIT_ASSERT_EQUAL_MESSAGE(name, int64_t{SUBLET_OUTCOME_FAILED}, end.facts.outcome);
      CPPUNIT_ASSERT_EQUAL_MESSAGE(name, std::string("standard input"), end.step);
    }
  }

  // How often the process has waited for something; nullopt: it is gone.
  static std::optional<int> waits(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    const std::string key = "voluntary_ctxt_switches:";
    for (std::string line; std::getline(status, line);)
      if (line.starts_with(key)) return std::stoi(line.substr(key.size()));
    return std::nullopt;
  }

  void a_busy_program_is_tried_again() {
    Rig rig;
    AttemptOrder order = rig.order({});
    make_attempt_folder(system_files(), rig.folder(order), order.uid, order.gid);
    order.program = rig.folder(order) + "/work/prog";
    order.arguments = {"prog"};
    std::filesystem::copy_file("/bin/true", order.program);
    std::filesystem::permissions(order.program, std::filesystem::perms(0755));
    UniqueFd writer(open(order.program.c_str(), O_WRONLY | O_CLOEXEC));
    CPPUNIT_ASSERT(writer.valid());
    const std::string folder = rig.start(order);
    // Its process waits only a few times until it first tries, then once after each try.
    const pid_t pid = rig.record(folder).program.pid;
    CPPUNIT_ASSERT(wait_until([&] { return waits(pid).value_or(20) >= 20; }));
    writer.reset();
    const AttemptExit end = rig.finish(folder);
    CPPUNIT_ASSERT_EQUAL(std::string(), end.step);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.code);
  }

  void exit_codes_and_signals() {
    Rig rig;
    AttemptExit end = rig.run(rig.order({"exit", "3"}));
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_EXITED}, end.facts.outcome);
    CPPUNIT_ASSERT_EQUAL(int64_t{3}, end.facts.code);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.asked);
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, end.facts.quiesce_ns);
    CPPUNIT_ASSERT(end.facts.memory_peak > 0 && end.facts.wall_us > 0);
    end = rig.run(rig.order({"raise", std::to_string(SIGSEGV)}));
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_SIGNALLED}, end.facts.outcome);
    CPPUNIT_ASSERT_EQUAL(int64_t{SIGSEGV}, end.facts.code);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.killed);
  }

  void a_program_is_looked_for_in_the_path() {
    Rig rig;
    AttemptOrder order = rig.order({});
    order.program = "sh";
    order.arguments = {"sh", "-c", "exit 5"};
    order.environment = {"PATH=relative:/none:/etc/passwd:" + std::string(5000, 'x') + ":/bin"};
    AttemptExit end = rig.run(order);
    CPPUNIT_ASSERT_EQUAL(std::string(), end.step);
    CPPUNIT_ASSERT_EQUAL(int64_t{5}, end.facts.code);
    for (const char* path : {"PATH=/none:", "PATH=", "OTHER=/bin"}) {
      order = rig.order({});
      order.program = "sh";
      order.environment = {path};
      end = rig.run(order);
      CPPUNIT_ASSERT_EQUAL(std::string("exec"), end.step);
      CPPUNIT_ASSERT_EQUAL(int64_t{ENOENT}, end.facts.code);
    }
    order = rig.order({});
    order.program = "passwd";
    order.environment = {"PATH=/none:/etc"};  // exists, but is not executable
    CPPUNIT_ASSERT_EQUAL(int64_t{EACCES}, rig.run(order).facts.code);
  }

  // The error is the same whether the file exists or not.
  void nobody_learns_of_programs_that_he_may_not_see() {
    if (skip_unless_root("a folder that is closed to the job")) return;
    Rig rig;
    std::string closed = rig.base() + "/closed";
    system_files().make_folders(closed, 0700);
    system_files().write_atomic(closed + "/there", "#!/bin/sh\n", 0755);
    int64_t codes[2];
    for (int i = 0; i < 2; ++i) {
      AttemptOrder order = rig.order({});
      order.program = i == 0 ? "there" : "absent";
      order.environment = {"PATH=" + closed};
      AttemptExit end = rig.run(order);
      CPPUNIT_ASSERT_EQUAL(std::string("exec"), end.step);
      codes[i] = end.facts.code;
    }
    CPPUNIT_ASSERT_EQUAL(codes[0], codes[1]);
  }

  void what_cannot_be_started_says_the_step() {
    Rig rig;
    AttemptOrder order = rig.order({});
    order.program = "/no/such/program";
    AttemptExit end = rig.run(order);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_FAILED}, end.facts.outcome);
    CPPUNIT_ASSERT_EQUAL(int64_t{ENOENT}, end.facts.code);
    CPPUNIT_ASSERT_EQUAL(std::string("exec"), end.step);
    order = rig.order({});
    order.work = "nowhere";
    end = rig.run(order);
    CPPUNIT_ASSERT_EQUAL(std::string("chdir"), end.step);
    order = rig.order({});
    order.boot_id = "another";
    end = rig.run(order);
    CPPUNIT_ASSERT_EQUAL(std::string("boot_id"), end.step);
    order = rig.order({});
    order.cgroup_unified = "/no/such/hierarchy/a";
    end = rig.run(order);
    CPPUNIT_ASSERT_EQUAL(std::string("cgroup"), end.step);
  }

  void output_is_bounded() {
    Rig rig;
    AttemptOrder order = rig.order({"write", "300000"});
    order.stdout_limit = 100'001;
    std::string folder = rig.start(order);
    AttemptExit end = rig.finish(folder);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.code);
    CPPUNIT_ASSERT_EQUAL(int64_t{100'001}, end.facts.stdout_bytes);
    CPPUNIT_ASSERT_EQUAL(int64_t{199'999}, end.facts.stdout_dropped);
    std::string kept = rig.read(folder + "/stdout");
    CPPUNIT_ASSERT_EQUAL(size_t{100'001}, kept.size());
    for (size_t i = 0; i < kept.size(); ++i) CPPUNIT_ASSERT_EQUAL("0123456789"[i % 10], kept[i]);
    CPPUNIT_ASSERT(access((folder + "/stderr").c_str(), F_OK) != 0);
    end = rig.run(rig.order({"write", "5"}));
    CPPUNIT_ASSERT_EQUAL(int64_t{5}, end.facts.stdout_bytes);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.stdout_dropped);
  }

  void a_stranger_who_holds_stdout_holds_up_nobody() {
    for (const char* mode : {"wait", "aware"}) {
      Rig rig;
      std::string folder = rig.start(rig.order({mode, "1"}));
      CPPUNIT_ASSERT(rig.job_is_ready(folder));
      std::string theirs = "/proc/" + std::to_string(rig.record(folder).program.pid) + "/fd/1";
      UniqueFd held(open(theirs.c_str(), O_WRONLY | O_CLOEXEC));
      CPPUNIT_ASSERT(held.valid());
      bool written = *mode == 'w' || write(held.get(), "words", 5) == 5;
      CPPUNIT_ASSERT(written);
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      CPPUNIT_ASSERT_EQUAL(int64_t{*mode == 'w' ? 0 : 5}, rig.finish(folder).facts.stdout_bytes);
    }
  }

  void memory_goes_with_the_job() {
    if (skip_unless_root("memory_goes_with_the_job")) return;
    Rig rig;
    // Makes the folder look unchanged for long: then it is searched only if it changes.
    const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    CPPUNIT_ASSERT_EQUAL(0, utimensat(AT_FDCWD, "/tmp", long_ago, 0));
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, rig.run(rig.order({"leave-memory"})).facts.code);
    CPPUNIT_ASSERT(access("/dev/shm/sublet-test-left", F_OK) != 0);
    CPPUNIT_ASSERT(access("/tmp/sublet-test-left", F_OK) != 0);
    CPPUNIT_ASSERT(shmget(0x5b1e7, 0, 0) < 0);
  }

  void room_is_kept_for_the_exit_record() {
    Rig rig;
    std::string folder = rig.start(rig.order({"wait"}));
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    struct stat about;
    CPPUNIT_ASSERT(stat((folder + "/.exit.new").c_str(), &about) == 0);
    CPPUNIT_ASSERT(about.st_blocks * 512 >= 4096);
    rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
    rig.finish(folder);
    CPPUNIT_ASSERT(access((folder + "/.exit.new").c_str(), F_OK) != 0);
  }

  void limits_have_defaults() {
    Rig rig;
    AttemptOrder order = rig.order({});
    order.program = "/bin/cat";
    order.arguments = {"cat", "/proc/self/limits"};
    std::string folder = rig.start(order);
    rig.finish(folder);
    std::string text = rig.read(folder + "/stdout");
    auto limit = [&](const char* name) { return atoi(text.c_str() + text.find(name) + 17); };
    CPPUNIT_ASSERT_EQUAL(4096, limit("Max open files"));
    if (geteuid() == 0)
      CPPUNIT_ASSERT_EQUAL(static_cast<int>(SUBLET_DEFAULT_PROCESSES), limit("Max processes"));
  }

  static void ends_by(const AttemptExit& end, sublet_limit limit) {
    CPPUNIT_ASSERT_EQUAL(int64_t{limit}, end.facts.limit);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LEAVE_LIMIT}, end.facts.reason);
  }

  void limits_are_told_apart() {
    Rig rig;
    AttemptOrder order = rig.order({"spin"});
    order.limit_cpu_s = 1;
    ends_by(rig.run(order), SUBLET_LIMIT_CPU);
    order = rig.order({"wait"});
    order.limit_wall_s = 1;
    ends_by(rig.run(order), SUBLET_LIMIT_WALL);
    order = rig.order({"file", "100000"});
    order.limit_file = 50'000;
    ends_by(rig.run(order), SUBLET_LIMIT_FILE);
    order = rig.order({"memory", "200000000"});
    order.limit_memory = 50'000'000;
    CPPUNIT_ASSERT_EQUAL(int64_t{96}, rig.run(order).facts.code);  // malloc failed
  }

  void memory_limit_of_a_cgroup() {
    if (skip_unless_root("memory_limit_of_a_cgroup")) return;
    Rig rig;
    if (!rig.cgroups().can_limit_memory()) return;
    AttemptOrder order = rig.order({"memory", "200000000"});
    order.limit_memory = 50'000'000;
    rig.use_cgroups(&order);
    AttemptExit end = rig.run(order);
    ends_by(end, SUBLET_LIMIT_MEMORY);
    CPPUNIT_ASSERT_EQUAL(int64_t{50'000'000}, end.facts.bound);
    // Its slot's part, if it has no limit of its own.
    order = rig.order({"memory", "200000000"});
    order.slot_memory = 60'000'000;
    rig.use_cgroups(&order);
    end = rig.run(order);
    ends_by(end, SUBLET_LIMIT_MEMORY);
    CPPUNIT_ASSERT_EQUAL(int64_t{60'000'000}, end.facts.bound);
  }

  // A job that writes and reads more than it may have: the kernel evicts its own copies, and kills
  // nobody. It does not swap.
  void copies_of_files_keep_the_bound() {
    if (skip_unless_root("copies_of_files_keep_the_bound")) return;
    Rig rig;
    if (!rig.cgroups().can_limit_memory()) return;
    AttemptOrder order = rig.order({});
    order.program = "/bin/sh";
    order.arguments = {"sh", "-c",
                       "head -c 400000000 /dev/zero > big; cat big > /dev/null; touch ready; "
                       "exec sleep 600"};
    order.environment = {"PATH=/usr/bin:/bin"};
    order.slot_memory = 150'000'000;
    rig.use_cgroups(&order);
    const std::string folder = rig.start(order);
    CPPUNIT_ASSERT(wait_until([&] { return rig.job_is_ready(folder); }));
    const std::string in = order.cgroup_memory;
    const auto number = [&](const char* file) { return std::stoll(rig.read(in + file)); };
    const bool unified = std::filesystem::exists(in + "/memory.current");
    const int64_t most = number(unified ? "/memory.current" : "/memory.max_usage_in_bytes");
    CPPUNIT_ASSERT_MESSAGE(std::to_string(most), most > 30'000'000);
    CPPUNIT_ASSERT_MESSAGE(std::to_string(most), most <= order.slot_memory);
    if (unified) {
      CPPUNIT_ASSERT_EQUAL(0ll, number("/memory.swap.max"));
      CPPUNIT_ASSERT(rig.read(in + "/memory.high") != "max\n");
    } else {
      CPPUNIT_ASSERT_EQUAL(0ll, number("/memory.swappiness"));
      CPPUNIT_ASSERT_EQUAL(0ll, number("/memory.soft_limit_in_bytes"));
      if (std::filesystem::exists(in + "/memory.memsw.limit_in_bytes"))
        CPPUNIT_ASSERT_EQUAL(number("/memory.limit_in_bytes"),
                             number("/memory.memsw.limit_in_bytes"));
    }
    rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LEAVE_OWNER}, rig.finish(folder).facts.reason);
  }

  // Whether the program waits for it in vain, or gives up.
  void a_child_that_goes_over_it_ends_the_job() {
    if (skip_unless_root("a_child_that_goes_over_it_ends_the_job")) return;
    Rig rig;
    if (!rig.cgroups().can_limit_memory()) return;
    for (const char* then : {"sleep 600", "exit 3"}) {
      AttemptOrder order = rig.order({});
      order.program = "/bin/sh";
      order.arguments = {"sh", "-c", std::string("tail /dev/zero; ") + then};
      order.environment = {"PATH=/usr/bin:/bin"};
      order.slot_memory = 50'000'000;
      rig.use_cgroups(&order);
      ends_by(rig.run(order), SUBLET_LIMIT_MEMORY);
    }
  }

  // By a cgroup, or if the account is not the job's own, by counting them: then processes of
  // others do not count.
  void processes_are_bounded() {
    for (const bool by_cgroup : {true, false}) {
      Rig rig;
      if (by_cgroup && !rig.cgroups().can_limit_processes()) continue;
      AttemptOrder order = rig.order({"daemons-and-wait", "30"});
      order.limit_processes = 20;
      if (by_cgroup)
        rig.use_cgroups(&order);
      else if (geteuid() == 0)
        order.uid = order.gid = -1;
      const AttemptExit end = rig.run(order);
      ends_by(end, SUBLET_LIMIT_PROCESSES);
      CPPUNIT_ASSERT_EQUAL(int64_t{20}, end.facts.bound);
      CPPUNIT_ASSERT(end.facts.processes_peak >= 20 && end.facts.processes_peak < 60);
      order = rig.order({"exit", "0"});
      order.limit_processes = 20;
      if (by_cgroup) rig.use_cgroups(&order);
      CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LIMIT_NONE}, rig.run(order).facts.limit);
    }
  }

  // Where it is known. (What is counted: attempt/traffic_test.cc.)
  void without_traffic_it_says_so() {
    Rig rig;
    AttemptOrder order = rig.order({"exit", "0"});
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, rig.run(order).facts.network_bytes);
    order = rig.order({"exit", "0"});
    rig.use_cgroups(&order);
    const int64_t known = rig.cgroups().can_watch_traffic() ? 0 : -1;
    CPPUNIT_ASSERT_EQUAL(known, rig.run(order).facts.network_bytes);
    if (!try_walls().can_cut_network()) return;
    order = rig.order({"exit", "0"});
    order.no_network = 1;
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, rig.run(order).facts.network_bytes);
  }

  // tail keeps what may be its last line.
  void peaks_are_of_all_processes_together() {
    constexpr int64_t kEach = 60'000'000;
    for (const bool by_cgroup : {true, false}) {
      Rig rig;
      if (by_cgroup && !rig.cgroups().can_limit_memory()) continue;
      AttemptOrder order = rig.order({});
      order.program = "/bin/sh";
      order.arguments = {"sh", "-c",
                         "for i in 1 2; do (head -c 60000000 /dev/zero; sleep 600) | tail & done;"
                         "wait"};
      order.environment = {"PATH=/usr/bin:/bin"};
      if (by_cgroup) rig.use_cgroups(&order);
      const std::string folder = rig.start(order);
      CPPUNIT_ASSERT(wait_until([&] {
        const UniqueFd control = rig.ask(folder, rig.frame(order, SUBLET_FRAME_QUERY));
        const auto status = rig.receive(control.get(), SUBLET_FRAME_STATUS);
        return status && status->arg[1] >= 2 * kEach;
      }));
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      const AttemptExit end = rig.finish(folder);
      CPPUNIT_ASSERT(end.facts.memory_peak >= 2 * kEach && end.facts.memory_peak < 4 * kEach);
      if (!by_cgroup || rig.cgroups().can_limit_processes())
        CPPUNIT_ASSERT(end.facts.processes_peak >= 5 && end.facts.processes_peak < 20);
    }
  }

  // A message is told to a client that takes it, and only a whole one.
  void what_a_program_says() {
    for (const int count : {2, 3, 4}) {
      Rig rig;
      const AttemptOrder order = rig.order({"say", std::to_string(count)});
      const std::string folder = rig.start(order);
      CPPUNIT_ASSERT(wait_until([&] { return rig.job_is_ready(folder); }));
      for (const bool takes : {false, true}) {
        sublet_frame query = rig.frame(order, SUBLET_FRAME_QUERY);
        query.arg[0] = takes ? 1 : 0;
        const UniqueFd control = rig.ask(folder, query);
        pollfd answer = {control.get(), POLLIN, 0};
        CPPUNIT_ASSERT_EQUAL(1, poll(&answer, 1, 10'000));
        char first[512];
        const ssize_t n = recv(control.get(), first, sizeof first, 0);
        sublet_frame frame;
        CPPUNIT_ASSERT(n >= static_cast<ssize_t>(sizeof frame));
        memcpy(&frame, first, sizeof frame);
        const bool told = takes && count % 2 == 0;
        CPPUNIT_ASSERT_EQUAL(int{told ? SUBLET_FRAME_MESSAGE : SUBLET_FRAME_STATUS},
                             int{frame.kind});
        const std::string expected(!told ? 0 : count == 2 ? 4 : SUBLET_MESSAGE_BYTES, 'x');
        CPPUNIT_ASSERT_EQUAL(
            expected, std::string(first + sizeof frame, static_cast<size_t>(n) - sizeof frame));
        if (told) CPPUNIT_ASSERT(rig.receive(control.get(), SUBLET_FRAME_STATUS));
      }
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      rig.finish(folder);
    }
  }

  void no_start_without_the_monitors_word() {
    Rig rig;
    auto unstarted = [&](AttemptOrder order, sublet_leave_reason reason) {
      AttemptExit end = rig.run(order);
      CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_UNSTARTED}, end.facts.outcome);
      CPPUNIT_ASSERT_EQUAL(int64_t{reason}, end.facts.reason);
      CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.started_ns);
    };
    AttemptOrder order = rig.order({"exit", "0"});
    order.monitor = rig.base() + "/nobody.sock";
    unstarted(order, SUBLET_LEAVE_BLIND);
    rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
    unstarted(rig.order({"exit", "0"}), SUBLET_LEAVE_OWNER);
    rig.monitor().say(SUBLET_PRESENCE_UNKNOWN);
    unstarted(rig.order({"exit", "0"}), SUBLET_LEAVE_OWNER);
    rig.monitor().say(SUBLET_PRESENCE_AWAY);
    order = rig.order({"exit", "0"});
    order.lease_ns = boot_now_ns() - 1;
    unstarted(order, SUBLET_LEAVE_LEASE);
    rig.monitor().fall_silent();
    unstarted(rig.order({"exit", "0"}), SUBLET_LEAVE_BLIND);
  }

  void an_attempt_runs_once() {
    Rig rig;
    AttemptOrder order = rig.order({"wait"});
    std::string folder = rig.start(order);
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    CPPUNIT_ASSERT_EQUAL(73, rig.wait_for(rig.start_shepherd(order)));
    CPPUNIT_ASSERT(attempt_locked(folder));
    // Nor after the order has been rewritten and the record is gone.
    CPPUNIT_ASSERT(rename((folder + "/record").c_str(), (folder + "/record.old").c_str()) == 0);
    write_order(system_files(), folder, order);
    CPPUNIT_ASSERT_EQUAL(73, rig.wait_for(rig.start_shepherd(order)));
    rig.ask(folder, rig.frame(order, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED));
    rig.finish(folder);
    CPPUNIT_ASSERT(!attempt_locked(folder));
    rig.start(order);
    CPPUNIT_ASSERT_EQUAL(73, rig.wait(folder));
  }

  void bad_orders_are_refused() {
    Rig rig;
    AttemptOrder order = rig.order({"exit", "0"});
    std::string folder = rig.folder(order);
    make_attempt_folder(system_files(), folder, -1, -1);
    for (const char* text : {"", "rubbish", "sublet-order 1\nend\n"}) {
      system_files().write_atomic(folder + "/order", text);
      CPPUNIT_ASSERT_EQUAL(65, rig.wait_for(rig.start_shepherd(order)));
    }
  }

  void nothing_is_left_behind() {
    Rig rig;
    for (bool cgroup : {false, true}) {
      AttemptOrder order = rig.order({"daemons", "20"});
      if (cgroup) rig.use_cgroups(&order);
      std::string folder = rig.start(order);
      AttemptExit end = rig.finish(folder);
      CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.code);
      CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.killed);
      CPPUNIT_ASSERT_EQUAL(0, rig.processes_of(folder));
    }
  }

  void a_lying_status_page_does_no_harm() {
    Rig rig;
    for (const char* size : {"4096", "40", "0"}) {
      AttemptExit end = rig.run(rig.order({"lie", size}));
      CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.code);
      CPPUNIT_ASSERT(end.facts.progress_ppm == -1 && end.facts.generation >= 0);
    }
  }

  void job_cannot_reach_what_is_not_its_own() {
    if (skip_unless_root("job_cannot_reach_what_is_not_its_own")) return;
    Rig rig;
    AttemptOrder victim = rig.order({"aware"});
    std::string theirs = rig.start(victim);
    CPPUNIT_ASSERT(rig.job_is_ready(theirs));
    AttemptRecord record = rig.record(theirs);
    for (const ProcessId& id : {record.shepherd, record.program}) {
      AttemptOrder order = rig.order({"trespass", std::to_string(id.pid)});
      std::string own = rig.folder(order);
      for (const std::string& folder : {theirs, own})
        for (const char* name : {"order", "record", "exit", "control"})
          order.arguments.push_back(folder + "/" + name);
      for (const char* name : {"status", "work/ready", "work/new", "checkpoint/new", "new"})
        order.arguments.push_back(theirs + "/" + name);
      AttemptExit end = rig.run(order);
      CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_EXITED}, end.facts.outcome);
      CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.code);
    }
    CPPUNIT_ASSERT(is_same_process(record.program));
    rig.ask(theirs, rig.frame(victim, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED));
    rig.finish(theirs);
  }

  void cgroup_folders_go_with_the_attempt() {
    Rig rig;
    AttemptOrder order = rig.order({"exit", "0"});
    rig.use_cgroups(&order);
    if (order.cgroup_unified.empty()) return;
    rig.run(order);
    CPPUNIT_ASSERT(access(order.cgroup_unified.c_str(), F_OK) != 0);
    CPPUNIT_ASSERT(order.cgroup_cpu.empty() || access(order.cgroup_cpu.c_str(), F_OK) != 0);
    // The client removes folders left by a killed shepherd, but none that somebody needs.
    CPPUNIT_ASSERT(mkdir(order.cgroup_unified.c_str(), 0755) == 0);
    UniqueFd needed(open(order.cgroup_unified.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    CPPUNIT_ASSERT_EQUAL(0, flock(needed.get(), LOCK_EX | LOCK_NB));
    CPPUNIT_ASSERT_EQUAL(0, rig.cgroups().remove_left_over());
    needed.reset();
    CPPUNIT_ASSERT_EQUAL(1, rig.cgroups().remove_left_over());
  }

  void what_is_not_asked_of_the_kernel() {
    Rig rig;
    const std::string folder = rig.start(rig.order({"ask-the-kernel"}));
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, rig.finish(folder).facts.code);
    const std::string said = rig.read(folder + "/stdout");
    const size_t last = said.rfind('\n', said.size() - 2) + 1;
    CPPUNIT_ASSERT_EQUAL(
        std::string(
            "keyctl EPERM\nadd_key EPERM\nrequest_key EPERM\nbpf EPERM\n"
            "perf_event_open EPERM\nuserfaultfd EPERM\nio_uring_setup EPERM\n"
            "unshare user EPERM\nunshare time EPERM\nunshare files done\n"
            "clone user EPERM\nclone beside EPERM\nclone3 ENOSYS\nsetns EPERM\nmount EPERM\n"
            "fsopen EPERM\nioprio_set EPERM\nTIOCSTI EPERM\nanother's limit EPERM\n"
            "its own limits done\ncore limit again EPERM\ncore limit ") +
            limit_of_cores() + "\nx32 getpid ENOSYS\nfork done\nread itself done\ntrace done\n",
        said.substr(0, last));
    const std::string by_32_bit = said.substr(last);
    CPPUNIT_ASSERT_MESSAGE(
        by_32_bit, by_32_bit == "32-bit keyctl EPERM\n" || by_32_bit == "no 32-bit calls\n");
  }

  // A job that asks to be traced has its shepherd as its tracer, and an orphan the first process.
  void who_asks_to_be_traced_is_let_go() {
    Rig rig;
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, rig.run(rig.order({"orphan-be-traced"})).facts.code);
    const AttemptExit end = rig.run(rig.order({"be-traced"}));
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_EXITED}, end.facts.outcome);
    CPPUNIT_ASSERT_EQUAL(int64_t{7}, end.facts.code);
  }

  void keys_of_a_login_are_not_the_jobs() {
    if (skip_unless_root("the keyring of a login")) return;
    // Another run may have left one: the kernel removes keys minutes later.
    const std::string name = "sublet-test-secret-" + std::to_string(getpid());
    if (access("/proc/keys", R_OK) != 0 ||
        syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) < 0 ||
        syscall(SYS_add_key, "user", name.c_str(), "x", 1, KEY_SPEC_SESSION_KEYRING) < 0) {
      std::cerr << "keys_of_a_login_are_not_the_jobs: skipped: no keyrings here\n";
      return;
    }
    const std::string keys = "grep -c " + name + " /proc/keys";
    Rig rig;
    AttemptOrder order = rig.order({});
    order.program = "/bin/sh";
    order.arguments = {"sh", "-c", keys};
    std::string folder = rig.start(order);
    rig.finish(folder);
    CPPUNIT_ASSERT_EQUAL(std::string("0\n"), rig.read(folder + "/stdout"));
    CPPUNIT_ASSERT_EQUAL(0, std::system((keys + " >" + rig.base() + "/mine").c_str()));
    CPPUNIT_ASSERT_EQUAL(std::string("1\n"), rig.read(rig.base() + "/mine"));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ShepherdRunTest);

}  // namespace
