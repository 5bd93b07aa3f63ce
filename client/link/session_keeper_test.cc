#include "client/link/session_keeper.h"

#include <cppunit/extensions/HelperMacros.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/testing/temporary_folder.h"
#include "client/testing/memory_server.h"

namespace sublet::client {
namespace {

// Counts calls; can be unavailable.
class CountingServer : public MemoryServer {
 public:
  struct Counts {
    int joins = 0, attaches = 0, reports = 0, renewals = 0, withdrawals = 0;
  };

  Joined join(const MachineIdentity& identity, const MachineFacts&) override {
    count(&Counts::joins);
    std::lock_guard lock(mutex_);
    joined_as_ = identity.machine;
    Joined joined;
    joined.identity = {7, "secret"};
    joined.lease_ms = 3'600'000;
    joined.renew_every_ms = 1'200'000;
    return joined;
  }
  void attach() override { count(&Counts::attaches); }
  void report_state(const MachineState&) override { count(&Counts::reports); }
  Renewed renew(const MachineState&, const std::vector<HeldAttempt>&) override {
    count(&Counts::renewals);
    return {};
  }
  void withdraw() override { count(&Counts::withdrawals); }

  void away(bool away) {
    std::lock_guard lock(mutex_);
    away_ = away;
  }
  uint64_t joined_as() {
    std::lock_guard lock(mutex_);
    return joined_as_;
  }
  Counts counts() {
    std::lock_guard lock(mutex_);
    return counts_;
  }
  // Waits up to a minute until at least `times` of these calls have been made.
  bool comes(int Counts::*what, int times) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60),
                             [&] { return counts_.*what >= times; });
  }

 private:
  void count(int Counts::*what) {
    std::lock_guard lock(mutex_);
    ++(counts_.*what);
    changed_.notify_all();
    if (away_) throw ServerError(ServerError::Kind::kAway, "server.down", "Nobody is there.");
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Counts counts_;
  uint64_t joined_as_ = 0;
  bool away_ = false;
};

class SessionKeeperTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(SessionKeeperTest);
  CPPUNIT_TEST(joins_attaches_and_renews);
  CPPUNIT_TEST(changes_are_told);
  CPPUNIT_TEST(a_change_during_a_renewal_is_told_by_the_next_one);
  CPPUNIT_TEST(a_session_that_is_over_is_made_anew);
  CPPUNIT_TEST(a_server_that_is_away_is_tried_again);
  CPPUNIT_TEST(only_a_known_server_comes_back);
  CPPUNIT_TEST(any_thread_may_tell_of_changes);
  CPPUNIT_TEST(stop_withdraws_who_is_registered);
  CPPUNIT_TEST_SUITE_END();

  using Counts = CountingServer::Counts;

  CountingServer server_;

  static KeeperHooks hooks() {
    KeeperHooks hooks;
    hooks.held = [](std::vector<HeldAttempt>*) { return true; };
    hooks.state = [] { return MachineState(); };
    hooks.renewed = [](int64_t, const Renewed&) {};
    hooks.joined = [](const Joined&) {};
    return hooks;
  }
  std::unique_ptr<SessionKeeper> started(const KeeperHooks& with = hooks()) {
    auto keeper =
        std::make_unique<SessionKeeper>(server_, MachineFacts(), MachineIdentity(), "", with);
    keeper->start();
    return keeper;
  }

  void joins_attaches_and_renews() {
    auto keeper = started();
    CPPUNIT_ASSERT(server_.comes(&Counts::renewals, 1));
    keeper->stop(false);
    const Counts counts = server_.counts();
    CPPUNIT_ASSERT_EQUAL(1, counts.joins);
    CPPUNIT_ASSERT_EQUAL(1, counts.attaches);
    CPPUNIT_ASSERT_EQUAL(0, counts.withdrawals);
  }

  void changes_are_told() {
    auto keeper = started();
    CPPUNIT_ASSERT(server_.comes(&Counts::renewals, 1));
    keeper->presence_changed();
    CPPUNIT_ASSERT(server_.comes(&Counts::reports, 1));
    keeper->something_changed();
    CPPUNIT_ASSERT(server_.comes(&Counts::renewals, 2));
  }

  // When the state has been gathered already.
  void a_change_during_a_renewal_is_told_by_the_next_one() {
    std::atomic<SessionKeeper*> changing{nullptr};
    KeeperHooks with = hooks();
    with.held = [&](std::vector<HeldAttempt>*) {
      if (SessionKeeper* one = changing.exchange(nullptr)) one->something_changed();
      return true;
    };
    auto keeper = started(with);
    CPPUNIT_ASSERT(server_.comes(&Counts::renewals, 1));
    changing = keeper.get();
    keeper->something_changed();
    CPPUNIT_ASSERT(server_.comes(&Counts::renewals, 3));
    keeper->stop(false);
  }

  void a_session_that_is_over_is_made_anew() {
    auto keeper = started();
    CPPUNIT_ASSERT(server_.comes(&Counts::renewals, 1));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, server_.joined_as());
    keeper->session_ended();
    CPPUNIT_ASSERT(server_.comes(&Counts::joins, 2));
    CPPUNIT_ASSERT(server_.comes(&Counts::renewals, 2));
    CPPUNIT_ASSERT_EQUAL(uint64_t{7}, server_.joined_as());
  }

  void a_server_that_is_away_is_tried_again() {
    server_.away(true);
    auto keeper = started();
    CPPUNIT_ASSERT(server_.comes(&Counts::joins, 2));
    server_.away(false);
    CPPUNIT_ASSERT(server_.comes(&Counts::renewals, 1));
  }

  // What the log says of the server, without the time.
  std::vector<std::string> logged(const std::string& file) {
    std::vector<std::string> lines;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
      lines.push_back(line.substr(line.find(' ') + 1));
    return lines;
  }

  void only_a_known_server_comes_back() {
    TemporaryFolder folder;
    LogSettings settings;
    settings.component = "client";
    settings.file = folder / "log";
    log_start(settings);
    server_.away(true);
    auto keeper = started();
    CPPUNIT_ASSERT(server_.comes(&Counts::joins, 2));
    server_.away(false);
    CPPUNIT_ASSERT(server_.comes(&Counts::renewals, 1));
    keeper->session_ended();
    CPPUNIT_ASSERT(server_.comes(&Counts::renewals, 2));
    server_.away(true);
    keeper->something_changed();
    CPPUNIT_ASSERT(server_.comes(&Counts::renewals, 3));
    server_.away(false);
    CPPUNIT_ASSERT(server_.comes(&Counts::renewals, 4));
    keeper->stop(false);
    log_stop();
    const std::string away =
        "warning client: not connected to the server: Nobody is there.; trying again";
    const std::vector<std::string> expected = {
        away, "info client: joined the pool as machine 7 ('')",
        "info client: joined the pool again as machine 7 ('')", away,
        "info client: the server is back"};
    CPPUNIT_ASSERT(expected == logged(settings.file));
  }

  void any_thread_may_tell_of_changes() {
    auto keeper = started();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        for (int j = 0; j < 200; ++j) {
          keeper->presence_changed();
          keeper->something_changed();
          if (j % 50 == 0) keeper->session_ended();
        }
      });
    for (auto& thread : threads) thread.join();
    // The last change is reported, too.
    const int before = server_.counts().renewals;
    keeper->session_ended();
    CPPUNIT_ASSERT(server_.comes(&Counts::renewals, before + 1));
  }

  void stop_withdraws_who_is_registered() {
    auto keeper = started();
    CPPUNIT_ASSERT(server_.comes(&Counts::renewals, 1));
    keeper->stop(true);
    keeper->stop(true);
    CPPUNIT_ASSERT_EQUAL(1, server_.counts().withdrawals);
    server_.away(true);
    auto other = started();
    CPPUNIT_ASSERT(server_.comes(&Counts::joins, 2));
    other->stop(true);
    CPPUNIT_ASSERT_EQUAL(1, server_.counts().withdrawals);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(SessionKeeperTest);

}  // namespace
}  // namespace sublet::client
