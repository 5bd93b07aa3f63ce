// Jobs that are asked to leave, to save, or whose lease runs out.
#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "client/shepherd/test_rig.h"
#include "protocol/lease.h"
#include "protocol/shepherd.h"

using namespace sublet;
using namespace sublet::shepherd;

namespace {

constexpr int64_t kMs = 1'000'000;

class ShepherdLeaveTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ShepherdLeaveTest);
  CPPUNIT_TEST(owner_returns_and_the_job_saves_and_leaves);
  CPPUNIT_TEST(without_a_handler_it_is_killed_at_once);
  CPPUNIT_TEST(a_shell_waits_for_the_program_that_saves);
  CPPUNIT_TEST(it_may_have_saved_before_all_were_asked);
  CPPUNIT_TEST(a_program_that_ends_meanwhile_is_done);
  CPPUNIT_TEST(a_handler_that_does_nothing_is_killed_at_the_deadline);
  CPPUNIT_TEST(burner_is_killed_when_its_allowance_is_spent);
  CPPUNIT_TEST(short_lived_children_spend_the_allowance_too);
  CPPUNIT_TEST(a_job_that_stops_everybody_stops_nobody);
  CPPUNIT_TEST(vacate_by_the_client_keeps_the_full_deadline);
  CPPUNIT_TEST(kill_saves_nothing);
  CPPUNIT_TEST(save_and_go_on);
  CPPUNIT_TEST(query_is_answered);
  CPPUNIT_TEST(frames_for_another_attempt_are_ignored);
  CPPUNIT_TEST(lease_freezes_and_renewal_thaws);
  CPPUNIT_TEST(patience_ends_a_frozen_job);
  CPPUNIT_TEST(owner_ends_a_frozen_job);
  CPPUNIT_TEST(client_may_come_and_go);
  CPPUNIT_TEST(who_saves_has_the_disk_like_others);
  CPPUNIT_TEST(daemons_go_with_the_evicted_job);
  CPPUNIT_TEST(nobody_outruns_the_kill);
  CPPUNIT_TEST(what_the_killed_have_used_is_counted);
  CPPUNIT_TEST(who_is_killed_beside_the_owner_was_evicted);
  CPPUNIT_TEST(who_had_ended_has_not_exceeded_the_disk);
  CPPUNIT_TEST_SUITE_END();

  static void each_way(const std::function<void(Rig&, bool)>& body) {
    for (bool cgroup : {false, true}) {
      Rig rig;
      if (cgroup && !rig.cgroups().can_kill()) continue;
      body(rig, cgroup);
    }
  }
  static std::string ready(Rig& rig, const AttemptOrder& order) {
    std::string folder = rig.start(order);
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    return folder;
  }
  static void left(const AttemptExit& end, sublet_leave_reason reason) {
    CPPUNIT_ASSERT_EQUAL(int64_t{reason}, end.facts.reason);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_EXITED}, end.facts.outcome);
    CPPUNIT_ASSERT_EQUAL(int64_t{75}, end.facts.code);
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.left);
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.asked);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.killed);
  }
  static void killed(const AttemptExit& end, sublet_leave_reason reason) {
    CPPUNIT_ASSERT_EQUAL(int64_t{reason}, end.facts.reason);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_SIGNALLED}, end.facts.outcome);
    CPPUNIT_ASSERT_EQUAL(int64_t{SIGKILL}, end.facts.code);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.left);
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.killed);
  }

  // Steps that were taken, each not before the one before.
  static void in_order(const std::vector<int64_t>& steps) {
    int64_t last = 0;
    for (const int64_t step : steps) {
      CPPUNIT_ASSERT(step >= last);
      last = step;
    }
  }

  void owner_returns_and_the_job_saves_and_leaves() {
    each_way([](Rig& rig, bool cgroup) {
      AttemptOrder order = rig.order({"aware", "1"});
      if (cgroup) rig.use_cgroups(&order);
      std::string folder = ready(rig, order);
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      AttemptExit end = rig.finish(folder);
      left(end, SUBLET_LEAVE_OWNER);
      CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.no_handler);
      CPPUNIT_ASSERT(end.facts.quiesce_ns > 0);
      in_order({end.facts.told_ns, end.facts.save_asked_ns, end.facts.checkpointed_ns,
                end.facts.quiesce_ns});
      CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_PRESENCE_SCRIPT}, end.facts.sensed);
      CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.unsaved);
      CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.generation);
      CPPUNIT_ASSERT_EQUAL(int64_t{1234}, end.facts.checkpoint_bytes);
      CPPUNIT_ASSERT_EQUAL(int64_t{250000}, end.facts.progress_ppm);
      CPPUNIT_ASSERT(wait_until([&] { return rig.monitor().acknowledged() > 0; }));
    });
  }

  // Asleep, deaf or lying about its handler: there is nothing to wait for.
  void without_a_handler_it_is_killed_at_once() {
    for (const char* mode : {"wait", "deaf", "claim"}) {
      each_way([mode](Rig& rig, bool cgroup) {
        AttemptOrder order = rig.order({mode});
        if (cgroup) rig.use_cgroups(&order);
        order.save_deadline_ms = 60'000;
        std::string folder = ready(rig, order);
        rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
        AttemptExit end = rig.finish(folder);
        killed(end, SUBLET_LEAVE_OWNER);
        CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.no_handler);
        CPPUNIT_ASSERT(end.facts.quiesce_ns < order.save_deadline_ms * kMs);
        in_order({end.facts.told_ns, end.facts.demoted_ns, end.facts.quiesce_ns});
        CPPUNIT_ASSERT_EQUAL(int64_t{-1}, end.facts.save_asked_ns);
        CPPUNIT_ASSERT_EQUAL(int64_t{-1}, end.facts.checkpointed_ns);
      });
    }
  }

  void a_shell_waits_for_the_program_that_saves() {
    Rig rig;
    AttemptOrder order = rig.order({});
    order.program = "/bin/sh";
    order.arguments = {"sh", "-c", rig.test_job() + " aware 1; exit $?"};
    std::string folder = ready(rig, order);
    rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
    left(rig.finish(folder), SUBLET_LEAVE_OWNER);
  }

  // Children of `parent` that are sleep, and sleep.
  static int sleepers(pid_t parent) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "stat");
      int pid = 0, ppid = 0;
      std::string name;
      char state = 0;
      if (file >> pid >> name >> state >> ppid)
        count += ppid == parent && name == "(sleep)" && state == 'S';
    }
    return count;
  }

  // Asking goes on for a while where there are many processes. Those that had yet to become sleep
  // would use up the CPU allowance of the one that saves.
  void it_may_have_saved_before_all_were_asked() {
    each_way([](Rig& rig, bool cgroup) {
      AttemptOrder order = rig.order({});
      if (cgroup) rig.use_cgroups(&order);
      order.program = "/bin/sh";
      order.arguments = {"sh", "-c",
                         rig.test_job() +
                             " aware 1 & saves=$!; i=0; "
                             "while [ $i -lt 300 ]; do sleep 1000 & i=$((i+1)); done; "
                             "wait $saves; exit $?"};
      order.environment.push_back("PATH=/usr/bin:/bin");
      std::string folder = ready(rig, order);
      const pid_t shell = rig.record(folder).program.pid;
      CPPUNIT_ASSERT(wait_until([&] { return sleepers(shell) == 300; }));
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      AttemptExit end = rig.finish(folder);
      left(end, SUBLET_LEAVE_OWNER);
      in_order({end.facts.told_ns, end.facts.save_asked_ns, end.facts.checkpointed_ns,
                end.facts.quiesce_ns});
    });
  }

  // It was asked, and ended by itself: its status is not an answer.
  void a_program_that_ends_meanwhile_is_done() {
    Rig rig;
    AttemptOrder order = rig.order({});
    order.program = "/bin/sh";
    order.arguments = {"sh", "-c", "trap '' TERM; : > ready; while [ ! -e end ]; do :; done"};
    order.save_deadline_ms = 60'000;
    std::string folder = ready(rig, order);
    UniqueFd control = rig.ask(folder, rig.frame(order, SUBLET_FRAME_VACATE, SUBLET_LEAVE_PREEMPT));
    CPPUNIT_ASSERT(rig.receive(control.get(), SUBLET_FRAME_ACK));
    close(open((folder + "/work/end").c_str(), O_CREAT | O_WRONLY, 0600));
    AttemptExit end = rig.finish(folder);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_EXITED}, end.facts.outcome);
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.asked);
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.no_handler);
  }

  void a_handler_that_does_nothing_is_killed_at_the_deadline() {
    each_way([](Rig& rig, bool cgroup) {
      AttemptOrder order = rig.order({"burn-when-asked"});
      if (cgroup) rig.use_cgroups(&order);
      order.save_deadline_ms = 2'300;  // the order's, not the default: that is shorter
      CPPUNIT_ASSERT(order.save_deadline_ms > sublet::protocol::ShepherdTerms().save_deadline_ms);
      std::string folder = ready(rig, order);
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      AttemptExit end = rig.finish(folder);
      killed(end, SUBLET_LEAVE_OWNER);
      CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.no_handler);
      CPPUNIT_ASSERT(end.facts.quiesce_ns >= order.save_deadline_ms * kMs);
      in_order(
          {end.facts.told_ns, end.facts.save_asked_ns, end.facts.demoted_ns, end.facts.quiesce_ns});
      CPPUNIT_ASSERT_EQUAL(int64_t{-1}, end.facts.checkpointed_ns);
    });
  }

  void burner_is_killed_when_its_allowance_is_spent() {
    each_way([](Rig& rig, bool cgroup) {
      AttemptOrder order = rig.order({"report-and-burn"});
      if (cgroup) rig.use_cgroups(&order);
      order.save_deadline_ms = 60'000;  // only the allowance can end it
      std::string folder = ready(rig, order);
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      AttemptExit end = rig.finish(folder);
      killed(end, SUBLET_LEAVE_OWNER);
      CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.unsaved);
      int64_t used = end.facts.cpu_user_us + end.facts.cpu_system_us;
      CPPUNIT_ASSERT_MESSAGE(std::to_string(used), used >= 50'000);
      CPPUNIT_ASSERT(end.facts.quiesce_ns < 50'000 * kMs);
    });
  }

  void short_lived_children_spend_the_allowance_too() {
    each_way([](Rig& rig, bool cgroup) {
      AttemptOrder order = rig.order({"burn-in-children"});
      if (cgroup) rig.use_cgroups(&order);
      order.save_deadline_ms = 60'000;  // only the allowance can end it
      std::string folder = ready(rig, order);
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      AttemptExit end = rig.finish(folder);
      killed(end, SUBLET_LEAVE_OWNER);
      CPPUNIT_ASSERT(end.facts.quiesce_ns < 50'000 * kMs);
    });
  }

  // It must not be able to stop or kill the process that ends it, though that runs under
  // the same user id.
  void a_job_that_stops_everybody_stops_nobody() {
    if (skip_unless_root("a_job_that_stops_everybody_stops_nobody")) return;
    for (bool by_tenant : {false, true}) {
      Rig rig;
      AttemptOrder order = rig.order({"stop-everybody"});
      order.save_deadline_ms = 100;
      std::string folder = ready(rig, order), error;
      AttemptRecord record = rig.record(folder);
      if (by_tenant) {
        auto tenant = Tenant::open(folder, &error);
        CPPUNIT_ASSERT_MESSAGE(error, tenant != nullptr);
        for (int i = 0; i < 100 && !tenant->gone(); ++i) tenant->freeze();
        CPPUNIT_ASSERT(wait_until([&] {
          tenant->kill();
          return tenant->gone();
        }));
      } else {
        rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      }
      CPPUNIT_ASSERT_EQUAL(int64_t{SIGKILL}, rig.finish(folder).facts.code);
      CPPUNIT_ASSERT(!is_same_process(record.program));
    }
  }

  void vacate_by_the_client_keeps_the_full_deadline() {
    Rig rig;
    // Needs more CPU than an owner's eviction would allow.
    AttemptOrder order = rig.order({"aware", "100"});
    order.save_deadline_ms = 60'000;
    std::string folder = ready(rig, order);
    UniqueFd control = rig.ask(folder, rig.frame(order, SUBLET_FRAME_VACATE, SUBLET_LEAVE_PREEMPT));
    auto ack = rig.receive(control.get(), SUBLET_FRAME_ACK);
    CPPUNIT_ASSERT(ack && ack->sequence == 77 && ack->state == SUBLET_SHEPHERD_SAVING);
    CPPUNIT_ASSERT(rig.receive(control.get(), SUBLET_FRAME_ENDED));
    left(rig.finish(folder), SUBLET_LEAVE_PREEMPT);
  }

  void kill_saves_nothing() {
    Rig rig;
    AttemptOrder order = rig.order({"aware", "1"});
    std::string folder = ready(rig, order);
    rig.ask(folder, rig.frame(order, SUBLET_FRAME_KILL, SUBLET_LEAVE_REPLACED));
    AttemptExit end = rig.finish(folder);
    killed(end, SUBLET_LEAVE_REPLACED);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.generation);
  }

  void save_and_go_on() {
    Rig rig;
    AttemptOrder order = rig.order({"aware", "1"});
    order.save_deadline_ms = 60'000;  // the lease is about to end, but not in this test
    order.lease_ns = boot_now_ns() + (60'000 + sublet::protocol::kLeaseSaveSlackMs + 500) * kMs;
    std::string folder = ready(rig, order);
    auto status = [&] {
      UniqueFd control = rig.ask(folder, rig.frame(order, SUBLET_FRAME_QUERY));
      return rig.receive(control.get(), SUBLET_FRAME_STATUS);
    };
    CPPUNIT_ASSERT(wait_until([&] { return status()->arg[2] == 1; }));
    rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
    AttemptExit end = rig.finish(folder);
    left(end, SUBLET_LEAVE_OWNER);
    CPPUNIT_ASSERT_EQUAL(int64_t{2}, end.facts.generation);
  }

  void query_is_answered() {
    Rig rig;
    AttemptOrder order = rig.order({"aware", "1"});
    std::string folder = ready(rig, order);
    UniqueFd control = rig.ask(folder, rig.frame(order, SUBLET_FRAME_QUERY));
    auto status = rig.receive(control.get(), SUBLET_FRAME_STATUS);
    CPPUNIT_ASSERT(status && status->sequence == 77);
    CPPUNIT_ASSERT_EQUAL(uint32_t{SUBLET_SHEPHERD_RUNNING}, status->state);
    CPPUNIT_ASSERT(status->arg[1] > 0);
    CPPUNIT_ASSERT_EQUAL(int64_t{250000}, status->arg[3]);
  }

  void frames_for_another_attempt_are_ignored() {
    Rig rig;
    AttemptOrder order = rig.order({"aware", "1"});
    std::string folder = ready(rig, order);
    sublet_frame other = rig.frame(order, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED);
    other.attempt = 2;
    UniqueFd control = rig.ask(folder, other);
    sublet_frame strange = rig.frame(order, SUBLET_FRAME_KILL);
    strange.magic = 1;
    CPPUNIT_ASSERT(send(control.get(), &strange, sizeof strange, 0) > 0);
    CPPUNIT_ASSERT(send(control.get(), &other, sizeof other - 1, 0) > 0);
    sublet_frame query = rig.frame(order, SUBLET_FRAME_QUERY);
    CPPUNIT_ASSERT(send(control.get(), &query, sizeof query, 0) > 0);
    auto status = rig.receive(control.get(), SUBLET_FRAME_STATUS);
    CPPUNIT_ASSERT(status && status->state == SUBLET_SHEPHERD_RUNNING);
  }

  // Starts `order` with a lease that ends soon, but not before its program is ready; how long
  // that takes depends on the machine's load. Sets the lease's end in the order. Each try is
  // another job under another user id: a late one is killed with all processes of its user.
  static std::string ready_on_a_short_lease(Rig& rig, AttemptOrder* order, bool cgroup) {
    for (int64_t lease_ms = 500; lease_ms < 100'000; lease_ms *= 2) {
      if (cgroup) rig.use_cgroups(order);
      order->lease_ns = boot_now_ns() + lease_ms * kMs;
      std::string folder = rig.start(*order), ready = folder + "/work/ready";
      auto is_ready = [&] { return access(ready.c_str(), F_OK) == 0; };
      wait_until([&] { return is_ready() || boot_now_ns() > order->lease_ns; });
      if (is_ready()) return folder;
      order->job += 100;
      if (order->uid >= 0) order->uid = order->gid = order->uid + 7;
    }
    CPPUNIT_FAIL("a program cannot be started within 50 s");
    return "";
  }
  static std::optional<sublet_frame> frozen(Rig& rig, int control) {
    std::optional<sublet_frame> status;
    do status = rig.receive(control, SUBLET_FRAME_STATUS);
    while (status && status->state != SUBLET_SHEPHERD_FROZEN);
    return status;
  }

  void lease_freezes_and_renewal_thaws() {
    each_way([](Rig& rig, bool cgroup) {
      AttemptOrder order = rig.order({"aware", "1"});
      order.save_deadline_ms = 60'000;  // enough to save even on a busy machine
      std::string folder = ready_on_a_short_lease(rig, &order, cgroup);
      UniqueFd control = rig.ask(folder, rig.frame(order, SUBLET_FRAME_QUERY));
      CPPUNIT_ASSERT(frozen(rig, control.get()));
      CPPUNIT_ASSERT(boot_now_ns() >= order.lease_ns);
      sublet_frame lease = rig.frame(order, SUBLET_FRAME_LEASE);
      lease.instant = boot_now_ns() + 600'000 * kMs;
      CPPUNIT_ASSERT(send(control.get(), &lease, sizeof lease, 0) > 0);
      auto ack = rig.receive(control.get(), SUBLET_FRAME_ACK);
      CPPUNIT_ASSERT(ack && ack->state == SUBLET_SHEPHERD_RUNNING);
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      left(rig.finish(folder), SUBLET_LEAVE_OWNER);
    });
  }

  void patience_ends_a_frozen_job() {
    // Patience counts from the lease's end. A shepherd that got no CPU until patience had run
    // out, too, has frozen nothing: retry with more patience.
    int64_t frozen_ms = 0;
    for (int64_t patience_ms = 300; frozen_ms == 0 && patience_ms < 100'000; patience_ms *= 2) {
      Rig rig;
      AttemptOrder order = rig.order({"spin"});
      order.patience_ms = patience_ms;
      AttemptExit end = rig.finish(ready_on_a_short_lease(rig, &order, false));
      killed(end, SUBLET_LEAVE_LEASE);
      CPPUNIT_ASSERT(boot_now_ns() >= order.lease_ns + patience_ms * kMs);
      frozen_ms = end.facts.frozen_ms;
    }
    CPPUNIT_ASSERT(frozen_ms > 0);
  }

  void owner_ends_a_frozen_job() {
    each_way([](Rig& rig, bool cgroup) {
      AttemptOrder order = rig.order({"aware", "1"});
      std::string folder = ready_on_a_short_lease(rig, &order, cgroup);
      UniqueFd control = rig.ask(folder, rig.frame(order, SUBLET_FRAME_QUERY));
      CPPUNIT_ASSERT(frozen(rig, control.get()));
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      killed(rig.finish(folder), SUBLET_LEAVE_OWNER);
    });
  }

  void client_may_come_and_go() {
    Rig rig;
    AttemptOrder order = rig.order({"aware", "1"});
    std::string folder = ready(rig, order);
    std::vector<UniqueFd> all;
    for (int i = 0; i < 12; ++i) {
      all.push_back(rig.ask(folder, rig.frame(order, SUBLET_FRAME_QUERY)));
      CPPUNIT_ASSERT(rig.receive(all.back().get(), SUBLET_FRAME_STATUS));
    }
    all.clear();
    UniqueFd last = rig.ask(folder, rig.frame(order, SUBLET_FRAME_VACATE, SUBLET_LEAVE_DRAIN));
    CPPUNIT_ASSERT(rig.receive(last.get(), SUBLET_FRAME_ENDED));
    left(rig.finish(folder), SUBLET_LEAVE_DRAIN);
  }

  void who_saves_has_the_disk_like_others() {
    Rig rig;
    AttemptOrder order = rig.order({});
    order.program = "/bin/sh";
    order.arguments = {
        "sh", "-c", "trap 'ionice; exit' TERM; ionice; touch ready; while :; do sleep 0.1; done"};
    order.environment = {"PATH=/usr/bin:/bin"};
    order.save_deadline_ms = 60'000;
    const std::string folder = ready(rig, order);
    rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
    rig.finish(folder);
    const std::string said = rig.read(folder + "/stdout");
    CPPUNIT_ASSERT_MESSAGE(said, said.starts_with("idle\nnone"));
  }

  void daemons_go_with_the_evicted_job() {
    each_way([](Rig& rig, bool cgroup) {
      AttemptOrder order = rig.order({"daemons-and-wait", "10"});
      if (cgroup) rig.use_cgroups(&order);
      std::string folder = ready(rig, order);
      CPPUNIT_ASSERT_EQUAL(11, rig.processes_of(folder));
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      rig.finish(folder);
      CPPUNIT_ASSERT_EQUAL(0, rig.processes_of(folder));
    });
  }

  // Not only what its main program has used.
  void what_the_killed_have_used_is_counted() {
    each_way([](Rig& rig, bool cgroup) {
      AttemptOrder order = rig.order({});
      order.program = "/bin/sh";
      order.arguments = {"sh", "-c", "(while :; do :; done) & exec sleep 1000"};
      order.environment = {"PATH=/usr/bin:/bin"};
      if (cgroup) rig.use_cgroups(&order);
      const std::string folder = rig.start(order);
      int64_t used = 0;
      CPPUNIT_ASSERT(wait_until([&] {
        const UniqueFd control = rig.ask(folder, rig.frame(order, SUBLET_FRAME_QUERY));
        const auto status = rig.receive(control.get(), SUBLET_FRAME_STATUS);
        used = status ? status->arg[0] : 0;
        return used > 100'000;
      }));
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      const AttemptExit end = rig.finish(folder);
      CPPUNIT_ASSERT(end.facts.cpu_user_us + end.facts.cpu_system_us >= used);
    });
  }

  // By a guard, or because memory has run out.
  void who_is_killed_beside_the_owner_was_evicted() {
    for (const int64_t walls : {0, 1})
      for (const int64_t leaving : {SUBLET_LEAVING_SUSPEND, SUBLET_LEAVING_LINGER}) {
        Rig rig;
        AttemptOrder order = rig.order({"deaf"});
        order.walls = std::min(order.walls, walls);
        order.leaving = leaving;
        order.suspend_ms = 600'000;
        const std::string folder = ready(rig, order);
        rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
        const auto stays = leaving == SUBLET_LEAVING_SUSPEND ? SUBLET_SHEPHERD_SUSPENDED
                                                             : SUBLET_SHEPHERD_LINGERING;
        CPPUNIT_ASSERT(wait_until([&] {
          const UniqueFd control = rig.ask(folder, rig.frame(order, SUBLET_FRAME_QUERY));
          const auto status = rig.receive(control.get(), SUBLET_FRAME_STATUS);
          return status && status->state == stays;
        }));
        CPPUNIT_ASSERT(kill_process(rig.record(folder).program, SIGKILL));
        const AttemptExit end = rig.finish(folder);
        CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LEAVE_OWNER}, end.facts.reason);
        CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.killed);
      }
  }

  // The client's word comes while what the program has left dies.
  void who_had_ended_has_not_exceeded_the_disk() {
    for (const bool ended : {false, true}) {
      Rig rig;
      AttemptOrder order = rig.order({"deaf"});
      order.limit_disk = 5;
      const std::string folder = ready(rig, order);
      const sublet_frame first =
          rig.frame(order, SUBLET_FRAME_KILL, ended ? SUBLET_LEAVE_REMOVED : SUBLET_LEAVE_LIMIT);
      const sublet_frame second = rig.frame(order, SUBLET_FRAME_KILL, SUBLET_LEAVE_LIMIT);
      const UniqueFd control = rig.ask(folder, first);
      send(control.get(), &second, sizeof second, MSG_NOSIGNAL);  // it may have ended
      const AttemptExit end = rig.finish(folder);
      CPPUNIT_ASSERT_EQUAL(int64_t{ended ? SUBLET_LEAVE_REMOVED : SUBLET_LEAVE_LIMIT},
                           end.facts.reason);
      CPPUNIT_ASSERT_EQUAL(int64_t{ended ? SUBLET_LIMIT_NONE : SUBLET_LIMIT_DISK}, end.facts.limit);
      if (!ended) CPPUNIT_ASSERT_EQUAL(int64_t{5}, end.facts.bound);
    }
  }

  void nobody_outruns_the_kill() {
    if (geteuid() != 0 && skip_without_walls("nobody_outruns_the_kill")) return;
    for (const char* mode : {"run-away", "fork-bomb"}) {
      each_way([mode](Rig& rig, bool cgroup) {
        AttemptOrder order = rig.order({mode});
        if (cgroup) rig.use_cgroups(&order);
        order.limit_processes = 50;
        order.save_deadline_ms = 100;
        std::string folder = ready(rig, order);
        rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
        rig.finish(folder);
        CPPUNIT_ASSERT_EQUAL(0, rig.processes_of(folder));
      });
    }
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ShepherdLeaveTest);

}  // namespace
