// A shepherd that runs one attempt after another.
#include <cppunit/extensions/HelperMacros.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <utility>

#include "checkpoint-api/sublet_status.h"
#include "client/shepherd/test_rig.h"

namespace sublet::shepherd {
namespace {

class ShepherdSlotTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ShepherdSlotTest);
  CPPUNIT_TEST(one_process_runs_attempt_after_attempt);
  CPPUNIT_TEST(the_record_names_the_processes);
  CPPUNIT_TEST(an_attempt_inherits_nothing);
  CPPUNIT_TEST(a_status_page_begins_with_zeros);
  CPPUNIT_TEST(nor_the_cpu_time_of_those_before);
  CPPUNIT_TEST(attempts_leave_no_descriptor);
  CPPUNIT_TEST(real_time_comes_back_with_the_next_attempt);
  CPPUNIT_TEST(orders_wait_for_their_turn);
  CPPUNIT_TEST(an_order_that_waits_is_not_in_the_link);
  CPPUNIT_TEST(the_next_ones_greeting_tells_the_monitor_of_the_end);
  CPPUNIT_TEST(nobody_follows_one_that_had_to_leave);
  CPPUNIT_TEST(an_empty_slot_ends_with_its_client);
  CPPUNIT_TEST(an_attempt_goes_on_without_its_client);
  CPPUNIT_TEST(sigterm_ends_an_empty_slot);
  CPPUNIT_TEST(after_sigterm_no_other_attempt_is_run);
  CPPUNIT_TEST(who_has_ended_takes_no_order);
  CPPUNIT_TEST(what_cannot_be_run_ends_the_process);
  CPPUNIT_TEST(what_the_client_has_taken_back_is_passed_over);
  CPPUNIT_TEST(the_next_one_does_not_begin_without_a_client);
  CPPUNIT_TEST(the_folder_of_one_that_has_ended_is_closed);
  CPPUNIT_TEST(the_monitor_may_be_restarted_in_between);
  CPPUNIT_TEST(an_old_word_of_the_monitor_starts_nothing);
  CPPUNIT_TEST(a_restarted_client_finds_the_attempt_that_runs);
  CPPUNIT_TEST(it_says_when_it_has_done);
  CPPUNIT_TEST(messages_without_a_connection_are_skipped);
  CPPUNIT_TEST_SUITE_END();

  static AttemptName name_of(const AttemptOrder& order) {
    return {static_cast<uint64_t>(order.job), 1};
  }

  static int open_files(const ProcessId& process) {
    int count = 0;
    const std::string folder = "/proc/" + std::to_string(process.pid) + "/fd";
    for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator(folder)) ++count;
    return count;
  }
  static int open_sockets(const ProcessId& process) {
    int count = 0;
    const std::string folder = "/proc/" + std::to_string(process.pid) + "/fd";
    for (const auto& one : std::filesystem::directory_iterator(folder)) {
      std::error_code closed;
      count += std::filesystem::read_symlink(one, closed).string().starts_with("socket:");
    }
    return count;
  }

  void one_process_runs_attempt_after_attempt() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    for (const char* code : {"0", "7", "0"}) {
      const AttemptOrder order = rig.order({"exit", code});
      const AttemptExit end = rig.run_in(slot, order);
      CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_EXITED}, end.facts.outcome);
      CPPUNIT_ASSERT_EQUAL(static_cast<int64_t>(atoi(code)), end.facts.code);
      CPPUNIT_ASSERT_EQUAL(order.job, end.facts.job);
      CPPUNIT_ASSERT_EQUAL(slot.id().pid, rig.record(rig.folder(order)).shepherd.pid);
    }
    CPPUNIT_ASSERT_EQUAL(1, rig.monitor().connected());
    CPPUNIT_ASSERT_EQUAL(3, rig.monitor().greeted());
  }

  void the_record_names_the_processes() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    for (int i = 0; i < 10; ++i) {
      const AttemptOrder order = rig.order({"wait"});
      const std::string folder = rig.prepare(order);
      const auto given = slot.run(name_of(order));
      CPPUNIT_ASSERT(rig.job_is_ready(folder));
      const AttemptRecord record = rig.record(folder);
      for (const ProcessId& one : {record.program, record.shepherd})
        CPPUNIT_ASSERT_EQUAL(process_start_time(one.pid).value(), one.start_time);
      CPPUNIT_ASSERT_EQUAL(slot.id().pid, record.shepherd.pid);
      rig.ask(folder, rig.frame(order, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED));
      CPPUNIT_ASSERT(rig.receive(given.control.get(), SUBLET_FRAME_ENDED).has_value());
    }
  }

  // The first was asked to leave, printed, used CPU time and was killed for it.
  void an_attempt_inherits_nothing() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    AttemptOrder greedy = rig.order({"spin"});
    greedy.limit_cpu_s = 1;
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LIMIT_CPU}, rig.run_in(slot, greedy).facts.limit);
    AttemptOrder order = rig.order({"write", "10"});
    CPPUNIT_ASSERT_EQUAL(int64_t{10}, rig.run_in(slot, order).facts.stdout_bytes);
    const AttemptExit end = rig.run_in(slot, rig.order({"exit", "0"}));
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LIMIT_NONE}, end.facts.limit);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LEAVE_NONE}, end.facts.reason);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.stdout_bytes);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.asked);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.killed);
    CPPUNIT_ASSERT(end.facts.cpu_user_us + end.facts.cpu_system_us < 900'000);
    CPPUNIT_ASSERT(end.facts.wall_us < 900'000'000);
  }

  // Its folder is used again.
  void a_status_page_begins_with_zeros() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    for (const std::string& before :
         {std::string(), std::string(SUBLET_STATUS_BYTES, '\0'),
          std::string(SUBLET_STATUS_BYTES, 'x'), std::string(SUBLET_STATUS_BYTES - 1, '\0') + "x",
          "x" + std::string(2 * SUBLET_STATUS_BYTES, '\0'), std::string(100, '\0')}) {
      AttemptOrder order = rig.order({});
      order.program = "/bin/sh";
      order.arguments = {"sh", "-c",
                         "tr -d '\\000' <$SUBLET_STATUS | wc -c; wc -c <$SUBLET_STATUS"};
      order.environment = {"PATH=/usr/bin:/bin"};
      const std::string folder = rig.prepare(order);
      std::ofstream(folder + "/status") << before;
      const auto given = slot.run({static_cast<uint64_t>(order.job), 1});
      CPPUNIT_ASSERT(rig.receive(given.control.get(), SUBLET_FRAME_ENDED).has_value());
      CPPUNIT_ASSERT_EQUAL(std::string("0\n4096\n"), rig.read(folder + "/stdout"));
    }
  }

  void nor_the_cpu_time_of_those_before() {
    Rig rig;
    for (bool cgroup : {false, true}) {
      SlotShepherd slot = rig.start_slot();
      AttemptOrder greedy = rig.order({"spin"}), order = rig.order({"wait"});
      greedy.limit_cpu_s = 1;
      for (AttemptOrder* one : {&greedy, &order})
        if (cgroup) rig.use_cgroups(one);
      CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LIMIT_CPU}, rig.run_in(slot, greedy).facts.limit);
      const std::string folder = rig.prepare(order);
      const auto given = slot.run(name_of(order));
      CPPUNIT_ASSERT(rig.job_is_ready(folder));
      const UniqueFd asked = rig.ask(folder, rig.frame(order, SUBLET_FRAME_QUERY));
      const auto status = rig.receive(asked.get(), SUBLET_FRAME_STATUS);
      CPPUNIT_ASSERT(status.has_value());
      CPPUNIT_ASSERT(status->arg[0] < 900'000);
      rig.ask(folder, rig.frame(order, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED));
      CPPUNIT_ASSERT(rig.receive(given.control.get(), SUBLET_FRAME_ENDED).has_value());
      const AttemptExit end = rig.exit_of(folder);
      CPPUNIT_ASSERT(end.facts.cpu_user_us + end.facts.cpu_system_us < 900'000);
    }
  }

  void attempts_leave_no_descriptor() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    rig.run_in(slot, rig.order({"write", "10"}));
    int before = 0;
    CPPUNIT_ASSERT(wait_until([&] {
      const int now = open_files(slot.id());
      return now == std::exchange(before, now) && now < 55;
    }));
    for (int i = 0; i < 5; ++i) {
      AttemptOrder order = rig.order({"write", "10"});
      rig.use_cgroups(&order);
      rig.run_in(slot, order);
    }
    CPPUNIT_ASSERT(wait_until([&] { return open_files(slot.id()) == before; }));
  }

  // It is lost by using too much CPU time; the kernel says so with this signal.
  void real_time_comes_back_with_the_next_attempt() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    rig.run_in(slot, rig.order({"exit", "0"}));
    const pid_t pid = slot.id().pid;
    constexpr int kRealTime = SCHED_RR | SCHED_RESET_ON_FORK;
    if (sched_getscheduler(pid) != kRealTime) {
      std::cerr << "skipped: no real-time scheduling here\n";
      return;
    }
    CPPUNIT_ASSERT(kill_process(slot.id(), SIGXCPU));
    CPPUNIT_ASSERT(wait_until([&] { return sched_getscheduler(pid) == SCHED_OTHER; }));
    rig.run_in(slot, rig.order({"exit", "0"}));
    CPPUNIT_ASSERT_EQUAL(kRealTime, sched_getscheduler(pid));
  }

  // A job that ends by itself, when it is let go.
  static AttemptOrder waiting(Rig& rig) {
    return rig.script("until [ -e go ]; do sleep 0.01; done");
  }
  static bool runs(const std::string& folder) {
    return wait_until([&] { return access((folder + "/record").c_str(), F_OK) == 0; });
  }
  static void let_go(const std::string& folder) { std::ofstream(folder + "/work/go"); }

  void orders_wait_for_their_turn() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const AttemptOrder first = waiting(rig), second = rig.order({"exit", "0"});
    const std::string folder = rig.prepare(first);
    rig.prepare(second);
    const auto one = slot.run(name_of(first)), other = slot.run(name_of(second), true);
    CPPUNIT_ASSERT(runs(folder));
    CPPUNIT_ASSERT(access((rig.folder(second) + "/record").c_str(), F_OK) != 0);
    let_go(folder);
    CPPUNIT_ASSERT(rig.receive(one.control.get(), SUBLET_FRAME_ENDED).has_value());
    CPPUNIT_ASSERT(rig.receive(other.control.get(), SUBLET_FRAME_ENDED).has_value());
    for (const std::string& ended : {folder, rig.folder(second)}) {
      CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_EXITED}, rig.exit_of(ended).facts.outcome);
      CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LEAVE_NONE}, rig.exit_of(ended).facts.reason);
    }
  }

  // See Slot::take_order().
  void an_order_that_waits_is_not_in_the_link() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const AttemptOrder first = rig.script("touch here; until [ -e go ]; do sleep 0.01; done");
    const AttemptOrder second = rig.order({"exit", "0"});
    const std::string folder = rig.prepare(first);
    rig.prepare(second);
    const auto one = slot.run(name_of(first));
    CPPUNIT_ASSERT(wait_until([&] { return system_files().exists(folder + "/work/here"); }));
    const int before = open_sockets(slot.id());
    const auto takes = [&] { return open_sockets(slot.id()) == before + 1; };
    {
      const auto taken_back = slot.run(name_of(second), true);
      CPPUNIT_ASSERT(wait_until(takes));
    }
    CPPUNIT_ASSERT(wait_until([&] { return open_sockets(slot.id()) == before; }));
    const auto other = slot.run(name_of(second), true);
    CPPUNIT_ASSERT(wait_until(takes));
    CPPUNIT_ASSERT(!system_files().exists(folder + "/exit"));
    let_go(folder);
    CPPUNIT_ASSERT(rig.receive(other.control.get(), SUBLET_FRAME_ENDED).has_value());
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_EXITED}, rig.exit_of(folder).facts.outcome);
  }

  // Where the cgroups are kept: removing them may take longer than the monitor waits.
  void the_next_ones_greeting_tells_the_monitor_of_the_end() {
    if (skip_without_rooms("cgroups that are kept")) return;
    Rig rig;
    {
      SlotShepherd slot = rig.start_slot();
      // Without another process, or they would not be kept.
      AttemptOrder first = rig.script("read word <go"), second = rig.order({"exit", "0"});
      for (AttemptOrder* order : {&first, &second}) rig.use_cgroups(order);
      const std::string folder = rig.prepare(first);
      rig.prepare(second);
      CPPUNIT_ASSERT_EQUAL(0, mkfifo((folder + "/work/go").c_str(), 0600));
      CPPUNIT_ASSERT_EQUAL(0, chmod((folder + "/work/go").c_str(), 0644));
      const auto one = slot.run(name_of(first)), other = slot.run(name_of(second), true);
      std::ofstream(folder + "/work/go") << "on\n";
      CPPUNIT_ASSERT(rig.receive(other.control.get(), SUBLET_FRAME_ENDED).has_value());
    }
    CPPUNIT_ASSERT(wait_until([&] { return rig.monitor().lost() == 1; }));
    CPPUNIT_ASSERT_EQUAL(2, rig.monitor().greeted());
    CPPUNIT_ASSERT_EQUAL(1, rig.monitor().done());
  }

  // Somebody may be about to kill what is left of it, by the account.
  void nobody_follows_one_that_had_to_leave() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const AttemptOrder first = rig.order({"wait"}), second = rig.order({"exit", "0"});
    const std::string folder = rig.prepare(first);
    rig.prepare(second);
    const auto one = slot.run(name_of(first)), next = slot.run(name_of(second), true);
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    rig.ask(folder, rig.frame(first, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED));
    char byte;
    CPPUNIT_ASSERT(
        wait_until([&] { return recv(next.control.get(), &byte, 1, MSG_DONTWAIT) == 0; }));
    CPPUNIT_ASSERT(!slot.run(name_of(second)).taken);  // though it may have to tidy up yet
    CPPUNIT_ASSERT_EQUAL(0, rig.wait_for(slot.id()));
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LEAVE_REMOVED}, rig.exit_of(folder).facts.reason);
    CPPUNIT_ASSERT(take_back_order(rig.folder(second)));  // it has not begun
    CPPUNIT_ASSERT(wait_until([&] { return rig.monitor().done() == 1; }));
  }

  void an_empty_slot_ends_with_its_client() {
    Rig rig;
    ProcessId process;
    {
      SlotShepherd slot = rig.start_slot();
      process = slot.id();
      rig.run_in(slot, rig.order({"exit", "0"}));
    }
    CPPUNIT_ASSERT_EQUAL(0, rig.wait_for(process));
  }

  void an_attempt_goes_on_without_its_client() {
    Rig rig;
    const AttemptOrder order = rig.order({"wait"});
    const std::string folder = rig.start(order);
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    // A restarted client finds it by its folder.
    const UniqueFd again = rig.ask(folder, rig.frame(order, SUBLET_FRAME_QUERY));
    const auto status = rig.receive(again.get(), SUBLET_FRAME_STATUS);
    CPPUNIT_ASSERT(status.has_value());
    CPPUNIT_ASSERT_EQUAL(uint32_t{SUBLET_SHEPHERD_RUNNING}, status->state);
    rig.ask(folder, rig.frame(order, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED));
    rig.finish(folder);
  }

  void sigterm_ends_an_empty_slot() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    rig.run_in(slot, rig.order({"exit", "0"}));
    CPPUNIT_ASSERT(kill_process(slot.id(), SIGTERM));
    CPPUNIT_ASSERT_EQUAL(0, rig.wait_for(slot.id()));
  }

  void after_sigterm_no_other_attempt_is_run() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const AttemptOrder first = rig.order({"aware", "1"}), second = rig.order({"exit", "0"});
    const std::string folder = rig.prepare(first), other = rig.prepare(second);
    const auto one = slot.run(name_of(first)), next = slot.run(name_of(second), true);
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    CPPUNIT_ASSERT(kill_process(slot.id(), SIGTERM));
    CPPUNIT_ASSERT_EQUAL(0, rig.wait_for(slot.id()));
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LEAVE_DRAIN}, rig.exit_of(folder).facts.reason);
    CPPUNIT_ASSERT(access((other + "/record").c_str(), F_OK) != 0);
    // Its client learns that nobody runs it.
    char byte;
    CPPUNIT_ASSERT(
        wait_until([&] { return recv(next.control.get(), &byte, 1, MSG_DONTWAIT) == 0; }));
  }

  void who_has_ended_takes_no_order() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    CPPUNIT_ASSERT(kill_process(slot.id(), SIGKILL));
    rig.wait_for(slot.id());
    const auto given = slot.run({1, 1});
    CPPUNIT_ASSERT(!given.taken);
    char byte;
    CPPUNIT_ASSERT_EQUAL(ssize_t{0}, recv(given.control.get(), &byte, 1, MSG_DONTWAIT));
  }

  void what_cannot_be_run_ends_the_process() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const AttemptOrder order = rig.order({"exit", "0"});
    std::filesystem::rename(rig.prepare(order), rig.base() + "/attempts/4711.1");
    const auto given = slot.run({4711, 1});
    CPPUNIT_ASSERT_EQUAL(65, rig.wait_for(slot.id()));
    CPPUNIT_ASSERT(access((rig.base() + "/attempts/4711.1/record").c_str(), F_OK) != 0);
  }

  // Which is not read before its turn.
  static void tell_lease(const SlotShepherd::Given& given, const sublet_frame& lease) {
    CPPUNIT_ASSERT(send(given.control.get(), &lease, sizeof lease, MSG_DONTWAIT) == sizeof lease);
  }

  // With its folder or without.
  void what_the_client_has_taken_back_is_passed_over() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const AttemptOrder first = waiting(rig);
    const std::string folder = rig.prepare(first);
    const AttemptOrder second = rig.order({"exit", "0"}), third = rig.order({"exit", "0"});
    const auto one = slot.run(name_of(first));
    CPPUNIT_ASSERT(runs(folder));
    CPPUNIT_ASSERT(!take_back_order(folder));  // it runs
    std::vector<SlotShepherd::Given> given;
    for (const AttemptOrder& order : {second, third}) {
      rig.prepare(order);
      given.push_back(slot.run(name_of(order), true));
      CPPUNIT_ASSERT(take_back_order(rig.folder(order)));
    }
    std::filesystem::remove_all(rig.folder(third));
    // By now another shepherd has it.
    const AttemptOrder fourth = rig.order({"exit", "0"});
    rig.prepare(fourth);
    {
      const auto closed = slot.run(name_of(fourth), true);
      tell_lease(closed, rig.frame(fourth, SUBLET_FRAME_LEASE));
      CPPUNIT_ASSERT(take_back_order(rig.folder(fourth)));
    }
    write_order(system_files(), rig.folder(fourth), fourth);
    let_go(folder);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, rig.run_in(slot, rig.order({"exit", "0"})).facts.code);
    CPPUNIT_ASSERT(!system_files().exists(rig.folder(second) + "/record"));
    CPPUNIT_ASSERT(!system_files().exists(rig.folder(fourth) + "/record"));
    CPPUNIT_ASSERT(!take_back_order(folder));  // it has ended
    char byte;
    for (const auto& next : given)
      CPPUNIT_ASSERT(
          wait_until([&] { return recv(next.control.get(), &byte, 1, MSG_DONTWAIT) == 0; }));
    // The monitor has heard of both that ran, although others waited when the first one ended.
    CPPUNIT_ASSERT(wait_until([&] { return rig.monitor().done() == 2; }));
    CPPUNIT_ASSERT_EQUAL(2, rig.monitor().greeted());
  }

  // Without its client nobody would know of it.
  void the_next_one_does_not_begin_without_a_client() {
    Rig rig;
    const AttemptOrder first = waiting(rig), second = rig.order({"exit", "0"});
    const std::string folder = rig.prepare(first);
    rig.prepare(second);
    ProcessId process;
    {
      SlotShepherd slot = rig.start_slot();
      process = slot.id();
      const auto one = slot.run(name_of(first)), next = slot.run(name_of(second), true);
      tell_lease(next, rig.frame(second, SUBLET_FRAME_LEASE));
      CPPUNIT_ASSERT(runs(folder));
    }
    let_go(folder);
    CPPUNIT_ASSERT_EQUAL(0, rig.wait_for(process));
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_EXITED}, rig.exit_of(folder).facts.outcome);
    CPPUNIT_ASSERT(!system_files().exists(rig.folder(second) + "/record"));
    CPPUNIT_ASSERT(take_back_order(rig.folder(second)));
  }

  // The next one may begin before the client has seen the end, with the same account.
  void the_folder_of_one_that_has_ended_is_closed() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const AttemptOrder order = rig.order({"exit", "0"});
    rig.run_in(slot, order);
    struct stat about;
    CPPUNIT_ASSERT(stat(rig.folder(order).c_str(), &about) == 0);
    CPPUNIT_ASSERT_EQUAL(mode_t{0700}, about.st_mode & 07777);
  }

  void the_monitor_may_be_restarted_in_between() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    rig.run_in(slot, rig.order({"exit", "0"}));
    rig.monitor().die();
    AttemptOrder order = rig.order({"exit", "0"});
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LEAVE_BLIND}, rig.run_in(slot, order).facts.reason);
    FakeMonitor another(rig.base() + "/another.sock");
    order = rig.order({"exit", "0"});
    order.monitor = rig.base() + "/another.sock";
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LEAVE_NONE}, rig.run_in(slot, order).facts.reason);
  }

  // While the slot is empty the monitor says that the owner has gone, then that he is here again.
  void an_old_word_of_the_monitor_starts_nothing() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    rig.run_in(slot, rig.order({"exit", "0"}));
    rig.monitor().say(SUBLET_PRESENCE_AWAY);
    rig.monitor().fall_silent();
    const AttemptExit end = rig.run_in(slot, rig.order({"exit", "0"}));
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_UNSTARTED}, end.facts.outcome);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LEAVE_BLIND}, end.facts.reason);
  }

  // Its name goes from one attempt's folder to the next.
  void a_restarted_client_finds_the_attempt_that_runs() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    for (int i = 0; i < 3; ++i) {
      const AttemptOrder order = rig.order({"wait"});
      const std::string folder = rig.prepare(order);
      const auto given = slot.run(name_of(order));
      CPPUNIT_ASSERT(rig.job_is_ready(folder));
      const UniqueFd again = rig.ask(folder, rig.frame(order, SUBLET_FRAME_QUERY));
      const auto status = rig.receive(again.get(), SUBLET_FRAME_STATUS);
      CPPUNIT_ASSERT(status && status->job == static_cast<uint64_t>(order.job));
      rig.ask(folder, rig.frame(order, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED));
      CPPUNIT_ASSERT(rig.receive(given.control.get(), SUBLET_FRAME_ENDED).has_value());
      CPPUNIT_ASSERT(!system_files().exists(folder + "/control"));
      if (i == 1)  // its place is lost: it is made anew
        std::filesystem::remove_all(rig.base() + "/slots");
    }
  }

  void it_says_when_it_has_done() {
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const AttemptOrder order = rig.order({"exit", "0"});
    rig.prepare(order);
    const auto given = slot.run(name_of(order));
    CPPUNIT_ASSERT(rig.receive(given.control.get(), SUBLET_FRAME_ENDED).has_value());
    sublet_frame frame;
    CPPUNIT_ASSERT(wait_until(
        [&] { return recv(given.control.get(), &frame, sizeof frame, MSG_DONTWAIT) == 0; }));
    CPPUNIT_ASSERT(wait_until([&] { return rig.monitor().done() == 1; }));
  }

  void messages_without_a_connection_are_skipped() {
    Rig rig;
    int ends[2];
    CPPUNIT_ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    UniqueFd ours(ends[0]), theirs(ends[1]);
    SpawnOptions options;
    options.fds = {{theirs.get(), 3}};
    const SpawnedProcess slot = spawn({SUBLET_SHEPHERD, "--slot", rig.base()}, {}, options);
    theirs.reset();
    const AttemptOrder order = rig.order({"exit", "0"});
    const std::string folder = rig.prepare(order);
    const sublet_frame frame = rig.frame(order, SUBLET_FRAME_RUN);
    CPPUNIT_ASSERT(send(ours.get(), &frame, sizeof frame, 0) == sizeof frame);
    CPPUNIT_ASSERT(send(ours.get(), "x", 1, 0) == 1);
    ours.reset();
    CPPUNIT_ASSERT_EQUAL(0, rig.wait_for(slot.id));
    CPPUNIT_ASSERT(access((folder + "/record").c_str(), F_OK) != 0);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ShepherdSlotTest);

}  // namespace
}  // namespace sublet::shepherd
