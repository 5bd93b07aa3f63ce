// There is no GPU where the tests run: a folder stands in for /dev.
#include "client/machine/gpus.h"

#include <cppunit/extensions/HelperMacros.h>

#include "base/files.h"
#include "base/testing/temporary_folder.h"
#include "client/machine/machine.h"

namespace sublet::client {
namespace {

using Names = std::vector<std::string>;

class GpusTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(GpusTest);
  CPPUNIT_TEST(by_their_device_files);
  CPPUNIT_TEST(by_the_owners_word);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder root_;

  void add(const std::string& folder, const Names& names) {
    system_files().make_folders(root_.path() + folder, 0755);
    for (const std::string& name : names)
      system_files().write_atomic(root_.path() + folder + "/" + name, "", 0600);
  }
  MachineFacts facts(const std::string& named) {
    MachineFacts facts;
    add_resources(rules::NamedAmounts::parse(named), root_.path(), &facts);
    return facts;
  }

 public:
  void by_their_device_files() {
    CPPUNIT_ASSERT(find_gpus(root_.path()).empty());
    add("/dev/dri", {"card0", "renderD128", "renderD129"});
    CPPUNIT_ASSERT(find_gpus(root_.path()) == Names({"0", "1"}));
    add("/dev", {"nvidia10", "nvidia2", "nvidia0", "nvidiactl", "nvidia-uvm", "nvidia3x"});
    CPPUNIT_ASSERT(find_gpus(root_.path()) == Names({"0", "2", "10"}));
  }

  void by_the_owners_word() {
    CPPUNIT_ASSERT(facts("").resources.empty());
    CPPUNIT_ASSERT_EQUAL(std::string("gpu=1 matlab=2"), facts("gpu=1, matlab=2").resources.text());
    CPPUNIT_ASSERT(facts("gpu=2").gpus == Names({"0", "1"}));
    add("/dev", {"nvidia3", "nvidia5"});
    CPPUNIT_ASSERT_EQUAL(std::string("gpu=2 matlab=2"), facts("matlab=2").resources.text());
    CPPUNIT_ASSERT(facts("").gpus == Names({"3", "5"}));
    CPPUNIT_ASSERT(facts("gpu=1").gpus == Names({"3"}));
    CPPUNIT_ASSERT(facts("gpu=0").gpus.empty());
    CPPUNIT_ASSERT(facts("gpu=0").resources.empty());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(GpusTest);
}  // namespace
}  // namespace sublet::client
