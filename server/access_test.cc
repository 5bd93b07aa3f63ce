#include "server/access.h"

#include <cppunit/extensions/HelperMacros.h>
#include <errno.h>
#include <unistd.h>

#include "base/os_error.h"
#include "server/refusal_testing.h"

namespace sublet::server {
namespace {

using testing::code;

class AccessTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(AccessTest);
  CPPUNIT_TEST(root_has_a_name);
  CPPUNIT_TEST(a_new_user_is_known_soon);
  CPPUNIT_TEST(names_are_asked_for_again);
  CPPUNIT_TEST(nobody_is_locked_out_by_an_error);
  CPPUNIT_TEST_SUITE_END();

  ManualClock clock_{1'700'000'000'000'000, 1'000'000'000};
  std::optional<std::string> name_;
  int error_ = 0;
  int asked_ = 0;
  Access access_{{"ann"}, clock_, [this](uint32_t uid) {
                   ++asked_;
                   if (error_ != 0) throw OsError(error_, "look up", std::to_string(uid));
                   return name_;
                 }};

  Caller caller() { return access_.caller_with_uid(70'000); }

 public:
  void root_has_a_name() {
    CPPUNIT_ASSERT_EQUAL(std::string("root"), Access::look_up(0).value());
    CPPUNIT_ASSERT(!Access::look_up(4'000'000'000));
  }

  void a_new_user_is_known_soon() {
    CPPUNIT_ASSERT(!caller().named && !caller().administrator);
    CPPUNIT_ASSERT_EQUAL(1, asked_);
    name_ = "ann";
    clock_.advance_ms(Access::kKeepNamelessMs);
    CPPUNIT_ASSERT(caller().named && caller().administrator);
    CPPUNIT_ASSERT_EQUAL(std::string("ann"), caller().user);
  }

  void names_are_asked_for_again() {
    name_ = "ann";
    for (int i = 0; i < 10; ++i) caller();
    CPPUNIT_ASSERT_EQUAL(1, asked_);
    name_ = "anna";
    clock_.advance_ms(Access::kKeepNameMs);
    CPPUNIT_ASSERT_EQUAL(std::string("anna"), caller().user);
  }

  void nobody_is_locked_out_by_an_error() {
    error_ = EIO;
    CPPUNIT_ASSERT_EQUAL(std::string("caller.names"), code([&] { caller(); }));
    error_ = 0;
    name_ = "ann";
    CPPUNIT_ASSERT_EQUAL(std::string("ann"), caller().user);
    error_ = EIO;
    clock_.advance_ms(2 * Access::kKeepNameMs);
    CPPUNIT_ASSERT_EQUAL(std::string("ann"), caller().user);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(AccessTest);

}  // namespace
}  // namespace sublet::server
