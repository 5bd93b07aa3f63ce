// The part of OrderDesk that has to do with orders taken ahead of time.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "client/attempts/ending.h"
#include "client/attempts/order_desk.h"
#include "client/attempts/work.h"
#include "client/machine/gpus.h"
#include "client/staging/staging.h"

namespace sublet::client {
namespace {

constexpr int64_t kMs = 1'000'000;

int64_t now_ns() { return system_clock().boot_ns(); }

}  // namespace

std::optional<std::pair<RunOrder, std::string>> OrderDesk::take_next() {
  std::lock_guard lock(mutex_);
  if (ahead_.empty() || !has_free_slot()) return std::nullopt;
  uint32_t code = kRunAccepted;
  std::string why = refusal_now(ahead_.front().what.job.needs, ahead_.front().what.name.job, &code);
  RunOrder order = std::move(ahead_.front());
  ahead_.pop_front();
  Assignment& what = order.what;
  // Said while it was handed over, or taken back.
  const sublet_leave_reason leaves = known_[what.name].leaves;
  if (leaves != SUBLET_LEAVE_NONE) why = leave_sentence(leaves);
  if (why.empty() && what.first_lease_ns <= now_ns()) why = "its lease is over";
  if (why.empty()) claim_slot(what);
  return std::pair(std::move(order), std::move(why));
}

void OrderDesk::start_ahead() {
  try {
    begin_next();
    take_old_ones_back();
    do {
      look_at_next_again();
      while (auto next = take_next()) {
        auto& [order, why] = *next;
        RunAnswer answer;
        if (why.empty() && accept(order, &answer, true)) continue;
        give_back(order.what, why.empty() ? answer.reason : why);
      }
    } while (hand_over_next() || take_one_back());
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
  std::vector<size_t> next;
  {
    std::lock_guard lock(mutex_);
    orders.swap(ahead_);
    next = pick_up_unwanted([&](const Next&) { return why; });
  }
  for (const RunOrder& order : orders) give_back(order.what, why);
  put_down_all(next);
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
  return lock.owns_lock() && (!ahead_.empty() || has_next());
}

bool OrderDesk::has_next() const {
  return std::ranges::any_of(slots_, [](const Slot& slot) { return slot.next.has_value(); });
}

bool OrderDesk::is_returning() const {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(known_, [this](const auto& item) {
    return item.second.returning || (draining_ && item.second.being_accepted);
  });
}

void OrderDesk::vacate(std::vector<VacateOrder> orders) {
  const auto why = [](const VacateOrder& leave) {
    return leave.unstarted ? "no slot has become free" : leave_sentence(leave.reason);
  };
  std::vector<std::pair<RunOrder, std::string>> unstarted;
  std::vector<size_t> next;
  {
    std::lock_guard lock(mutex_);
    next = pick_up_unwanted([&](const Next& one) -> std::string {
      const auto leave = std::ranges::find(orders, one.name, &VacateOrder::name);
      return leave == orders.end() ? "" : why(*leave);
    });
    for (const VacateOrder& leave : orders) {
      const auto it = std::ranges::find_if(
          ahead_, [&](const RunOrder& order) { return order.what.name == leave.name; });
      const auto known = known_.find(leave.name);
      if (it != ahead_.end()) {
        unstarted.emplace_back(std::move(*it), why(leave));
        ahead_.erase(it);
      } else if (known != known_.end() && known->second.being_accepted && !leave.unstarted) {
        known->second.leaves = leave.reason;
      }
    }
  }
  for (const auto& [order, reason] : unstarted) give_back(order.what, reason);
  put_down_all(next);
  std::erase_if(orders, [](const VacateOrder& leave) { return leave.unstarted; });
  vacate_(std::move(orders));
}

void OrderDesk::renewed(int64_t sent_ns, int64_t lease_ms,
                        const std::vector<AttemptVerdict>& verdicts) {
  const int64_t until = protocol::lease_end_ns(sent_ns, lease_ms);
  std::vector<AttemptName> over;
  const auto is_over = [&](const AttemptName& name) {
    return std::ranges::find(over, name) != over.end();
  };
  // True: it counts.
  const auto counts = [&](const AttemptName& name) {
    const auto it = std::ranges::find(verdicts, name, &AttemptVerdict::name);
    if (it == verdicts.end()) return false;
    if (it->value == kVerdictSuperseded || it->value == kVerdictKnown) over.push_back(name);
    return it->value == kVerdictCounts;
  };
  std::vector<AttemptName> forgotten;
  std::vector<size_t> next;
  {
    std::lock_guard lock(mutex_);
    for (RunOrder& order : ahead_)
      if (counts(order.what.name)) order.what.first_lease_ns = until;
    std::erase_if(ahead_, [&](const RunOrder& order) { return is_over(order.what.name); });
    forgotten = over;
    for (Slot& slot : slots_)
      if (slot.next && counts(slot.next->name)) renew(*slot.next, until);
    next = pick_up_unwanted([&](const Next& one) -> std::string {
      return is_over(one.name) ? "it no longer counts" : "";
    });
  }
  for (const AttemptName& name : forgotten) forget(name);
  put_down_all(next);
}

// ---- those that are handed over ----

void OrderDesk::renew(Next& next, int64_t lease_ns) {
  next.lease_ns = lease_ns;
  if (next.in_hand) return;  // put_down() does the rest
  next.order.what.first_lease_ns = lease_ns;
  next_attempts_->renew(*next.handed, lease_ns);
}

std::optional<OrderDesk::Next> OrderDesk::take_begun() {
  std::lock_guard lock(mutex_);
  const auto slot = std::ranges::find_if(
      slots_, [](const Slot& one) { return one.next && one.next->has_slot && !one.next->in_hand; });
  if (slot == slots_.end()) return std::nullopt;
  return std::exchange(slot->next, std::nullopt);
}

void OrderDesk::begin_next() {
  refuse_next_if([](const Next& next) { return next.has_slot; });
  begin_those_with_slots();
}

void OrderDesk::begin_those_with_slots() {
  while (const auto next = take_begun()) {
    next_attempts_->begin(*next->handed);
    leave_if_told(next->name);
  }
}

bool OrderDesk::has_one_for_a_shepherd() const {
  std::lock_guard lock(mutex_);
  return next_attempts_ != nullptr && !ahead_.empty() && std::ranges::any_of(slots_, has_no_next);
}

std::optional<std::pair<size_t, RunOrder>> OrderDesk::choose_next() {
  std::lock_guard lock(mutex_);
  if (next_attempts_ == nullptr || ahead_.empty()) return std::nullopt;
  const auto slot = std::ranges::find_if(slots_, has_no_next);
  const RunOrder& first = ahead_.front();
  const Requirements& needs = first.what.job.needs;
  const bool must_wait = has_to_fetch(first.what) || needs.resources.of(kGpu) > 0 ||
                         first.what.first_lease_ns <= now_ns();
  if (slot == slots_.end() || must_wait) return std::nullopt;
  uint32_t code = kRunAccepted;
  refusal_now(needs, first.what.name.job, &code);
  if (code != kRunFull) return std::nullopt;
  RunOrder order = std::move(ahead_.front());
  ahead_.pop_front();
  order.what.slot = slot - slots_.begin();
  slot->next = {
      .name = order.what.name, .lease_ns = order.what.first_lease_ns, .since_ns = now_ns()};
  return std::pair(static_cast<size_t>(order.what.slot), std::move(order));
}

bool OrderDesk::hand_over_next() {
  auto chosen = choose_next();
  if (!chosen) return false;
  auto& [slot, order] = *chosen;
  const AttemptName name = order.what.name;
  std::shared_ptr<HandedAttempt> handed;
  try {
    keep_promise(order);
    handed = next_attempts_->hand_over(std::make_shared<const Assignment>(order.what));
  } catch (const std::exception& error) {
    // Should it be the job's fault, or the machine's, its start will tell. Its shepherd may have
    // ended, too.
    log(Severity::warning) << attempt_label(name)
                           << " waits until a slot is free: " << error.what();
  }
  const bool failed = handed == nullptr;
  {
    std::lock_guard lock(mutex_);
    slots_[slot].next->handed = std::move(handed);
    slots_[slot].next->order = std::move(order);
    if (failed) slots_[slot].runs = false;
  }
  if (failed)
    drop_next(slot, name);
  else
    put_down(slot);
  return true;
}

void OrderDesk::drop_next(size_t slot, const AttemptName& name) {
  remove_folder(name);
  Next next;
  {
    std::lock_guard lock(mutex_);
    next = std::move(*slots_[slot].next);
    slots_[slot].next.reset();
    next.handed.reset();  // so that a shepherd that still has the order passes it over
    known_[name].slot = -1;
    if (next.has_slot) slots_[slot].taken = false;
    slots_[slot].is_long = !next.has_slot && next.unwanted.empty();
    next.order.what.first_lease_ns = next.lease_ns;
    if (next.unwanted.empty()) ahead_.push_front(std::move(next.order));
  }
  if (!next.unwanted.empty()) give_back(next.order.what, next.unwanted);
  if (next.has_slot) slot_freed_();
}

bool OrderDesk::take_back(size_t slot) {
  AttemptName name;
  {
    std::shared_ptr<HandedAttempt> handed;
    {
      std::lock_guard lock(mutex_);
      handed = slots_[slot].next->handed;
      name = slots_[slot].next->name;
    }
    if (!next_attempts_->take_back(*handed)) return false;
  }
  drop_next(slot, name);
  return true;
}

void OrderDesk::put_down(size_t slot) {
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      Next& next = *slots_[slot].next;
      if (next.unwanted.empty()) {
        next.in_hand = false;
        if (next.lease_ns != next.order.what.first_lease_ns) renew(next, next.lease_ns);
        break;
      }
    }
    if (take_back(slot)) return;
    std::lock_guard lock(mutex_);
    slots_[slot].next->unwanted.clear();  // it has begun
  }
  begin_those_with_slots();
}

void OrderDesk::put_down_all(const std::vector<size_t>& slots) {
  for (const size_t slot : slots) put_down(slot);
}

std::vector<size_t> OrderDesk::pick_up_unwanted(
    const std::function<std::string(const Next&)>& why) {
  std::vector<size_t> taken;
  for (size_t i = 0; i < slots_.size(); ++i) {
    std::optional<Next>& next = slots_[i].next;
    const std::string unwanted = next ? why(*next) : "";
    if (unwanted.empty()) continue;
    next->unwanted = unwanted;
    if (!std::exchange(next->in_hand, true)) taken.push_back(i);
  }
  return taken;
}

void OrderDesk::look_at_next_again() {
  if (look_again_.exchange(false)) refuse_next_if([](const Next&) { return true; });
}

// As take_next() asks of the others.
void OrderDesk::refuse_next_if(const std::function<bool(const Next&)>& condition) {
  std::vector<size_t> taken;
  {
    std::lock_guard lock(mutex_);
    taken = pick_up_unwanted([&](const Next& next) -> std::string {
      uint32_t code = kRunAccepted;
      if (!condition(next)) return "";
      if (next.in_hand) {
        look_again_ = true;  // the next time
        return "";
      }
      std::string why = refusal_now(next.order.what.job.needs, next.name.job, &code);
      return code == kRunFull ? "" : why;
    });
  }
  put_down_all(taken);
}

bool OrderDesk::take_one_back() {
  return take_back_if([this](const Next&) { return ahead_.empty() && has_free_slot(); });
}

void OrderDesk::take_old_ones_back() {
  const int64_t before = now_ns() - settings_.behind_ms * kMs;
  while (take_back_if([before](const Next& next) { return next.since_ns < before; })) {
  }
}

bool OrderDesk::take_back_if(const std::function<bool(const Next&)>& condition) {
  size_t number = 0;
  {
    std::lock_guard lock(mutex_);
    // Each goes before those that were taken back earlier: so the newest first.
    int64_t newest = -1;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const std::optional<Next>& next = slots_[i].next;
      if (!next || next->in_hand || next->has_slot || next->since_ns <= newest) continue;
      if (!condition(*next)) continue;
      newest = next->since_ns;
      number = i;
    }
    if (newest < 0) return false;
    slots_[number].next->in_hand = true;
  }
  if (take_back(number)) return true;
  put_down(number);
  return false;
}

}  // namespace sublet::client
