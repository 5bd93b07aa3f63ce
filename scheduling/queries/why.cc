// Why a job is waiting, or where it is and how long it has been there, in one sentence.
#include <algorithm>
#include <functional>
#include <set>
#include <span>
#include <tuple>

#include "scheduling/matching/machine_words.h"
#include "scheduling/queries/text.h"
#include "scheduling/state.h"

namespace sublet::scheduling {
namespace {

// "linux/aarch64 or linux/x86_64"
std::string alternatives(std::string platforms) {
  for (size_t at = 0; (at = platforms.find(' ', at)) != std::string::npos; at += 4)
    platforms.replace(at, 1, " or ");
  return platforms;
}

// What counts as a machine's room.
enum class Room {
  kNow,  // what it has for jobs at present, with what they have reserved
  kAll,  // all that it has, the owner's part included
};

Amounts room_in(const Machine& m, Room room) {
  const Amounts lent = lent_by(m);
  if (room == Room::kNow) return lent;
  return most(lent, {m.record.cores, m.record.memory, m.record.disk});
}

// What is asked of each machine again and again, together: most of the time is spent on waiting
// for their memory.
struct Known {
  const Machine* machine = nullptr;
  const MachineKind* kind = nullptr;
  Amounts room;
};
using Machines = std::vector<Known>;

Machines known_of(std::span<const Machine* const> machines, Room room) {
  Machines all;
  all.reserve(machines.size());
  for (const Machine* m : machines)
    if (room == Room::kAll || !is_gone(*m)) all.push_back({m, m->kind, room_in(*m, room)});
  return all;
}

// One requirement, by which machines are narrowed down.
struct Step {
  bool asked;
  std::string what;
  std::function<uint64_t(const Known&)> size;  // empty: nothing to measure
  std::function<bool(const Known&)> fits;
  std::function<std::string(uint64_t)> text;
  bool of_kind = false;  // machines of a kind do not differ in it
};

// The machines that meet as many of the steps, one after the other, as any does.
struct Closest {
  size_t steps = 0;
  Machines machines;
  bool some_met_fewer = false;
};
Closest closest(const Machines& all, const std::vector<Step>& steps) {
  Closest closest;
  // Of the first steps, which are of kinds, counted once for each: by MachineKind::index, from 1.
  std::vector<size_t> met_by;
  const auto first_unmet = [&](const Known& m, size_t from, bool of_kind) {
    while (from < steps.size() && (!of_kind || steps[from].of_kind) && steps[from].fits(m)) ++from;
    return from;
  };
  for (const Known& m : all) {
    if (met_by.size() <= m.kind->index) met_by.resize(m.kind->index + 1);
    size_t& by_kind = met_by[m.kind->index];
    if (by_kind == 0) by_kind = 1 + first_unmet(m, 0, true);
    const size_t met = first_unmet(m, by_kind - 1, false);
    if (met != closest.steps && &m != &all.front()) closest.some_met_fewer = true;
    if (met > closest.steps) closest.machines.clear();
    closest.steps = std::max(closest.steps, met);
    if (met == closest.steps) closest.machines.push_back(m);
  }
  return closest;
}

// Narrows the machines, of which none fits, by one requirement after the other: `missing` names
// the one that excluded the last ones.
void name_missing(const Machines& all, const Requirements& needs, const LicenceBook& licences,
                  std::string& missing) {
  const auto plain = [](uint64_t n) { return std::to_string(n); };
  const auto cores = [](const Known& m) { return m.room.cores; };
  const auto memory = [](const Known& m) { return m.room.memory; };
  const auto disk = [](const Known& m) { return m.room.disk; };
  std::optional<rules::Rule> require;
  if (!needs.require.empty()) {
    try {
      require = parse_requirement(needs.require.str());
    } catch (const rules::RuleError&) {
      missing = "its requirement \"" + needs.require + "\" cannot be read";
      return;
    }
  }
  std::vector<Step> steps = {
      {!needs.os.empty(), "runs " + needs.os, nullptr,
       [&](const Known& m) { return m.kind->os == needs.os; }, nullptr, true},
      {!needs.architecture.empty(), "is " + needs.architecture, nullptr,
       [&](const Known& m) { return m.kind->architecture == needs.architecture; }, nullptr, true},
      {!needs.platforms.empty(), "is " + alternatives(needs.platforms.str()), nullptr,
       [&](const Known& m) {
         return allows_platform(needs.platforms, m.kind->os, m.kind->architecture);
       },
       nullptr, true},
      {require.has_value(), "meets \"" + needs.require + "\"", nullptr,
       [&](const Known& m) { return holds(*require, *m.kind); }, nullptr, true},
      {needs.cores > 0, "has " + counted(needs.cores, "core"), cores,
       [&](const Known& m) { return needs.cores <= cores(m); }, plain},
      {needs.memory > 0, "has " + bytes_text(needs.memory) + " of memory", memory,
       [&](const Known& m) { return needs.memory <= memory(m); }, bytes_text},
      {needs.disk > 0, "has " + bytes_text(needs.disk) + " of disk", disk,
       [&](const Known& m) { return needs.disk <= disk(m); }, bytes_text},
  };
  const rules::NamedAmounts named =
      licences.others_in(rules::NamedAmounts::stored(needs.resources));
  for (const auto& [name, amount] : named)
    steps.push_back({true, "offers " + std::to_string(amount) + " " + name,
                     [&name](const Known& m) { return m.kind->offers.of(name); },
                     [&name, amount](const Known& m) { return amount <= m.kind->offers.of(name); },
                     plain});
  std::erase_if(steps, [](const Step& step) { return !step.asked; });
  const Closest left = closest(all, steps);
  if (left.steps == steps.size()) return;
  const Step& step = steps[left.steps];
  missing = "no machine ";
  if (left.some_met_fewer) missing += "that fits otherwise ";
  missing += step.what;
  if (!step.size) return;
  const Machine* largest = nullptr;
  uint64_t size = 0;  // of a name that none has nothing is said: the largest would be none
  for (const Known& m : left.machines) {
    const uint64_t own = step.size(m);
    if (own <= size) continue;
    largest = m.machine;
    size = own;
  }
  if (largest != nullptr)
    missing += " (largest: " + step.text(size) + " on " + largest->record.name + ")";
}

// The machines that fit; if none does, `missing` says what they lack. `suited`: the kinds that
// suit the job.
Machines fitting(const Machines& all, const Requirements& needs, const std::vector<bool>& suited,
                 const LicenceBook& licences, std::string& missing) {
  const Amounts amounts = amounts_of(needs);
  Machines fit;
  for (const Known& m : all)
    if (amounts.within(m.room) && suited[m.kind->index]) fit.push_back(m);
  if (fit.empty()) name_missing(all, needs, licences, missing);
  return fit;
}

// "4 machines fit, all used by their owners"; mixed: "...: 1 used by its owner, 3 full".
std::string none_idle(const Machines& fit, const Ask& needs) {
  uint64_t drained = 0, silent = 0, owners = 0, closed = 0, full = 0, promised = 0, limited = 0,
           resting = 0, paused = 0;
  for (const Known& known : fit) {
    const Machine* m = known.machine;
    if (m->record.draining) {
      ++drained;
    } else if (m->silent) {
      ++silent;
    } else if (!m->away) {
      ++(is_owner_away(*m) ? closed : owners);
    } else if (places_taken(*m) >= m->record.slots || !needs.within(space_without(*m, {}, {}))) {
      ++full;
    } else if (places_taken(*m) >= places_of(*m)) {
      ++limited;
    } else if (rests(*m)) {
      ++resting;
    } else if (m->promised_to != nullptr) {
      ++promised;
    } else {
      ++paused;
    }
  }
  std::string text = counted(fit.size(), "machine") + (fit.size() == 1 ? " fits" : " fit");
  const std::pair<uint64_t, const char*> parts[] = {
      {owners, owners == 1 ? "used by its owner" : "used by their owners"},
      {closed, "taking no jobs at present"},
      {full, "full"},
      {promised, "promised to another job"},
      {limited, limited == 1 ? "at its limit of jobs" : "at their limits of jobs"},
      {silent, "silent"},
      {drained, "drained by an administrator"},
      {resting, "resting after failures"},
      {paused, "pausing after a refusal"}};
  const char* separator = ": ";
  for (const auto& [count, what] : parts) {
    if (count == 0) continue;
    if (count == fit.size()) return text + ", " + (count == 1 ? "" : "all ") + what;
    text += separator + std::to_string(count) + " " + what;
    separator = ", ";
  }
  return text;
}

// "; machine curly rests for 5 min more: it failed 3 times in a row, last: lost (no disk)" of the
// one that is the first to take jobs again. "": none rests.
std::string who_rests(const Machines& fit, Micros now) {
  const Machine* first = nullptr;
  for (const Known& known : fit) {
    const Machine* m = known.machine;
    if (m->record.draining || !rests(*m)) continue;
    const auto until = [](const Machine& one) { return one.record.failures.rests_until; };
    if (first == nullptr || until(*m) < until(*first)) first = m;
  }
  if (first == nullptr) return "";
  const MachineFailures& failures = first->record.failures;
  return "; machine " + first->record.name + " rests for " +
         span_text(std::max<Micros>(failures.rests_until - now, 0)) + " more: it failed " +
         counted(failures.count, "time") + " in a row, last: " + failures.reason;
}

// The most that the machines of one kind that fit a job have of each.
struct Offer {
  const MachineKind* kind = nullptr;
  Amounts most;
};
std::vector<Offer> offers_of(const Machines& machines) {
  std::vector<Offer> offers;
  std::vector<size_t> places;  // by MachineKind::index, counted from 1
  for (const Known& m : machines) {
    if (places.size() <= m.kind->index) places.resize(m.kind->index + 1);
    size_t& place = places[m.kind->index];
    if (place == 0) {
      offers.push_back({m.kind, {}});
      place = offers.size();
    }
    Offer& offer = offers[place - 1];
    offer.most = most(offer.most, m.room);
  }
  return offers;
}

// One of the waiting jobs of a record, with its sort key in the queue.
struct Place {
  int32_t priority = 0;
  double order = 0;
  JobId id = 0;
};
Place place_of(const Job& job, uint64_t k, const JobPolicy& policy) {
  const double order = k == 0 ? job.place.order : policy.order(one_of(job.record, k));
  return {job.record.priority, order, job.record.id + k};
}

// The number of k < count for which `holds`, which must be the first ones.
uint64_t first_ones(uint64_t count, const std::function<bool(uint64_t)>& holds) {
  uint64_t low = 0, high = count;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (holds(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The waiting jobs before this one that fit one of these machines too, and whose hours are open.
// Examines at most kLookedAt records, and lines of as many users: `all` is false if there were
// more. So it is if the users' order does not follow their jobs, but changes with each job that is
// placed, and other users wait: then one job is counted of each who is ahead now.
struct Ahead {
  uint64_t count = 0;
  bool all = true;
};
Ahead count_ahead(const Job& job, JobId id, const JobPolicy& policy, const JobQueue& queue,
                  const Machines& fit) {
  constexpr uint64_t kLookedAt = 1000;
  uint64_t looked_at = 0;
  Ahead ahead;
  std::vector<const User*> users_ahead;  // some more than once
  const Place target = place_of(job, id - job.record.id, policy);
  // Like comes_before for jobs of one user, like JobQueue::best_for for different users.
  const auto own_rank = [](const Place& p) {
    return std::tuple(-int64_t{p.priority}, p.order, p.id);
  };
  const auto rank = [&](const Job& j, const Place& p) {
    return rank_of(policy, *j.user, p.order, j.host->turn, p.id);
  };
  const Rank target_rank = rank(job, target);
  const auto by_user = [&](const Job& other) { return other.user != job.user && !policy.by_job(); };
  const auto jobs_ahead = [&](const Job& other) -> uint64_t {
    if (by_user(other)) return rank(other, place_of(other, 0, policy)) < target_rank;
    return first_ones(other.record.count, [&](uint64_t k) {
      const Place place = place_of(other, k, policy);
      return other.user == job.user ? own_rank(place) < own_rank(target)
                                    : rank(other, place) < target_rank;
    });
  };
  const std::vector<Offer> offers = offers_of(fit);
  const auto count = [&](const Job& other) {
    const uint64_t before = jobs_ahead(other);
    if (other.user == job.user && before == 0) return false;  // nor do the following ones
    if (looked_at++ >= kLookedAt) {
      ahead.all = false;
      return false;
    }
    const Amounts needs = amounts_of(other.record.needs);
    const std::vector<bool>& suited = other.demand->group->suits;
    const auto fits = [&](const Offer& o) { return suited[o.kind->index] && needs.within(o.most); };
    if (std::none_of(offers.begin(), offers.end(), fits)) return true;
    if (by_user(other)) {
      ahead.all = false;
      if (before > 0) users_ahead.push_back(other.user);
      return false;  // nor do his other jobs count
    } else {
      ahead.count += before;
    }
    return true;
  };
  const auto count_line = [&](const UserLine& line) {
    line.jobs.walk(count);
    return looked_at <= kLookedAt;
  };
  std::set<const Group*> groups;
  for (const Offer& offer : offers)
    for (const Group* group : offer.kind->groups)
      if (queue.is_open(*group) && groups.insert(group).second && policy.by_job() &&
          looked_at <= kLookedAt)
        group->lines.walk([](const UserBound&) { return true; }, count_line);
  if (!policy.by_job()) {
    uint64_t users = 0;
    bool is_behind = false;  // only whether others wait is of interest from then on
    queue.walk([&](const User& user) {
      if (++users > kLookedAt) {
        ahead.all = false;
        return false;
      }
      for (const auto& line : user.lines)
        if (line->stands && groups.contains(line->group) && !count_line(*line)) break;
      is_behind = is_behind || &user == job.user;
      return looked_at <= kLookedAt && (!is_behind || ahead.all);
    });
  }
  std::sort(users_ahead.begin(), users_ahead.end());
  ahead.count += static_cast<uint64_t>(std::unique(users_ahead.begin(), users_ahead.end()) -
                                       users_ahead.begin());
  return ahead;
}

// "it used 3.1 GiB of memory before; " if fewer machines fit for that than for the memory that was
// asked for. If none fits for that either, `missing` says what it would lack anyway.
std::string used_before(const Pool::State& s, const Job& job, uint64_t asked, const Machines& all,
                        size_t fit, std::string& missing) {
  Requirements needs = job.record.needs;
  needs.memory = asked;
  std::string missing_anyway;
  const size_t fit_anyway =
      fitting(all, needs, job.demand->group->suits, s.licences, missing_anyway).size();
  if (fit_anyway == 0) missing = missing_anyway;
  if (fit_anyway <= fit) return "";
  return std::string(job.record.attempts > 0 ? "it" : "another of its array") + " used " +
         bytes_text(job.record.needs.memory) + " of memory before; ";
}

// "attempt 2 has been running on curly for 3 min: first in the queue: ann, ..."
std::string at_work(const Attempt& attempt, Micros now) {
  const AttemptRecord& record = attempt.record;
  const std::string number = "attempt " + std::to_string(record.key.attempt);
  const std::string& machine = attempt.machine->record.name;
  const auto text = [&](const char* does, Micros since) {
    return number + does + machine + " for " + span_text(now - since) + ": " + record.reason.text();
  };
  switch (record.state) {
    case AttemptState::kOrdered:
      return text(" has been waiting for an answer from ", record.decided);
    case AttemptState::kStaging:
      return text(" has been in preparation on ", record.decided);
    case AttemptState::kRunning:
      return text(" has been running on ", record.started);
    case AttemptState::kSuspended:
      return number + " is suspended on " + machine +
             ", whose owner is back: it goes on there if he goes soon, else it saves and leaves";
    case AttemptState::kDelivering:
      return number + " has ended on " + machine + "; its outputs are on their way";
    default:
      return text(" has been leaving ", record.leaving_since);
  }
}

// "the pool has 3 licences of ansys, it needs 4"; "": it has enough, be they held or not.
std::string too_few(const LicenceBook& book, const rules::NamedAmounts& asked) {
  for (const auto& [name, amount] : asked) {
    const uint64_t offered = book.offered().of(name);
    if (amount > offered)
      return "the pool has " + (offered == 0 ? "no licence" : counted(offered, "licence")) +
             " of " + name + ", it needs " + std::to_string(amount);
  }
  return "";
}

// "4, 5, 9 and 2 others": of the live attempts that hold some of it. O(attempts).
std::string holders_of(const Pool::State& s, const std::string& name) {
  constexpr size_t kShown = 10;
  std::vector<JobId> ids;
  for (const auto& [id, attempt] : s.attempts.all())
    if (attempt.named.has(name)) ids.push_back(id);
  const size_t shown = std::min(ids.size(), kShown);
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(shown), ids.end());
  std::string text = ids.size() == 1 ? "job " : "jobs ";
  for (size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + std::to_string(ids[i]);
  if (shown < ids.size()) text += " and " + counted(ids.size() - shown, "other");
  return text;
}

// "2 are kept for job 17": what comes back, too.
std::string kept_for(const Pool::State& s, const std::string& name) {
  for (const auto& [id, job] : s.matcher.licensed())
    if (job->demand->named.has(name))
      return counted(s.licences.kept(name), "licence") +
             (s.licences.kept(name) == 1 ? " is" : " are") + " kept for job " + std::to_string(id);
  return "";
}

// "waits for a licence of ansys: 3 of 3 are held by jobs 4, 5, 9"; "": enough of each are left.
std::string all_held(const Pool::State& s, const Job& job, const rules::NamedAmounts& asked) {
  for (const auto& [name, amount] : asked) {
    const uint64_t offered = s.licences.offered().of(name), held = s.licences.held(name);
    const uint64_t kept = job.licensed == nullptr ? s.licences.kept(name) : 0;
    if (held + kept + amount <= offered) continue;
    std::string text =
        "waits for " + (amount == 1 ? "a licence" : counted(amount, "licence")) + " of " + name;
    if (job.licensed != nullptr)
      text += amount == 1 ? ", which is kept for it as it comes back"
                          : ", which are kept for it as they come back";
    text += ": ";
    if (held > 0)
      text += std::to_string(held) + " of " + std::to_string(offered) +
              (held == 1 ? " is" : " are") + " held by " + holders_of(s, name);
    if (kept > 0) text += std::string(held > 0 ? ", " : "") + kept_for(s, name);
    return text;
  }
  return "";
}

// "its hours are mon-fri 19:00-07:00: they open in 3 h"; "": they are open.
std::string closed(const Pool::State& s, const OpenHours* hours, Micros now) {
  if (hours == nullptr || hours->open) return "";
  if (!hours->hours) return "its hours \"" + hours->text + "\" cannot be read";
  return "its hours are " + hours->text + ": they open in " +
         span_text(s.hours.opens_in(*hours, now).value_or(0));
}

// "ann has been given 10 places, as many as the throttle allows: the next in 2 s"
std::string throttled(const User& user, Micros now) {
  return user.record.name + " has been given " + counted(user.record.placed, "place") +
         ", as many as the throttle allows: the next in " +
         std::to_string(std::max<Micros>(user.due - now + 999'999, 0) / 1'000'000) + " s";
}

// "ann has 2 jobs on machines; the pool allows a user 2 at a time"; or an account
std::string at_limit(const User& user, uint64_t most) {
  return user.record.name + " has " + counted(user.attempts, "job") +
         " on machines; the pool allows " +
         (is_account(user.record.name) ? "an account " : "a user ") + std::to_string(most) +
         " at a time";
}

// "its batch has 2 jobs on machines, and at most 2 at a time"
std::string full(const Batch& batch) {
  return "its batch has " + counted(batch.attempts, "job") + " on machines, and at most " +
         std::to_string(batch.record.at_most) + " at a time";
}

}  // namespace

std::string Pool::why(JobId id, Micros now, std::optional<uint64_t> memory_asked) const {
  const State& s = *state_;
  const Job* job = s.jobs.with(id);
  if (job == nullptr) return "job " + std::to_string(id) + " is not live";
  const Attempt* attempt = s.attempts.find(id);
  const std::string where = attempt == nullptr
                                ? ""
                                : "attempt " + std::to_string(attempt->record.key.attempt) +
                                      " on " + attempt->machine->record.name;
  if (job->record.state == JobState::kHeld) {
    return job->record.reason + (attempt == nullptr ? "" : "; " + where + " has not ended yet");
  }
  if (job->record.state != JobState::kWaiting) return at_work(*attempt, now);
  if (attempt != nullptr) return "its " + where + " has not ended yet";
  if (job->waits_for != nullptr) return s.relations.why(*job->waits_for);
  if (job->record.earliest > std::max(now, job->record.not_before))
    return "it may not start before " +
           instant_text(job->record.earliest, s.changes.counters().utc_offset) + ": in " +
           span_text(job->record.earliest - now);
  if (job->record.not_before > now) {
    const std::string& reason = job->record.reason;
    const std::string again = again_in(job->record.not_before - now);
    if (job->record.refusals == 0) return reason + again;
    const std::string refused = refusals_text(job->record.refusals, "");
    return (reason.starts_with(refused) ? without_again(reason) : refused) + again;
  }
  const Machines all = known_of(s.machines.all(), Room::kNow);
  if (all.empty()) return "no machine is in the pool: start sublet-client on a workstation";
  const Requirements& needs = job->record.needs;
  std::string missing;
  const Machines fit = fitting(all, needs, job->demand->group->suits, s.licences, missing);
  std::string text;
  if (memory_asked && *memory_asked < needs.memory)
    text = used_before(s, *job, *memory_asked, all, fit.size(), missing);
  const rules::NamedAmounts& licences = job->demand->group->licences;
  if (const std::string few = too_few(s.licences, licences); !few.empty()) return few;
  if (fit.empty()) return text + missing;
  if (const std::string shut = closed(s, job->demand->hours, now); !shut.empty())
    return text + shut;
  if (job->promised != nullptr)
    return text + "a place on " + job->promised->record.name +
           " is promised to it: it starts when others have made room there";
  if (job->user->at_limit) return text + at_limit(*job->user, s.parameters.most_per_user);
  if (job->batch != nullptr && is_full(*job->batch)) return text + full(*job->batch);
  if (job->user->throttled) return text + throttled(*job->user, now);
  text += licences.empty() ? "" : all_held(s, *job, licences);
  if (!s.matcher.has_licences(*job)) return text;
  if (job->licensed != nullptr) text += "the licences that it needs are kept for it; ";
  text += none_idle(fit, {amounts_of(needs), job->demand->group->of_machine}) + who_rests(fit, now);
  const Ahead ahead = count_ahead(*job, id, *s.policies.job, s.matcher.queue(), fit);
  if (ahead.count > 0) {
    text += std::string("; ") + (ahead.all ? "" : "at least ") + counted(ahead.count, "job") +
            (ahead.count == 1 ? " that comes first waits" : " that come first wait") +
            " for the same machines";
  }
  return text;
}

std::string Pool::unsuitable(const Requirements& needs) const {
  const std::vector<bool> suited = state_->matcher.suitability().suited(needs);
  const LicenceBook& licences = state_->licences;
  const rules::NamedAmounts asked =
      licences.licences_in(rules::NamedAmounts::stored(needs.resources));
  std::string missing = too_few(licences, asked);
  if (!missing.empty()) return missing;
  // Mostly the first one could, and the others need not be looked at.
  const auto could = [&](const Machine* m) {
    return suited[m->kind->index] && amounts_of(needs).within(room_in(*m, Room::kAll));
  };
  const auto machines = state_->machines.all();
  if (machines.empty() || std::any_of(machines.begin(), machines.end(), could)) return "";
  name_missing(known_of(machines, Room::kAll), needs, licences, missing);
  return missing;
}

std::optional<Outlook> Pool::outlook(JobId id, Micros now) const {
  const State& s = *state_;
  const Job* job = s.jobs.with(id);
  if (job == nullptr || job->record.state != JobState::kWaiting) return std::nullopt;
  if (job->waits_for != nullptr) return std::nullopt;
  // Slots that become free do not tell when it may be tried again.
  const bool passed_over = std::max(job->record.not_before, job->record.earliest) > now ||
                           is_passed_over(*job->user) || !s.matcher.may_start(*job) ||
                           (job->batch != nullptr && is_full(*job->batch));
  if (passed_over || s.attempts.find(id) != nullptr) return std::nullopt;
  std::string missing;
  const Machines fit = fitting(known_of(s.machines.all(), Room::kNow), job->record.needs,
                               job->demand->group->suits, s.licences, missing);
  if (fit.empty()) return std::nullopt;
  const Ahead ahead = count_ahead(*job, id, *s.policies.job, s.matcher.queue(), fit);
  Outlook outlook{{}, ahead.count, ahead.all, 0, 0, job->promised != nullptr};
  for (const Known& known : fit) {
    const Machine* m = known.machine;
    // What becomes free there is another's.
    const bool anothers = m->promised_to != nullptr && m->promised_to != job;
    if (m->record.draining || anothers || (outlook.promised && m != job->promised)) continue;
    outlook.machines.push_back(m->record.id);
    outlook.lent += !m->silent && (m->away || !m->running.empty());
    for (const JobId running : m->running) {
      const Micros started = s.attempts.find(running)->record.started;
      Micros& first = outlook.at_work_since;
      if (started != 0 && (first == 0 || started < first)) first = started;
    }
  }
  return outlook;
}

}  // namespace sublet::scheduling
