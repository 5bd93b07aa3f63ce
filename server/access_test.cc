#include "server/access.h"

#include <cppunit/extensions/HelperMacros.h>
#include <errno.h>
#include <pwd.h>
#include <unistd.h>

#include "base/os_error.h"
#include "server/refusal_testing.h"

namespace {

// A password entry that no buffer holds, and the last buffer offered for it. The linker replaces
// the calls (CMakeLists.txt).
bool endless_entry = false;
size_t largest_buffer = 0;

}  // namespace

extern "C" int __real_getpwuid_r(uid_t, passwd*, char*, size_t, passwd**);
extern "C" int __wrap_getpwuid_r(uid_t uid, passwd* entry, char* buffer, size_t size,
                                 passwd** found) {
  if (!endless_entry) return __real_getpwuid_r(uid, entry, buffer, size, found);
  largest_buffer = size;
  *found = nullptr;
  return ERANGE;
}

namespace sublet::server {
namespace {

using testing::code;

class AccessTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(AccessTest);
  CPPUNIT_TEST(root_has_a_name);
  CPPUNIT_TEST(an_endless_entry_is_an_error);
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
  void tearDown() override { endless_entry = false; }

  void root_has_a_name() {
    CPPUNIT_ASSERT_EQUAL(std::string("root"), Access::look_up(0).value());
    CPPUNIT_ASSERT(!Access::look_up(4'000'000'000));
  }

  void an_endless_entry_is_an_error() {
    endless_entry = true;
    CPPUNIT_ASSERT_THROW(Access::look_up(70'000), OsError);
    CPPUNIT_ASSERT_EQUAL(size_t{1} << 20, largest_buffer);
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
