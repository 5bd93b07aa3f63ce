#include "scheduling/queries/user_order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "scheduling/queries/text.h"
#include "scheduling/state.h"

namespace sublet::scheduling {
namespace {

// The job of each user that is served first; by turns of the hosts, one of the host nearest to
// the head of REQUESTING.
std::map<const User*, const Job*> first_jobs(const Ledger& ledger, bool turns_by_host) {
  const auto before = [turns_by_host](const Job& a, const Job& b) {
    if (turns_by_host && a.host->turn != b.host->turn) return a.host->turn < b.host->turn;
    return comes_before(a, b);
  };
  std::map<const User*, const Job*> first;
  for (const auto& [name, user] : ledger.users()) {
    for (const auto& line : user.lines) {
      const Job* head = line->jobs.first();
      const Job*& best = first[&user];
      if (best == nullptr || before(*head, *best)) best = head;
    }
  }
  return first;
}

// Ranks users' best jobs like JobQueue::best_for for a machine that fits them all.
using Place = std::pair<uint64_t, Rank>;
Place place_of(const Job& job, const JobPolicy& policy) {
  return {policy.turns_by_host() ? job.host->turn : 0, rank_of(policy, job)};
}

// The place of a job of this user if it were submitted now, from a host without waiting
// jobs: after all others of the same key.
Place place_of_new(const User& user, const Pool::State& state, Micros now) {
  const JobPolicy& policy = *state.policies.job;
  User with_one_more;
  with_one_more.record = user.record;
  with_one_more.waiting = user.waiting + 1;
  with_one_more.attempts = user.attempts;
  with_one_more.held = user.held;
  with_one_more.turn_owed = user.turn_owed;
  JobRecord job;
  job.id = state.changes.counters().next_job;
  job.submitted = job.share_priority_at = now;
  state.jobs.share_priority().submitted(job, user.record, with_one_more.waiting, now);
  const uint64_t last = std::numeric_limits<uint64_t>::max();
  return {policy.turns_by_host() ? last : 0,
          rank_of(policy, with_one_more, policy.order(job), last, last)};
}

std::string cpu_text(Micros cpu) {
  const double seconds = static_cast<double>(cpu) / 1e6;
  const auto words = [](double value, const char* unit) {
    const std::string number = number_text(value);
    return number + " CPU " + unit + (number == "1" ? "" : "s");
  };
  if (seconds < 60) return words(seconds, "second");
  if (seconds < 3600) return words(seconds / 60, "minute");
  return words(seconds / 3600, "hour");
}

}  // namespace

std::vector<Standing> Pool::standings(Micros now) const {
  const State& s = *state_;
  const JobPolicy& policy = *s.policies.job;
  const auto first = first_jobs(s.ledger, policy.turns_by_host());
  std::vector<std::pair<Place, const User*>> line;
  for (const auto& [user, job] : first) line.emplace_back(place_of(*job, policy), user);
  std::sort(line.begin(), line.end());
  std::vector<Standing> standings;
  for (const auto& [name, user] : s.ledger.users()) {
    Standing standing{name,
                      user.record.shares,
                      user.record.by_administrator,
                      user.record.usage,
                      user.record.charges,
                      user.active,
                      user.waiting,
                      0,
                      0,
                      "",
                      ""};
    const auto own = first.find(&user);
    Place place = place_of_new(user, s, now);
    if (own != first.end()) {
      standing.best_priority = policy.shown(user, own->second->record, now);
      place = place_of(*own->second, policy);
    }
    auto next = std::lower_bound(line.begin(), line.end(),
                                 std::pair(place, static_cast<const User*>(nullptr)));
    if (next != line.begin()) standing.behind = std::prev(next)->second->record.name;
    if (own != first.end()) standing.place = 1 + static_cast<uint64_t>(next++ - line.begin());
    if (next != line.end()) standing.ahead_of = next->second->record.name;
    standings.push_back(standing);
  }
  return standings;
}

std::string user_order_text(const Standing& s, double all_shares, std::optional<Micros> cpu_day) {
  std::string text = cpu_day ? cpu_text(*cpu_day) + " in the last day at " : "";
  text += "a share of " + number_text(s.shares) + " of " + number_text(all_shares) + ": ";
  if (s.behind.empty() && s.ahead_of.empty())
    return text + (s.place == 0 ? "nobody waits" : "next in line, nobody else waits");
  if (s.place == 0) text += "a new job would queue ";
  if (s.place == 1) text += "next in line, ";
  if (!s.behind.empty()) text += "behind " + s.behind;
  if (!s.behind.empty() && !s.ahead_of.empty()) text += ", ";
  if (!s.ahead_of.empty()) text += "ahead of " + s.ahead_of;
  return text;
}

}  // namespace sublet::scheduling
