#include "scheduling/job_queue.h"

#include <algorithm>

#include "scheduling/machine_queue.h"

namespace sublet::scheduling {

bool QueueOrder::before(const QueueEntry& a, const QueueEntry& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  if (a.order != b.order) return a.order < b.order;
  return a.id < b.id;
}

void QueueOrder::moved(QueueEntry& entry, size_t position) { entry.job->position = position; }

Host* JobQueue::host(const std::string& name) {
  const auto [it, made] = hosts_.try_emplace(name);
  if (made) {
    it->second.name = name;
    it->second.index = static_cast<uint32_t>(hosts_.size());
  }
  return &it->second;
}

const Host* JobQueue::known_host(const std::string& name) const {
  const auto it = hosts_.find(name);
  return it == hosts_.end() ? nullptr : &it->second;
}

Group* JobQueue::group(const Requirements& needs, bool* made) {
  auto it = groups_.find(needs);
  *made = it == groups_.end();
  if (*made) {
    it = groups_.emplace(needs, std::make_unique<Group>()).first;
    it->second->needs = needs;
  }
  return it->second.get();
}

void JobQueue::forget(Group* group) { groups_.erase(groups_.find(group->needs)); }

void JobQueue::add(Job& job, double order) {
  Group& group = *job.group;
  const uint32_t host = turns_by_machine_ ? job.host->index : 0;
  auto& bucket = group.buckets[uint64_t{job.user->index} << 32 | host];
  if (!bucket) {
    bucket = std::make_unique<Bucket>();
    bucket->user = job.user;
    bucket->group = &group;
    bucket->host = host;
  }
  if (group.open.empty()) {
    if (!group.fresh) fresh_.push_back(&group);
    group.fresh = true;
  }
  if (bucket->heap.empty()) {
    bucket->place = group.open.size();
    group.open.push_back(bucket.get());
  }
  job.bucket = bucket.get();
  bucket->heap.push({order, job.record.id, &job, job.record.priority});
}

void JobQueue::take(Job& job) {
  Bucket* bucket = job.bucket;
  if (bucket == nullptr) return;
  bucket->heap.erase(job.position);
  job.bucket = nullptr;
  if (!bucket->heap.empty()) return;
  std::vector<Bucket*>& open = bucket->group->open;
  open[bucket->place] = open.back();
  open[bucket->place]->place = bucket->place;
  open.pop_back();
  bucket->place = kNowhere;
}

void JobQueue::began_to_wait(Host& host) {
  if (host.waiting++ > 0) return;
  host.turn = ++last_turn_;
  requesting_.emplace(host.turn, &host);
}

void JobQueue::ceased_to_wait(Host& host) {
  if (--host.waiting > 0) return;
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
    if (group->open.empty() || !has_room(machine, group->needs)) continue;
    for (const Bucket* bucket : group->open) {
      const Host* host = bucket->heap.top().job->host;
      if (first == nullptr || host->turn < first->turn) first = host;
    }
  }
  return first;
}

Job* JobQueue::best_for(const Machine& machine) {
  // Two steps, because a user's own priority orders that user's jobs only: the
  // best job of each user, then among those the smallest share priority. Equal
  // ones: the host nearer to the head of REQUESTING, then the id.
  const Host* turn = turns_by_machine_ ? turn_of(machine) : nullptr;
  ++search_;
  seen_.clear();
  for (const Group* group : machine.kind->groups) {
    if (group->open.empty() || !has_room(machine, group->needs)) continue;
    for (const Bucket* bucket : group->open) {
      if (turn != nullptr && bucket->host != turn->index) continue;
      const QueueEntry& top = bucket->heap.top();
      User& user = *bucket->user;
      if (user.search != search_) {
        user.search = search_;
        user.best = &top;
        seen_.push_back(&user);
      } else if (QueueOrder::before(top, *user.best)) {
        user.best = &top;
      }
    }
  }
  const QueueEntry* best = nullptr;
  for (const User* user : seen_) {
    const QueueEntry* entry = user->best;
    if (best != nullptr) {
      const uint64_t turn_a = entry->job->host->turn, turn_b = best->job->host->turn;
      if (entry->order != best->order ? entry->order > best->order
          : turn_a != turn_b          ? turn_a > turn_b
                                      : entry->id > best->id) {
        continue;
      }
    }
    best = entry;
  }
  return best == nullptr ? nullptr : best->job;
}

}  // namespace sublet::scheduling
