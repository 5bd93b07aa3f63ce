#include "scheduling/matching/job_queue.h"

#include <algorithm>
#include <tuple>

#include "scheduling/books/job_book.h"
#include "scheduling/books/machine_book.h"
#include "scheduling/matching/host_queue.h"

namespace sublet::scheduling {
namespace {
auto may_have(const SoughtInGroup& sought) {
  return [&sought](const UserBound& bound) {
    return sought.others.may_be(bound.least, bound.since) ||
           (bound.licensed && sought.licensed.may_be(bound.least, bound.since));
  };
}
// The bound of a line is of several jobs: whether there is one is another question.
auto has_one(const SoughtInGroup& sought) {
  return [&sought](const UserLine& line) { return line.jobs.first_of(sought.in(line)) != nullptr; };
}
void fetch(const UserLine& line) {
  const char* begin = reinterpret_cast<const char*>(&line);
  for (size_t at = 0; at < sizeof(UserLine); at += 64) __builtin_prefetch(begin + at);
}
}  // namespace

Rank rank_of(const JobPolicy& policy, const User& user, double order, uint64_t turn, JobId id) {
  if (policy.by_job()) return {false, {0, order, 0}, turn, id};
  const UserKey key = policy.key(user);
  const std::optional<UserKey> from = policy.from();
  return {from && !(*from < key), key, 0, user.record.number};
}

Rank rank_of(const JobPolicy& policy, const Job& best) {
  return rank_of(policy, *best.user, best.place.order, best.host->turn, best.record.id);
}

UserKey JobQueue::key_of(const UserLine& line) const {
  if (policies_.job->by_job()) return {0, line.jobs.bound().order, 0};
  return policies_.job->key(*line.user);
}

UserLine& JobQueue::line_for(Job& job) {
  Group* group = job.demand->group;
  const uint32_t host = policies_.job->turns_by_host() ? job.host->index : 0;
  const bool limited = job.batch != nullptr && job.batch->record.at_most > 0;
  const Batch* batch = limited ? job.batch : nullptr;
  const bool licensed = job.licensed != nullptr;
  auto& lines = job.user->lines;
  for (const auto& line : lines)
    if (line->group == group && line->host == host && line->batch == batch &&
        line->licensed == licensed)
      return *line;
  lines.push_back(std::make_unique<UserLine>());
  UserLine& line = *lines.back();
  line.user = job.user;
  line.group = group;
  line.host = host;
  line.batch = batch;
  line.licensed = licensed;
  line.batch_id = limited ? batch->record.id : 0;
  line.number = uint64_t{job.user->record.number} << 32 | host;
  return line;
}

void JobQueue::settle(UserLine& line) {
  const bool full = line.batch != nullptr && is_full(*line.batch);
  if (full || is_passed_over(*line.user)) return leave(line);
  const UserKey key = key_of(line);
  const UserBound bound = {line.jobs.bound().least, line.jobs.bound().since, line.licensed};
  if (line.stands && key == line.key) {
    if (bound == line.of_jobs) return;
    line.of_jobs = bound;
    return line.group->lines.refresh(line);
  }
  const bool comes_back = !line.stands;
  leave(line);
  line.of_jobs = bound;
  enter(line, key);
  if (comes_back) note_new(*line.group, bound.least);
}

void JobQueue::enter(UserLine& line, const UserKey& key) {
  line.key = key;
  line.group->lines.add(line);
  line.stands = true;
}

void JobQueue::leave(UserLine& line) {
  if (line.stands) line.group->lines.take(line);
  line.stands = false;
}

void JobQueue::add(Job& job, double order) {
  UserLine& line = line_for(job);
  job.line = &line;
  job.place.order = order;
  line.jobs.add(job);
  settle(line);
  if (line.stands) note_new(*line.group, amounts_of(job.record.needs));
}

void JobQueue::note_new(Group& group, const Amounts& needs) {
  if (!group.newly_queued) {
    newly_queued_.push_back(&group);
    group.newly_least = needs;
  }
  group.newly_queued = true;
  group.newly_least = least(group.newly_least, needs);
}

void JobQueue::take(Job& job) {
  UserLine* line = job.line;
  if (line == nullptr) return;
  job.line = nullptr;
  line->jobs.take(job);
  if (!line->jobs.empty()) return settle(*line);
  leave(*line);
  std::erase_if(line->user->lines, [line](const auto& one) { return one.get() == line; });
}

void JobQueue::requeue(Job& job) {
  if (job.line == nullptr) return;
  const double order = job.place.order;
  take(job);
  add(job, order);
}

// His jobs are the same, and are not looked at.
void JobQueue::rekey(User& user) {
  const bool by_job = policies_.job->by_job();
  if (is_passed_over(user) || by_job) {
    for (const auto& line : user.lines) settle(*line);
    return;
  }
  const UserKey key = policies_.job->key(user);
  for (const auto& line : user.lines) {
    const bool full = line->batch != nullptr && is_full(*line->batch);
    if (!line->stands || full) {
      settle(*line);
    } else if (line->key != key) {
      line->group->lines.move(*line, key);
    }
  }
}

// The users are sorted, once for all groups, and their lines are put into the groups anew.
void JobQueue::rekey_all(const std::map<std::string, User>& users, const Suitability& suitability) {
  if (policies_.job->by_job()) return;
  std::vector<std::tuple<UserKey, uint32_t, const User*>> order;
  for (const auto& [name, user] : users)
    if (!user.lines.empty())
      order.emplace_back(policies_.job->key(user), user.record.number, &user);
  std::sort(order.begin(), order.end());
  std::vector<std::pair<UserLine*, const UserKey*>> lines;
  for (const auto& [key, number, user] : order)
    for (const auto& line : user->lines) lines.emplace_back(line.get(), &key);
  for (const auto& [key, group] : suitability.groups()) group->lines.clear();
  // Lines lie apart. To fetch them ahead saves a quarter of the time of a tick (bench-decide with
  // 10,000 users and 32 groups).
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i + kAhead < lines.size()) fetch(*lines[i + kAhead].first);
    UserLine& line = *lines[i].first;
    if (!line.stands) continue;
    line.key = *lines[i].second;
    line.group->lines.append(line);
  }
}

void JobQueue::sort_out(const std::map<std::string, User>& users) {
  std::vector<Job*> moving;
  for (const auto& [name, user] : users)
    for (const auto& line : user.lines)
      line->jobs.walk([&](Job& job) {
        if (job.demand->group != line->group) moving.push_back(&job);
        return true;
      });
  for (Job* job : moving) requeue(*job);
}

bool JobQueue::may_start(const Group& group) const {
  const bool kept = group.lines.bound().licensed && licences_.has_left_of_kept(group.licences);
  return is_open(group) && (kept || licences_.has_left(group.licences));
}

Sought JobQueue::sought_in(const Group& group, const JobSearch& search, bool licensed) const {
  Sought sought{{}, search.among, {}, search.since};
  if (!is_open(group)) return sought;
  const rules::NamedAmounts& licences = group.licences;
  const bool left = licensed ? licences_.has_left_of_kept(licences) : licences_.has_left(licences);
  if (left && group.of_machine.within(search.space.named)) sought.room = search.space.room;
  const bool may_be_kept = !licensed && !left && licences_.may_keep(licences);
  const bool open_for_long =
      group.hours == nullptr || hours_.open_since(*group.hours) <= search.since;
  const bool any = search.most != nullptr && open_for_long && (left || may_be_kept);
  if (any && group.of_machine.within(search.most->named)) sought.most = search.most->room;
  return sought;
}

SoughtInGroup JobQueue::sought_in(const Group& group, const JobSearch& search) const {
  SoughtInGroup sought;
  if (group.lines.empty()) return sought;
  sought.others = sought_in(group, search, false);
  if (group.lines.bound().licensed) sought.licensed = sought_in(group, search, true);
  return sought;
}

Job* JobQueue::best_of(const User& user, const Machine& machine, const JobSearch& search,
                       std::optional<uint32_t> host) const {
  Job* best = nullptr;
  for (const auto& line : user.lines) {
    if (!line->stands) continue;  // its batch is full
    if (!line->group->suits[machine.kind->index]) continue;
    if (host && line->host != *host) continue;
    const Sought sought = sought_in(*line->group, search, line->licensed);
    Job* first = sought.is_any() ? line->jobs.first_of(sought) : nullptr;
    if (first != nullptr && (best == nullptr || comes_before(*first, *best))) best = first;
  }
  return best;
}

// The user who is first in one of the groups, and of all his jobs that fit, the best.
Job* JobQueue::best_by_key(const Machine& machine, const JobSearch& search) const {
  const std::optional<UserKey> from = policies_.job->from();
  const UserLine* best = nullptr;
  bool best_is_behind = false;
  for (const Group* group : machine.kind->groups) {
    const SoughtInGroup sought = sought_in(*group, search);
    if (!sought.is_any()) continue;
    const GroupLines& lines = group->lines;
    const UserLine* line =
        from ? lines.first_behind(*from, may_have(sought), has_one(sought)) : nullptr;
    const bool is_behind = line != nullptr;
    if (line == nullptr && !best_is_behind) line = lines.first(may_have(sought), has_one(sought));
    if (line == nullptr) continue;
    if (best != nullptr && best_is_behind == is_behind && !comes_before(*line, *best)) continue;
    best = line;
    best_is_behind = is_behind;
  }
  return best == nullptr ? nullptr : best_of(*best->user, machine, search);
}

// A user's best job for this machine may be a later one of his line, and no better by the policy
// than his first. So lines are tried in the order of the best that each may have.
Job* JobQueue::best_by_job(const Machine& machine, const JobSearch& search) {
  std::optional<uint32_t> host;
  if (policies_.job->turns_by_host()) host = host_in_turn(machine, search);
  ++search_;
  Job* best = nullptr;
  Rank least;
  const auto try_line = [&](const UserLine& line) {
    if (best != nullptr && line.key > least.key) return false;
    User& user = *line.user;
    if (user.search == search_ || (host && line.host != *host)) return true;
    user.search = search_;
    Job* job = best_of(user, machine, search, host);
    if (job == nullptr) return true;
    const Rank rank = rank_of(*policies_.job, *job);
    if (best != nullptr && least <= rank) return true;
    best = job;
    least = rank;
    return true;
  };
  for (const Group* group : machine.kind->groups) {
    const SoughtInGroup sought = sought_in(*group, search);
    if (sought.is_any()) group->lines.walk(may_have(sought), try_line);
  }
  return best;
}

std::optional<uint32_t> JobQueue::host_in_turn(const Machine& machine,
                                               const JobSearch& search) const {
  const Host* first = nullptr;
  for (const Group* group : machine.kind->groups) {
    const SoughtInGroup sought = sought_in(*group, search);
    if (!sought.is_any()) continue;
    group->lines.walk(may_have(sought), [&](const UserLine& line) {
      const Job* job = line.jobs.first_of(sought.in(line));
      if (job != nullptr && (first == nullptr || job->host->turn < first->turn)) first = job->host;
      return true;
    });
  }
  if (first == nullptr) return std::nullopt;
  return first->index;
}

Job* JobQueue::best_for(const Machine& machine, const JobSearch& search) {
  return policies_.job->by_job() ? best_by_job(machine, search) : best_by_key(machine, search);
}

}  // namespace sublet::scheduling
