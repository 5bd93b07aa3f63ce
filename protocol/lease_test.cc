// The arithmetic alone; scheduling/one_attempt_test.cc tests with the brain that two
// machines never run one job.
#include "protocol/lease.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <algorithm>

using namespace sublet::protocol;

namespace {

constexpr int64_t kMs = kNsPerMs;
constexpr int64_t kDeciding = 1'700'000'000'000'000;  // µs, by the server's clock

class LeaseTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(LeaseTest);
  CPPUNIT_TEST(instants_of_the_default_terms);
  CPPUNIT_TEST(server_waits_longer_than_any_client);
  CPPUNIT_TEST(the_delay_is_rounded_up);
  CPPUNIT_TEST(a_first_lease_is_what_is_missing_to_a_whole_one);
  CPPUNIT_TEST(a_first_lease_ends_before_the_job_is_given_away);
  CPPUNIT_TEST(without_the_servers_time_there_is_no_first_lease);
  CPPUNIT_TEST(extreme_instants_do_not_wrap);
  CPPUNIT_TEST_SUITE_END();

  void instants_of_the_default_terms() {
    CPPUNIT_ASSERT_EQUAL(int64_t{10'000}, renew_every_ms(30'000));
    CPPUNIT_ASSERT_EQUAL(30'007 * kMs, lease_end_ns(7 * kMs, 30'000));
    CPPUNIT_ASSERT_EQUAL(27'000 * kMs, lease_save_at(2'000, 30'000 * kMs));
    CPPUNIT_ASSERT_EQUAL(3'630'000 * kMs, lease_give_up_at(3'600'000, 30'000 * kMs));
    CPPUNIT_ASSERT_EQUAL(int64_t{32'300'000}, reassign_delay_us(30'000'000));
  }

  void server_waits_longer_than_any_client() {
    CPPUNIT_ASSERT(rc::check([] {
      const int64_t lease_ms = *rc::gen::inRange<int64_t>(1000, 3'600'000);
      const double client = *rc::gen::inRange(99500, 100501) / 1e5;
      const double server = *rc::gen::inRange(99500, 100501) / 1e5;
      const int64_t sent = *rc::gen::inRange<int64_t>(0, 1ll << 50);
      const double frozen_after = static_cast<double>(lease_end_ns(sent, lease_ms) - sent) / client;
      const double given_after = static_cast<double>(reassign_delay_us(lease_ms * 1000)) / server;
      // The rest of the 2 s for a late freeze.
      RC_ASSERT(given_after * 1000 - frozen_after > 1.7e9);
    }));
  }

  void the_delay_is_rounded_up() {
    CPPUNIT_ASSERT_EQUAL(int64_t{2'000'002}, reassign_delay_us(1));
    CPPUNIT_ASSERT_EQUAL(int64_t{2'000'101}, reassign_delay_us(100));
    CPPUNIT_ASSERT_EQUAL(int64_t{2'000'103}, reassign_delay_us(101));
  }

  void a_first_lease_is_what_is_missing_to_a_whole_one() {
    const ServerClock clock{kDeciding, 1'000 * kMs};
    const auto end_at = [&](int64_t decided_us, int64_t now_ms) {
      return first_lease_end_ns(clock, decided_us, 30'000, now_ms * kMs);
    };
    // Decided when the server read its time, and in transit for 1.01 s of its clock.
    CPPUNIT_ASSERT_EQUAL((2'000 + 30'000 - 1'010) * kMs - 1, end_at(kDeciding, 2'000));
    // Decided 5 s earlier.
    CPPUNIT_ASSERT_EQUAL((1'000 + 25'000) * kMs - 1, end_at(kDeciding - 5'000'000, 1'000));
    // Too old: nothing is left of it.
    CPPUNIT_ASSERT(end_at(kDeciding - 30'000'000, 1'000) <= 1'000 * kMs);
    // Never more than a whole lease, whatever the clocks say.
    CPPUNIT_ASSERT_EQUAL((2'000 + 30'000) * kMs, end_at(kDeciding + 9'000'000, 2'000));
    // The time was requested after the order was examined.
    CPPUNIT_ASSERT_EQUAL((900 + 25'000) * kMs - 1, end_at(kDeciding - 5'000'000, 900));
  }

  // Whenever the server read its time, and however long the order was in transit.
  void a_first_lease_ends_before_the_job_is_given_away() {
    CPPUNIT_ASSERT(rc::check([] {
      const int64_t lease_ms = *rc::gen::inRange<int64_t>(1000, 3'600'000);
      const double client = *rc::gen::inRange(99500, 100501) / 1e5;
      const double server = *rc::gen::inRange(99500, 100501) / 1e5;
      // True times, ns: of the call for the server's time, its reading, and the order's
      // arrival. The decision is at 0.
      const int64_t span = 4 * lease_ms * kMs;
      const int64_t asked = *rc::gen::inRange<int64_t>(-span, span);
      const int64_t read = asked + *rc::gen::inRange<int64_t>(0, 5'000 * kMs);
      const int64_t arrival = std::max<int64_t>(read, 0) + *rc::gen::inRange<int64_t>(0, span);
      const auto by = [](int64_t instant, double rate) {
        return static_cast<int64_t>(static_cast<double>(instant) * rate);
      };
      const int64_t boot = 1ll << 55;  // keeps the client's instants positive
      const ServerClock clock{kDeciding + by(read, server) / 1000, boot + by(asked, client)};
      const int64_t now = boot + by(arrival, client);
      const int64_t end = first_lease_end_ns(clock, kDeciding, lease_ms, now);
      if (end <= now) return;  // refused
      const double frozen = static_cast<double>(end - boot) / client;
      const double given = static_cast<double>(reassign_delay_us(lease_ms * 1000)) / server;
      RC_ASSERT(given * 1000 - frozen > 1.7e9);
    }));
  }

  void without_the_servers_time_there_is_no_first_lease() {
    CPPUNIT_ASSERT(first_lease_end_ns({}, kDeciding, 30'000, 5'000 * kMs) <= 0);
    CPPUNIT_ASSERT(first_lease_end_ns({}, 0, 30'000, 5'000 * kMs) <= 0);
  }

  void extreme_instants_do_not_wrap() {
    CPPUNIT_ASSERT_EQUAL(INT64_MAX, lease_give_up_at(3'600'000, INT64_MAX - 5));
    CPPUNIT_ASSERT_EQUAL(INT64_MIN, lease_save_at(2000, INT64_MIN + 5));
    CPPUNIT_ASSERT_EQUAL(INT64_MAX, lease_give_up_at(INT64_MAX, 1));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(LeaseTest);

}  // namespace
