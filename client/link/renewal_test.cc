#include "client/link/renewal.h"

#include <cppunit/extensions/HelperMacros.h>

#include <stdexcept>
#include <vector>

#include "transport/testing/tls_pool.h"

namespace sublet::client {
namespace {

using testing::TlsPool;

constexpr int64_t kMinuteNs = 60ll * 1'000'000'000;
constexpr int64_t kHour = TlsPool::kHour;

// A server and a disk that fail on demand.
struct World {
  TlsPool pool;
  std::vector<std::pair<RequestId, std::string>> asked;
  std::vector<std::string> used, kept;
  bool answers = true, room = true;

  Membership member(int64_t from, int64_t until) const {
    return {{"127.0.0.1", 9740}, pool.credentials(Role::kMachine, "curly", from, until)};
  }
  Renewal::Hooks hooks() {
    Renewal::Hooks h;
    h.ask = [this](const RequestId& id, const std::string& request) {
      asked.emplace_back(id, request);
      if (!answers) throw std::runtime_error("the answer was lost");
      const int64_t now = system_clock().utc_us();
      return issue_certificate(pool.authority(), request, {"lab", Role::kMachine, "curly"},
                               {now - kHour, now + kHour});
    };
    h.use = [this](const TlsCredentials& credentials) {
      TlsContext::of_member(credentials);
      used.push_back(credentials.certificate);
    };
    h.keep = [this](const Membership& membership) {
      if (!room) throw std::runtime_error("the disk is full");
      kept.push_back(membership.credentials.certificate);
    };
    return h;
  }
};

class RenewalTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(RenewalTest);
  CPPUNIT_TEST(only_when_it_is_due);
  CPPUNIT_TEST(a_lost_answer_is_asked_for_again_as_it_was);
  CPPUNIT_TEST(a_full_disk_asks_for_no_other);
  CPPUNIT_TEST(an_answer_that_does_not_fit_is_not_kept);
  CPPUNIT_TEST_SUITE_END();

  World world_;
  const int64_t now_ = system_clock().utc_us();
  int64_t boot_ns_ = 0;

  // The next try; false if it failed.
  bool step(Renewal& renewal) {
    boot_ns_ += kMinuteNs;
    try {
      return renewal.step(boot_ns_, now_);
    } catch (const std::runtime_error&) {
      return false;
    }
  }

  void only_when_it_is_due() {
    Renewal early(world_.member(-kHour, 3 * kHour), world_.hooks());
    CPPUNIT_ASSERT(!step(early));
    CPPUNIT_ASSERT(world_.asked.empty());
    Renewal due(world_.member(-3 * kHour, kHour), world_.hooks());
    CPPUNIT_ASSERT(step(due));
    CPPUNIT_ASSERT(world_.used == world_.kept && world_.kept.size() == 1);
    // The new one is not due yet.
    CPPUNIT_ASSERT(!step(due));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, world_.asked.size());
  }

  void a_lost_answer_is_asked_for_again_as_it_was() {
    world_.answers = false;
    Renewal renewal(world_.member(-3 * kHour, kHour), world_.hooks());
    for (int i = 0; i < 3; ++i) CPPUNIT_ASSERT(!step(renewal));
    // Not more often than once a minute.
    CPPUNIT_ASSERT(!renewal.step(boot_ns_ + kMinuteNs - 1, now_));
    CPPUNIT_ASSERT_EQUAL(size_t{3}, world_.asked.size());
    world_.answers = true;
    CPPUNIT_ASSERT(step(renewal));
    for (const auto& one : world_.asked) CPPUNIT_ASSERT(one == world_.asked[0]);
  }

  void a_full_disk_asks_for_no_other() {
    world_.room = false;
    Renewal renewal(world_.member(-3 * kHour, kHour), world_.hooks());
    for (int i = 0; i < 3; ++i) CPPUNIT_ASSERT(!step(renewal));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, world_.asked.size());
    world_.room = true;
    CPPUNIT_ASSERT(step(renewal));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, world_.asked.size());
    CPPUNIT_ASSERT(world_.used == world_.kept);
  }

  void an_answer_that_does_not_fit_is_not_kept() {
    Renewal::Hooks hooks = world_.hooks();
    bool lies = true;
    hooks.ask = [&, ask = hooks.ask](const RequestId& id, const std::string& request) {
      return ask(id, lies ? make_request(make_key()) : request);
    };
    Renewal renewal(world_.member(-3 * kHour, kHour), hooks);
    CPPUNIT_ASSERT(!step(renewal));
    CPPUNIT_ASSERT(world_.used.empty() && world_.kept.empty());
    lies = false;
    CPPUNIT_ASSERT(step(renewal));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, world_.kept.size());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(RenewalTest);

}  // namespace
}  // namespace sublet::client
