// Tests the proof of protocol/lease.h by simulation: the real brain, with workstations,
// a dispatcher and a network that behave as the proof assumes, each with its own clock,
// against true time. Messages are delayed and lost, clients and server are restarted,
// machines register again at any moment and withdraw, disks are slow, jobs are held and
// removed, the store loses rows. Two attempts of one job must never run at the same
// instant.
#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>

#include "protocol/lease.h"
#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using protocol::ServerClock;
using testing::kSecond;
using testing::kStart;

constexpr Micros kMs = 1000;
constexpr Micros kCallTimeout = 5 * kSecond;
constexpr int64_t kBootNs = int64_t{1} << 50;
constexpr size_t kMachines = 3;

class World {
 public:
  World(uint64_t seed, Micros lease) : random_(seed), lease_(lease) {
    parameters_.lease = lease;
    pool_ = std::make_unique<Pool>(parameters_);
    server_rate_ = rate();
    lost_ = one_in(2) ? 0 : pick(0, 40);
    slowest_ = one_in(2) ? 50 * kMs : pick(kSecond, 2 * lease);
    slowest_write_ = one_in(2) ? 20 * kMs : pick(kSecond, lease);
    apply(BatchOpened());
    for (Workstation& w : stations_) w.rate = rate();
  }

  // False: two attempts of one job ran at the same instant.
  bool run(int steps) {
    for (int i = 0; i < steps; ++i) {
      advance();
      deliver();
      if (up_) act_as_server();
      for (size_t m = 0; m < kMachines; ++m) act_as_client(m);
      if (!one_attempt_of_each()) return false;
    }
    return true;
  }
  std::map<EndReason, int> ends;  // of attempts, as recorded by the brain
  int started = 0;

 private:
  struct Held {
    Micros written_at = 0;  // true time at which the order is on disk or the write fails
    bool written = false;
    bool ended = false;
    int64_t lease_end_ns = 0;
    uint64_t call = 0;  // to be answered
  };
  // A workstation, and the server's data about it.
  struct Workstation {
    double rate = 1;
    MachineId id = 0;
    uint64_t session = 0;  // as the client knows it; 0: none
    bool attached = false;
    ServerClock clock;
    std::map<AttemptKey, Held> held;
    uint64_t waits_for = 0;  // the call that the client is waiting for
    Micros until = 0;        // true time
    Micros next_renewal = 0;
    Micros cut_off_until = 0;

    uint64_t registered = 0;  // the server's newest session
    bool renewed = false;     // its first renewal is done
    uint64_t reached_by = 0;  // the session that was attached; 0: none
    std::deque<StartAttempt> orders;
    uint64_t call = 0;  // the order under way
    StartAttempt called_for;
    Micros call_until = 0;
  };

  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool one_in(int64_t many) { return pick(1, many) == 1; }
  double rate() {
    return one_in(2) ? 1 + 0.005 * static_cast<double>(pick(0, 1) * 2 - 1)
                     : 1 + static_cast<double>(pick(-5000, 5000)) / 1e6;
  }

  // ---- time ----
  int64_t client_ns(const Workstation& w) const {
    return kBootNs + static_cast<int64_t>(static_cast<double>(true_ * 1000) * w.rate);
  }
  Micros server_now() const {
    return server_base_ +
           static_cast<Micros>(static_cast<double>(true_ - server_since_) * server_rate_);
  }
  void advance() {
    Micros next = true_ + pick(1, one_in(4) ? lease_ / 10 : 50 * kMs);
    if (!messages_.empty()) next = std::min(next, messages_.begin()->first);
    const auto deadline = pool_->next_deadline();
    if (up_ && deadline && *deadline > server_now())
      next = std::min(next, true_ + std::max<Micros>((*deadline - server_now()) * 99 / 100, 1));
    true_ = std::max(next, true_ + 1);
  }

  // ---- the network ----
  void send(const Workstation& w, std::function<void()> act) {
    if (true_ < w.cut_off_until || pick(1, 100) <= lost_) return;
    messages_.emplace(true_ + (one_in(8) ? pick(1, slowest_) : pick(1, 2 * kMs)), std::move(act));
  }
  void deliver() {
    while (!messages_.empty() && messages_.begin()->first <= true_) {
      const auto act = std::move(messages_.begin()->second);
      messages_.erase(messages_.begin());
      act();
    }
  }
  void to_server(size_t m, std::function<void()> act) {
    send(stations_[m], [this, act = std::move(act)] {
      if (up_) act();
    });
  }
  // A call by the client; `reply` has an effect only while the client is waiting.
  uint64_t call(Workstation& w) {
    w.until = true_ + kCallTimeout;
    return w.waits_for = ++last_call_;
  }
  void reply(size_t m, uint64_t call, std::function<void(Workstation&)> act) {
    send(stations_[m], [this, m, call, act = std::move(act)] {
      Workstation& w = stations_[m];
      if (w.waits_for != call) return;
      w.waits_for = 0;
      act(w);
    });
  }

  // ---- the server ----
  Outcome apply(const Event& event) {
    Outcome outcome = pool_->apply(event, server_now());
    books_.write(outcome);
    for (const Record& record : outcome.records)
      if (const auto* use = std::get_if<UseRecord>(&record)) ++ends[use->ended];
    for (const Decision& decision : outcome.decisions)
      if (const auto* start = std::get_if<StartAttempt>(&decision))
        station(start->machine).orders.push_back(*start);
    return outcome;
  }
  Workstation& station(MachineId id) {
    return *std::ranges::find_if(stations_, [&](const Workstation& w) { return w.id == id; });
  }
  void answer(const AttemptKey& key, OrderAnswered::Answer answer) {
    apply(OrderAnswered{key, answer, ""});
  }

  void act_as_server() {
    const auto deadline = pool_->next_deadline();
    if (deadline && *deadline <= server_now()) apply(TimePassed());
    if (one_in(1000)) return restart();
    if (pool_->waiting() == 0 && one_in(4)) apply(Submitted{1, "ann", "desk", {{}}});
    if (one_in(150)) control();
    for (size_t m = 0; m < kMachines; ++m) dispatch(m);
  }
  void control() {
    const JobId job = static_cast<JobId>(pick(1, static_cast<int64_t>(books_.pool.next_job)));
    if (one_in(3)) {
      apply(JobsRemoved{{job}});
    } else if (one_in(2)) {
      apply(JobsHeld{{job}});
    } else {
      apply(JobsReleased{{JobRange(1, books_.pool.next_job)}});
    }
  }
  // Its clock stands still while it is down. Sometimes the store has lost a row.
  void restart() {
    server_base_ = server_now();
    server_since_ = true_ + pick(0, one_in(4) ? 2 * lease_ : kSecond);
    Snapshot snapshot = books_.snapshot();
    if (one_in(3)) {
      std::erase_if(snapshot.attempts, [&](const AttemptRecord& row) {
        const bool lost = row.state != AttemptState::kEnded && one_in(2);
        if (lost) books_.attempts.erase(row.key);
        return lost;
      });
    }
    pool_ = std::make_unique<Pool>(parameters_);
    pool_->restore(std::move(snapshot));
    for (Workstation& w : stations_) {
      w.registered = w.reached_by = w.call = 0;
      w.orders.clear();
    }
    up_ = false;
    messages_.emplace(server_since_, [this] {
      up_ = true;
      apply(ServerStarted());
    });
  }
  // One call to a workstation at a time.
  void dispatch(size_t m) {
    Workstation& w = stations_[m];
    if (w.call != 0 && true_ >= w.call_until) {
      w.call = 0;
      answer(w.called_for.key, OrderAnswered::Answer::kUnknown);
    }
    if (w.call != 0 || w.orders.empty()) return;
    const StartAttempt order = w.orders.front();
    w.orders.pop_front();
    if (w.reached_by == 0) return answer(order.key, OrderAnswered::Answer::kNotDelivered);
    w.call = ++last_call_;
    w.called_for = order;
    w.call_until = true_ + kCallTimeout;
    send(w, [=, this, session = w.reached_by, call = w.call] { ordered(m, session, order, call); });
  }
  // Orders queued for an ended registration are never sent.
  void end_registration(Workstation& w) {
    w.reached_by = 0;
    std::deque<StartAttempt> orders;
    orders.swap(w.orders);
    for (const auto& order : orders) answer(order.key, OrderAnswered::Answer::kNotDelivered);
  }

  // ---- a client ----
  void act_as_client(size_t m) {
    Workstation& w = stations_[m];
    if (one_in(400)) w.cut_off_until = true_ + pick(1, 2 * lease_);
    if (one_in(500)) crash(w);
    if (one_in(300)) w.session = 0;  // it decides to register again
    if (one_in(1500) && w.session != 0) withdraw(m);
    write_orders(m);
    for (auto& [key, held] : w.held)
      if (held.written && one_in(400)) held.ended = true;  // the owner is back, or it is done
    if (w.waits_for != 0 && true_ < w.until) return;
    if (w.waits_for != 0) w.attached = false;
    if (w.session == 0) return join(m);
    if (!w.attached) return attach(m);
    if (true_ >= w.next_renewal) return renew(m);
    const auto ended = std::ranges::find_if(w.held, [](const auto& h) { return h.second.ended; });
    if (ended != w.held.end()) report_end(m, ended->first);
  }
  // Orders that were not on disk yet are lost; the jobs keep running.
  void crash(Workstation& w) {
    std::erase_if(w.held, [](const auto& held) { return !held.second.written; });
    w.session = w.waits_for = 0;
    w.clock = {};
  }
  void withdraw(size_t m) {
    to_server(m, [this, m, session = stations_[m].session] {
      Workstation& w = stations_[m];
      if (w.registered != session) return;
      apply(MachineWithdrew{w.id});
      end_registration(w);
      w.registered = 0;
    });
    stations_[m].session = 0;
  }
  void join(size_t m) {
    Workstation& client = stations_[m];
    client.attached = false;
    const int64_t asked = client_ns(client);
    to_server(m, [this, m, asked, call = call(client)] {
      Workstation& w = stations_[m];
      w.id = apply(MachineJoined{w.id, "m" + std::to_string(m), "linux", "x86_64", 2, 2, 1ull << 30,
                                 1ull << 30})
                 .answer.machine;
      w.registered = ++last_session_;
      w.renewed = false;
      end_registration(w);
      reply(m, call, [=, now = server_now(), session = w.registered](Workstation& c) {
        c.session = session;
        c.clock = {now, asked};
        c.next_renewal = 0;
      });
    });
  }
  void attach(size_t m) {
    to_server(m, [this, m, session = stations_[m].session, call = call(stations_[m])] {
      Workstation& w = stations_[m];
      const bool known = w.registered == session;
      if (known) w.reached_by = session;
      reply(m, call, [=](Workstation& c) {
        c.attached = known;
        if (!known) c.session = 0;
      });
    });
  }
  void renew(size_t m) {
    Workstation& client = stations_[m];
    Renewed event{client.id, false, {}};
    for (const auto& [key, held] : client.held)  // including those being written
      event.attempts.push_back({key, held.ended     ? AttemptState::kLeaving
                                     : held.written ? AttemptState::kRunning
                                                    : AttemptState::kStaging});
    const int64_t sent = client_ns(client);
    client.next_renewal = true_ + lease_ / 3;
    to_server(m, [=, this, session = client.session, call = call(client)]() mutable {
      Workstation& w = stations_[m];
      if (w.registered != session) return reply(m, call, [](Workstation& c) { c.session = 0; });
      event.first = !std::exchange(w.renewed, true);
      const auto verdicts = apply(event).answer.verdicts;
      apply(MachineReported{w.id, true, 1ull << 30, 1ull << 30});
      reply(m, call, [=, this, now = server_now()](Workstation& c) {
        if (sent > c.clock.asked_ns) c.clock = {now, sent};
        for (const auto& [key, verdict] : verdicts) judged(c, key, verdict, sent);
      });
    });
  }
  void judged(Workstation& w, const AttemptKey& key, Verdict verdict, int64_t sent) const {
    const auto it = w.held.find(key);
    if (it == w.held.end() || !it->second.written) return;
    if (verdict != Verdict::kCounts) {
      w.held.erase(it);  // killed
      return;
    }
    int64_t& end = it->second.lease_end_ns;
    end = std::max(end, protocol::lease_end_ns(sent, lease_ / kMs));
  }
  void report_end(size_t m, const AttemptKey& key) {
    to_server(m, [=, this, call = call(stations_[m])] {
      Workstation& w = stations_[m];
      apply(
          AttemptEnded{key, w.id, one_in(4) ? EndReason::kDone : EndReason::kOwner, "", 0, -1, 0});
      reply(m, call, [key](Workstation& c) { c.held.erase(key); });
    });
  }

  // An order arrives.
  void ordered(size_t m, uint64_t session, const StartAttempt& order, uint64_t call) {
    Workstation& w = stations_[m];
    using Answer = OrderAnswered::Answer;
    if (w.held.contains(order.key)) return answered(m, call, Answer::kAccepted);
    const int64_t now = client_ns(w);
    const int64_t end = protocol::first_lease_end_ns(w.clock, order.decided, lease_ / kMs, now);
    if (session != w.session || end <= now || one_in(20))
      return answered(m, call, Answer::kRefused);
    Held held;
    held.written_at = true_ + (one_in(3) ? pick(1, slowest_write_) : pick(1, 5 * kMs));
    held.lease_end_ns = end;
    held.call = call;
    w.held[order.key] = held;
  }
  void write_orders(size_t m) {
    Workstation& w = stations_[m];
    for (auto it = w.held.begin(); it != w.held.end();) {
      Held& held = it->second;
      if (held.written || true_ < held.written_at) {
        ++it;
        continue;
      }
      const bool failed = one_in(10);
      answered(m, held.call,
               failed ? OrderAnswered::Answer::kRefused : OrderAnswered::Answer::kAccepted);
      held.written = true;
      ++started;
      it = failed ? w.held.erase(it) : std::next(it);
    }
  }
  void answered(size_t m, uint64_t call, OrderAnswered::Answer is) {
    to_server(m, [=, this] {
      Workstation& w = stations_[m];
      if (w.call != call) return;
      w.call = 0;
      answer(w.called_for.key, is);
    });
  }

  // A job is frozen within 1.9 s after the end of its lease.
  bool one_attempt_of_each() const {
    std::map<JobId, int> running;
    for (const Workstation& w : stations_) {
      const int64_t now = client_ns(w) - 1'900'000'000;
      for (const auto& [key, held] : w.held)
        if (held.written && !held.ended && now < held.lease_end_ns && ++running[key.job] > 1)
          return false;
    }
    return true;
  }

  std::mt19937_64 random_;
  const Micros lease_;
  Parameters parameters_;
  std::unique_ptr<Pool> pool_;
  testing::Books books_;
  std::array<Workstation, kMachines> stations_;
  std::multimap<Micros, std::function<void()>> messages_;  // by arrival
  Micros true_ = kSecond;
  Micros server_base_ = kStart;
  Micros server_since_ = 0;  // true time of its start
  bool up_ = true;
  double server_rate_ = 1;
  int64_t lost_ = 0;  // of 100 messages
  Micros slowest_ = 0, slowest_write_ = 0;
  uint64_t last_session_ = 0, last_call_ = 0;
};

class OneAttemptTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(OneAttemptTest);
  CPPUNIT_TEST(never_two_at_once);
  CPPUNIT_TEST_SUITE_END();

  void never_two_at_once() {
    std::map<EndReason, int> ends;
    int started = 0;
    CPPUNIT_ASSERT(rc::check("no two attempts of a job run at one instant", [&](uint64_t seed) {
      World world(seed, *rc::gen::element<Micros>(3, 30, 300) * kSecond);
      RC_ASSERT(world.run(4000));
      started += world.started;
      for (const auto& [reason, count] : world.ends) ends[reason] += count;
    }));
    // Each way to end has occurred.
    for (const EndReason reason : {EndReason::kDone, EndReason::kOwner, EndReason::kRefused,
                                   EndReason::kLost, EndReason::kSuperseded})
      CPPUNIT_ASSERT_MESSAGE(
          std::to_string(static_cast<int>(reason)) + " of " + std::to_string(started) + " started",
          ends[reason] > 0);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(OneAttemptTest);

}  // namespace
}  // namespace sublet::scheduling
