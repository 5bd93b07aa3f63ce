#include "loadmon/jobs_meter.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>

#include "base/clock.h"
#include "base/testing/temporary_folder.h"
#include "loadmon/cgroups.h"

namespace sublet::loadmon {
namespace {
ProcessTimes process(pid_t pid, pid_t parent, uint64_t own, uint64_t children, uint64_t start = 0) {
  return {
      .pid = pid, .parent = parent, .state = 'S', .start = start, .own = own, .children = children};
}

// A model of the kernel's process tree, in which every tick is counted.
struct Model {
  std::map<pid_t, ProcessTimes> alive = {{1, process(1, 0, 0, 0)}};
  double used = 0;

  std::vector<ProcessTimes> scan() const {
    std::vector<ProcessTimes> all;
    for (const auto& [pid, times] : alive) all.push_back(times);
    return all;
  }
  void run(pid_t pid, uint64_t ticks) {
    alive[pid].own += ticks;
    used += static_cast<double>(ticks);
  }
  // The process ends; its parent reaps it, the root inherits its children.
  void end(pid_t pid) {
    const ProcessTimes dead = alive[pid];
    alive.erase(pid);
    alive[dead.parent].children += dead.own + dead.children;
    for (auto& [other, times] : alive) {
      if (times.parent == pid) times.parent = 1;
    }
  }
};

pid_t start_spinner() {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) asm volatile("" ::: "memory");
  }
  return child;
}
}  // namespace

class JobsMeterTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(JobsMeterTest);
  CPPUNIT_TEST(reads_a_stat_line);
  CPPUNIT_TEST(refuses_what_is_no_stat_line);
  CPPUNIT_TEST(what_was_before_does_not_count);
  CPPUNIT_TEST(new_processes_count_whole);
  CPPUNIT_TEST(a_pid_used_again_is_another_process);
  CPPUNIT_TEST(reaped_is_not_counted_twice);
  CPPUNIT_TEST(lost_processes_are_estimated);
  CPPUNIT_TEST(every_tick_is_counted_once);
  CPPUNIT_TEST(what_a_group_counts_is_counted_once);
  CPPUNIT_TEST(finds_a_real_grandchild);
  CPPUNIT_TEST(looks_up_while_there_are_many);
  CPPUNIT_TEST(a_group_counts_for_its_job);
  CPPUNIT_TEST(a_group_counts_for_one_attempt_after_the_other);
  CPPUNIT_TEST(who_is_in_a_group);
  CPPUNIT_TEST_SUITE_END();

 public:
  void reads_a_stat_line() {
    ProcessTimes times;
    const std::string line =
        "4321 (a b) (c) R 17 4321 4321 0 -1 4194304 100 200 0 0 11 7 5 3 20 0 1 0 987654 1000 50 1";
    CPPUNIT_ASSERT(parse_process_stat(line, &times));
    CPPUNIT_ASSERT_EQUAL(pid_t{4321}, times.pid);
    CPPUNIT_ASSERT_EQUAL(pid_t{17}, times.parent);
    CPPUNIT_ASSERT_EQUAL('R', times.state);
    CPPUNIT_ASSERT_EQUAL(uint64_t{18}, times.own);
    CPPUNIT_ASSERT_EQUAL(uint64_t{8}, times.children);
    CPPUNIT_ASSERT_EQUAL(uint64_t{987654}, times.start);
  }

  void refuses_what_is_no_stat_line() {
    ProcessTimes times;
    for (const char* line : {"", "1", "1 (x", ") R 1 2", "1 (x) R 17 4321", "x (y) R 1 1 1 1",
                             "1 (x) R a b c d e f g h i j k l m n"}) {
      CPPUNIT_ASSERT(!parse_process_stat(line, &times));
    }
  }

  void what_was_before_does_not_count() {
    TreeCpu cpu;
    CPPUNIT_ASSERT_EQUAL(0.0, cpu.update({process(10, 1, 5000, 900, 3)}, 0, 100));
    CPPUNIT_ASSERT_EQUAL(12.0, cpu.update({process(10, 1, 5010, 902, 3)}, 0.5, 150));
    // An older process seen for the first time: its earlier CPU time does not count.
    CPPUNIT_ASSERT_EQUAL(
        0.0, cpu.update({process(10, 1, 5010, 902, 3), process(11, 1, 77777, 0, 4)}, 0.5, 200));
  }

  void new_processes_count_whole() {
    TreeCpu cpu;
    cpu.update({process(10, 1, 0, 0, 3)}, 0, 100);
    CPPUNIT_ASSERT_EQUAL(
        40.0, cpu.update({process(10, 1, 0, 0, 3), process(11, 10, 30, 10, 120)}, 0.5, 100));
  }

  void a_pid_used_again_is_another_process() {
    TreeCpu cpu;
    cpu.update({process(10, 1, 0, 0, 3), process(11, 10, 30, 0, 50)}, 0, 100);
    // 11 has ended, 10 has reaped it; a new 11 has run for 4 ticks.
    CPPUNIT_ASSERT_EQUAL(
        7.0, cpu.update({process(10, 1, 0, 33, 3), process(11, 10, 4, 0, 120)}, 0.5, 100));
  }

  void reaped_is_not_counted_twice() {
    TreeCpu cpu;
    const std::vector<ProcessTimes> before = {process(10, 1, 0, 0, 3), process(11, 10, 100, 0, 50),
                                              process(12, 11, 200, 0, 60)};
    cpu.update(before, 0, 100);
    cpu.update(before, 0.5, 100);
    // 12 ran 5 more and was reaped by 11, which ran 2 more and was reaped by 10.
    CPPUNIT_ASSERT_EQUAL(7.0, cpu.update({process(10, 1, 0, 307, 3)}, 0.5, 150));
  }

  void lost_processes_are_estimated() {
    TreeCpu cpu;
    cpu.update({process(10, 1, 0, 0, 3), process(11, 1, 0, 0, 4)}, 0, 100);
    CPPUNIT_ASSERT_EQUAL(50.0,
                         cpu.update({process(10, 1, 0, 0, 3), process(11, 1, 50, 0, 4)}, 0.5, 100));
    // The parent of 11 is not in the tree: its time cannot be found.
    CPPUNIT_ASSERT_EQUAL(50.0, cpu.update({process(10, 1, 0, 0, 3)}, 0.5, 150));
    CPPUNIT_ASSERT_EQUAL(0.0, cpu.update({process(10, 1, 0, 0, 3)}, 0.5, 200));
  }

  void every_tick_is_counted_once() {
    CPPUNIT_ASSERT(rc::check("every tick is counted once", [] {
      Model model;
      TreeCpu cpu;
      uint64_t clock = 1;
      pid_t next = 2;
      cpu.update(model.scan(), 0, clock);
      double counted = 0;
      uint64_t then = clock;
      for (int i = 0; i < 150; ++i) {
        auto any = std::next(model.alive.begin(),
                             *rc::gen::inRange<int>(0, static_cast<int>(model.alive.size())));
        const pid_t pid = any->first;
        switch (*rc::gen::inRange(0, 4)) {
          case 0:
            ++clock;
            model.alive[next] = process(next, pid, 0, 0, clock);
            ++next;
            break;
          case 1:
            model.run(pid, *rc::gen::inRange<uint64_t>(0, 50));
            break;
          case 2:
            if (pid != 1) model.end(pid);
            break;
          default:
            counted += cpu.update(model.scan(), 0.5, then);
            then = clock + 1;
            RC_ASSERT(counted == model.used);
        }
      }
    }));
  }

  // 10: the client, 11: a shepherd, 12 and 13: its job, -1: the job's cgroup.
  void what_a_group_counts_is_counted_once() {
    const auto shepherd = [](uint64_t own, uint64_t children, bool apart) {
      ProcessTimes times = process(11, 10, own, children, 5);
      times.children_apart = apart;
      return times;
    };
    TreeCpu cpu;
    const ProcessTimes client = process(10, 1, 0, 0, 3);
    cpu.update({client, shepherd(0, 0, false), process(12, 11, 0, 0, 6)}, 0, 100);
    CPPUNIT_ASSERT_EQUAL(90.0, cpu.update({client, shepherd(1, 0, false), process(12, 11, 80, 0, 6),
                                           process(13, 12, 9, 0, 120)},
                                          0.5, 100));
    const std::vector<pid_t> handed_over = cpu.hand_over(process(-1, 11, 95, 0));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, handed_over.size());
    CPPUNIT_ASSERT_EQUAL(
        42.0, cpu.update({client, shepherd(3, 0, true), process(-1, 11, 135, 0)}, 0.5, 150));
    // The shepherd reaps 12, whose CPU time is in the group's.
    CPPUNIT_ASSERT_EQUAL(
        5.0, cpu.update({client, shepherd(3, 120, true), process(-1, 11, 140, 0)}, 0.5, 200));
    // Job, group and shepherd end at once; the client reaps the shepherd. What the group counted
    // last, 7, is found in that.
    TreeCpu other = cpu;
    CPPUNIT_ASSERT_EQUAL(
        2.0, other.update({client, shepherd(5, 120, true), process(-1, 11, 140, 0)}, 0.5, 250));
    CPPUNIT_ASSERT_EQUAL(9.0, cpu.update({process(10, 1, 0, 5 + 147, 3)}, 0.5, 250));
    // Or the group alone: the shepherd has another job.
    CPPUNIT_ASSERT_EQUAL(7.0, other.update({client, shepherd(5, 147, false)}, 0.5, 300));
  }

  void finds_a_real_grandchild() {
    int started[2];
    CPPUNIT_ASSERT_EQUAL(0, pipe(started));
    const pid_t child = fork();
    CPPUNIT_ASSERT(child >= 0);
    if (child == 0) {
      const pid_t grandchild = start_spinner();
      if (write(started[1], &grandchild, sizeof grandchild) < 0) _exit(1);
      waitpid(grandchild, nullptr, 0);
      _exit(0);
    }
    pid_t grandchild = 0;
    CPPUNIT_ASSERT_EQUAL(ssize_t{sizeof grandchild},
                         read(started[0], &grandchild, sizeof grandchild));
    JobsMeter meter([] {});
    meter.update({child}, {}, false, system_clock().boot_ns());
    const int64_t deadline = system_clock().boot_ns() + 20'000'000'000;
    double used = 0;
    bool runnable = false;
    while (system_clock().boot_ns() < deadline && (used < 0.2 || !runnable)) {
      usleep(20'000);
      const JobsEffect effect = meter.update({child}, {}, false, system_clock().boot_ns());
      used += effect.cpu_seconds;
      runnable = runnable || effect.runnable >= 1;
    }
    kill(grandchild, SIGKILL);
    waitpid(child, nullptr, 0);
    CPPUNIT_ASSERT(used >= 0.2);
    CPPUNIT_ASSERT(runnable);
    // All were reaped meanwhile: nothing is left, and nothing fails.
    CPPUNIT_ASSERT(meter.update({child}, {}, false, system_clock().boot_ns()).cpu_seconds >= 0);
    close(started[0]);
    close(started[1]);
  }

  void looks_up_while_there_are_many() {
    constexpr size_t kMany = 100;
    std::vector<pid_t> children;
    for (size_t i = 0; i < kMany; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        pause();
        _exit(0);
      }
      children.push_back(child);
    }
    int looks = 0;
    JobsMeter meter([&looks] { ++looks; });
    meter.update(children, {}, false, system_clock().boot_ns());
    for (const pid_t child : children) kill(child, SIGKILL);
    for (const pid_t child : children) waitpid(child, nullptr, 0);
    CPPUNIT_ASSERT(looks >= 5);
  }

  void a_group_counts_for_its_job() {
    TemporaryFolder group;
    const auto set_usage = [&group](int us) {
      std::ofstream(group / "cpu.stat") << "usage_usec " << us << "\nuser_usec 0\n";
    };
    set_usage(5'000'000);
    int started[2];
    CPPUNIT_ASSERT_EQUAL(0, pipe(started));
    const pid_t shepherd = fork();
    CPPUNIT_ASSERT(shepherd >= 0);
    if (shepherd == 0) {
      const pid_t program = start_spinner();
      if (write(started[1], &program, sizeof program) < 0) _exit(1);
      waitpid(program, nullptr, 0);
      _exit(0);
    }
    pid_t program = 0;
    CPPUNIT_ASSERT_EQUAL(ssize_t{sizeof program}, read(started[0], &program, sizeof program));
    std::ofstream(group / "cgroup.procs") << program << "\n";
    const std::vector<JobToMeter> jobs = {{{shepherd, program}, group.path(), group.path()}};
    JobsMeter meter([] {});
    int64_t now = system_clock().boot_ns();
    const auto update = [&](bool counts_runnable) {
      return meter.update({}, jobs, counts_runnable, now += 250'000'000);
    };
    update(false);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, meter.examined());
    // However much the program itself uses, and whoever descends from it.
    const int64_t until = system_clock().boot_ns() + 100'000'000;
    while (system_clock().boot_ns() < until) usleep(10'000);
    set_usage(5'100'000);
    JobsEffect effect = update(false);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, meter.examined());
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0.1, effect.cpu_seconds, 1e-9);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0.4, effect.runnable, 1e-9);
    effect = update(true);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, meter.examined());
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0, effect.cpu_seconds, 1e-9);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(1, effect.runnable, 1e-9);
    set_usage(5'600'001);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0.500001, update(false).cpu_seconds, 1e-9);
    // Without its group it is found in the tree again.
    CPPUNIT_ASSERT_EQUAL(0, unlink((group / "cpu.stat").c_str()));
    update(false);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, meter.examined());
    kill(program, SIGKILL);
    waitpid(shepherd, nullptr, 0);
    close(started[0]);
    close(started[1]);
  }

  // The processes themselves use none here.
  void a_group_counts_for_one_attempt_after_the_other() {
    TemporaryFolder group;
    const auto set_usage = [&group](int us) {
      std::ofstream(group / "cpu.stat") << "usage_usec " << us << "\n";
    };
    std::ofstream(group / "cgroup.procs") << "";
    const pid_t shepherd = fork();
    CPPUNIT_ASSERT(shepherd >= 0);
    if (shepherd == 0) {
      pause();
      _exit(0);
    }
    const JobToMeter first = {{shepherd, shepherd}, group.path(), group.path(), 4'900'000};
    const JobToMeter second = {{shepherd, shepherd}, group.path(), group.path(), 5'150'000};
    JobsMeter meter([] {});
    int64_t now = system_clock().boot_ns();
    const auto used = [&](const std::vector<JobToMeter>& jobs, int us) {
      set_usage(us);
      return meter.update({}, jobs, false, now += 250'000'000).cpu_seconds;
    };
    used({first}, 5'000'000);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0.1, used({first}, 5'100'000), 1e-9);
    // What the first used since then is the shepherd's, which has waited for it; what the second
    // did is found from its processes until the next reading.
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0, used({first, second}, 5'200'000), 1e-9);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0.1, used({first, second}, 5'300'000), 1e-9);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0.3, used({second}, 5'600'000), 1e-9);
    kill(shepherd, SIGKILL);
    waitpid(shepherd, nullptr, 0);
  }

  void who_is_in_a_group() {
    const std::unordered_set<std::string> names = {"sublet-c1-7.1"};
    CPPUNIT_ASSERT(names_cgroup("4:memory:/\n0::/sublet-c1-7.1\n", names));
    CPPUNIT_ASSERT(names_cgroup("0::/outer/sublet-c1-7.1/inner", names));
    CPPUNIT_ASSERT(!names_cgroup("0::/sublet-c1-7.12\n1:cpu:/user.slice\n", names));
    CPPUNIT_ASSERT(!names_cgroup("", names));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(JobsMeterTest);

}  // namespace sublet::loadmon
