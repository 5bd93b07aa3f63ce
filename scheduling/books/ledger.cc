#include "scheduling/books/ledger.h"

#include <algorithm>
#include <cmath>

#include "scheduling/fair_share.h"

namespace sublet::scheduling {
namespace {
bool are_shares(double shares) { return shares > 0 && std::isfinite(shares); }
}  // namespace

Ledger::Ledger(const Parameters& parameters)
    : default_shares_(parameters.default_shares),
      tick_(parameters.tick),
      k1_(decay_per_tick(parameters.tick, parameters.half_life)) {}

User& Ledger::user(const std::string& name) {
  const auto [it, made] = users_.try_emplace(name);
  User& user = it->second;
  if (made) {
    user.index = ++last_index_;
    user.record.name = name;
    user.record.shares = default_shares_;
    touched_.add(user);
  }
  return user;
}

bool Ledger::set_shares(const SharesSet& event) {
  if (!are_shares(event.shares)) return false;
  User& u = user(event.user);
  if (u.record.by_administrator && event.by == SharesSet::By::kSettings) return true;
  const bool by_administrator = event.by == SharesSet::By::kAdministrator;
  if (u.record.shares == event.shares && u.record.by_administrator == by_administrator) return true;
  u.record.shares = event.shares;
  u.record.by_administrator = by_administrator;
  touched_.add(u);
  return true;
}

void Ledger::charge(User& user, Micros cpu) {
  if (cpu <= 0) return;
  user.record.charges += static_cast<double>(cpu) / 1e6;
  touched_.add(user);
}

void Ledger::decay(Micros since_last_tick) {
  // Of the ticks that fell into a time in which the server was down, this is the last.
  const int64_t ticks = std::max<int64_t>(1, since_last_tick / tick_);
  for (auto& [name, user] : users_) {
    UserRecord& record = user.record;
    if (record.usage == 0 && record.charges == 0) continue;
    record.usage = usage_after_ticks(record.usage, record.charges, k1_, ticks);
    record.charges = 0;
    touched_.add(user);
  }
}

std::vector<std::string> Ledger::restore(const UserRecord& row) {
  std::vector<std::string> complaints;
  UserRecord& record = user(row.name).record;
  record = row;
  if (!are_shares(row.shares)) {
    complaints.push_back("user " + row.name + " had no valid shares: default used");
    record.shares = default_shares_;
  }
  for (double* value : {&record.usage, &record.charges}) {
    if (*value >= 0 && std::isfinite(*value)) continue;
    complaints.push_back("user " + row.name + " had no valid usage: 0 used");
    *value = 0;
  }
  return complaints;
}

void Ledger::emit(Changes& changes) {
  for (User* user : touched_.all()) {
    changes.add(user->record);
    perhaps_spare_.push_back(user);
  }
  touched_.clear();
}

bool Ledger::worth_knowing(const User& user) const {
  const UserRecord& record = user.record;
  return record.usage != 0 || record.charges != 0 || record.shares != default_shares_ ||
         record.by_administrator || user.jobs > 0 || user.attempts > 0;
}

void Ledger::forget_spare() {
  std::sort(perhaps_spare_.begin(), perhaps_spare_.end());
  perhaps_spare_.erase(std::unique(perhaps_spare_.begin(), perhaps_spare_.end()),
                       perhaps_spare_.end());
  for (const User* user : perhaps_spare_)
    if (!worth_knowing(*user)) users_.erase(users_.find(user->record.name));
  perhaps_spare_.clear();
}

void Ledger::settle() {
  touched_.clear();
  for (auto& [name, user] : users_) perhaps_spare_.push_back(&user);
  forget_spare();
}

}  // namespace sublet::scheduling
