// Every policy for the next job, on random histories, against rules restated independently here:
// the job that was chosen is the one that the rule chooses, and no machine stays idle while a job
// waits.
#include "scheduling/policies/job_policies.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;

// What the rules may look at: the stored records, and what the test counts itself.
struct Known {
  const TestPool& t;
  std::map<std::string, uint64_t> running;  // live attempts
  std::map<std::string, uint64_t> served;   // when last, counted from 1
  uint64_t places = 0;
  std::set<JobId> waiting;
  std::string policy;

  std::string user(JobId id) const { return t.record(id).user; }
  uint64_t number(const std::string& name) const { return t.books.users.at(name).number; }
};

// (3.4)'s priority at this instant, which drifts with the half-life of usage.
double drifted(const JobRecord& job, Micros now, double half_life) {
  return job.share_priority *
         std::exp2(-static_cast<double>(now - job.share_priority_at) / half_life);
}

// The first of the user's jobs: his own priority, then (3.4)'s if it counts, then the id.
JobId first_of(const Known& k, const std::string& name, bool by_formula) {
  const auto place = [&](JobId id) {
    const JobRecord& job = k.t.record(id);
    const double half_life = static_cast<double>(Parameters().half_life);
    // Rounded, because the brain compares logarithms.
    const double priority = by_formula ? std::log2(drifted(job, k.t.now, half_life)) : 0;
    return std::tuple(-job.priority, priority, id);
  };
  std::optional<JobId> best;
  for (const JobId id : k.waiting)
    if (k.user(id) == name && (!best || place(id) < place(*best))) best = id;
  return *best;
}

// Whether (3.4)'s priorities of these two are equal but for rounding: they were counted from
// different instants.
bool are_equal(const Known& k, JobId a, JobId b) {
  const JobRecord &one = k.t.record(a), &other = k.t.record(b);
  const double half_life = static_cast<double>(Parameters().half_life);
  const double ratio = drifted(one, k.t.now, half_life) / drifted(other, k.t.now, half_life);
  return one.priority == other.priority && one.share_priority_at != other.share_priority_at &&
         std::abs(ratio - 1) < 1e-12;
}

std::set<std::string> users_waiting(const Known& k) {
  std::set<std::string> names;
  for (const JobId id : k.waiting) names.insert(k.user(id));
  return names;
}

// Whether the chosen job is one that the rule allows. (More than one, if the rule has a tie.)
using Allows = std::function<bool(const Known&, JobId chosen)>;

// The user with the smallest value of `rank`, and his first job.
template <typename Rank>
Allows smallest(bool by_formula, Rank rank) {
  return [=](const Known& k, JobId chosen) {
    const std::string& user = k.user(chosen);
    for (const std::string& other : users_waiting(k))
      if (rank(k, other) < rank(k, user)) return false;
    const JobId first = first_of(k, user, by_formula);
    return first == chosen || (by_formula && are_equal(k, first, chosen));
  };
}

std::map<std::string, Allows> rules() {
  std::map<std::string, Allows> rules;
  rules["fifo"] = smallest(
      false, [](const Known& k, const std::string& user) { return first_of(k, user, false); });
  rules["fair-share-1998"] = smallest(true, [](const Known& k, const std::string& user) {
    const JobRecord& job = k.t.record(first_of(k, user, true));
    return drifted(job, k.t.now, static_cast<double>(Parameters().half_life)) * (1 - 1e-9);
  });
  rules["umol"] = smallest(false, [](const Known& k, const std::string& user) {
    const auto served = k.served.find(user);
    return std::tuple(k.running.at(user), served == k.served.end() ? 0 : served->second,
                      k.number(user));
  });
  rules["up-down"] = smallest(false, [](const Known& k, const std::string& user) {
    return k.t.books.users.at(user).index;
  });
  rules["random"] = smallest(false, [](const Known&, const std::string&) { return 0; });  // anybody
  rules["round-robin"] = smallest(false, [](const Known& k, const std::string& user) {
    uint64_t last = 0, when = 0;
    for (const auto& [name, at] : k.served)
      if (at > when) std::tie(when, last) = std::tuple(at, k.number(name));
    const uint64_t number = k.number(user);
    return std::tuple(number <= last, number);
  });
  rules["fair-share"] = smallest(true, [](const Known& k, const std::string& user) {
    const UserRecord& record = k.t.books.users.at(user);
    const auto served = k.served.find(user);
    return std::tuple(k.running.at(user) >= record.guaranteed,
                      (record.usage + record.charges) / record.shares,
                      served == k.served.end() ? 0 : served->second, k.number(user));
  });
  return rules;
}

// What fair-share guarantees between two ticks: a quarter of the cores due, at least one.
void check_guarantees(const Known& k) {
  double all_shares = 0, in_use = 0;
  std::set<std::string> active;
  for (const auto& [id, job] : k.t.books.jobs)
    if (!is_final(job.state) && job.state != JobState::kHeld) active.insert(job.user);
  for (const std::string& name : active) all_shares += k.t.books.users.at(name).shares;
  for (const auto& [name, count] : k.running) in_use += static_cast<double>(count);
  for (const std::string& name : active) {
    const UserRecord& record = k.t.books.users.at(name);
    const double due = (in_use + 1) * record.shares / all_shares;
    const double cores = record.owed > 0 ? std::max(1.0, std::ceil(due / 4)) : 0;
    RC_ASSERT(static_cast<double>(record.guaranteed) == cores);
  }
}

// A pool of three machines with one slot each, whose jobs all fit.
class History {
 public:
  explicit History(const std::string& policy)
      : t_(with(policy)), known_{t_, {}, {}, 0, {}, policy}, allows_(rules().at(policy)) {
    for (const char* name : {"larry", "curly", "moe"}) {
      machines_.push_back(t_.join(name, 1, false));
    }
  }

  void next(uint32_t choice) {
    const std::string user(1, static_cast<char>('a' + choice / 8 % 4));
    t_.pass((1 + choice / 32 % 50) * kSecond);
    switch (choice % 9) {
      case 0:
      case 1:
      case 2:
        return submit(user, static_cast<int32_t>(choice / 64 % 2));
      case 3:
      case 4:
        return end(choice / 8, choice / 256 % 3 != 0);
      case 5:
        return tick();
      case 6:
        return see(t_.apply(SharesSet{user, 1.0 + choice / 64 % 3}));
      case 7:
        return set_priority(choice / 16, static_cast<int32_t>(choice / 64 % 3));
      default:
        return see(t_.apply(
            MachineReported{machines_[choice / 8 % 3], choice / 64 % 4 != 0, 1 << 30, 1 << 30}));
    }
  }

 private:
  static Parameters with(const std::string& policy) {
    Parameters p;
    p.job_policy = policy;
    return p;
  }

  void submit(const std::string& user, int32_t priority) {
    known_.running.try_emplace(user, 0);
    Submitted::Job job;
    job.priority = priority;
    const Outcome& outcome = t_.apply(Submitted{1, user, "desk-" + user, {job}});
    known_.waiting.insert(outcome.answer.first_job);
    see(outcome);
  }

  // A tick gives no place away, so that it is seen as it left the users.
  void tick() {
    const Outcome& outcome = t_.apply(Ticked());
    if (known_.policy == "fair-share") check_guarantees(known_);
    see(outcome);
  }

  void set_priority(uint32_t which, int32_t priority) {
    const JobId jobs = t_.books.jobs.size();
    if (jobs == 0) return;
    const JobId id = 1 + which % jobs;
    see(t_.apply(PrioritySet{{id}, priority}));
    RC_ASSERT(is_final(t_.state(id)) || t_.record(id).priority == priority);
  }

  void end(uint32_t which, bool done) {
    if (live_.empty()) return;
    const JobId id = *std::next(live_.begin(), which % live_.size());
    live_.erase(id);
    --known_.running.at(known_.user(id));
    t_.start(id);
    t_.pass(20 * kSecond);
    if (!done) known_.waiting.insert(id);
    see(t_.end(id, done ? EndReason::kDone : EndReason::kOwner, 7 * kSecond, 3 * kSecond));
  }

  // Checks each place that was given away, in turn.
  void see(const Outcome& outcome) {
    for (const Decision& decision : outcome.decisions) {
      const JobId chosen = std::get<StartAttempt>(decision).key.job;
      RC_ASSERT(known_.waiting.contains(chosen));
      RC_ASSERT(allows_(known_, chosen));
      known_.waiting.erase(chosen);
      live_.insert(chosen);
      ++known_.running.at(known_.user(chosen));
      known_.served[known_.user(chosen)] = ++known_.places;
    }
    RC_ASSERT(known_.waiting.empty() || t_.pool.idle().empty());
  }

  TestPool t_;
  Known known_;
  const Allows allows_;
  std::vector<MachineId> machines_;
  std::set<JobId> live_;
};

class JobPoliciesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(JobPoliciesTest);
  CPPUNIT_TEST(each_has_a_rule);
  CPPUNIT_TEST(the_chosen_is_the_best);
  CPPUNIT_TEST(random_serves_all_alike);
  CPPUNIT_TEST(the_clock_of_draws_is_stored);
  CPPUNIT_TEST(an_unknown_one_is_refused);
  CPPUNIT_TEST_SUITE_END();

  void each_has_a_rule() {
    for (const std::string& policy : known_job_policies())
      CPPUNIT_ASSERT_MESSAGE(policy, rules().contains(policy));
  }

  void the_chosen_is_the_best() {
    for (const std::string& policy : known_job_policies())
      CPPUNIT_ASSERT_MESSAGE(policy, rc::check(policy + " chooses by its rule", [&policy] {
                               History history(policy);
                               for (const uint32_t choice : *rc::gen::scale(
                                        6.0, rc::gen::arbitrary<std::vector<uint32_t>>()))
                                 history.next(choice);
                             }));
  }

  // Three users with any number of jobs; 3,000 places. The chance of a false alarm is below
  // 10^-6: the standard deviation of one count is 26.
  void random_serves_all_alike() {
    Parameters p;
    p.job_policy = "random";
    TestPool t(p);
    const MachineId m = t.join("m", 1, false);
    t.submit("a", 3000);
    t.submit("b", 4000);
    t.submit("c", 5000);
    std::map<std::string, int> served;
    t.report(m, true);
    for (int i = 0; i < 3000; ++i) {
      const JobId id = t.pool.machine(m)->running.at(0).job;
      ++served[t.record(id).user];
      t.end(id, EndReason::kDone);
    }
    for (const auto& [user, count] : served)
      CPPUNIT_ASSERT_MESSAGE(user + " " + std::to_string(count), std::abs(count - 1000) < 130);
  }

  // The clock of the draws is in the users' records, and never goes back, though users are
  // forgotten and come again.
  void the_clock_of_draws_is_stored() {
    Parameters p;
    p.job_policy = "random";
    TestPool t(p);
    t.join("m");
    double clock = 0;
    for (int i = 0; i < 30; ++i) {
      const JobId job = t.submit(std::string(1, static_cast<char>('a' + i % 3)));
      t.end(job, EndReason::kDone);
      double latest = 0;
      for (const auto& [name, user] : t.books.users) latest = std::max(latest, user.drawn);
      CPPUNIT_ASSERT(latest > clock);
      clock = latest;
    }
  }

  void an_unknown_one_is_refused() {
    Parameters p;
    p.job_policy = "nearest";
    CPPUNIT_ASSERT(make_job_policy(p, Ledger(p)) == nullptr);
    try {
      Pool pool(p);
      CPPUNIT_FAIL("accepted");
    } catch (const std::invalid_argument& e) {
      CPPUNIT_ASSERT_EQUAL(std::string("job_policy 'nearest' is not known; known: fair-share, "
                                       "fair-share-1998, up-down, fifo, round-robin, random, umol"),
                           std::string(e.what()));
    }
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(JobPoliciesTest);

}  // namespace
}  // namespace sublet::scheduling
