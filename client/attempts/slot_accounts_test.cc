#include "client/attempts/slot_accounts.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>

#include "base/files.h"
#include "base/testing/temporary_folder.h"

namespace sublet::client {
namespace {

using Uids = std::vector<int64_t>;

class SlotAccountsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(SlotAccountsTest);
  CPPUNIT_TEST(two_clients_share_no_account);
  CPPUNIT_TEST(a_restarted_client_gets_its_own_back);
  CPPUNIT_TEST(an_account_stays_while_attempts_are_left);
  CPPUNIT_TEST(refuses_accounts_of_people);
  CPPUNIT_TEST(names_the_folder_in_the_way);
  CPPUNIT_TEST_SUITE_END();

  static constexpr int64_t kFirst = 61984;
  TemporaryFolder reserved_, one_, two_;

  SlotAccounts reserve(const TemporaryFolder& state, uint32_t slots) {
    return SlotAccounts::reserve(reserved_.path(), kFirst, slots, state.path());
  }

  void two_clients_share_no_account() {
    SlotAccounts a = reserve(one_, 2);
    SlotAccounts b = reserve(two_, 2);
    CPPUNIT_ASSERT(a.uids() == Uids({kFirst, kFirst + 1}));
    CPPUNIT_ASSERT(b.uids() == Uids({kFirst + 2, kFirst + 3}));
    CPPUNIT_ASSERT(SlotAccounts::own(2).uids() == Uids({-1, -1}));
  }

  void a_restarted_client_gets_its_own_back() {
    {
      SlotAccounts a = reserve(one_, 2);
      SlotAccounts b = reserve(two_, 2);
    }
    CPPUNIT_ASSERT(reserve(two_, 2).uids() == Uids({kFirst + 2, kFirst + 3}));
  }

  void an_account_stays_while_attempts_are_left() {
    { SlotAccounts a = reserve(one_, 1); }
    system_files().make_folders(one_ / "attempts/7.1");
    { CPPUNIT_ASSERT(reserve(two_, 1).uids() == Uids({kFirst + 1})); }
    system_files().remove_tree(one_ / "attempts");
    TemporaryFolder three;
    CPPUNIT_ASSERT(reserve(three, 1).uids() == Uids({kFirst}));
  }

  void refuses_accounts_of_people() {
    CPPUNIT_ASSERT_THROW(SlotAccounts::reserve(reserved_.path(), 0, 1, one_.path()),
                         std::runtime_error);
    CPPUNIT_ASSERT_THROW(SlotAccounts::reserve(reserved_.path(), 1, 1, one_.path()),
                         std::runtime_error);
  }

  void names_the_folder_in_the_way() {
    // A temporary folder has mode 0700.
    CPPUNIT_ASSERT_EQUAL(one_.path(), SlotAccounts::in_the_way(one_ / "a/state"));
    chmod(one_.path().c_str(), 0711);
    CPPUNIT_ASSERT_EQUAL(std::string(), SlotAccounts::in_the_way(one_ / "a/state"));
    system_files().make_folders(one_ / "a/state", 0711);
    chmod((one_ / "a").c_str(), 0750);
    CPPUNIT_ASSERT_EQUAL(one_ / "a", SlotAccounts::in_the_way(one_ / "a/state"));
    // Links are resolved.
    chmod(two_.path().c_str(), 0711);
    CPPUNIT_ASSERT_EQUAL(0, symlink((one_ / "a").c_str(), (two_ / "link").c_str()));
    CPPUNIT_ASSERT_EQUAL(one_ / "a", SlotAccounts::in_the_way(two_ / "link/state"));
    chmod((one_ / "a").c_str(), 0711);
    CPPUNIT_ASSERT_EQUAL(std::string(), SlotAccounts::in_the_way(two_ / "link/state"));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(SlotAccountsTest);

}  // namespace
}  // namespace sublet::client
