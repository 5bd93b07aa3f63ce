#include "scheduling/matching/job_queue.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>

#include "scheduling/books/job_book.h"
#include "scheduling/books/machine_book.h"
#include "scheduling/matching/machine_queue.h"

namespace sublet::scheduling {

namespace {
uint64_t step_up(uint64_t size) {
  if (size == 0) return 0;
  if (size > uint64_t{1} << 63) return std::numeric_limits<uint64_t>::max();
  return std::max(kLeastStep, std::bit_ceil(size));
}
uint64_t least_of_step(uint64_t step) { return step <= kLeastStep ? 0 : step / 2; }

// Whether the machine may have room for some job of the group.
bool may_have_room(const Machine& machine, const Group& group) {
  return group.least_memory <= memory_offered(machine) && group.least_disk <= machine.disk_free;
}

// The first job of the bucket that the machine has room for.
Job* head_for(const Bucket& bucket, const Machine& machine, bool room_for_all) {
  if (room_for_all) return bucket.line.first();
  return bucket.line.first_within(memory_offered(machine), machine.disk_free);
}
}  // namespace

Requirements group_needs(const Requirements& needs) {
  Requirements rounded = needs;
  rounded.memory = step_up(needs.memory);
  rounded.disk = step_up(needs.disk);
  return rounded;
}

Rank rank_of(const JobPolicy& policy, const Job& best) {
  return {policy.key(*best.user, best.record, best.place.order), best.host->turn, best.record.id};
}

Host* JobQueue::enter_host(const std::string& name) {
  const auto [it, made] = hosts_.try_emplace(name);
  Host& host = it->second;
  if (made) {
    host.name = name;
    host.index = ++last_host_;
  }
  ++host.jobs;
  return &host;
}

void JobQueue::leave_host(Host* host) {
  if (--host->jobs == 0) hosts_.erase(hosts_.find(host->name));
}

const Host* JobQueue::known_host(const std::string& name) const {
  const auto it = hosts_.find(name);
  return it == hosts_.end() ? nullptr : &it->second;
}

Host* JobQueue::waiting_host(const std::string& name) {
  const auto it = hosts_.find(name);
  return it == hosts_.end() || it->second.waiting == 0 ? nullptr : &it->second;
}

Group* JobQueue::group(const Requirements& needs, bool* made) {
  Requirements rounded = group_needs(needs);
  auto it = groups_.find(rounded);
  *made = it == groups_.end();
  if (*made) {
    auto group = std::make_unique<Group>();
    group->needs = rounded;
    group->least_memory = least_of_step(rounded.memory);
    group->least_disk = least_of_step(rounded.disk);
    it = groups_.emplace(std::move(rounded), std::move(group)).first;
  }
  return it->second.get();
}

void JobQueue::forget(Group* group) { groups_.erase(groups_.find(group->needs)); }

void JobQueue::add(Job& job, double order) {
  Group& group = *job.group;
  const uint32_t host = policies_.job->turns_by_host() ? job.host->index : 0;
  const uint64_t key = uint64_t{job.user->record.number} << 32 | host;
  auto& bucket = group.buckets[key];
  if (!bucket) {
    bucket = std::make_unique<Bucket>();
    bucket->user = job.user;
    bucket->group = &group;
    bucket->key = key;
    bucket->host = host;
    bucket->place = group.open.size();
    group.open.push_back(bucket.get());
  }
  const Requirements& needs = job.record.needs;
  if (group.least_demanding == nullptr ||
      needs.memory < group.least_demanding->record.needs.memory ||
      needs.disk < group.least_demanding->record.needs.disk) {
    group.least_demanding = &job;
    if (!group.newly_queued) newly_queued_.push_back(&group);
    group.newly_queued = true;
  }
  job.bucket = bucket.get();
  job.place.order = order;
  bucket->line.add(job);
}

void JobQueue::take(Job& job) {
  Bucket* bucket = job.bucket;
  if (bucket == nullptr) return;
  Group& group = *bucket->group;
  bucket->line.take(job);
  job.bucket = nullptr;
  if (bucket->line.empty()) {
    std::vector<Bucket*>& open = group.open;
    open[bucket->place] = open.back();
    open[bucket->place]->place = bucket->place;
    open.pop_back();
    group.buckets.erase(group.buckets.find(bucket->key));
  }
  if (group.least_demanding == &job) {
    group.least_demanding = group.open.empty() ? nullptr : group.open.front()->line.first();
  }
}

void JobQueue::began_to_wait(Host& host, uint64_t count) {
  host.waiting += count;
  if (host.waiting > count) return;
  host.turn = ++last_turn_;
  requesting_.emplace(host.turn, &host);
}

void JobQueue::ceased_to_wait(Host& host, uint64_t count) {
  host.waiting -= count;
  if (host.waiting > 0) return;
  requesting_.erase(host.turn);
  host.turn = 0;
}

void JobQueue::served(Host& host) {
  if (host.turn == 0 || host.turn == last_turn_) return;
  requesting_.erase(host.turn);
  host.turn = ++last_turn_;
  requesting_.emplace_hint(requesting_.end(), host.turn, &host);
}

void JobQueue::requeue_hosts(const std::vector<Host*>& order) {
  requesting_.clear();
  for (Host* host : order) {
    host->turn = ++last_turn_;
    requesting_.emplace(host->turn, host);
  }
}

const Host* JobQueue::turn_of(const Machine& machine) const {
  const Host* first = nullptr;
  for (const Group* group : machine.kind->groups) {
    if (group->open.empty() || !may_have_room(machine, *group)) continue;
    const bool for_all = has_room(machine, group->needs);
    for (const Bucket* bucket : group->open) {
      const Host* host = bucket->line.first()->host;
      if (first != nullptr && host->turn >= first->turn) continue;
      if (head_for(*bucket, machine, for_all) != nullptr) first = host;
    }
  }
  return first;
}

// Sets User::best of each user to the best job that fits the machine.
void JobQueue::find_best_of_users(const Machine& machine) {
  const Host* turn = policies_.job->turns_by_host() ? turn_of(machine) : nullptr;
  ++search_;
  seen_.clear();
  for (const Group* group : machine.kind->groups) {
    if (group->open.empty() || !may_have_room(machine, *group)) continue;
    const bool for_all = has_room(machine, group->needs);
    for (const Bucket* bucket : group->open) {
      if (turn != nullptr && bucket->host != turn->index) continue;
      Job* head = head_for(*bucket, machine, for_all);
      if (head == nullptr) continue;
      User& user = *bucket->user;
      if (user.search != search_) {
        user.search = search_;
        user.best = head;
        seen_.push_back(&user);
      } else if (comes_before(*head, *user.best)) {
        user.best = head;
      }
    }
  }
}

Job* JobQueue::best_for(const Machine& machine) {
  // Two steps, because the priority set by a user orders only that user's jobs: the
  // best job of each user, then among those the policy's choice.
  find_best_of_users(machine);
  Job* best = nullptr;
  Rank least;
  for (const User* user : seen_) {
    const Rank rank = rank_of(*policies_.job, *user->best);
    if (best != nullptr && least <= rank) continue;
    best = user->best;
    least = rank;
  }
  return best;
}

}  // namespace sublet::scheduling
