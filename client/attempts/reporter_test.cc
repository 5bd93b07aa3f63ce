#include "client/attempts/reporter.h"

#include <cppunit/extensions/HelperMacros.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>

#include "base/clock.h"
#include "client/testing/memory_server.h"
#include "protocol/attempt.h"

namespace sublet::client {
namespace {

// Refuses every call that reports the job `bad`.
class PickyServer : public MemoryServer {
 public:
  std::vector<AttemptVerdict> ended(const std::vector<AttemptEnd>& ends) override {
    std::lock_guard lock(mutex);
    ++reports;
    size_t outputs = 0, octets = 0;
    for (const auto& end : ends) {
      outputs += end.outputs.size();
      octets += end.reason.size() + 8 * end.outputs.size();
    }
    calls.push_back({ends.size(), outputs, octets});
    if (away) throw ServerError(ServerError::Kind::kAway, "server.down", "Nobody is there.");
    std::vector<AttemptVerdict> out;
    for (const auto& end : ends) {
      if (end.name.job == bad)
        throw ServerError(ServerError::Kind::kRefused, "attempt.bad", "It is bad.");
      out.push_back({end.name, kVerdictKnown});
    }
    return out;
  }

  std::vector<AttemptVerdict> started(const std::vector<AttemptStart>& starts) override {
    std::lock_guard lock(mutex);
    started_ones.insert(started_ones.end(), starts.begin(), starts.end());
    return MemoryServer::started(starts);
  }

  std::mutex mutex;
  std::vector<AttemptStart> started_ones;
  uint64_t bad = 0;
  bool away = false;
  int reports = 0;
  struct Call {
    size_t ends, outputs, octets;
  };
  std::vector<Call> calls;
};

class ReporterTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ReporterTest);
  CPPUNIT_TEST(one_bad_report_holds_up_no_other);
  CPPUNIT_TEST(ends_that_wait_are_named);
  CPPUNIT_TEST(a_call_is_bounded_by_what_its_ends_hold);
  CPPUNIT_TEST(only_a_start_that_lasts_is_told);
  CPPUNIT_TEST(ends_wait_for_each_other_while_there_is_work);
  CPPUNIT_TEST_SUITE_END();

  PickyServer server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<uint64_t> reported_;
  std::set<uint64_t> waited_;

  static std::shared_ptr<AttemptWork> work(uint64_t job) {
    auto what = std::make_shared<Assignment>();
    what->name = {job, 1};
    auto one = std::make_shared<AttemptWork>(what, "");
    one->end.name = what->name;
    return one;
  }
  std::function<void(const AttemptName&, uint32_t, bool)> answered() {
    return [this](const AttemptName& name, uint32_t, bool) {
      std::lock_guard lock(mutex_);
      reported_.insert(name.job);
      changed_.notify_all();
    };
  }
  std::function<void(AttemptWork&)> waits() {
    return [this](AttemptWork& work) {
      std::lock_guard lock(mutex_);
      waited_.insert(work.assignment->name.job);
      changed_.notify_all();
    };
  }
  bool wait_for(size_t count) {
    return changes([&] { return reported_.size() >= count; });
  }
  bool changes(const std::function<bool()>& to) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), to);
  }
  int reports() {
    std::lock_guard lock(server_.mutex);
    return server_.reports;
  }

  void one_bad_report_holds_up_no_other() {
    server_.bad = 50;
    Reporter reporter(server_, answered(), waits(), [] { return false; });
    for (uint64_t job = 1; job <= 300; ++job) reporter.tell_ended(work(job));
    CPPUNIT_ASSERT(wait_for(299));
    CPPUNIT_ASSERT(!reported_.contains(50));
    CPPUNIT_ASSERT(changes([&] { return waited_.contains(50); }));
    // At most one batch is split up: from then on the bad report is sent alone.
    int before = reports();
    for (uint64_t job = 301; job <= 310; ++job) reporter.tell_ended(work(job));
    CPPUNIT_ASSERT(wait_for(309));
    CPPUNIT_ASSERT(reports() - before <= 16);
    {
      std::lock_guard lock(server_.mutex);
      server_.bad = 0;
    }
    reporter.hurry();
    CPPUNIT_ASSERT(wait_for(310));
  }

  // Only these need to survive a power failure.
  void ends_that_wait_are_named() {
    Reporter reporter(server_, answered(), waits(), [] { return false; });
    reporter.tell_ended(work(1));
    CPPUNIT_ASSERT(wait_for(1));
    {
      std::lock_guard lock(server_.mutex);
      server_.away = true;
    }
    reporter.tell_ended(work(2));
    CPPUNIT_ASSERT(changes([&] { return waited_.contains(2); }));
    CPPUNIT_ASSERT(!waited_.contains(1));
    {
      std::lock_guard lock(server_.mutex);
      server_.away = false;
    }
    reporter.hurry();
    CPPUNIT_ASSERT(wait_for(2));
  }

  void a_call_is_bounded_by_what_its_ends_hold() {
    Reporter reporter(server_, answered(), waits(), [] { return false; });
    {
      std::lock_guard lock(server_.mutex);  // no call returns before all ends are queued
      for (uint64_t job = 1; job <= 40; ++job) {
        auto one = work(job);
        one->end.outputs.assign(job == 20 ? 50'000 : 4'000, 1);
        reporter.tell_ended(one);
      }
      for (uint64_t job = 41; job <= 60; ++job) {
        auto one = work(job);
        one->end.reason.assign(100'000, 'x');
        reporter.tell_ended(one);
      }
    }
    CPPUNIT_ASSERT(wait_for(60));
    size_t most = 0;
    for (const auto& call : server_.calls) {
      most = std::max(most, call.ends);
      if (call.ends == 1) continue;
      CPPUNIT_ASSERT(call.outputs <= 10'000);
      CPPUNIT_ASSERT(call.octets <= 512 << 10);
    }
    CPPUNIT_ASSERT(most > 1);
    CPPUNIT_ASSERT(server_.calls.size() < 60);
  }

  void only_a_start_that_lasts_is_told() {
    Reporter reporter(server_, answered(), waits(), [] { return false; });
    const auto first = work(1), second = work(2), third = work(3);
    reporter.tell_started(first, 11);
    reporter.tell_started(second, 12);
    second->ended = true;
    reporter.tell_ended(second);
    reporter.tell_started(third, 13);
    CPPUNIT_ASSERT(wait_for(3));
    std::lock_guard lock(server_.mutex);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, server_.started_ones.size());
    for (const AttemptStart& one : server_.started_ones) {
      CPPUNIT_ASSERT(one.name.job != 2);
      CPPUNIT_ASSERT_EQUAL(static_cast<int64_t>(10 + one.name.job), one.at_us);
      CPPUNIT_ASSERT(one.ran_ms >= protocol::kStartToldAfterMs);
    }
  }

  void ends_wait_for_each_other_while_there_is_work() {
    Reporter reporter(server_, answered(), waits(), [] { return true; });
    const int64_t first = system_clock().boot_ns();
    for (uint64_t job = 1; job <= 3; ++job) reporter.tell_ended(work(job));
    CPPUNIT_ASSERT(wait_for(3));
    CPPUNIT_ASSERT(system_clock().boot_ns() - first >= Reporter::kGatherNs);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(ReporterTest);

}  // namespace
}  // namespace sublet::client
