// What the kernel's counters say, in both layouts. (Real cgroups: run_test.cc.)
#include "client/shepherd/bounds.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>

#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/testing/temporary_folder.h"
#include "base/unique_fd.h"

namespace sublet::shepherd {
namespace {

// A folder that has the files of both layouts; the kernel's has those of one.
class Cgroup {
 public:
  explicit Cgroup(const std::vector<std::pair<std::string, std::string>>& files) {
    for (const auto& [name, text] : files) write(name, text);
    order_->cgroup_memory = order_->cgroup_processes = folder_.path().c_str();
    order_->slot_memory = 50'000'000;
    bounds_.set(*order_, true);
  }
  void write(const std::string& name, const std::string& text) {
    system_files().write_atomic(folder_ / name, text);
  }
  std::string read(const std::string& name) const {
    return system_files().read_file(folder_ / name, 100);
  }
  sublet_order& order() { return *order_; }
  Bounds& bounds() { return bounds_; }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<sublet_order> order_ = std::make_unique<sublet_order>();
  Bounds bounds_;
};

class BoundsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(BoundsTest);
  CPPUNIT_TEST(its_own_limit);
  CPPUNIT_TEST(the_machines_memory);
  CPPUNIT_TEST(nothing);
  CPPUNIT_TEST(what_is_set);
  CPPUNIT_TEST(room_for_copies_of_files);
  CPPUNIT_TEST(what_is_used);
  CPPUNIT_TEST(without_a_cgroup);
  CPPUNIT_TEST(what_does_not_count_for_another);
  CPPUNIT_TEST_SUITE_END();

  static bool ran_out(const std::vector<std::pair<std::string, std::string>>& files) {
    return Cgroup(files).bounds().memory_ran_out();
  }
  static std::string events(const std::string& oom, const std::string& kills) {
    return "low 0\nhigh 0\nmax 9\noom " + oom + "\noom_kill " + kills + "\noom_group_kill 0\n";
  }
  static std::string control(const std::string& kills) {
    return "oom_kill_disable 0\nunder_oom 0\noom_kill " + kills + "\n";
  }

  void its_own_limit() {
    CPPUNIT_ASSERT(ran_out({{"memory.events", events("1", "2")}}));
    CPPUNIT_ASSERT(ran_out({{"memory.oom_control", control("1")},
                            {"memory.max_usage_in_bytes", "49999872\n"},
                            {"memory.limit_in_bytes", "49999872\n"}}));
  }
  void the_machines_memory() {
    CPPUNIT_ASSERT(!ran_out({{"memory.events", events("0", "1")}}));
    CPPUNIT_ASSERT(!ran_out({{"memory.oom_control", control("1")},
                             {"memory.max_usage_in_bytes", "20000000\n"},
                             {"memory.limit_in_bytes", "60000000\n"}}));
  }
  void nothing() {
    CPPUNIT_ASSERT(!ran_out({}));
    CPPUNIT_ASSERT(!ran_out({{"memory.events", events("3", "0")}}));
    CPPUNIT_ASSERT(!ran_out({{"memory.oom_control", control("0")},
                             {"memory.max_usage_in_bytes", "49999872\n"},
                             {"memory.limit_in_bytes", "49999872\n"}}));
  }

  void what_is_set() {
    Cgroup unified({{"memory.max", "max"}, {"memory.swap.max", "max"}, {"pids.max", "max"}});
    CPPUNIT_ASSERT(unified.bounds().set(unified.order(), true) == nullptr);
    CPPUNIT_ASSERT_EQUAL(std::string("50000000"), unified.read("memory.max"));
    CPPUNIT_ASSERT(unified.read("memory.swap.max").starts_with("0"));
    CPPUNIT_ASSERT_EQUAL(std::string("512"), unified.read("pids.max"));
    unified.order().limit_processes = 7;
    unified.order().limit_memory = 60'000'000;
    CPPUNIT_ASSERT(unified.bounds().set(unified.order(), true) == nullptr);
    CPPUNIT_ASSERT_EQUAL(std::string("60000000"), unified.read("memory.max"));
    CPPUNIT_ASSERT(unified.read("pids.max").starts_with("7"));

    Cgroup older({{"memory.limit_in_bytes", ""},
                  {"memory.swappiness", ""},
                  {"memory.memsw.limit_in_bytes", ""},
                  {"memory.soft_limit_in_bytes", ""},
                  {"pids.max", "max"}});
    CPPUNIT_ASSERT_EQUAL(std::string("50000000"), older.read("memory.limit_in_bytes"));
    CPPUNIT_ASSERT_EQUAL(std::string("0"), older.read("memory.swappiness"));
    CPPUNIT_ASSERT_EQUAL(std::string("50000000"), older.read("memory.memsw.limit_in_bytes"));
    CPPUNIT_ASSERT_EQUAL(std::string("0"), older.read("memory.soft_limit_in_bytes"));
    CPPUNIT_ASSERT(!older.bounds().give_room({1 << 30, 0}));

    Cgroup none({});
    CPPUNIT_ASSERT_EQUAL(std::string("cgroup memory"),
                         std::string(none.bounds().set(none.order(), true)));
    none.write("memory.limit_in_bytes", "");
    CPPUNIT_ASSERT_EQUAL(std::string("cgroup processes"),
                         std::string(none.bounds().set(none.order(), true)));
  }

  // An eighth of its bound, beside what it has otherwise, and half of what is unused beyond 1 GiB.
  void room_for_copies_of_files() {
    Cgroup cgroup({{"memory.max", "max"}, {"memory.high", "max"}, {"pids.max", "max"}});
    const auto high = [&] { return std::stoll(cgroup.read("memory.high")) >> 20; };
    CPPUNIT_ASSERT_EQUAL(64ll, high());  // of 50 MB, but 64 MiB at least
    cgroup.order().limit_memory = int64_t{8} << 30;
    CPPUNIT_ASSERT(cgroup.bounds().set(cgroup.order(), true) == nullptr);
    CPPUNIT_ASSERT_EQUAL(1024ll, high());
    // Returns whether it grows.
    const auto room = [&](int64_t mib, int64_t copies_mib, int64_t unused_mib) {
      cgroup.write("memory.current", std::to_string(mib << 20));
      cgroup.write("memory.stat", "anon 1\ninactive_file " + std::to_string(copies_mib << 20) +
                                      "\nactive_file 1048576\n");
      return cgroup.bounds().give_room({int64_t{32} << 30, unused_mib << 20});
    };
    CPPUNIT_ASSERT(!room(1000, 998, 0));
    CPPUNIT_ASSERT_EQUAL(1025ll, high());
    CPPUNIT_ASSERT(!room(1025, 1023, 2024));  // 1000 that nobody uses
    CPPUNIT_ASSERT_EQUAL(1525ll, high());
    CPPUNIT_ASSERT(!room(1525, 1523, 1024));
    CPPUNIT_ASSERT_EQUAL(1525ll, high());
    CPPUNIT_ASSERT(!room(1500, 1498, 30));  // others took it
    CPPUNIT_ASSERT_EQUAL(1504ll, high());
    // Never less than it has, which this process would have to wait for.
    CPPUNIT_ASSERT(!room(1501, 1499, 30));
    CPPUNIT_ASSERT_EQUAL(1504ll, high());
    CPPUNIT_ASSERT(!room(1510, 1508, 30));  // somewhat over it, for a moment
    CPPUNIT_ASSERT_EQUAL(1504ll, high());
    CPPUNIT_ASSERT(!room(1023, 1021, 30));  // less would not do for what it may grow meanwhile
    CPPUNIT_ASSERT_EQUAL(1027ll, high());
    CPPUNIT_ASSERT(!room(700, 698, 30));
    CPPUNIT_ASSERT_EQUAL(1025ll, high());
    CPPUNIT_ASSERT(room(1024, 823, 0));  // by 199 MiB
    CPPUNIT_ASSERT_EQUAL(1224ll, high());
    CPPUNIT_ASSERT(!room(1024, 823, 0));
    cgroup.bounds().open_up();
    CPPUNIT_ASSERT(cgroup.read("memory.high").starts_with("max"));
    CPPUNIT_ASSERT(!room(3000, 0, 0));
    CPPUNIT_ASSERT(cgroup.read("memory.high").starts_with("max"));
  }

  void what_is_used() {
    Cgroup unified({{"memory.max", "max"},
                    {"pids.max", "max"},
                    {"memory.stat", "anon 300\nfile 5000\nkernel 7\nshmem 20\nfile_mapped 9\n"},
                    {"pids.peak", "12\n"},
                    {"pids.current", "5\n"},
                    {"pids.events", "max 0\n"}});
    CPPUNIT_ASSERT_EQUAL(int64_t{320}, unified.bounds().memory_used());
    CPPUNIT_ASSERT_EQUAL(int64_t{12}, unified.bounds().most_processes());
    CPPUNIT_ASSERT(!unified.bounds().processes_ran_out());
    unified.write("pids.events", "max 3\n");  // of a cgroup above
    CPPUNIT_ASSERT(!unified.bounds().processes_ran_out());
    unified.write("pids.peak", "512\n");
    CPPUNIT_ASSERT(unified.bounds().processes_ran_out());

    Cgroup older({{"memory.limit_in_bytes", ""},
                  {"pids.max", "max"},
                  {"memory.stat", "cache 5000\nrss 400\nrss_huge 0\nshmem 30\n"},
                  {"pids.current", "5\n"}});
    CPPUNIT_ASSERT_EQUAL(int64_t{430}, older.bounds().memory_used());
    CPPUNIT_ASSERT_EQUAL(int64_t{5}, older.bounds().most_processes());
    older.write("pids.events", "max 3\n");
    CPPUNIT_ASSERT(older.bounds().processes_ran_out());
  }

  void without_a_cgroup() {
    const auto order = std::make_unique<sublet_order>();
    order->cgroup_memory = order->cgroup_processes = "";
    Bounds bounds;
    CPPUNIT_ASSERT(bounds.set(*order, true) == nullptr);
    CPPUNIT_ASSERT(!bounds.counts_memory() && !bounds.counts_processes());
    CPPUNIT_ASSERT(!bounds.memory_ran_out() && !bounds.processes_ran_out());
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, bounds.memory_used() + bounds.most_processes());
  }

  static bool is_untouched(const std::vector<std::pair<std::string, std::string>>& files,
                           const std::string& name, const std::string& text) {
    const TemporaryFolder folder;
    for (const auto& [one, content] : files) system_files().write_atomic(folder / one, content);
    system_files().write_atomic(folder / name, text);
    std::list<UniqueFd> open_files;
    const auto file = [&](const std::string& name, const std::string& older = "none") {
      open_files.emplace_back(open((folder / name).c_str(), O_RDONLY | O_CLOEXEC));
      if (!open_files.back().valid())
        open_files.back() = UniqueFd(open((folder / older).c_str(), O_RDONLY | O_CLOEXEC));
      return open_files.back().get();
    };
    const int peak = file("memory.max_usage_in_bytes");
    return Bounds::are_untouched({peak >= 0, file("memory.max", "memory.limit_in_bytes"),
                                  file("memory.current", "memory.usage_in_bytes"),
                                  file("memory.events", "memory.oom_control"), peak,
                                  file("pids.max"), file("pids.peak"), file("pids.events")},
                                 50'000'000, 512);
  }

  void what_does_not_count_for_another() {
    const std::vector<std::pair<std::string, std::string>> unified = {
        {"memory.current", "540672\n"},
        {"memory.max", "49999872\n"},
        {"memory.events", events("0", "0")},
        {"pids.max", "512\n"},
        {"pids.peak", "1\n"},
        {"pids.events", "max 0\n"}};
    CPPUNIT_ASSERT(is_untouched(unified, "memory.stat", ""));
    CPPUNIT_ASSERT(is_untouched(unified, "memory.current", "0\n"));
    CPPUNIT_ASSERT(!is_untouched(unified, "memory.current", "1600000\n"));
    CPPUNIT_ASSERT(!is_untouched(unified, "memory.max", "max\n"));
    CPPUNIT_ASSERT(!is_untouched(unified, "memory.events", events("1", "0")));
    CPPUNIT_ASSERT(!is_untouched(unified, "memory.events", events("0", "1")));
    CPPUNIT_ASSERT(!is_untouched(unified, "pids.max", "max\n"));
    CPPUNIT_ASSERT(!is_untouched(unified, "pids.peak", "2\n"));
    CPPUNIT_ASSERT(!is_untouched(unified, "pids.events", "max 1\n"));
    const std::vector<std::pair<std::string, std::string>> older = {
        {"memory.usage_in_bytes", "540672\n"},
        {"memory.limit_in_bytes", "49999872\n"},
        {"memory.max_usage_in_bytes", "9000000\n"},
        {"memory.oom_control", control("0")},
        {"pids.max", "512\n"},
        {"pids.events", "max 0\n"}};
    CPPUNIT_ASSERT(is_untouched(older, "memory.stat", ""));
    CPPUNIT_ASSERT(!is_untouched(older, "memory.usage_in_bytes", "1600000\n"));
    CPPUNIT_ASSERT(!is_untouched(older, "memory.limit_in_bytes", "9223372036854771712\n"));
    CPPUNIT_ASSERT(!is_untouched(older, "memory.max_usage_in_bytes", "49900000\n"));
    CPPUNIT_ASSERT(!is_untouched(older, "memory.oom_control", control("1")));
    CPPUNIT_ASSERT(Bounds::are_untouched({}, -1, -1));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(BoundsTest);

}  // namespace
}  // namespace sublet::shepherd
