#include "client/machine/hidden_folders.h"

#include <cppunit/extensions/HelperMacros.h>

#include <algorithm>
#include <filesystem>

#include "attempt/format.h"
#include "base/files.h"
#include "base/options/settings.h"
#include "base/testing/temporary_folder.h"

namespace sublet::client {
namespace {

class HiddenFoldersTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(HiddenFoldersTest);
  CPPUNIT_TEST(homes_of_people);
  CPPUNIT_TEST(the_state_folder);
  CPPUNIT_TEST(there_is_a_bound);
  CPPUNIT_TEST(wrong_grants);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;

  std::string make(const std::string& name) {
    const std::string path = std::filesystem::canonical(folder_.path()).string() + "/" + name;
    std::filesystem::create_directories(path);
    return path;
  }
  std::string user(int uid, const std::string& home) {
    return "u" + std::to_string(uid) + ":x:" + std::to_string(uid) + ":100::" + home + ":/bin/sh\n";
  }
  // With `passwd` as /etc/passwd; those in the temporary folder.
  std::vector<std::string> hidden(const std::string& passwd, const std::string& state = "/none",
                                  size_t* left_out = nullptr) {
    system_files().write_atomic(folder_ / "passwd", passwd);
    size_t unused = 0;
    auto all = folders_to_hide(state, folder_ / "passwd", left_out ? left_out : &unused);
    std::erase_if(all, [&](const std::string& path) { return !path.starts_with(make("")); });
    return all;
  }

  void homes_of_people() {
    const std::string anna = make("anna"), service = make("service");
    make("anna/mail");
    std::filesystem::create_symlink(anna, folder_ / "link");
    const std::string passwd = user(1000, anna) + "garbage\n" + user(1001, folder_ / "link") +
                               user(1002, anna + "/mail") + user(999, service) +
                               user(65534, service) + user(1003, folder_ / "absent") +
                               user(1004, "/") + user(1005, "");
    CPPUNIT_ASSERT(std::vector<std::string>{anna} == hidden(passwd));
    size_t left_out = 9;
    const auto without = folders_to_hide("/none", folder_ / "no-passwd", &left_out);
    CPPUNIT_ASSERT_EQUAL(size_t{0}, left_out);
    for (const char* always : {"/home", "/root", "/run/user"})
      CPPUNIT_ASSERT(std::filesystem::is_symlink(always) ||
                     std::ranges::count(without, always) == 1);
    // Homes that everybody needs.
    std::string odd;
    for (const char* home : {"/", "/tmp", "/var", "/usr", "/usr/games", "/dev", "/opt", "/bin"})
      odd += user(1100, home);
    left_out = 9;
    system_files().write_atomic(folder_ / "odd", odd);
    CPPUNIT_ASSERT(without == folders_to_hide("/none", folder_ / "odd", &left_out));
  }

  void the_state_folder() {
    const std::string anna = make("anna"), state = make("anna/state"), other = make("state");
    CPPUNIT_ASSERT(std::vector<std::string>{state} == hidden("", state));
    CPPUNIT_ASSERT(std::vector<std::string>{anna} == hidden(user(1000, anna), state));
    CPPUNIT_ASSERT((std::vector<std::string>{anna, other}) == hidden(user(1000, anna), other));
  }

  void there_is_a_bound() {
    std::string passwd;
    for (int i = 0; i < 100; ++i) passwd += user(1000 + i, make("home" + std::to_string(i)));
    size_t left_out = 0;
    const size_t some = hidden(passwd, "/none", &left_out).size();
    CPPUNIT_ASSERT(some + left_out == 100 && left_out >= 100 - SUBLET_MAX_PLACES);
    const auto all = folders_to_hide("/none", folder_ / "passwd", &left_out);
    for (const char* always :
         {"/home", "/root", "/run/user", "/run/dbus", "/none", "/var/lib/sublet-server"})
      CPPUNIT_ASSERT(std::ranges::find(all, always) != all.end());
  }

  static std::string refused(const std::vector<std::string>& grants) {
    try {
      check_grants(grants);
      return "";
    } catch (const SettingError& error) {
      return error.what();
    }
  }

  void wrong_grants() {
    const std::string data = make("data");
    std::filesystem::create_symlink(data, folder_ / "link");
    system_files().write_atomic(folder_ / "file", "");
    CPPUNIT_ASSERT_EQUAL(std::string(), refused({data, make("") + "file", "/dev/null"}));
    CPPUNIT_ASSERT_EQUAL("grants: " + data +
                             "/none: No such file or directory. Make it, or take "
                             "it out of the list.",
                         refused({data, data + "/none"}));
    const std::string link = make("") + "link";
    CPPUNIT_ASSERT(refused({"/home/no/such"}).find("ProtectHome") != std::string::npos);
    CPPUNIT_ASSERT_EQUAL(
        "grants: " + link + " leads through a symbolic link: use " + data + " instead",
        refused({link}));
    CPPUNIT_ASSERT(refused(std::vector<std::string>(65, data)).starts_with("grants has 65 places"));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(HiddenFoldersTest);

}  // namespace
}  // namespace sublet::client
