#include "scheduling/matching/host_queue.h"

namespace sublet::scheduling {

Host* HostQueue::enter(const std::string& name) {
  const auto [it, made] = hosts_.try_emplace(name);
  Host& host = it->second;
  if (made) {
    host.name = name;
    host.index = ++last_index_;
  }
  ++host.jobs;
  return &host;
}

void HostQueue::leave(Host* host) {
  if (--host->jobs == 0) hosts_.erase(hosts_.find(host->name.str()));
}

const Host* HostQueue::known(const std::string& name) const {
  const auto it = hosts_.find(name);
  return it == hosts_.end() ? nullptr : &it->second;
}

Host* HostQueue::waiting(const std::string& name) {
  const auto it = hosts_.find(name);
  return it == hosts_.end() || it->second.waiting == 0 ? nullptr : &it->second;
}

void HostQueue::began_to_wait(Host& host, uint64_t count) {
  host.waiting += count;
  if (host.waiting > count) return;
  host.turn = ++last_turn_;
  requesting_.emplace(host.turn, &host);
}

void HostQueue::ceased_to_wait(Host& host, uint64_t count) {
  host.waiting -= count;
  if (host.waiting > 0) return;
  requesting_.erase(host.turn);
  host.turn = 0;
}

void HostQueue::served(Host& host) {
  if (host.turn == 0 || host.turn == last_turn_) return;
  requesting_.erase(host.turn);
  host.turn = ++last_turn_;
  requesting_.emplace_hint(requesting_.end(), host.turn, &host);
}

void HostQueue::return_turn(Host& host) {
  if (host.turn == 0 || requesting_.begin()->second == &host) return;
  requesting_.erase(host.turn);
  host.turn = --first_turn_;
  requesting_.emplace_hint(requesting_.begin(), host.turn, &host);
}

void HostQueue::requeue(const std::vector<Host*>& order) {
  requesting_.clear();
  for (Host* host : order) {
    host->turn = ++last_turn_;
    requesting_.emplace(host->turn, host);
  }
}

}  // namespace sublet::scheduling
