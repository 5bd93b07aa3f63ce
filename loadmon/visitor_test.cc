#include "loadmon/visitor.h"

#include <cppunit/extensions/HelperMacros.h>

#include <map>

namespace sublet::loadmon {
namespace {

class VisitorTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(VisitorTest);
  CPPUNIT_TEST(who_descends_from_a_job);
  CPPUNIT_TEST(who_cannot_be_judged);
  CPPUNIT_TEST_SUITE_END();

  // 30 <- 31 <- 32: a job's shepherd, and its processes; 1 <- 20 <- 21: the owner's.
  std::map<pid_t, pid_t> parents_{{1, 0}, {20, 1}, {21, 20}, {30, 1}, {31, 30}, {32, 31}};

  bool may(pid_t pid) const {
    return may_descend(pid, {30}, [this](pid_t one) -> std::optional<pid_t> {
      const auto found = parents_.find(one);
      return found == parents_.end() ? std::nullopt : std::optional(found->second);
    });
  }

 public:
  void who_descends_from_a_job() {
    for (const pid_t pid : {30, 31, 32}) CPPUNIT_ASSERT(may(pid));
    for (const pid_t pid : {20, 21, 1}) CPPUNIT_ASSERT(!may(pid));
    parents_[20] = 0;  // from another pid namespace
    CPPUNIT_ASSERT(!may(21));
  }

  void who_cannot_be_judged() {
    CPPUNIT_ASSERT(may(99));
    // An ancestor ended when its child had been read.
    parents_.erase(31);
    CPPUNIT_ASSERT(may(32));
    parents_.erase(20);
    CPPUNIT_ASSERT(may(21));
    for (pid_t pid = 1000; pid < 2000; ++pid) parents_[pid] = pid - 1;
    CPPUNIT_ASSERT(may(1999));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(VisitorTest);
}  // namespace
}  // namespace sublet::loadmon
