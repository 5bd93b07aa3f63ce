#include "client/attempts/order_desk.h"

#include <cppunit/extensions/HelperMacros.h>

#include <cerrno>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/clock.h"
#include "base/testing/faulty_files.h"
#include "base/testing/temporary_folder.h"
#include "client/attempts/ending.h"

namespace sublet::client {
namespace {

struct Handed : HandedAttempt {
  explicit Handed(const AttemptName& its_name) : name(its_name) {}
  const AttemptName name;
};

const AttemptName& name_of(HandedAttempt& one) { return static_cast<Handed&>(one).name; }

// The shepherds of slots in which an attempt runs.
struct Shepherds : NextAttempts {
  std::shared_ptr<HandedAttempt> hand_over(std::shared_ptr<const Assignment> what) override {
    if (on_hand_over) on_hand_over(what->name);
    if (out_of_order) throw std::runtime_error("out of order");
    handed.push_back(what->name);
    return std::make_shared<Handed>(what->name);
  }
  bool take_back(HandedAttempt& one) override {
    if (on_take_back) on_take_back();
    if (begun.contains(name_of(one))) return false;
    taken_back.push_back(name_of(one));
    return true;
  }
  void renew(HandedAttempt& one, int64_t lease_ns) override { leases[name_of(one)] = lease_ns; }
  void begin(HandedAttempt& one) override {
    began.push_back(name_of(one));
    if (on_begin) on_begin(name_of(one));
  }

  bool out_of_order = false;
  std::function<void(const AttemptName&)> on_hand_over;
  std::function<void()> on_take_back;
  std::function<void(const AttemptName&)> on_begin;
  std::set<AttemptName> begun;  // of those that are handed over, by their shepherds
  std::vector<AttemptName> handed, taken_back, began;
  std::map<AttemptName, int64_t> leases;
};

// A disk that is full, has a given amount of free space, or calls back at the first
// write.
class FullDisk : public Files {
 public:
  bool full = false;
  std::optional<uint64_t> free;
  mutable std::function<void()> on_write;  // called once
  uint64_t free_bytes(const std::string& path) const override {
    return free ? *free : Files::free_bytes(path);
  }

 protected:
  int before(FileStep step, const std::string&) const override {
    if (step == FileStep::write && on_write) std::exchange(on_write, nullptr)();
    return full && (step == FileStep::write || step == FileStep::make_folder) ? ENOSPC : 0;
  }
};

class OrderDeskTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(OrderDeskTest);
  CPPUNIT_TEST(an_accepted_order_is_on_disk);
  CPPUNIT_TEST(refusals);
  CPPUNIT_TEST(outputs_may_be_folders_and_patterns);
  CPPUNIT_TEST(the_program_of_this_platform);
  CPPUNIT_TEST(a_repeat_is_accepted_once);
  CPPUNIT_TEST(old_attempts_are_refused);
  CPPUNIT_TEST(an_order_of_another_registration_is_stale);
  CPPUNIT_TEST(an_order_is_named_while_it_is_written);
  CPPUNIT_TEST(an_order_that_passes_on_meanwhile_is_named_once);
  CPPUNIT_TEST(what_is_refused_is_not_named);
  CPPUNIT_TEST(what_cannot_be_passed_on_is_refused);
  CPPUNIT_TEST(slots_and_outbox_are_bounded);
  CPPUNIT_TEST(orders_ahead_wait_for_a_slot);
  CPPUNIT_TEST(who_frees_a_slot_may_start_the_next_order);
  CPPUNIT_TEST(orders_ahead_come_back_with_the_owner);
  CPPUNIT_TEST(orders_ahead_are_given_back_at_once);
  CPPUNIT_TEST(an_order_ahead_is_told_to_leave);
  CPPUNIT_TEST(one_that_is_being_accepted_is_told_to_leave);
  CPPUNIT_TEST(a_lease_that_is_over_starts_nothing);
  CPPUNIT_TEST(one_that_cannot_be_kept_is_given_back);
  CPPUNIT_TEST(the_next_of_a_slot_waits_with_its_shepherd);
  CPPUNIT_TEST(one_is_handed_over_only_behind_what_runs);
  CPPUNIT_TEST(who_has_to_fetch_is_not_handed_over);
  CPPUNIT_TEST(what_cannot_be_handed_over_waits_for_its_slot);
  CPPUNIT_TEST(the_next_is_given_back_if_it_has_not_begun);
  CPPUNIT_TEST(one_that_has_begun_stays);
  CPPUNIT_TEST(the_slot_may_be_free_before_the_next_is_handed_over);
  CPPUNIT_TEST(the_slot_may_be_free_while_the_next_is_taken_back);
  CPPUNIT_TEST(the_owner_may_come_while_the_next_is_handed_over);
  CPPUNIT_TEST(an_empty_slot_takes_the_next_of_another);
  CPPUNIT_TEST(nobody_is_passed_behind_a_long_one);
  CPPUNIT_TEST(a_new_reason_is_one_for_the_next_too);
  CPPUNIT_TEST(who_has_not_begun_when_the_owner_returns_does_not_begin);
  CPPUNIT_TEST(what_was_said_while_it_was_handed_over_counts);
  CPPUNIT_TEST(a_client_that_stops_waits_for_those_that_have_begun);
  CPPUNIT_TEST(the_next_is_told_to_leave);
  CPPUNIT_TEST(the_next_has_the_newest_lease);
  CPPUNIT_TEST(no_two_attempts_have_one_gpu);
  CPPUNIT_TEST(a_full_disk_loses_nothing);
  CPPUNIT_TEST(a_job_that_filled_the_disk_needs_twice_as_much);
  CPPUNIT_TEST(memory_that_is_needed_is_not_given_away);
  CPPUNIT_TEST(a_job_that_saved_nothing_is_not_lifted_again);
  CPPUNIT_TEST(only_an_order_that_fits_then_makes_others_give_way);
  CPPUNIT_TEST(asked_beforehand_it_knows_of_no_age);
  CPPUNIT_TEST(an_old_order_is_stale);
  CPPUNIT_TEST(a_broken_machine_takes_no_orders_for_a_while);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder state_;
  FullDisk files_;
  PublicPresence presence_;
  std::vector<std::shared_ptr<const Assignment>> accepted_;
  std::vector<bool> from_ahead_;
  std::vector<AttemptName> vacated_;
  std::vector<std::pair<AttemptName, std::string>> given_back_;
  bool out_of_memory_ = false;
  Shepherds shepherds_;
  std::unique_ptr<OrderDesk> desk_;

 public:
  void setUp() override {
    make_desk();
    desk_->set_server_clock(kServerUs, system_clock().boot_ns());
  }

 private:
  void make_desk() {
    presence_.away = true;
    DeskSettings settings;
    settings.state_folder = state_.path();
    settings.facts.slots = slots_;
    settings.facts.cores = 2;
    settings.facts.gpus = {"0", "2"};
    settings.facts.os = "linux";
    settings.facts.architecture = "x86_64";
    settings.facts.memory = 1000;
    settings.slot_uids.assign(slots_, -1);
    settings.outbox_limit = 2;
    settings.ahead = 2;
    settings.disk_reserve = 0;
    settings.memory_least = memory_least_;
    settings.behind_ms = behind_ms_;
    desk_ = std::make_unique<OrderDesk>(
        settings, files_, presence_, [this](auto a, bool from_ahead) { accept(a, from_ahead); },
        [this](std::vector<VacateOrder> orders) {
          for (const VacateOrder& order : orders) vacated_.push_back(order.name);
        });
    desk_->on_given_back([this](std::shared_ptr<const Assignment> what, const std::string& why) {
      given_back_.emplace_back(what->name, why);
    });
    desk_->set_session(kSession);
  }

  std::function<void(const AttemptName&)> on_accept_;
  uint64_t memory_least_ = 0;
  int64_t behind_ms_ = 3'600'000;
  uint32_t slots_ = 2;
  static constexpr int64_t kServerUs = 1'700'000'000'000'000;  // the server's time in setUp

  static constexpr const char* kSession = "0123456789abcdef";

  static RunOrder order(uint64_t job, uint32_t attempt = 1) {
    RunOrder one;
    one.what.name = {job, attempt};
    one.what.job.program = "true";
    one.lease_ms = 3'600'000;
    one.decided_us = kServerUs;
    return one;
  }
  void accept(std::shared_ptr<const Assignment> assignment, bool from_ahead) {
    from_ahead_.push_back(from_ahead);
    if (out_of_memory_) throw std::bad_alloc();
    if (on_accept_) on_accept_(assignment->name);
    accepted_.push_back(std::move(assignment));
  }
  uint32_t run(const RunOrder& one) { return answer_to(one).answer; }
  RunAnswer answer_to(const RunOrder& one) { return desk_->run(kSession, {one})[0]; }
  // What would be named to the server if Attempts held none.
  std::vector<AttemptName> named() {
    std::vector<AttemptName> names;
    for (const HeldAttempt& one : all_held(*desk_, [] { return std::vector<HeldAttempt>(); }))
      names.push_back(one.name);
    return names;
  }

  void an_accepted_order_is_on_disk() {
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(1)));
    Assignment kept = read_assignment(files_, attempt_folder(state_.path(), {1, 1}));
    Assignment expected = *accepted_.at(0);
    CPPUNIT_ASSERT(expected.first_lease_ns > 0);
    expected.first_lease_ns = 0;  // not stored
    CPPUNIT_ASSERT(kept == expected);
    CPPUNIT_ASSERT(kept.accepted_us > 0);
    CPPUNIT_ASSERT_EQUAL(1u, desk_->slots_free());
  }

  void refusals() {
    RunOrder one = order(1);
    one.what.job.needs.os = "plan9";
    CPPUNIT_ASSERT_EQUAL(kRunLacks, run(one));
    one = order(1);
    one.what.job.needs.memory = 1001;
    CPPUNIT_ASSERT_EQUAL(kRunLacks, run(one));
    one.what.job.needs.memory = 1000;
    one.what.job.needs.disk = UINT64_MAX / 2;
    CPPUNIT_ASSERT_EQUAL(kRunLacks, run(one));
    one = order(1);
    one.what.job.outputs = {{"../escape", true}};
    CPPUNIT_ASSERT_EQUAL(kRunLacks, run(one));
    one = order(1);
    one.what.job.network = Network::kNone;
    CPPUNIT_ASSERT_EQUAL(std::string("this machine cannot keep jobs off the network"),
                         answer_to(one).reason);
    CPPUNIT_ASSERT_EQUAL(kRunLacks, run(one));
    one = order(1);
    one.not_served = "the field `account` is not served here";
    CPPUNIT_ASSERT_EQUAL(one.not_served, answer_to(one).reason);
    CPPUNIT_ASSERT_EQUAL(kRunLacks, run(one));
    presence_.away = false;
    CPPUNIT_ASSERT_EQUAL(kRunOwner, run(order(1)));
    presence_.away = true;
    desk_->drain();
    CPPUNIT_ASSERT_EQUAL(kRunDraining, run(order(1)));
    CPPUNIT_ASSERT(accepted_.empty());
    CPPUNIT_ASSERT_EQUAL(2u, desk_->slots_free());
    CPPUNIT_ASSERT(list_attempts(files_, state_.path()).empty());
  }

  void outputs_may_be_folders_and_patterns() {
    RunOrder one = order(1);
    one.what.job.outputs = {{"results/", true}, {"*.png", false}, {"a\\*", true}};
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(one));
    one = order(2);
    one.what.job.outputs = {{"[a", true}};
    CPPUNIT_ASSERT_EQUAL(kRunLacks, run(one));
  }

  void the_program_of_this_platform() {
    RunOrder one = order(1);
    one.what.job.programs = {{"linux/aarch64", "./arm"}, {"linux/x86_64", "./x86"}};
    for (const char* name : {"arm", "data", "x86"}) {
      one.what.job.inputs.emplace_back();
      one.what.job.inputs.back().name = name;
    }
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(one));
    CPPUNIT_ASSERT_EQUAL(std::string("./x86"), accepted_.at(0)->job.program);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, accepted_[0]->job.inputs.size());
    CPPUNIT_ASSERT_EQUAL(std::string("data"), accepted_[0]->job.inputs[0].name);
    desk_->forget({1, 1});
    one.what.name.job = 3;
    one.what.job.standard_input = "arm";  // what the job reads stays
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(one));
    CPPUNIT_ASSERT_EQUAL(size_t{3}, accepted_.at(1)->job.inputs.size());
    one = order(2);
    one.what.job.programs = {{"linux/aarch64", "./arm"}, {"plan9/x86_64", "./nine"}};
    const RunAnswer answer = answer_to(one);
    CPPUNIT_ASSERT_EQUAL(kRunLacks, answer.answer);
    CPPUNIT_ASSERT_EQUAL(std::string("it has a program for linux/aarch64 or plan9/x86_64, this "
                                     "machine is linux/x86_64"),
                         answer.reason);
    CPPUNIT_ASSERT_EQUAL(1u, desk_->slots_free());
  }

  void a_repeat_is_accepted_once() {
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(1)));
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(1)));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, accepted_.size());
  }

  void old_attempts_are_refused() {
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(1, 3)));
    CPPUNIT_ASSERT_EQUAL(kRunOld, run(order(1, 2)));
    desk_->forget({1, 3});
    CPPUNIT_ASSERT_EQUAL(kRunOld, run(order(1, 3)));
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(1, 4)));
  }

  void an_order_of_another_registration_is_stale() {
    desk_->set_session("another");
    CPPUNIT_ASSERT_EQUAL(kRunStale, run(order(1)));
    desk_->set_session("");
    CPPUNIT_ASSERT_EQUAL(kRunStale, run(order(1)));
    CPPUNIT_ASSERT_EQUAL(kRunStale, desk_->run("", {order(1)})[0].answer);
    CPPUNIT_ASSERT(accepted_.empty());
    CPPUNIT_ASSERT_EQUAL(2u, desk_->slots_free());
    desk_->set_session(kSession);
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(1)));
    // A repeated order for an attempt held here is accepted under any registration.
    desk_->set_session("another");
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(1)));
  }

  // The client registers anew while an order is being written to disk: the server
  // gives the job to another machine unless the first renewal names it.
  void an_order_is_named_while_it_is_written() {
    std::vector<AttemptName> during;
    uint32_t late = kRunAccepted;
    files_.on_write = [&] {
      desk_->set_session("another");
      late = run(order(2));
      during = named();
    };
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(1)));
    CPPUNIT_ASSERT(during == std::vector<AttemptName>({{1, 1}}));
    CPPUNIT_ASSERT_EQUAL(kRunStale, late);
    // Until Attempts has taken it over.
    CPPUNIT_ASSERT(named() == during);
    desk_->taken_over({1, 1});
    CPPUNIT_ASSERT(named().empty());
  }

  void an_order_that_passes_on_meanwhile_is_named_once() {
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(1)));
    HeldAttempt running;
    running.name = {1, 1};
    running.state = kAttemptRunning;
    auto held = all_held(*desk_, [&] {
      desk_->taken_over({1, 1});
      return std::vector<HeldAttempt>{running};
    });
    CPPUNIT_ASSERT_EQUAL(size_t{1}, held.size());
    CPPUNIT_ASSERT_EQUAL(kAttemptRunning, held[0].state);
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(2)));
    held = all_held(*desk_, [&] {  // taken over just after Attempts was read
      desk_->taken_over({2, 1});
      return std::vector<HeldAttempt>{running};
    });
    CPPUNIT_ASSERT_EQUAL(size_t{2}, held.size());
    CPPUNIT_ASSERT_EQUAL(kAttemptStaging, held[1].state);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, held[0].disk + held[1].disk);
    desk_->set_disk_in_use({{{2, 1}, 7}, {{9, 1}, 8}});
    held = all_held(*desk_, [&] { return std::vector<HeldAttempt>{running}; });
    CPPUNIT_ASSERT_EQUAL(size_t{1}, held.size());
    running.name = {2, 1};
    held = all_held(*desk_, [&] { return std::vector<HeldAttempt>{running}; });
    CPPUNIT_ASSERT_EQUAL(uint64_t{7}, held[0].disk);
  }

  void what_is_refused_is_not_named() {
    files_.full = true;
    CPPUNIT_ASSERT_EQUAL(kRunError, run(order(1)));
    CPPUNIT_ASSERT(named().empty());
  }

  void what_cannot_be_passed_on_is_refused() {
    out_of_memory_ = true;
    CPPUNIT_ASSERT(run(order(1)) != kRunAccepted);
    CPPUNIT_ASSERT(named().empty());
    CPPUNIT_ASSERT_EQUAL(2u, desk_->slots_free());
    CPPUNIT_ASSERT(list_attempts(files_, state_.path()).empty());
  }

  void slots_and_outbox_are_bounded() {
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(1)));
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(2)));
    CPPUNIT_ASSERT_EQUAL(kRunFull, run(order(3)));
    desk_->release_slot({1, 1});
    desk_->release_slot({1, 1});
    CPPUNIT_ASSERT_EQUAL(1u, desk_->slots_free());
    desk_->release_slot({2, 1});  // two in the outbox now
    CPPUNIT_ASSERT_EQUAL(kRunError, run(order(3)));
    desk_->forget({1, 1});
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(3)));
  }

  // ---- orders taken ahead ----

  static RunOrder ahead(uint64_t job) {
    RunOrder one = order(job);
    one.ahead = true;
    return one;
  }
  // As the server is told.
  std::vector<AttemptName> waiting() const {
    std::vector<AttemptName> names;
    for (const HeldAttempt& one : all_held(*desk_, [] { return std::vector<HeldAttempt>(); }))
      if (one.waits) names.push_back(one.name);
    return names;
  }
  // Both slots are taken, and so many orders wait for one.
  void fill(uint64_t waiting) {
    for (uint64_t job = 1; job <= 2 + waiting; ++job)
      CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(ahead(job)));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, accepted_.size());
  }

  void orders_ahead_wait_for_a_slot() {
    fill(2);
    CPPUNIT_ASSERT_EQUAL(kRunFull, run(ahead(5)));
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(ahead(3)));  // a repeat
    CPPUNIT_ASSERT_EQUAL(size_t{4}, named().size());    // their leases are renewed
    CPPUNIT_ASSERT((waiting() == std::vector<AttemptName>{{3, 1}, {4, 1}}));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, list_attempts(files_, state_.path()).size());
    desk_->release_slot({2, 1});
    CPPUNIT_ASSERT_EQUAL(size_t{3}, accepted_.size());
    CPPUNIT_ASSERT((from_ahead_ == std::vector<bool>{false, false, true}));
    CPPUNIT_ASSERT(accepted_.back()->name == (AttemptName{3, 1}));
    CPPUNIT_ASSERT((waiting() == std::vector<AttemptName>{{4, 1}}));
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, accepted_.back()->slot);
    Assignment kept = read_assignment(files_, attempt_folder(state_.path(), {3, 1}));
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, kept.slot);
    CPPUNIT_ASSERT_EQUAL(kRunFull, run(order(6)));
    desk_->forget({2, 1});
    desk_->forget({1, 1});  // its slot is free, too
    CPPUNIT_ASSERT(accepted_.back()->name == (AttemptName{4, 1}));
    CPPUNIT_ASSERT(given_back_.empty());
  }

  void who_frees_a_slot_may_start_the_next_order() {
    fill(1);
    CPPUNIT_ASSERT(desk_->has_ahead());
    CPPUNIT_ASSERT(desk_->free_slot({2, 1}));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, accepted_.size());
    desk_->start_ahead();
    CPPUNIT_ASSERT_EQUAL(size_t{3}, accepted_.size());
    CPPUNIT_ASSERT(!desk_->has_ahead());
    CPPUNIT_ASSERT(!desk_->free_slot({2, 1}));  // it has none any more
    CPPUNIT_ASSERT(!desk_->free_slot({1, 1}));  // no order waits for it
    CPPUNIT_ASSERT_EQUAL(1u, desk_->slots_free());
  }

  void orders_ahead_come_back_with_the_owner() {
    fill(2);
    presence_.away = false;
    desk_->release_slot({1, 1});
    CPPUNIT_ASSERT_EQUAL(size_t{2}, accepted_.size());
    CPPUNIT_ASSERT_EQUAL(size_t{2}, given_back_.size());
    CPPUNIT_ASSERT_EQUAL(std::string("the owner is here"), given_back_[0].second);
    CPPUNIT_ASSERT(desk_->is_returning());
    // Until the server knows, a late repeat starts nothing; nor afterwards.
    presence_.away = true;
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(ahead(3)));
    desk_->returned({3, 1});
    desk_->returned({4, 1});
    CPPUNIT_ASSERT(!desk_->is_returning());
    CPPUNIT_ASSERT_EQUAL(kRunOld, run(ahead(3)));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, accepted_.size());
    CPPUNIT_ASSERT_EQUAL(size_t{2}, named().size());
  }

  void orders_ahead_are_given_back_at_once() {
    fill(2);
    desk_->give_back_ahead("this client is stopping");
    CPPUNIT_ASSERT_EQUAL(size_t{2}, given_back_.size());
    CPPUNIT_ASSERT_EQUAL(size_t{4}, named().size());  // until the server knows
    desk_->release_slot({1, 1});
    CPPUNIT_ASSERT_EQUAL(size_t{2}, accepted_.size());
  }

  void an_order_ahead_is_told_to_leave() {
    fill(2);
    desk_->vacate({{{3, 1}, SUBLET_LEAVE_PREEMPT, true},
                   {{2, 1}, SUBLET_LEAVE_PREEMPT, true},
                   {{1, 1}, SUBLET_LEAVE_REMOVED}});
    CPPUNIT_ASSERT_EQUAL(size_t{1}, given_back_.size());
    CPPUNIT_ASSERT(std::ranges::count(vacated_, AttemptName{2, 1}) == 0);
    CPPUNIT_ASSERT(std::ranges::count(vacated_, AttemptName{1, 1}) == 1);
    CPPUNIT_ASSERT(given_back_[0].first == (AttemptName{3, 1}));
    desk_->returned({3, 1});
    desk_->release_slot({1, 1});
    CPPUNIT_ASSERT(accepted_.back()->name == (AttemptName{4, 1}));
  }

  // Attempts does not know it yet.
  void one_that_is_being_accepted_is_told_to_leave() {
    fill(1);
    on_accept_ = [this](const AttemptName& name) {
      desk_->vacate({{name, SUBLET_LEAVE_REMOVED}});
      vacated_.clear();
    };
    desk_->release_slot({1, 1});
    CPPUNIT_ASSERT(vacated_ == (std::vector<AttemptName>{{3, 1}}));
  }

  void a_lease_that_is_over_starts_nothing() {
    fill(2);
    const int64_t now = system_clock().boot_ns();
    desk_->renewed(now - 10'000'000'000, 1'000,
                   {{{3, 1}, kVerdictCounts}, {{4, 1}, kVerdictSuperseded}});
    CPPUNIT_ASSERT_EQUAL(size_t{3}, named().size());
    desk_->release_slot({1, 1});
    CPPUNIT_ASSERT_EQUAL(size_t{2}, accepted_.size());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, given_back_.size());
    CPPUNIT_ASSERT_EQUAL(std::string("its lease is over"), given_back_[0].second);
  }

  void one_that_cannot_be_kept_is_given_back() {
    fill(2);
    files_.full = true;
    desk_->release_slot({1, 1});
    CPPUNIT_ASSERT_EQUAL(size_t{2}, given_back_.size());
    CPPUNIT_ASSERT_EQUAL(1u, desk_->slots_free());
  }

  // ---- orders handed over to shepherds ----

  using Names = std::vector<AttemptName>;
  // Two run, each of the slots has a shepherd, and so many orders were taken ahead.
  void run_two(uint64_t waiting) {
    desk_->on_next(shepherds_);
    shepherds_.on_begin = [this](const AttemptName& name) { desk_->runs(name); };
    fill(waiting);
    for (const uint64_t job : {1, 2}) desk_->runs({job, 1});
  }
  // With a desk of its own: two run, and one is behind the first.
  void hand_over_one_anew() {
    make_desk();
    desk_->set_server_clock(kServerUs, system_clock().boot_ns());
    accepted_.clear();
    given_back_.clear();
    shepherds_ = {};
    run_two(1);
    desk_->start_ahead();
    CPPUNIT_ASSERT((shepherds_.handed == Names{{3, 1}}));
  }
  Names given_back() const {
    Names names;
    for (const auto& [name, why] : given_back_) names.push_back(name);
    return names;
  }

  void the_next_of_a_slot_waits_with_its_shepherd() {
    run_two(2);
    CPPUNIT_ASSERT(shepherds_.handed.empty());
    desk_->start_ahead();
    CPPUNIT_ASSERT((shepherds_.handed == Names{{3, 1}, {4, 1}}));
    CPPUNIT_ASSERT((waiting() == Names{{3, 1}, {4, 1}}));  // for the server it has not begun
    CPPUNIT_ASSERT(desk_->has_ahead());
    CPPUNIT_ASSERT_EQUAL(0u, desk_->slots_free());
    CPPUNIT_ASSERT_EQUAL(int64_t{1},
                         read_assignment(files_, attempt_folder(state_.path(), {4, 1})).slot);
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(ahead(5)));
    desk_->forget({2, 1});
    CPPUNIT_ASSERT((shepherds_.began == Names{{4, 1}}));
    CPPUNIT_ASSERT((shepherds_.handed == Names{{3, 1}, {4, 1}, {5, 1}}));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, accepted_.size());  // not by the desk
    desk_->taken_over({4, 1});
    desk_->forget({4, 1});
    desk_->forget({1, 1});
    CPPUNIT_ASSERT((shepherds_.began == Names{{4, 1}, {5, 1}, {3, 1}}));
    desk_->forget({3, 1});
    desk_->forget({5, 1});
    CPPUNIT_ASSERT_EQUAL(2u, desk_->slots_free());
    CPPUNIT_ASSERT(given_back_.empty());
  }

  // Its shepherd may have to be started first.
  void one_is_handed_over_only_behind_what_runs() {
    desk_->on_next(shepherds_);
    fill(2);
    desk_->runs({2, 1});
    desk_->start_ahead();
    CPPUNIT_ASSERT((shepherds_.handed == Names{{3, 1}}));
    desk_->runs({9, 1});  // nobody knows it
    desk_->release_slot({1, 1});
    CPPUNIT_ASSERT(accepted_.back()->name == (AttemptName{4, 1}));
  }

  void who_has_to_fetch_is_not_handed_over() {
    run_two(0);
    RunOrder with_input = ahead(3), with_gpu = ahead(4);
    with_input.what.job.inputs.resize(1);
    with_input.what.job.inputs[0].name = "input";
    with_gpu.what.job.needs.resources = rules::NamedAmounts({{"gpu", 1}});
    for (const RunOrder& one : {with_input, with_gpu}) {
      CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(one));
      desk_->start_ahead();
      CPPUNIT_ASSERT(shepherds_.handed.empty());
      desk_->vacate({{one.what.name, SUBLET_LEAVE_REMOVED}});
    }
  }

  void what_cannot_be_handed_over_waits_for_its_slot() {
    run_two(1);
    shepherds_.out_of_order = true;
    desk_->start_ahead();
    CPPUNIT_ASSERT((waiting() == Names{{3, 1}}));
    CPPUNIT_ASSERT(!files_.exists(attempt_folder(state_.path(), {3, 1})));
    shepherds_.out_of_order = false;
    desk_->start_ahead();
    CPPUNIT_ASSERT(shepherds_.handed.empty());
    desk_->release_slot({1, 1});
    CPPUNIT_ASSERT(accepted_.back()->name == (AttemptName{3, 1}));
    CPPUNIT_ASSERT(given_back_.empty());
  }

  void the_next_is_given_back_if_it_has_not_begun() {
    run_two(2);
    desk_->start_ahead();
    shepherds_.begun = {{4, 1}};
    desk_->give_back_ahead("the owner is here");
    CPPUNIT_ASSERT((shepherds_.taken_back == Names{{3, 1}}));
    CPPUNIT_ASSERT((given_back() == Names{{3, 1}}));
    CPPUNIT_ASSERT_EQUAL(std::string("the owner is here"), given_back_[0].second);
    CPPUNIT_ASSERT(!files_.exists(attempt_folder(state_.path(), {3, 1})));
    desk_->returned({3, 1});
    desk_->release_slot({1, 1});
    CPPUNIT_ASSERT_EQUAL(1u, desk_->slots_free());
    desk_->release_slot({2, 1});
    CPPUNIT_ASSERT((shepherds_.began == Names{{4, 1}}));
    CPPUNIT_ASSERT_EQUAL(1u, desk_->slots_free());
  }

  void one_that_has_begun_stays() {
    run_two(1);
    desk_->start_ahead();
    shepherds_.begun = {{3, 1}};
    desk_->vacate({{{3, 1}, SUBLET_LEAVE_PREEMPT, true}});
    CPPUNIT_ASSERT(given_back_.empty());
    desk_->release_slot({2, 1});  // of another slot: it finds nothing to take
    CPPUNIT_ASSERT_EQUAL(1u, desk_->slots_free());
    desk_->release_slot({1, 1});
    CPPUNIT_ASSERT((shepherds_.began == Names{{3, 1}}));
    CPPUNIT_ASSERT(std::ranges::count(vacated_, AttemptName{3, 1}) == 0);
    CPPUNIT_ASSERT_EQUAL(1u, desk_->slots_free());
  }

  void the_slot_may_be_free_before_the_next_is_handed_over() {
    run_two(1);
    shepherds_.on_hand_over = [this](const AttemptName&) {
      CPPUNIT_ASSERT(desk_->free_slot({1, 1}));
      CPPUNIT_ASSERT_EQUAL(0u, desk_->slots_free());
    };
    desk_->start_ahead();
    CPPUNIT_ASSERT((shepherds_.began == Names{{3, 1}}));
    desk_->release_slot({3, 1});
    CPPUNIT_ASSERT_EQUAL(1u, desk_->slots_free());
  }

  void the_slot_may_be_free_while_the_next_is_taken_back() {
    for (const bool has_begun : {false, true}) {
      hand_over_one_anew();
      if (has_begun) shepherds_.begun = {{3, 1}};
      shepherds_.on_take_back = [this] {
        shepherds_.on_take_back = nullptr;
        CPPUNIT_ASSERT(desk_->free_slot({1, 1}));
        desk_->start_ahead();
        CPPUNIT_ASSERT(shepherds_.began.empty());  // it is in hand
      };
      desk_->give_back_ahead("the owner is here");
      CPPUNIT_ASSERT_EQUAL(has_begun, shepherds_.began == Names({{3, 1}}));
      CPPUNIT_ASSERT_EQUAL(has_begun ? 0u : 1u, desk_->slots_free());
      for (const uint64_t job : {1, 2, 3}) desk_->forget({job, 1});
      CPPUNIT_ASSERT_EQUAL(2u, desk_->slots_free());
    }
  }

  void the_owner_may_come_while_the_next_is_handed_over() {
    run_two(1);
    shepherds_.on_hand_over = [this](const AttemptName&) {
      presence_.away = false;
      desk_->give_back_ahead("the owner is here");
      CPPUNIT_ASSERT(given_back_.empty());
    };
    desk_->start_ahead();
    CPPUNIT_ASSERT((given_back() == Names{{3, 1}}));
    CPPUNIT_ASSERT((shepherds_.taken_back == Names{{3, 1}}));
  }

  void an_empty_slot_takes_the_next_of_another() {
    run_two(2);
    desk_->start_ahead();
    desk_->forget({2, 1});
    desk_->release_slot({4, 1});  // nothing else waits
    CPPUNIT_ASSERT((shepherds_.taken_back == Names{{3, 1}}));
    CPPUNIT_ASSERT(accepted_.back()->name == (AttemptName{3, 1}));
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, accepted_.back()->slot);
    CPPUNIT_ASSERT(given_back_.empty());
  }

  // Others end on the machine, and would take the orders that come later.
  void nobody_is_passed_behind_a_long_one() {
    behind_ms_ = 0;
    make_desk();
    desk_->set_server_clock(kServerUs, system_clock().boot_ns());
    run_two(2);
    desk_->start_ahead();
    CPPUNIT_ASSERT((shepherds_.handed == Names{{3, 1}, {4, 1}}));
    shepherds_.begun = {{4, 1}};
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(ahead(5)));
    desk_->forget({2, 1});
    CPPUNIT_ASSERT((shepherds_.began == Names{{4, 1}}));
    CPPUNIT_ASSERT((shepherds_.taken_back == Names{{3, 1}}));
    // The next again, but in the other slot; nobody is behind the long one now.
    CPPUNIT_ASSERT((shepherds_.handed == Names{{3, 1}, {4, 1}, {3, 1}}));
    const auto slot_of_it = read_assignment(files_, attempt_folder(state_.path(), {3, 1})).slot;
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, slot_of_it);
    CPPUNIT_ASSERT((waiting() == Names{{3, 1}, {5, 1}}));
    desk_->forget({1, 1});
    CPPUNIT_ASSERT(accepted_.back()->name == (AttemptName{3, 1}));
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, accepted_.back()->slot);
    CPPUNIT_ASSERT((waiting() == Names{{5, 1}}));
  }

  void a_new_reason_is_one_for_the_next_too() {
    const std::vector<std::pair<std::string, std::function<void()>>> reasons = {
        {"the disk is nearly full", [this] { desk_->set_disk_low(true); }},
        {"the memory is nearly used up", [this] { desk_->set_memory_low(true); }},
        {"this machine has failures: it", [this] { desk_->machine_failed("it"); }}};
    for (const auto& [why, happens] : reasons) {
      hand_over_one_anew();
      happens();
      CPPUNIT_ASSERT_EQUAL(size_t{1}, given_back_.size());
      CPPUNIT_ASSERT_EQUAL(why, given_back_[0].second);
      for (const uint64_t job : {1, 2, 3}) desk_->forget({job, 1});
    }
  }

  // It is not the turn of a thread yet that says so to all.
  void who_has_not_begun_when_the_owner_returns_does_not_begin() {
    for (const bool has_begun : {false, true}) {
      hand_over_one_anew();
      if (has_begun) shepherds_.begun = {{3, 1}};
      presence_.away = false;
      desk_->release_slot({1, 1});
      CPPUNIT_ASSERT_EQUAL(has_begun ? size_t{0} : size_t{1}, given_back_.size());
      CPPUNIT_ASSERT_EQUAL(has_begun ? size_t{1} : size_t{0}, shepherds_.began.size());
      CPPUNIT_ASSERT_EQUAL(has_begun ? 0u : 1u, desk_->slots_free());
      for (const uint64_t job : {1, 2, 3}) desk_->forget({job, 1});
    }
  }

  void what_was_said_while_it_was_handed_over_counts() {
    run_two(1);
    shepherds_.on_hand_over = [this](const AttemptName& name) {
      desk_->vacate({{name, SUBLET_LEAVE_REMOVED}});
    };
    shepherds_.out_of_order = true;
    desk_->start_ahead();
    CPPUNIT_ASSERT((given_back() == Names{{3, 1}}));
    CPPUNIT_ASSERT_EQUAL(leave_sentence(SUBLET_LEAVE_REMOVED), given_back_[0].second);
  }

  void a_client_that_stops_waits_for_those_that_have_begun() {
    run_two(1);
    desk_->start_ahead();
    shepherds_.begun = {{3, 1}};
    for (const uint64_t job : {1, 2}) desk_->taken_over({job, 1});
    CPPUNIT_ASSERT(!desk_->is_returning());
    desk_->drain();
    desk_->give_back_ahead("this client is stopping");
    CPPUNIT_ASSERT(desk_->is_returning());
    desk_->forget({1, 1});
    CPPUNIT_ASSERT((shepherds_.began == Names{{3, 1}}));
    CPPUNIT_ASSERT(desk_->is_returning());  // until Attempts has it
    desk_->taken_over({3, 1});
    CPPUNIT_ASSERT(!desk_->is_returning());
  }

  // Removed by its user when it has begun, but nobody has told Attempts yet.
  void the_next_is_told_to_leave() {
    run_two(1);
    desk_->start_ahead();
    shepherds_.begun = {{3, 1}};
    desk_->vacate({{{3, 1}, SUBLET_LEAVE_REMOVED}});
    vacated_.clear();
    desk_->release_slot({1, 1});
    CPPUNIT_ASSERT((vacated_ == Names{{3, 1}}));
  }

  void the_next_has_the_newest_lease() {
    run_two(2);
    const int64_t now = system_clock().boot_ns();
    const auto counts = [&](uint64_t job) {
      desk_->renewed(now, 7'000'000, {{{job, 1}, kVerdictCounts}});
      return protocol::lease_end_ns(now, 7'000'000);
    };
    shepherds_.on_hand_over = [&](const AttemptName& name) { counts(name.job); };
    desk_->start_ahead();
    CPPUNIT_ASSERT_EQUAL(counts(9), shepherds_.leases[(AttemptName{3, 1})]);
    shepherds_.leases.clear();
    CPPUNIT_ASSERT_EQUAL(counts(4), shepherds_.leases[(AttemptName{4, 1})]);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, shepherds_.leases.size());
    desk_->renewed(now, 7'000'000, {{{4, 1}, kVerdictSuperseded}});
    CPPUNIT_ASSERT((given_back() == Names{{4, 1}}));
  }

  void no_two_attempts_have_one_gpu() {
    slots_ = 4;
    make_desk();
    desk_->set_server_clock(kServerUs, system_clock().boot_ns());
    const auto wanting = [](uint64_t job, uint64_t gpus) {
      RunOrder one = order(job);
      one.what.job.needs.resources = rules::NamedAmounts({{"gpu", gpus}, {"ansys", 9}});
      return one;
    };
    using Gpus = std::vector<std::string>;
    CPPUNIT_ASSERT_EQUAL(std::string("it needs 3 gpu, 2 are free"),
                         answer_to(wanting(1, 3)).reason);
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(wanting(1, 1)));
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(wanting(2, 1)));
    CPPUNIT_ASSERT(accepted_.at(0)->gpus == Gpus{"0"} && accepted_.at(1)->gpus == Gpus{"2"});
    CPPUNIT_ASSERT(read_assignment(files_, attempt_folder(state_.path(), {2, 1})).gpus ==
                   Gpus{"2"});
    CPPUNIT_ASSERT_EQUAL(kRunLacks, run(wanting(3, 1)));
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(4)));
    CPPUNIT_ASSERT(accepted_.at(2)->gpus.empty());
    desk_->release_slot({1, 1});
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(wanting(3, 1)));
    CPPUNIT_ASSERT(accepted_.at(3)->gpus == Gpus{"0"});
    // The next client knows who has which; those that have ended have none.
    make_desk();
    desk_->set_server_clock(kServerUs, system_clock().boot_ns());
    desk_->adopt(*accepted_.at(1), true);
    desk_->adopt(*accepted_.at(3), false);
    CPPUNIT_ASSERT_EQUAL(kRunLacks, run(wanting(5, 2)));
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(wanting(5, 1)));
    CPPUNIT_ASSERT(accepted_.at(4)->gpus == Gpus{"0"});
    // What cannot be kept is free again.
    desk_->forget({3, 1});
    desk_->forget({5, 1});
    files_.full = true;
    CPPUNIT_ASSERT_EQUAL(kRunError, run(wanting(6, 1)));
    files_.full = false;
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(wanting(6, 1)));
  }

  void a_full_disk_loses_nothing() {
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(1)));
    files_.full = true;
    RunAnswer answer = answer_to(order(2));
    CPPUNIT_ASSERT_EQUAL(kRunError, answer.answer);
    CPPUNIT_ASSERT(answer.reason.find("No space") != std::string::npos);
    CPPUNIT_ASSERT_EQUAL(1u, desk_->slots_free());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, list_attempts(files_, state_.path()).size());
    files_.full = false;
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(2)));
  }

  void a_job_that_filled_the_disk_needs_twice_as_much() {
    desk_->note_disk_use(1, files_.free_bytes(state_.path()));
    RunAnswer answer = answer_to(order(1, 2));
    CPPUNIT_ASSERT_EQUAL(kRunLacks, answer.answer);
    CPPUNIT_ASSERT(answer.reason.find("of disk") != std::string::npos);
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(2)));
    desk_->note_disk_use(3, 1000);
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(3, 2)));
  }

  void memory_that_is_needed_is_not_given_away() {
    desk_->set_memory_low(true);
    CPPUNIT_ASSERT_EQUAL(kRunLacks, answer_to(order(1)).answer);
    desk_->set_memory_low(false);
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(1)));
    // Before any job is here to be watched.
    memory_least_ = uint64_t{1} << 60;
    setUp();
    const RunAnswer answer = answer_to(order(2));
    CPPUNIT_ASSERT_EQUAL(kRunLacks, answer.answer);
    CPPUNIT_ASSERT_EQUAL(std::string("the memory is nearly used up"), answer.reason);
    memory_least_ = 0;
    setUp();
    desk_->note_memory_use(3, 1000);
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(3, 2)));
  }

  void a_job_that_saved_nothing_is_not_lifted_again() {
    CPPUNIT_ASSERT(desk_->may_be_lifted(1));
    desk_->note_unsaved(1);
    desk_->note_unsaved(1);
    CPPUNIT_ASSERT(!desk_->may_be_lifted(1));
    CPPUNIT_ASSERT(desk_->may_be_lifted(2));
    // Bounded: the oldest is forgotten.
    uint64_t job = 1;
    while (!desk_->may_be_lifted(1) && job < 1'000'000) desk_->note_unsaved(++job);
    CPPUNIT_ASSERT(desk_->may_be_lifted(1));
    CPPUNIT_ASSERT(!desk_->may_be_lifted(2));
  }

  void only_an_order_that_fits_then_makes_others_give_way() {
    uint64_t kept = 1000;
    std::vector<uint64_t> asked;
    desk_->give_way([&] { return kept; },
                    [&](uint64_t bytes) {
                      asked.push_back(bytes);
                      kept -= bytes;
                      *files_.free += bytes;
                    });
    files_.free = 500;
    RunOrder one = order(1);
    one.what.job.needs.disk = 1501;
    CPPUNIT_ASSERT_EQUAL(kRunLacks, run(one));
    CPPUNIT_ASSERT(asked.empty());
    one.what.job.needs.disk = 500;
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(one));
    CPPUNIT_ASSERT(asked.empty());
    RunOrder two = order(2);
    two.what.job.needs.disk = 1500;
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(two));
    CPPUNIT_ASSERT(asked == std::vector<uint64_t>{1000});
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, kept);
  }

  void asked_beforehand_it_knows_of_no_age() {
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, desk_->may_run({}).answer);
    Requirements much;
    much.memory = 1001;
    CPPUNIT_ASSERT_EQUAL(kRunLacks, desk_->may_run(much).answer);
    presence_.away = false;
    CPPUNIT_ASSERT_EQUAL(kRunOwner, desk_->may_run({}).answer);
  }

  void an_old_order_is_stale() {
    RunOrder old = order(1);
    old.decided_us -= old.lease_ms * 1000;
    CPPUNIT_ASSERT_EQUAL(kRunStale, run(old));
    CPPUNIT_ASSERT_EQUAL(2u, desk_->slots_free());
    // Decided half a lease ago: the other half is left.
    RunOrder half = order(2);
    half.decided_us -= half.lease_ms * 500;
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(half));
    int64_t left_ms = (accepted_.at(0)->first_lease_ns - system_clock().boot_ns()) / 1'000'000;
    CPPUNIT_ASSERT(left_ms <= half.lease_ms / 2);
    // Until the server's time is known, the age of an order is not.
    make_desk();
    CPPUNIT_ASSERT_EQUAL(kRunStale, run(order(3)));
  }

  void a_broken_machine_takes_no_orders_for_a_while() {
    // After six failures in a row the pause is longer than this test.
    for (int i = 0; i < 6; ++i) desk_->machine_failed("its disk is broken");
    RunAnswer answer = answer_to(order(1));
    CPPUNIT_ASSERT_EQUAL(kRunError, answer.answer);
    CPPUNIT_ASSERT(answer.reason.find("its disk is broken") != std::string::npos);
    CPPUNIT_ASSERT_EQUAL(kRunError, desk_->may_run({}).answer);
    desk_->machine_worked();
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, run(order(1)));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(OrderDeskTest);

}  // namespace
}  // namespace sublet::client
