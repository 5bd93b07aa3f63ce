#include "attempt/cgroup.h"

#include <cppunit/extensions/HelperMacros.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "base/files.h"

using namespace sublet;

namespace {

class CgroupTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(CgroupTest);
  CPPUNIT_TEST(nothing_there_is_explained);
  CPPUNIT_TEST(folders_are_named_only_where_they_work);
  CPPUNIT_TEST(this_machine_is_used_as_it_is);
  CPPUNIT_TEST_SUITE_END();

  void nothing_there_is_explained() {
    char root[] = "/tmp/sublet-cgroup-XXXXXX";
    CPPUNIT_ASSERT(mkdtemp(root) != nullptr);
    AttemptCgroups found = AttemptCgroups::detect(root, "test");
    CPPUNIT_ASSERT(!found.can_kill() && !found.can_weigh() && !found.can_limit_memory());
    CPPUNIT_ASSERT_EQUAL(size_t{3}, found.missing().size());
    // A tree that only looks like cgroups: a folder can be created, but no files appear
    // in it.
    system_files().make_folders(std::string(root) + "/cpu");
    system_files().write_atomic(std::string(root) + "/cpu/cgroup.procs", "");
    system_files().write_atomic(std::string(root) + "/cgroup.controllers", "cpu");
    found = AttemptCgroups::detect(root, "test");
    CPPUNIT_ASSERT(!found.can_kill() && !found.can_weigh());
    CPPUNIT_ASSERT(found.missing()[0].find("cgroup.kill") != std::string::npos);
    CPPUNIT_ASSERT(access((std::string(root) + "/sublet-test-probe").c_str(), F_OK) != 0);
    system_files().remove_tree(root);
  }

  void folders_are_named_only_where_they_work() {
    AttemptOrder order;
    AttemptCgroups::detect("/no/such/root", "test").set_folders({7, 1}, &order);
    CPPUNIT_ASSERT(order.cgroup_unified.empty() && order.cgroup_cpu.empty());
    AttemptCgroups here = AttemptCgroups::detect("test");
    here.set_folders({7, 1}, &order);
    CPPUNIT_ASSERT_EQUAL(here.can_kill(), order.cgroup_unified.ends_with("/sublet-test-7.1"));
    CPPUNIT_ASSERT_EQUAL(here.can_weigh(), order.cgroup_cpu.ends_with("/sublet-test-7.1"));
    CPPUNIT_ASSERT(order.cgroup_memory.empty());
    order.limit_memory = 1 << 20;
    here.set_folders({7, 1}, &order);
    CPPUNIT_ASSERT_EQUAL(here.can_limit_memory(), !order.cgroup_memory.empty());
  }

  void this_machine_is_used_as_it_is() {
    AttemptCgroups here = AttemptCgroups::detect("test");
    for (const std::string& sentence : here.missing()) std::cerr << sentence << "\n";
    CPPUNIT_ASSERT_EQUAL(size_t{3}, here.missing().size() + here.can_kill() + here.can_weigh() +
                                        here.can_limit_memory());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(CgroupTest);

}  // namespace
