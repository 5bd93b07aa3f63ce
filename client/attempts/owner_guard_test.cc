#include "client/attempts/owner_guard.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <functional>

#include "base/clock.h"
#include "base/process.h"
#include "base/testing/temporary_folder.h"

namespace sublet::client {
namespace {

constexpr int64_t kMs = 1'000'000;

constexpr OwnersPresence kTyping = {SUBLET_PRESENCE_ACTIVE, SUBLET_PRESENCE_INPUT};

sublet_frame answer(uint32_t sequence, sublet_shepherd_state state = SUBLET_SHEPHERD_SAVING) {
  sublet_frame frame = {};
  frame.sequence = sequence;
  frame.state = state;
  return frame;
}

// A sleeping process, killed by the destructor.
struct Sleeper {
  Sleeper() {
    SpawnOptions options;
    options.new_session = true;
    process = spawn({"/bin/sleep", "1000"}, {}, options);
  }
  ~Sleeper() { end(); }
  void end() {
    if (process.id.pid == 0) return;
    kill(process.id.pid, SIGKILL);
    waitpid(process.id.pid, nullptr, 0);
    process.id.pid = 0;
  }
  char state() const {
    std::ifstream file("/proc/" + std::to_string(process.id.pid) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    return text.empty() ? 'X' : text[text.rfind(')') + 2];
  }
  SpawnedProcess process;
};

class OwnerGuardTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(OwnerGuardTest);
  CPPUNIT_TEST(only_the_owner_cannot_wait);
  CPPUNIT_TEST(what_is_due_waits_for_its_tenant);
  CPPUNIT_TEST(what_it_has_seen);
  CPPUNIT_TEST(what_the_monitor_has_killed);
  CPPUNIT_TEST(the_owner_replaces_other_causes);
  CPPUNIT_TEST(what_was_seen_of_who_stays);
  CPPUNIT_TEST(a_late_answer_thaws);
  CPPUNIT_TEST(who_stays_is_asked_again_when_it_may_not);
  CPPUNIT_TEST(strictly_before_it_has_answered);
  CPPUNIT_TEST(an_answer_after_the_owner_has_gone);
  CPPUNIT_TEST(strictly_after_another_order);
  CPPUNIT_TEST(an_earlier_answer_ends_no_deadline);
  CPPUNIT_TEST(who_leaves_by_itself_has_a_deadline);
  CPPUNIT_TEST(a_suspended_job_is_not_thawed);
  CPPUNIT_TEST(a_shepherd_stopped_after_its_answer);
  CPPUNIT_TEST(an_ended_job_keeps_its_shepherd);
  CPPUNIT_TEST(a_stopped_shepherd_without_a_job_goes);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  OwnerGuard guard_;
  Tenancy* tenancy_ = nullptr;
  UniqueFd shepherd_end_;

 public:
  void setUp() override {
    tenancy_ = guard_.add({7, 1}, 500);
    int ends[2];
    CPPUNIT_ASSERT_EQUAL(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    tenancy_->control.reset(ends[0]);
    shepherd_end_.reset(ends[1]);
  }

 private:
  std::shared_ptr<Tenant> tenant(const Sleeper& program, const Sleeper& shepherd) {
    AttemptRecord record;
    record.job = 7;
    record.attempt = 1;
    record.boot_id = boot_id();
    record.program = program.process.id;
    record.shepherd = shepherd.process.id;
    record.session = program.process.id.pid;
    record.started_ns = system_clock().boot_ns();
    system_files().write_atomic(folder_ / "record", print_record(record));
    std::string error;
    auto tenant = Tenant::open(folder_.path(), &error);
    CPPUNIT_ASSERT_EQUAL(std::string(""), error);
    return tenant;
  }
  static bool comes(const std::function<bool()>& condition) {
    int64_t end = system_clock().boot_ns() + 30'000 * kMs;
    while (system_clock().boot_ns() < end)
      if (condition()) return true;
    return false;
  }

  void only_the_owner_cannot_wait() {
    for (auto reason : {SUBLET_LEAVE_PREEMPT, SUBLET_LEAVE_HELD, SUBLET_LEAVE_DRAIN,
                        SUBLET_LEAVE_ADMINISTRATOR}) {
      guard_.urge(*tenancy_, SUBLET_FRAME_VACATE, reason, 1000 * kMs);
      CPPUNIT_ASSERT_EQUAL(kNever, tenancy_->ack_due_ns);
      CPPUNIT_ASSERT_EQUAL(1700 * kMs, tenancy_->kill_due_ns);
    }
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 1100 * kMs);
    CPPUNIT_ASSERT_EQUAL(int64_t{1100 * kMs + SUBLET_SHEPHERD_ACK_NS}, tenancy_->ack_due_ns);
    guard_.acknowledged(*tenancy_, answer(tenancy_->asked - 1));  // of an earlier frame
    CPPUNIT_ASSERT(tenancy_->ack_due_ns != kNever);
    guard_.acknowledged(*tenancy_, answer(tenancy_->asked));
    CPPUNIT_ASSERT_EQUAL(kNever, tenancy_->ack_due_ns);
    guard_.urge(*tenancy_, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED, 1200 * kMs);
    CPPUNIT_ASSERT(tenancy_->ack_due_ns != kNever);
  }

  void what_is_due_waits_for_its_tenant() {
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 0);
    CPPUNIT_ASSERT(!guard_.tick(400 * kMs));
    CPPUNIT_ASSERT_EQUAL(kNever, guard_.next_due());  // nothing can be enforced yet
    Sleeper program, shepherd;
    tenancy_->tenant = tenant(program, shepherd);
    CPPUNIT_ASSERT(guard_.next_due() <= 400 * kMs);
    CPPUNIT_ASSERT(guard_.tick(400 * kMs));
    CPPUNIT_ASSERT(comes([&] { return program.state() == 'T'; }));
    CPPUNIT_ASSERT(guard_.tick(800 * kMs));
    CPPUNIT_ASSERT(comes([&] { return program.state() == 'Z'; }));
  }

  void what_it_has_seen() {
    Sleeper program, shepherd;
    tenancy_->tenant = tenant(program, shepherd);
    OwnersPresence typing = kTyping;
    typing.instant = 90 * kMs;
    guard_.evict(SUBLET_LEAVE_OWNER, typing, 100 * kMs);
    guard_.urge(*tenancy_, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED,
                200 * kMs);  // the same eviction
    guard_.tick(450 * kMs);
    SeenEviction seen = {.sensed = 90 * kMs, .frozen = 450 * kMs, .reason = SUBLET_PRESENCE_INPUT};
    CPPUNIT_ASSERT(seen == tenancy_->seen);
    guard_.tick(900 * kMs);
    CPPUNIT_ASSERT(comes([&] { return program.state() == 'Z'; }));
    program.end();
    guard_.tick(920 * kMs);
    guard_.tick(1500 * kMs);
    seen.gone = 920 * kMs;
    CPPUNIT_ASSERT(seen == tenancy_->seen);
  }

  void what_the_monitor_has_killed() {
    Sleeper program, shepherd;
    tenancy_->tenant = tenant(program, shepherd);
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 100 * kMs);
    CPPUNIT_ASSERT(guard_.tick(450 * kMs));
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, tenancy_->seen.gone);
    program.end();
    CPPUNIT_ASSERT(!guard_.tick(700 * kMs));
    CPPUNIT_ASSERT_EQUAL(700 * kMs, tenancy_->seen.gone);
    guard_.tick(1500 * kMs);
    CPPUNIT_ASSERT_EQUAL(700 * kMs, tenancy_->seen.gone);
    // Nothing that comes later changes what was seen of its end.
    shepherd.end();
    guard_.tick(3000 * kMs);
    CPPUNIT_ASSERT_EQUAL(kNever, tenancy_->kill_due_ns);
    guard_.evict(SUBLET_LEAVE_OWNER, {SUBLET_PRESENCE_ACTIVE, SUBLET_PRESENCE_PAUSED}, 3000 * kMs);
    CPPUNIT_ASSERT((SeenEviction{.sensed = 100 * kMs,
                                 .frozen = 450 * kMs,
                                 .gone = 700 * kMs,
                                 .reason = SUBLET_PRESENCE_INPUT}) == tenancy_->seen);
  }

  void the_owner_replaces_other_causes() {
    OwnersPresence typing = kTyping;
    typing.instant = 290 * kMs;
    const SeenEviction owner = {.sensed = 290 * kMs, .reason = SUBLET_PRESENCE_INPUT};
    guard_.urge(*tenancy_, SUBLET_FRAME_VACATE, SUBLET_LEAVE_PREEMPT, 100 * kMs);
    guard_.evict(SUBLET_LEAVE_OWNER, typing, 300 * kMs);
    CPPUNIT_ASSERT(owner == tenancy_->seen);
    // The monitor told its shepherd first.
    Tenancy* other = guard_.add({8, 1}, 500);
    guard_.leaves(*other, 295 * kMs);
    guard_.urge(*other, SUBLET_FRAME_VACATE, SUBLET_LEAVE_OWNER, 300 * kMs, typing);
    CPPUNIT_ASSERT(owner == other->seen);
    // The owner has been here for long, and this one is found only now.
    Tenancy* third = guard_.add({9, 1}, 500);
    guard_.urge(*third, SUBLET_FRAME_VACATE, SUBLET_LEAVE_OWNER, 90'000 * kMs, typing);
    CPPUNIT_ASSERT_EQUAL(90'000 * kMs, third->seen.sensed);
  }

  void what_was_seen_of_who_stays() {
    guard_.urge(*tenancy_, SUBLET_FRAME_VACATE, SUBLET_LEAVE_PREEMPT, 100 * kMs, kTyping);
    CPPUNIT_ASSERT(SeenEviction{.sensed = 100 * kMs} == tenancy_->seen);
    tenancy_->kill_due_ns = kNever;
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 200 * kMs);
    guard_.acknowledged(*tenancy_, answer(tenancy_->asked, SUBLET_SHEPHERD_SUSPENDED));
    CPPUNIT_ASSERT(SeenEviction() == tenancy_->seen);
    guard_.leaves(*tenancy_, 900 * kMs);
    CPPUNIT_ASSERT(SeenEviction{.sensed = 900 * kMs} == tenancy_->seen);
  }

  void a_late_answer_thaws() {
    Sleeper program, shepherd;
    tenancy_->tenant = tenant(program, shepherd);
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 0);
    CPPUNIT_ASSERT(guard_.tick(400 * kMs));
    CPPUNIT_ASSERT(comes([&] { return program.state() == 'T'; }));
    guard_.acknowledged(*tenancy_, answer(tenancy_->asked));
    CPPUNIT_ASSERT(comes([&] { return program.state() == 'S'; }));
    CPPUNIT_ASSERT(!tenancy_->frozen);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, tenancy_->seen.frozen);
  }

  sublet_frame read_frame() {
    sublet_frame frame = {};
    CPPUNIT_ASSERT_EQUAL(ssize_t{sizeof frame}, recv(shepherd_end_.get(), &frame, sizeof frame, 0));
    return frame;
  }
  bool nothing_to_read() {
    char byte;
    return recv(shepherd_end_.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
  }

  void who_stays_is_asked_again_when_it_may_not() {
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 0);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_PRESENCE_INPUT}, read_frame().arg[1]);
    guard_.acknowledged(*tenancy_, answer(tenancy_->asked, SUBLET_SHEPHERD_SUSPENDED));
    CPPUNIT_ASSERT(tenancy_->stays);
    CPPUNIT_ASSERT_EQUAL(kNever, tenancy_->kill_due_ns);
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 500 * kMs);
    CPPUNIT_ASSERT(nothing_to_read());
    guard_.evict(SUBLET_LEAVE_OWNER, {SUBLET_PRESENCE_ACTIVE, SUBLET_PRESENCE_PAUSED}, 900 * kMs);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_PRESENCE_PAUSED}, read_frame().arg[1]);
    CPPUNIT_ASSERT_EQUAL(1600 * kMs, tenancy_->kill_due_ns);
    guard_.owner_away();  // it must leave nevertheless
    CPPUNIT_ASSERT_EQUAL(1600 * kMs, tenancy_->kill_due_ns);
  }

  void strictly_before_it_has_answered() {
    tenancy_->can_stay = true;
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 0);
    CPPUNIT_ASSERT(tenancy_->is_undecided());
    const uint32_t first = tenancy_->asked;
    guard_.evict(SUBLET_LEAVE_OWNER, {SUBLET_PRESENCE_ACTIVE, SUBLET_PRESENCE_PAUSED}, 100 * kMs);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_PRESENCE_INPUT}, read_frame().arg[1]);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_PRESENCE_PAUSED}, read_frame().arg[1]);
    CPPUNIT_ASSERT(!tenancy_->is_undecided());
    guard_.acknowledged(*tenancy_, answer(first, SUBLET_SHEPHERD_SUSPENDED));
    CPPUNIT_ASSERT(!tenancy_->stays);
    CPPUNIT_ASSERT_EQUAL(700 * kMs, tenancy_->kill_due_ns);
  }

  void an_answer_after_the_owner_has_gone() {
    tenancy_->can_stay = true;
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 0);
    guard_.owner_away();
    CPPUNIT_ASSERT(tenancy_->kill_due_ns != kNever);  // in case that none comes
    CPPUNIT_ASSERT(tenancy_->is_undecided());
    guard_.acknowledged(*tenancy_, answer(tenancy_->asked, SUBLET_SHEPHERD_SUSPENDED));
    CPPUNIT_ASSERT(!tenancy_->stays && !tenancy_->is_undecided());
    CPPUNIT_ASSERT_EQUAL(kNever, tenancy_->kill_due_ns);
    read_frame();
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 5000 * kMs);  // the owner is back again
    read_frame();
    CPPUNIT_ASSERT(tenancy_->kill_due_ns != kNever);
    // One that has to leave leaves, whether or not the owner is still here.
    guard_.acknowledged(*tenancy_, answer(tenancy_->asked));
    guard_.owner_away();
    CPPUNIT_ASSERT_EQUAL(5700 * kMs, tenancy_->kill_due_ns);
  }

  // Whoever else asked it to leave: the owner waits for no answer.
  void strictly_after_another_order() {
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 0);
    guard_.acknowledged(*tenancy_, answer(tenancy_->asked, SUBLET_SHEPHERD_LINGERING));
    guard_.urge(*tenancy_, SUBLET_FRAME_VACATE, SUBLET_LEAVE_DRAIN, 1000 * kMs);
    CPPUNIT_ASSERT_EQUAL(kNever, tenancy_->ack_due_ns);
    guard_.evict(SUBLET_LEAVE_BLIND, {SUBLET_PRESENCE_ACTIVE, SUBLET_PRESENCE_BLIND}, 1100 * kMs);
    CPPUNIT_ASSERT_EQUAL(int64_t{1100 * kMs + SUBLET_SHEPHERD_ACK_NS}, tenancy_->ack_due_ns);
  }

  void an_earlier_answer_ends_no_deadline() {
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 0);
    const uint32_t first = tenancy_->asked;
    guard_.urge(*tenancy_, SUBLET_FRAME_VACATE, SUBLET_LEAVE_PREEMPT, 100 * kMs);
    guard_.acknowledged(*tenancy_, answer(first, SUBLET_SHEPHERD_SUSPENDED));
    guard_.acknowledged(*tenancy_, answer(first + 1));
    CPPUNIT_ASSERT_EQUAL(700 * kMs, tenancy_->kill_due_ns);
  }

  void who_leaves_by_itself_has_a_deadline() {
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 0);
    guard_.acknowledged(*tenancy_, answer(tenancy_->asked, SUBLET_SHEPHERD_SUSPENDED));
    CPPUNIT_ASSERT_EQUAL(kNever, tenancy_->kill_due_ns);
    guard_.leaves(*tenancy_, 60'000 * kMs);
    CPPUNIT_ASSERT(!tenancy_->stays);
    CPPUNIT_ASSERT_EQUAL(60'700 * kMs, tenancy_->kill_due_ns);
  }

  void a_suspended_job_is_not_thawed() {
    Sleeper program, shepherd;
    tenancy_->tenant = tenant(program, shepherd);
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 0);
    CPPUNIT_ASSERT(guard_.tick(400 * kMs));
    CPPUNIT_ASSERT(comes([&] { return program.state() == 'T'; }));
    guard_.acknowledged(*tenancy_, answer(tenancy_->asked, SUBLET_SHEPHERD_SUSPENDED));
    for (int64_t at = 700; at < 10'000; at += 300) guard_.tick(at * kMs);
    CPPUNIT_ASSERT_EQUAL('T', program.state());
    guard_.owner_away();
    CPPUNIT_ASSERT_EQUAL(kNever, guard_.next_due());
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 20'000 * kMs);
    CPPUNIT_ASSERT(guard_.next_due() != kNever);
  }

  void a_shepherd_stopped_after_its_answer() {
    Sleeper program, shepherd;
    tenancy_->tenant = tenant(program, shepherd);
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 0);
    guard_.acknowledged(*tenancy_, answer(tenancy_->asked));
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_SHEPHERD_ACK_NS}, guard_.next_due());
    CPPUNIT_ASSERT(!guard_.tick(300 * kMs));
    CPPUNIT_ASSERT(comes([&] { return program.state() == 'S'; }));  // it runs at first
    kill(shepherd.process.id.pid, SIGSTOP);
    CPPUNIT_ASSERT(comes([&] { return shepherd.state() == 'T'; }));
    CPPUNIT_ASSERT(guard_.next_due() <= 600 * kMs);
    CPPUNIT_ASSERT(guard_.tick(600 * kMs));
    CPPUNIT_ASSERT(comes([&] { return program.state() == 'T'; }));
    // It continues and answers the frame sent to it meanwhile.
    guard_.acknowledged(*tenancy_, answer(tenancy_->asked - 1));
    CPPUNIT_ASSERT(tenancy_->frozen);
    kill(shepherd.process.id.pid, SIGCONT);
    guard_.acknowledged(*tenancy_, answer(tenancy_->asked));
    CPPUNIT_ASSERT(comes([&] { return program.state() == 'S'; }));
    guard_.tick(700 * kMs);
    CPPUNIT_ASSERT(comes([&] { return program.state() == 'Z'; }));
  }

  void an_ended_job_keeps_its_shepherd() {
    Sleeper program, shepherd;
    tenancy_->tenant = tenant(program, shepherd);
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 0);
    guard_.acknowledged(*tenancy_, answer(tenancy_->asked));
    program.end();
    for (int64_t at = 10'000; at < 20'000; at += 500) CPPUNIT_ASSERT(!guard_.tick(at * kMs));
    CPPUNIT_ASSERT(!tenancy_->killed);
    CPPUNIT_ASSERT_EQUAL('S', shepherd.state());
    shepherd.end();
    guard_.tick(20'000 * kMs);
    CPPUNIT_ASSERT_EQUAL(kNever, guard_.next_due());
  }

  void a_stopped_shepherd_without_a_job_goes() {
    Sleeper program, shepherd;
    tenancy_->tenant = tenant(program, shepherd);
    program.end();
    kill(shepherd.process.id.pid, SIGSTOP);
    CPPUNIT_ASSERT(comes([&] { return shepherd.state() == 'T'; }));
    guard_.evict(SUBLET_LEAVE_OWNER, kTyping, 0);
    guard_.tick(10'000 * kMs);
    CPPUNIT_ASSERT(comes([&] { return shepherd.state() == 'Z'; }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(OwnerGuardTest);

}  // namespace
}  // namespace sublet::client
