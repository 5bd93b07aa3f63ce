#include "client/attempts/adoption.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <fstream>

#include "attempt/tenant.h"
#include "base/process.h"
#include "base/testing/temporary_folder.h"
#include "client/attempts/work.h"

namespace sublet::client {
namespace {

class AdoptionTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(AdoptionTest);
  CPPUNIT_TEST(finds_every_stage);
  CPPUNIT_TEST(the_next_of_a_slot_is_not_kept);
  CPPUNIT_TEST(its_slot_may_be_free);
  CPPUNIT_TEST(a_folder_that_was_left_open_is_closed);
  CPPUNIT_TEST(a_damaged_record_costs_itself_only);
  CPPUNIT_TEST(what_a_loss_of_power_left_is_an_end);
  CPPUNIT_TEST(an_end_that_was_not_synced_is_lost_with_the_power);
  CPPUNIT_TEST(what_was_never_promised_goes);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder state_;

  std::string make(uint64_t job) { return make(job, static_cast<int64_t>(job)); }
  std::string make(uint64_t job, int64_t slot) {
    Assignment what;
    what.name = {job, 1};
    what.slot = slot;
    what.job.program = "true";
    std::string folder = attempt_folder(state_.path(), what.name);
    make_attempt_folder(system_files(), folder, -1, -1);
    write_assignment(system_files(), folder, what);
    return folder;
  }
  std::vector<Adopted> adopt() { return adopt_attempts(system_files(), state_.path()); }

  void finds_every_stage() {
    make(1);
    std::ofstream(make(2) + "/exit") << "x";
    write_end(system_files(), make(3), {5, "why", 1});
    std::ofstream(make(4) + "/record") << "x";
    auto all = adopt();
    CPPUNIT_ASSERT_EQUAL(size_t{4}, all.size());
    CPPUNIT_ASSERT(!all[0].facts.exit_recorded && !all[0].facts.shepherd_known);
    CPPUNIT_ASSERT(all[1].facts.exit_recorded);
    CPPUNIT_ASSERT(all[2].facts.end_recorded);
    CPPUNIT_ASSERT(all[3].facts.shepherd_known && !all[3].facts.shepherd_alive);
  }

  // Nobody but its shepherd knows of it, which then passes it over, or has begun with it.
  void the_next_of_a_slot_is_not_kept() {
    constexpr int64_t kSlot = 7;
    std::ofstream(make(1, kSlot) + "/record") << "x";
    std::ofstream(make(2, kSlot) + "/order") << "x";
    make(3, kSlot);
    make(4, kSlot + 1);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, adopt().size());
    for (const uint64_t job : {2, 3})
      CPPUNIT_ASSERT(!system_files().exists(attempt_folder(state_.path(), {job, 1})));

    const std::string begun = make(5, kSlot);
    const UniqueFd shepherd(open(begun.c_str(), O_RDONLY | O_DIRECTORY));
    CPPUNIT_ASSERT_EQUAL(0, flock(shepherd.get(), LOCK_EX));
    const auto all = adopt();
    CPPUNIT_ASSERT_EQUAL(size_t{3}, all.size());
    CPPUNIT_ASSERT(all[2].facts.shepherd_alive);
  }

  void its_slot_may_be_free() {
    std::ofstream(make(1, 0) + "/exit") << "x";
    make(2, 0);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, adopt().size());
  }

  void a_folder_that_was_left_open_is_closed() {
    std::ofstream(make(1) + "/exit") << "x";
    write_end(system_files(), make(2), {5, "why", 1});
    std::ofstream(make(3) + "/record") << "x";
    const std::string runs = make(4);
    std::ofstream(runs + "/record") << "x";
    const UniqueFd shepherd(open(runs.c_str(), O_RDONLY | O_DIRECTORY));
    CPPUNIT_ASSERT_EQUAL(0, flock(shepherd.get(), LOCK_EX));
    const auto mode = [this](uint64_t job) {
      struct stat about;
      CPPUNIT_ASSERT_EQUAL(0, stat(attempt_folder(state_.path(), {job, 1}).c_str(), &about));
      return about.st_mode & 07777;
    };
    for (const uint64_t job : {1, 2, 3, 4})
      CPPUNIT_ASSERT_EQUAL(0, chmod(attempt_folder(state_.path(), {job, 1}).c_str(), 0710));
    CPPUNIT_ASSERT_EQUAL(size_t{4}, adopt().size());
    for (const uint64_t job : {1, 2, 3}) CPPUNIT_ASSERT_EQUAL(mode_t{0700}, mode(job));
    CPPUNIT_ASSERT_EQUAL(mode_t{0710}, mode(4));
  }

  void a_damaged_record_costs_itself_only() {
    make(1);
    std::ofstream(make(2) + "/assignment", std::ios::app) << "x";
    system_files().make_folders(state_ / "attempts/strange");
    auto all = adopt();
    CPPUNIT_ASSERT_EQUAL(size_t{2}, all.size());
    CPPUNIT_ASSERT_EQUAL(std::string("true"), all[0].assignment->job.program);
    CPPUNIT_ASSERT(all[1].facts.end_recorded);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, all[1].assignment->name.job);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, system_files().list(state_ / "damaged").size());
    // The second time nothing is damaged any more.
    CPPUNIT_ASSERT_EQUAL(size_t{2}, adopt().size());
    CPPUNIT_ASSERT_EQUAL(size_t{2}, system_files().list(state_ / "damaged").size());
  }

  // Order and record are not synced: after a power failure they may be empty.
  void what_a_loss_of_power_left_is_an_end() {
    make(1);
    const std::string folder = attempt_folder(state_.path(), {1, 1});
    for (const char* file : {SUBLET_ORDER_FILE, SUBLET_RECORD_FILE})
      system_files().write_atomic(folder + "/" + file, "");
    const auto all = adopt();
    CPPUNIT_ASSERT_EQUAL(size_t{1}, all.size());
    CPPUNIT_ASSERT(all[0].facts.shepherd_known && !all[0].facts.shepherd_alive);
    CPPUNIT_ASSERT(!all[0].facts.exit_recorded && !all[0].facts.end_recorded);
    std::string error;
    CPPUNIT_ASSERT(!Tenant::open(folder, &error));
  }

  static std::string exit_of(uint64_t job, const std::string& boot) {
    AttemptExit exit;
    exit.facts.job = static_cast<int64_t>(job);
    exit.facts.attempt = 1;
    exit.facts.outcome = SUBLET_OUTCOME_EXITED;
    exit.boot_id = boot;
    return print_exit(exit);
  }

  void an_end_that_was_not_synced_is_lost_with_the_power() {
    const std::string earlier = "01234567-0123-0123-0123-0123456789ab";
    system_files().write_atomic(make(1) + "/exit", exit_of(1, boot_id()));
    system_files().write_atomic(make(2) + "/exit", exit_of(2, earlier));
    const std::string synced = make(3);
    system_files().write_atomic(synced + "/exit", exit_of(3, earlier));
    AttemptWork work(std::make_shared<Assignment>(read_assignment(system_files(), synced)), synced);
    outlive_power(system_files(), work);
    for (int i = 0; i < 2; ++i) {
      const auto all = adopt();
      CPPUNIT_ASSERT_EQUAL(size_t{3}, all.size());
      CPPUNIT_ASSERT(all[0].facts.exit_recorded && !all[0].facts.end_recorded);
      CPPUNIT_ASSERT(!all[1].facts.exit_recorded && all[1].facts.end_recorded);
      CPPUNIT_ASSERT(all[2].facts.exit_recorded && !all[2].facts.end_recorded);
    }
    const auto end = read_end(system_files(), attempt_folder(state_.path(), {2, 1}));
    CPPUNIT_ASSERT(end && end->end == protocol::kEndLost);
  }

  void what_was_never_promised_goes() {
    make_attempt_folder(system_files(), attempt_folder(state_.path(), {1, 1}), -1, -1);
    // The assignment is not synced either.
    system_files().write_atomic(make(2) + "/" + kAssignmentFile, "");
    CPPUNIT_ASSERT(adopt().empty());
    CPPUNIT_ASSERT(!system_files().exists(state_ / "damaged"));
    CPPUNIT_ASSERT(list_attempts(system_files(), state_.path()).empty());
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(AdoptionTest);

}  // namespace
}  // namespace sublet::client
