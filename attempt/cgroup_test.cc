#include "attempt/cgroup.h"

#include <cppunit/extensions/HelperMacros.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "base/files.h"
#include "base/testing/temporary_folder.h"

using namespace sublet;

namespace {

class CgroupTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(CgroupTest);
  CPPUNIT_TEST(nothing_there_is_explained);
  CPPUNIT_TEST(both_layouts_are_found);
  CPPUNIT_TEST(what_is_delegated_is_used);
  CPPUNIT_TEST(controllers_are_held);
  CPPUNIT_TEST(folders_are_named_only_where_they_work);
  CPPUNIT_TEST(this_machine_is_used_as_it_is);
  CPPUNIT_TEST_SUITE_END();

  void nothing_there_is_explained() {
    char root[] = "/tmp/sublet-cgroup-XXXXXX";
    CPPUNIT_ASSERT(mkdtemp(root) != nullptr);
    AttemptCgroups found = AttemptCgroups::detect(root, "test");
    CPPUNIT_ASSERT(!found.can_kill() && !found.can_weigh() && !found.can_limit_memory() &&
                   !found.can_limit_processes());
    CPPUNIT_ASSERT_EQUAL(size_t{5}, found.missing().size());
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

  // The sentences name the place where a feature was tried; "-": nowhere.
  void what_is_delegated_is_used() {
    TemporaryFolder root;
    // To kill, to weigh, to bound memory, to bound processes, to watch traffic.
    const auto tried = [&root](const std::string& own) {
      std::vector<std::string> places;
      const AttemptCgroups found = AttemptCgroups::detect(root.path(), "test", own);
      for (const std::string& one : found.missing()) {
        const size_t at = one.find(root.path()), from = at + root.path().size();
        places.push_back(at == one.npos ? "-"
                                        : one.substr(from, one.find("/sublet-test-probe") - from));
      }
      return places;
    };
    using Places = std::vector<std::string>;
    const std::string unit = "/a.slice/client.service";
    for (const char* folder : {"", "/a.slice/client.service", "/a.slice/client.service/daemons"}) {
      system_files().make_folders(root.path() + folder);
      for (const char* name : {"/cgroup.controllers", "/cgroup.procs"})
        system_files().write_atomic(root.path() + folder + name, "");
    }
    CPPUNIT_ASSERT((Places{unit, "-", "-", "-", unit}) == tried(unit));
    CPPUNIT_ASSERT((Places{unit, "-", unit, unit, unit}) == tried(unit + "/daemons"));
    const Places machines(5, "");
    CPPUNIT_ASSERT(machines == tried("/b.slice"));  // it may not write there
    CPPUNIT_ASSERT(machines == tried(""));
  }

  // The sentences name the place where a feature was tried.
  void both_layouts_are_found() {
    const auto tried = [](const std::vector<std::string>& files) {
      TemporaryFolder root;
      for (const std::string& file : files) {
        const std::string path = root.path() + "/" + file;
        system_files().make_folders(path.substr(0, path.rfind('/')));
        system_files().write_atomic(path, "");
      }
      std::vector<std::string> places;
      const AttemptCgroups found = AttemptCgroups::detect(root.path(), "test");
      for (const std::string& sentence : found.missing()) {
        const size_t from = sentence.find(root.path());
        const size_t to = sentence.find("/sublet-test-probe");
        CPPUNIT_ASSERT_MESSAGE(sentence, from < to && to != std::string::npos);
        places.push_back(
            sentence.substr(from + root.path().size(), to - from - root.path().size()));
      }
      return places;
    };
    using Places = std::vector<std::string>;
    CPPUNIT_ASSERT((tried({"cgroup.controllers"}) == Places{"", "", "", "", ""}));
    CPPUNIT_ASSERT((tried({"unified/cgroup.controllers", "cpu,cpuacct/cgroup.procs",
                           "memory/cgroup.procs", "pids/cgroup.procs"}) ==
                    Places{"/unified", "/cpu,cpuacct", "/memory", "/pids", "/unified"}));
  }

  // The files of a real one appear when the root enables its controllers.
  void controllers_are_held() {
    TemporaryFolder root;
    const auto write = [&](const std::string& name) {
      system_files().write_atomic(root / name, "");
    };
    const auto enabled = [&](const std::string& name) {
      return system_files().read_file(root / name, 100);
    };
    write("cgroup.controllers");
    write("cgroup.subtree_control");
    system_files().make_folders(root / "sublet-test-hold");
    write("sublet-test-hold/cgroup.subtree_control");
    const AttemptCgroups found = AttemptCgroups::detect(root.path(), "test");
    // Each write of this ordinary file replaces the one before.
    CPPUNIT_ASSERT(enabled("cgroup.subtree_control").starts_with("+pids"));
    CPPUNIT_ASSERT(enabled("sublet-test-hold/cgroup.subtree_control").starts_with("+pids"));
    // Systemd has taken them away.
    write("cgroup.subtree_control");
    found.hold_controllers();
    CPPUNIT_ASSERT(enabled("cgroup.subtree_control").starts_with("+pids"));
    // Nothing has changed.
    write("sublet-test-hold/cpu.idle");
    write("cgroup.subtree_control");
    found.hold_controllers();
    CPPUNIT_ASSERT_EQUAL(std::string(), enabled("cgroup.subtree_control"));
    CPPUNIT_ASSERT_EQUAL(0, found.remove_left_over());
    CPPUNIT_ASSERT(system_files().exists(root / "sublet-test-hold"));
  }

  void folders_are_named_only_where_they_work() {
    AttemptOrder order;
    AttemptCgroups::detect("/no/such/root", "test").set_folders({7, 1}, &order);
    CPPUNIT_ASSERT(order.cgroup_unified.empty() && order.cgroup_cpu.empty());
    AttemptCgroups here = AttemptCgroups::of_machine("test", true);
    here.release_controllers();
    here.set_folders({7, 1}, &order);
    CPPUNIT_ASSERT_EQUAL(here.can_kill(), order.cgroup_unified.ends_with("/sublet-test-7.1"));
    CPPUNIT_ASSERT_EQUAL(here.can_weigh(), order.cgroup_cpu.ends_with("/sublet-test-7.1"));
    CPPUNIT_ASSERT_EQUAL(here.can_limit_memory(),
                         order.cgroup_memory.ends_with("/sublet-test-7.1"));
    CPPUNIT_ASSERT_EQUAL(here.can_limit_processes(),
                         order.cgroup_processes.ends_with("/sublet-test-7.1"));
  }

  void this_machine_is_used_as_it_is() {
    AttemptCgroups here = AttemptCgroups::of_machine("test", true);
    here.release_controllers();
    for (const std::string& sentence : here.missing()) std::cerr << sentence << "\n";
    CPPUNIT_ASSERT_EQUAL(size_t{5}, here.missing().size() + here.can_kill() + here.can_weigh() +
                                        here.can_limit_memory() + here.can_limit_processes() +
                                        here.can_watch_traffic());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(CgroupTest);

}  // namespace
