// The part of OrderDesk that has to do with orders taken ahead of time.
#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "client/attempts/ending.h"
#include "client/attempts/order_desk.h"
#include "client/attempts/work.h"

namespace sublet::client {
namespace {

int64_t now_ns() { return system_clock().boot_ns(); }

}  // namespace

std::optional<std::pair<RunOrder, std::string>> OrderDesk::take_next() {
  std::lock_guard lock(mutex_);
  if (ahead_.empty() || std::ranges::find(slot_taken_, false) == slot_taken_.end())
    return std::nullopt;
  uint32_t code = kRunAccepted;
  std::string why = refusal_now(ahead_.front().what.job.needs, ahead_.front().what.name.job, &code);
  RunOrder order = std::move(ahead_.front());
  ahead_.pop_front();
  Assignment& what = order.what;
  if (why.empty() && what.first_lease_ns <= now_ns()) why = "its lease is over";
  if (why.empty()) claim_slot(what);
  return std::pair(std::move(order), std::move(why));
}

void OrderDesk::start_ahead() {
  try {
    while (auto next = take_next()) {
      auto& [order, why] = *next;
      RunAnswer answer;
      if (why.empty() && accept(order, &answer, true)) continue;
      give_back(order.what, why.empty() ? answer.reason : why);
    }
  } catch (const std::exception& error) {
    log(Severity::error) << "orders taken ahead wait: " << error.what();
  }
}

void OrderDesk::give_back(const Assignment& what, const std::string& why) {
  {
    std::lock_guard lock(mutex_);
    known_[what.name] = {.returning = true};
  }
  log(Severity::info) << attempt_label(what.name) << " is given back: " << why;
  given_back_(std::make_shared<const Assignment>(what), why);
}

void OrderDesk::give_back_ahead(const std::string& why) {
  std::deque<RunOrder> orders;
  {
    std::lock_guard lock(mutex_);
    orders.swap(ahead_);
  }
  for (const RunOrder& order : orders) give_back(order.what, why);
}

void OrderDesk::returned(const AttemptName& name) {
  {
    std::lock_guard lock(mutex_);
    const auto known = known_.find(name);
    if (known == known_.end() || !known->second.returning) return;
  }
  forget(name);
}

bool OrderDesk::has_ahead() const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && !ahead_.empty();
}

bool OrderDesk::is_returning() const {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(known_, [](const auto& item) { return item.second.returning; });
}

void OrderDesk::vacate(std::vector<VacateOrder> orders) {
  std::vector<std::pair<RunOrder, std::string>> unstarted;
  {
    std::lock_guard lock(mutex_);
    for (const VacateOrder& leave : orders) {
      const auto it = std::ranges::find_if(
          ahead_, [&](const RunOrder& order) { return order.what.name == leave.name; });
      const auto known = known_.find(leave.name);
      if (it != ahead_.end()) {
        unstarted.emplace_back(std::move(*it), leave.unstarted ? "no slot has become free"
                                                               : leave_sentence(leave.reason));
        ahead_.erase(it);
      } else if (known != known_.end() && known->second.being_accepted && !leave.unstarted) {
        known->second.leaves = leave.reason;
      }
    }
  }
  std::erase_if(orders, [](const VacateOrder& leave) { return leave.unstarted; });
  for (const auto& [order, why] : unstarted) give_back(order.what, why);
  vacate_(std::move(orders));
}

void OrderDesk::renewed(int64_t sent_ns, int64_t lease_ms,
                        const std::vector<AttemptVerdict>& verdicts) {
  std::vector<AttemptName> over;
  {
    std::lock_guard lock(mutex_);
    for (RunOrder& order : ahead_) {
      const auto it = std::ranges::find(verdicts, order.what.name, &AttemptVerdict::name);
      if (it == verdicts.end()) continue;
      if (it->value == kVerdictCounts)
        order.what.first_lease_ns = protocol::lease_end_ns(sent_ns, lease_ms);
      else if (it->value == kVerdictSuperseded || it->value == kVerdictKnown)
        over.push_back(order.what.name);
    }
    std::erase_if(ahead_, [&](const RunOrder& order) {
      return std::ranges::find(over, order.what.name) != over.end();
    });
  }
  for (const AttemptName& name : over) forget(name);
}

}  // namespace sublet::client
