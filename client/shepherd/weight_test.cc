// Measures that a tenant takes almost no CPU time from the owner, both on one core.
#include <cppunit/extensions/HelperMacros.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iostream>

#include "attempt/cpu_weight.h"
#include "attempt/processes.h"
#include "client/shepherd/test_rig.h"

using namespace sublet;
using namespace sublet::shepherd;

namespace {

constexpr int64_t kMs = 1'000'000;

// Processes started during its lifetime run on one core.
class OneCore {
 public:
  OneCore() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (!CPU_ISSET(i, &before_)) continue;
      CPU_SET(i, &one);
      break;
    }
    CPPUNIT_ASSERT(sched_setaffinity(0, sizeof one, &one) == 0);
  }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;
  ~OneCore() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

// The owner's busy program, in its own session as if started from a terminal.
class Owner {
 public:
  Owner() {
    pid_ = fork();
    if (pid_ != 0) return;
    setsid();
    for (std::atomic<unsigned> turns{0};; ++turns) {
    }
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  int64_t cpu_us() const { return process_usage(pid_)->cpu_us; }

 private:
  pid_t pid_;
};

class ShepherdWeightTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ShepherdWeightTest);
  CPPUNIT_TEST(owner_keeps_core_with_cgroup);
  CPPUNIT_TEST(owner_keeps_core_without_cgroup);
  CPPUNIT_TEST(owner_keeps_core_in_a_cpu_cgroup);
  CPPUNIT_TEST(save_beside_a_busy_owner_ends_in_time);
  CPPUNIT_TEST(the_session_of_the_shepherd_keeps_its_weight);
  CPPUNIT_TEST(news_interrupt_what_takes_long);
  CPPUNIT_TEST(shared_pages_count_once);
  CPPUNIT_TEST(the_shepherd_runs_before_everybody_and_its_job_does_not);
  CPPUNIT_TEST_SUITE_END();

  void news_interrupt_what_takes_long() {
    const pid_t job = fork();
    if (job == 0) {
      setsid();
      pause();
      _exit(0);
    }
    AttemptProcesses processes;
    CPPUNIT_ASSERT(processes.open(""));
    processes.set({.session = job});
    int news[2];
    CPPUNIT_ASSERT_EQUAL(0, pipe(news));
    AttemptUse use;
    CPPUNIT_ASSERT(wait_until(
        [&] { return processes.measure(news[0], INT64_MAX, &use) && use.memory_bytes > 0; }));
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, use.threads);
    use = {7, 7};
    CPPUNIT_ASSERT_EQUAL(ssize_t{1}, write(news[1], "n", 1));
    CPPUNIT_ASSERT(!processes.measure(news[0], INT64_MAX, &use));
    CPPUNIT_ASSERT_EQUAL(int64_t{7}, use.memory_bytes);
    bool found = true;
    CPPUNIT_ASSERT(!processes.anyone_handles(SIGTERM, job, news[0], &found));
    CPPUNIT_ASSERT(found);
    kill(job, SIGKILL);
    waitpid(job, nullptr, 0);
    close(news[0]);
    close(news[1]);
  }

  // Memory that was written before the workers were forked.
  void shared_pages_count_once() {
    constexpr int64_t kBytes = 64 << 20;
    constexpr int kWorkers = 4;
    const pid_t job = fork();
    if (job == 0) {
      setsid();
      void* const memory =
          mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      memset(memory, 1, kBytes);
      for (int i = 0; i < kWorkers; ++i)
        if (fork() == 0) break;
      while (true) pause();
    }
    AttemptProcesses processes;
    CPPUNIT_ASSERT(processes.open(""));
    processes.set({.session = job});
    // A sanitizer's own memory, some of it of each process alone, counts too.
    AttemptUse use;
    const bool all_there = wait_until([&] {
      return processes.measure(-1, INT64_MAX, &use) && use.threads == kWorkers + 1 &&
             use.memory_bytes > (kWorkers + 1) * kBytes;
    });
    const int64_t proportional = processes.proportional_bytes(-1);
    kill(-job, SIGKILL);
    waitpid(job, nullptr, 0);
    CPPUNIT_ASSERT(all_there);
    CPPUNIT_ASSERT(proportional >= kBytes && proportional < use.memory_bytes / 2);
  }

  void the_shepherd_runs_before_everybody_and_its_job_does_not() {
    if (skip_unless_root("real-time shepherd")) return;
    Rig rig;
    const std::string folder = rig.start(rig.order({"aware"}));
    CPPUNIT_ASSERT(wait_until([&] { return rig.job_is_ready(folder); }));
    const AttemptRecord record = rig.record(folder);
    const pid_t shepherd = record.shepherd.pid, job = record.program.pid;
    const int policy = sched_getscheduler(shepherd);
    if (policy == SCHED_OTHER) {
      std::cerr << "skipped: real-time scheduling is not permitted here\n";
      return;
    }
    CPPUNIT_ASSERT_EQUAL(SCHED_RR | SCHED_RESET_ON_FORK, policy);
    CPPUNIT_ASSERT_EQUAL(autogroups_count() ? SCHED_OTHER : SCHED_IDLE, sched_getscheduler(job));
    const std::string limits = rig.read("/proc/" + std::to_string(job) + "/limits");
    CPPUNIT_ASSERT(limits.find("Max realtime timeout      unlimited") != std::string::npos);
    // As the kernel does if it spins.
    kill(shepherd, SIGXCPU);
    CPPUNIT_ASSERT(wait_until([&] { return sched_getscheduler(shepherd) == SCHED_OTHER; }));
    rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_EXITED}, rig.finish(folder).facts.outcome);
  }

  static void owner_keeps_core(bool cgroup, const char* name) {
    Rig rig;
    if (cgroup && !rig.cgroups().can_weigh()) {
      std::cerr << "skipped, no cpu.idle here: " << name << "\n";
      return;
    }
    OneCore core;
    AttemptOrder order = rig.order({"spin"});
    if (cgroup) rig.use_cgroups(&order);
    std::string folder = rig.start(order);
    AttemptRecord record = rig.record(folder);
    auto tenant_us = [&] { return process_usage(record.program.pid)->cpu_us; };
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    Owner owner;
    CPPUNIT_ASSERT(wait_until([&] { return owner.cpu_us() > 50'000; }));
    // Compare shares of the time that the two get together: others may be busy, too.
    int64_t owner_before = owner.cpu_us(), tenant_before = tenant_us();
    CPPUNIT_ASSERT(wait_until(
        [&] { return owner.cpu_us() - owner_before + tenant_us() - tenant_before >= 1'000'000; }));
    double owners = static_cast<double>(owner.cpu_us() - owner_before);
    double tenants = static_cast<double>(tenant_us() - tenant_before);
    double share = owners / (owners + tenants);
    std::cerr << name << ": " << 100 * share << " % of the core\n";
    CPPUNIT_ASSERT_MESSAGE(std::to_string(share), share >= 0.95);
    rig.ask(folder, rig.frame(order, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED));
    rig.finish(folder);
  }

  void owner_keeps_core_with_cgroup() { owner_keeps_core(true, "owner_keeps_core_with_cgroup"); }
  void owner_keeps_core_without_cgroup() {
    owner_keeps_core(false, "owner_keeps_core_without_cgroup");
  }

  // As systemd puts a person's programs into one.
  void owner_keeps_core_in_a_cpu_cgroup() {
    if (skip_unless_root("owner_keeps_core_in_a_cpu_cgroup")) return;
    for (const bool as_root : {true, false}) {
      const OtherGroup group;
      if (!group.made()) {
        std::cerr << "skipped, no cpu cgroup can be made here\n";
        return;
      }
      constexpr int kUnreachable = 2;
      const pid_t child = fork();
      if (child == 0) {
        const bool ready = group.enter() && (as_root || become_nobody());
        if (ready && access(SUBLET_SHEPHERD, X_OK) != 0) _exit(kUnreachable);
        _exit(ready && owner_keeps() ? 0 : 1);
      }
      int status = 0;
      waitpid(child, &status, 0);
      if (WIFEXITED(status) && WEXITSTATUS(status) == kUnreachable) {
        std::cerr << "skipped as nobody: other accounts cannot execute the programs\n";
        return;
      }
      CPPUNIT_ASSERT_EQUAL_MESSAGE(as_root ? "as root" : "as nobody", 0, status);
    }
  }

  void save_beside_a_busy_owner_ends_in_time() {
    for (bool cgroup : {false, true}) {
      Rig rig;
      // Without root nobody leaves the idle class to save.
      const bool weighs = cgroup && rig.cgroups().can_weigh();
      if (!weighs && !autogroups_count() && geteuid() != 0) continue;
      OneCore core;
      AttemptOrder order = rig.order({"aware", "20"});
      if (cgroup) rig.use_cgroups(&order);
      std::string folder = rig.start(order);
      CPPUNIT_ASSERT(rig.job_is_ready(folder));
      Owner owner;
      CPPUNIT_ASSERT(wait_until([&] { return owner.cpu_us() > 50'000; }));
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      AttemptExit end = rig.finish(folder);
      std::cerr << "save of 20 ms beside a busy owner, " << (cgroup ? "with" : "without")
                << " cgroup: gone after " << end.facts.quiesce_ns / kMs << " ms, "
                << (end.facts.cpu_user_us + end.facts.cpu_system_us) / 1000 << " ms of CPU\n";
      CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.left);
      CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.killed);
      CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.generation);
      CPPUNIT_ASSERT(end.facts.quiesce_ns <= order.save_deadline_ms * kMs);
    }
  }

  // It has to end the job beside a busy owner. A child is in its session until it has begun its
  // own, which on a busy machine takes a while.
  void the_session_of_the_shepherd_keeps_its_weight() {
    const pid_t shepherd = fork();
    if (shepherd == 0) _exit(act_as_shepherd());
    int status = 0;
    waitpid(shepherd, &status, 0);
    CPPUNIT_ASSERT_EQUAL(0, status);
  }

 private:
  // A cgroup, other than the root's, that weighs CPU time.
  class OtherGroup {
   public:
    OtherGroup() {
      for (const char* hierarchy : {"/cpu", "/cpu,cpuacct", ""}) {
        const std::string root = std::string("/sys/fs/cgroup") + hierarchy;
        if (access((root + "/cgroup.procs").c_str(), F_OK) != 0) continue;
        path_ = root + "/sublet-test-" + std::to_string(getpid());
        mkdir(path_.c_str(), 0755);
        for (const char* weight : {"/cpu.weight", "/cpu.shares"})
          made_ |= access((path_ + weight).c_str(), F_OK) == 0;
        if (made_) return;
        rmdir(path_.c_str());
      }
    }
    ~OtherGroup() {
      if (made_) CPPUNIT_ASSERT(wait_until([&] { return rmdir(path_.c_str()) == 0; }));
    }
    OtherGroup(const OtherGroup&) = delete;
    OtherGroup& operator=(const OtherGroup&) = delete;

    bool made() const { return made_; }
    bool enter() const {
      std::ofstream procs(path_ + "/cgroup.procs");
      procs << getpid() << std::flush;
      return procs.good();
    }

   private:
    std::string path_;
    bool made_ = false;
  };
  static bool become_nobody() {
    constexpr id_t kNobody = 65534;
    return setgroups(0, nullptr) == 0 && setresgid(kNobody, kNobody, kNobody) == 0 &&
           setresuid(kNobody, kNobody, kNobody) == 0;
  }
  static bool owner_keeps() {
    try {
      owner_keeps_core(false, "owner_keeps_core_in_a_cpu_cgroup");
      return true;
    } catch (const std::exception& failure) {
      std::cerr << failure.what() << "\n";
      return false;
    }
  }
  static bool has_nice(pid_t pid, int nice) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/autogroup");
    std::string line;
    std::getline(file, line);
    return line.empty() || line.ends_with(" nice " + std::to_string(nice));
  }
  // Which step failed; 0: none.
  static int act_as_shepherd() {
    int begin[2], begun[2];
    char byte = 0;
    if (setsid() < 0 || pipe(begin) != 0 || pipe(begun) != 0) return 1;
    const pid_t child = fork();
    if (child == 0) {
      if (read(begin[0], &byte, 1) == 1) setsid();
      if (write(begun[1], &byte, 1) == 1) pause();
      _exit(0);
    }
    AttemptProcesses processes;
    if (!processes.open("")) return 2;
    processes.set({.shepherd = getpid()});
    int failed = 0;
    if (processes.set_autogroup_nice(19) || !has_nice(getpid(), 0)) failed = 3;
    if (write(begin[1], &byte, 1) != 1 || read(begun[0], &byte, 1) != 1) failed = 4;
    const bool done = wait_until([&] { return processes.set_autogroup_nice(19); });
    if (failed == 0 && (!done || !has_nice(child, 19) || !has_nice(getpid(), 0))) failed = 5;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return failed;
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ShepherdWeightTest);

}  // namespace
