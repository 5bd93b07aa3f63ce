#include "protocol/lease.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <random>
#include <string>
#include <vector>

using namespace sublet::protocol;

namespace {

constexpr int64_t kMs = kNsPerMs;

// A pool of machines that want one job, a server that may give it to one at a
// time, and a network that delays and loses as it likes. True time moves in
// random steps; every clock has a rate of its own.
class Pool {
 public:
  Pool(uint64_t seed, const LeaseTerms& terms) : terms_(terms), random_(seed) {
    for (int i = 0; i < 3; ++i) machines_.push_back({LeaseKeeper(terms), rate(), 0, 0, 0, false});
    server_rate_ = rate();
    loss_ = pick(0, 90);
    slow_ms_ = pick(0, 1) ? 1 : pick(1, 4 * terms.lease_ms);
  }

  // The largest number of machines able to run the job at one instant.
  int run(int steps) {
    int worst = 0;
    for (int i = 0; i < steps; ++i) {
      // Mostly small steps, so that events can follow each other closely.
      true_ns_ += pick(1, pick(0, 7) ? terms_.lease_ms / 100 : terms_.lease_ms / 8) * kMs;
      deliver();
      act_as_server();
      for (size_t m = 0; m < machines_.size(); ++m) act_as_machine(m);
      worst = std::max(worst, running());
    }
    return worst;
  }
  int handovers() const { return handovers_; }

 private:
  struct Machine {
    LeaseKeeper keeper;
    double rate;
    int attempt;  // 0: has none
    int fence;    // accepts no attempt up to this one
    int taken;    // the server's: the newest attempt taken from it
    bool partition;
  };
  struct Message {
    int64_t arrives_ns;
    size_t machine;
    bool to_server;
    bool start;
    uint64_t number;
    int attempt;
  };

  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  double rate() { return 1 + std::uniform_real_distribution<double>(-0.005, 0.005)(random_); }
  int64_t clock(double rate) const { return static_cast<int64_t>(true_ns_ * rate); }

  void send(Message message) {
    if (machines_[message.machine].partition || pick(1, 100) <= loss_) return;
    message.arrives_ns = true_ns_ + pick(0, slow_ms_) * kMs;
    under_way_.push_back(message);
  }

  void deliver() {
    for (size_t i = 0; i < under_way_.size();) {
      if (under_way_[i].arrives_ns > true_ns_) {
        ++i;
        continue;
      }
      Message message = under_way_[i];
      under_way_.erase(under_way_.begin() + static_cast<long>(i));
      if (message.to_server)
        at_server(message);
      else
        at_machine(message);
    }
  }

  void at_server(const Message& message) {
    bool owner = static_cast<int>(message.machine) == owner_;
    bool stale = message.attempt != 0 && !(owner && message.attempt == attempt_);
    // A machine's renewal also keeps the attempt the server believes is there.
    if (owner && !stale) heard_ns_ = clock(server_rate_);
    // Number 0 is no acknowledgement: a refusal, which also carries the fence.
    send({0, message.machine, false, false, stale ? 0 : message.number,
          machines_[message.machine].taken});
    if (!stale) reachable_ = static_cast<int>(message.machine);
  }

  void at_machine(const Message& message) {
    Machine& machine = machines_[message.machine];
    int64_t now = clock(machine.rate);
    if (message.start) {
      if (machine.keeper.holds(now) && message.attempt > machine.fence)
        machine.attempt = message.attempt;
      return;
    }
    machine.fence = std::max(machine.fence, message.attempt);
    if (machine.attempt <= machine.fence) machine.attempt = 0;
    machine.keeper.acknowledged(message.number);
  }

  void act_as_server() {
    int64_t now = clock(server_rate_);
    if (pick(1, 200) == 1) heard_ns_ = now;  // restart: what was heard before is forgotten
    bool free = owner_ < 0 || now >= heard_ns_ + reassign_delay_ns(terms_);
    if (!free || reachable_ < 0) return;
    if (owner_ >= 0) {
      ++handovers_;
      machines_[static_cast<size_t>(owner_)].taken = attempt_;
    }
    owner_ = reachable_;
    reachable_ = -1;
    heard_ns_ = now;
    send({0, static_cast<size_t>(owner_), false, true, 0, ++attempt_});
  }

  void act_as_machine(size_t m) {
    Machine& machine = machines_[m];
    if (pick(1, 60) == 1) machine.partition = !machine.partition;
    int64_t now = clock(machine.rate);
    if (now < machine.keeper.next_renewal_ns()) return;
    send({0, m, true, false, machine.keeper.sent(now), machine.attempt});
  }

  int running() const {
    int count = 0;
    for (const Machine& machine : machines_)
      count += machine.attempt != 0 && machine.keeper.holds(clock(machine.rate));
    return count;
  }

  LeaseTerms terms_;
  std::mt19937_64 random_;
  std::vector<Machine> machines_;
  std::vector<Message> under_way_;
  int64_t true_ns_ = 1000 * kMs;
  double server_rate_;
  int64_t loss_, slow_ms_;
  int owner_ = -1, reachable_ = -1, attempt_ = 0, handovers_ = 0;
  int64_t heard_ns_ = 0;
};

class LeaseTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(LeaseTest);
  CPPUNIT_TEST(instants_of_the_default_terms);
  CPPUNIT_TEST(keeper_counts_from_the_sending);
  CPPUNIT_TEST(keeper_ignores_old_and_unknown_numbers);
  CPPUNIT_TEST(server_waits_longer_than_any_client);
  CPPUNIT_TEST(extreme_instants_do_not_wrap);
  CPPUNIT_TEST(never_two_machines_at_once);
  CPPUNIT_TEST_SUITE_END();

  void instants_of_the_default_terms() {
    LeaseTerms terms;
    CPPUNIT_ASSERT_EQUAL(10'000 * kMs, renew_at(terms, 0));
    CPPUNIT_ASSERT_EQUAL(30'000 * kMs, lease_end(terms, 0));
    CPPUNIT_ASSERT_EQUAL(27'000 * kMs, lease_save_at(terms.save_deadline_ms, lease_end(terms, 0)));
    CPPUNIT_ASSERT_EQUAL(3'630'000 * kMs, lease_give_up_at(terms.patience_ms, 30'000 * kMs));
    CPPUNIT_ASSERT_EQUAL(32'300 * kMs, reassign_delay_ns(terms));
  }

  void keeper_counts_from_the_sending() {
    LeaseKeeper keeper{LeaseTerms{}};
    CPPUNIT_ASSERT(!keeper.holds(0));
    uint64_t first = keeper.sent(100 * kMs);
    uint64_t second = keeper.sent(10'100 * kMs);
    CPPUNIT_ASSERT(!keeper.holds(200 * kMs));
    CPPUNIT_ASSERT(keeper.acknowledged(second));
    CPPUNIT_ASSERT_EQUAL(40'100 * kMs, keeper.end_ns());
    CPPUNIT_ASSERT(!keeper.acknowledged(first));
    CPPUNIT_ASSERT_EQUAL(40'100 * kMs, keeper.end_ns());
    CPPUNIT_ASSERT(keeper.holds(40'100 * kMs - 1));
    CPPUNIT_ASSERT(!keeper.holds(40'100 * kMs));
  }

  void keeper_ignores_old_and_unknown_numbers() {
    LeaseKeeper keeper{LeaseTerms{}};
    CPPUNIT_ASSERT(!keeper.acknowledged(0));
    CPPUNIT_ASSERT(!keeper.acknowledged(1));
    uint64_t first = keeper.sent(0);
    for (int i = 1; i < 9; ++i) keeper.sent(i * 1000 * kMs);
    CPPUNIT_ASSERT(!keeper.acknowledged(first));
    CPPUNIT_ASSERT(!keeper.acknowledged(10));
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, keeper.end_ns());
  }

  void server_waits_longer_than_any_client() {
    CPPUNIT_ASSERT(rc::check([] {
      LeaseTerms terms;
      terms.lease_ms = *rc::gen::inRange<int64_t>(1000, 3'600'000);
      double client = *rc::gen::inRange(99500, 100501) / 1e5;
      double server = *rc::gen::inRange(99500, 100501) / 1e5;
      int64_t sent = *rc::gen::inRange<int64_t>(0, 1ll << 50);
      double frozen_after = static_cast<double>(lease_end(terms, sent) - sent) / client;
      double given_after = static_cast<double>(reassign_delay_ns(terms)) / server;
      // What is left of the 2 s for a late freeze.
      RC_ASSERT(given_after - frozen_after > 1.7e9);
    }));
  }

  void extreme_instants_do_not_wrap() {
    CPPUNIT_ASSERT_EQUAL(INT64_MAX, lease_give_up_at(3'600'000, INT64_MAX - 5));
    CPPUNIT_ASSERT_EQUAL(INT64_MIN, lease_save_at(2000, INT64_MIN + 5));
    CPPUNIT_ASSERT_EQUAL(INT64_MAX, lease_give_up_at(INT64_MAX, 1));
  }

  void never_two_machines_at_once() {
    int handovers = 0;
    CPPUNIT_ASSERT(rc::check([&handovers](uint64_t seed) {
      LeaseTerms terms;
      terms.lease_ms = *rc::gen::element<int64_t>(3'000, 30'000, 300'000);
      Pool pool(seed, terms);
      int worst = pool.run(4000);
      handovers += pool.handovers();
      RC_ASSERT(worst <= 1);
    }));
    CPPUNIT_ASSERT_MESSAGE("the simulation never handed a job over", handovers > 100);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(LeaseTest);

}  // namespace
