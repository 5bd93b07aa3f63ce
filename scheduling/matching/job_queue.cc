#include "scheduling/matching/job_queue.h"

#include <algorithm>

#include "scheduling/books/job_book.h"
#include "scheduling/books/machine_book.h"
#include "scheduling/matching/host_queue.h"

namespace sublet::scheduling {
namespace {
// How many lines a search by key looks at in one way before it tries another; from then on four
// times as many.
constexpr size_t kFirstLooks = 64;

auto may_have(const SoughtInGroup& sought) {
  return [&sought](const UserBound& bound) { return sought.may_be(bound); };
}

}  // namespace

Rank rank_of(const JobPolicy& policy, const User& user, double order, uint64_t turn, JobId id) {
  if (policy.by_job()) return {false, {0, order, 0}, turn, id};
  const UserKey key = policy.key(user);
  const std::optional<UserKey> from = policy.from();
  return {comes_round(from, key), key, 0, user.record.number};
}

Rank rank_of(const JobPolicy& policy, const Job& best) {
  return rank_of(policy, *best.user, best.place.order, best.host->turn, best.record.id);
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
  if (limited) ++job.user->place.limited;
  line.number = uint64_t{job.user->record.number} << 32 | host;
  return line;
}

void JobQueue::settle(UserLine& line) {
  const bool full = line.batch != nullptr && is_full(*line.batch);
  if (full || is_passed_over(*line.user)) return leave(line);
  const bool by_job = policies_.job->by_job();
  const UserKey key = by_job ? UserKey{0, line.jobs.bound().order, 0} : UserKey{};
  const UserBound bound = {line.jobs.bound().least, line.jobs.bound().since, line.licensed};
  if (line.stands && key == line.key) {
    if (bound == line.of_jobs) return;
    line.of_jobs = bound;
    line.group->lines.refresh(line);
    if (line.counted) users_.refresh(line);
    return;
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
  line.counted = !policies_.job->by_job();
  if (line.counted) users_.add(line, policies_.job->key(*line.user));
}

void JobQueue::leave(UserLine& line) {
  if (line.stands) line.group->lines.take(line);
  if (line.counted) users_.take(line);
  line.stands = line.counted = false;
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
  if (line->batch != nullptr) --line->user->place.limited;
  std::erase_if(line->user->lines, [line](const auto& one) { return one.get() == line; });
}

void JobQueue::requeue(Job& job) {
  if (job.line == nullptr) return;
  const double order = job.place.order;
  take(job);
  add(job, order);
}

// His jobs are the same, and are not looked at; nor are his lines, if all stand and none may be of
// a full batch.
void JobQueue::rekey(User& user) {
  if (!policies_.job->by_job()) users_.move(user, policies_.job->key(user));
  const bool all_stand = user.place.lines == user.lines.size();
  if (all_stand && user.place.limited == 0 && !is_passed_over(user)) return;
  for (const auto& line : user.lines) settle(*line);
}

void JobQueue::rekey_all(std::map<std::string, User>& users) {
  if (policies_.job->by_job()) return;
  users_.move_all(users, [this](const User& user) { return policies_.job->key(user); });
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
  const UserBound& bound = group.lines.bound();
  if (!search.may_be(bound.least, bound.since)) return sought;
  sought.others = sought_in(group, search, false);
  if (bound.licensed) sought.licensed = sought_in(group, search, true);
  return sought;
}

Job* JobQueue::best_of(const User& user, const Machine& machine, const JobSearch& search,
                       std::optional<uint32_t> host) const {
  Job* best = nullptr;
  for (const auto& line : user.lines) {
    if (!line->stands) continue;  // its batch is full
    if (host && line->host != *host) continue;
    if (!search.may_be(line->of_jobs.least, line->of_jobs.since)) continue;
    if (best != nullptr && comes_before(*best, *line->jobs.first())) continue;
    if (!line->group->suits[machine.kind->index]) continue;
    const Sought sought = sought_in(*line->group, search, line->licensed);
    Job* first = sought.is_any() ? line->jobs.first_of(sought) : nullptr;
    if (first != nullptr && (best == nullptr || comes_before(*first, *best))) best = first;
  }
  return best;
}

// The tree of users knows only what all lines of a user need together, so that users may be looked
// at in vain, many if they all have something that fits elsewhere. The lines of a group are passed
// over better, but many may have a job that fits. The two ways are tried in turn, so that it takes
// a few times as long as the shorter one.
Job* JobQueue::best_by_key(const Machine& machine, const JobSearch& search) {
  SoughtInGroup sought;
  uint64_t groups = 0;
  for (const Group* group : machine.kind->groups) {
    const SoughtInGroup own = sought_in(*group, search);
    if (!own.is_any() || !own.may_be(group->lines.bound())) continue;
    sought.licensed.include(own.licensed);
    sought.others.include(own.others);
    groups |= group->bit;
  }
  if (groups == 0) return nullptr;
  const auto may = [&](const UsersBound& bound) {
    return (bound.groups & groups) != 0 && sought.may_be(bound.of_jobs);
  };
  ++search_;
  for (size_t looks = kFirstLooks;; looks *= 4) {
    if (const auto best = best_among_users(machine, search, may, looks)) return *best;
    if (const auto best = best_among_lines(machine, search, looks)) return *best;
  }
}

std::optional<Job*> JobQueue::best_among_users(const Machine& machine, const JobSearch& search,
                                               const std::function<bool(const UsersBound&)>& may,
                                               size_t looks) {
  Job* best = nullptr;
  bool gave_up = false;
  std::vector<User*> vain;
  const auto is_last = [&](User& user) {
    if ((gave_up = looks == 0)) return true;
    --looks;
    if (user.search == search_ || !may(user.place.own)) return false;
    user.search = search_;
    looks -= std::min(looks, user.lines.size());
    best = best_of(user, machine, search);
    if (best == nullptr) vain.push_back(&user);
    return best != nullptr;
  };
  users_.first(policies_.job->from(), may, is_last);
  for (User* user : vain) users_.narrow(*user);
  return gave_up ? std::nullopt : std::optional(best);
}

std::optional<Job*> JobQueue::best_among_lines(const Machine& machine, const JobSearch& search,
                                               size_t looks) const {
  const std::optional<UserKey> from = policies_.job->from();
  const User* best = nullptr;
  Rank least;
  bool gave_up = false;
  for (const Group* group : machine.kind->groups) {
    const SoughtInGroup sought = sought_in(*group, search);
    if (!sought.is_any() || gave_up) continue;
    group->lines.walk(may_have(sought), [&](const UserLine& line) {
      if ((gave_up = looks == 0)) return false;
      --looks;
      const UserKey& key = line.user->place.key;
      const Rank rank = {comes_round(from, key), key, 0, line.user->record.number};
      if (best != nullptr && least <= rank) return true;
      // The bound of a line is of several jobs: whether there is one that fits is another question.
      if (line.jobs.first_of(sought.in(line)) == nullptr) return true;
      best = line.user;
      least = rank;
      return true;
    });
  }
  if (gave_up) return std::nullopt;
  return best == nullptr ? nullptr : best_of(*best, machine, search);
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
