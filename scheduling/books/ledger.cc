#include "scheduling/books/ledger.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

#include "scheduling/fair_share.h"
#include "scheduling/hashed.h"

namespace sublet::scheduling {
namespace {
// Outside this range the square of the shares is 0 or infinite, and a priority not a number.
bool are_shares(double shares) { return shares >= 1e-100 && shares <= 1e100; }
constexpr double kSurplus = 3600;  // s
// Numbers beyond this are damage: they must not run out.
constexpr uint32_t kLargestNumber = 1u << 31;
constexpr double kShareUnit = 1 << 20;
// Beyond these is damage, too: one more would not be told from the last.
constexpr double kLatestDraw = double{1ull << 40};
constexpr int64_t kLargestIndex = int64_t{1} << 40;
// To sort all of them anew costs less.
constexpr size_t kManyMoved = 1000;
int64_t share_units(const User& user) { return std::llround(user.record.shares * kShareUnit); }
}  // namespace

Ledger::Ledger(const Parameters& parameters)
    : accounts_(Accounts::parse(parameters.accounts)),
      default_shares_(parameters.default_shares),
      tick_(parameters.tick),
      k1_(decay_per_tick(parameters.tick, parameters.half_life)),
      throttle_(parameters.throttle),
      throttle_span_(parameters.throttle_span),
      most_attempts_(parameters.most_per_user) {}

void Ledger::set_half_life(Micros half_life) { k1_ = decay_per_tick(tick_, half_life); }

User& Ledger::user(const std::string& name) {
  const auto [it, made] = users_.try_emplace(name);
  User& user = it->second;
  if (made) {
    user.record.number = ++last_number_;
    user.record.name = name;
    user.record.shares = default_shares_;
    user.record.drawn = clock_;
    touched_.add(user);
  }
  return user;
}

const User* Ledger::known_counted_for(const std::string& user) const {
  const auto found = users_.find(accounts_.of(user));
  return found == users_.end() ? nullptr : &found->second;
}

bool Ledger::set_shares(const SharesSet& event) {
  if (!are_shares(event.shares)) return false;
  User& u = user(event.user);
  if (u.record.by_administrator && event.by == SharesSet::By::kSettings) return true;
  const bool by_administrator = event.by == SharesSet::By::kAdministrator;
  if (u.record.shares == event.shares && u.record.by_administrator == by_administrator) return true;
  if (u.active > 0) active_shares_ -= share_units(u);
  u.record.shares = event.shares;
  if (u.active > 0) active_shares_ += share_units(u);
  u.record.by_administrator = by_administrator;
  touched_.add(u);
  note_moved(u);
  return true;
}

void Ledger::charge(User& user, Micros cost) {
  if (cost == 0) return;
  user.record.charges += static_cast<double>(cost) / 1e6;
  touched_.add(user);
  note_moved(user);
}

void Ledger::give_back(User& user, double usage, double charges) {
  UserRecord& record = user.record;
  record.usage = std::max(record.usage - usage / 1e6, 0.0);
  record.charges = std::max(record.charges - charges / 1e6, -record.usage);
  touched_.add(user);
  note_moved(user);
}

void Ledger::grant(User& user) {
  if (last_served_ != nullptr) note_loss(*last_served_);
  last_served_ = &user;
  user.record.last_grant = ++last_grant_;
  touched_.add(user);
  note_moved(user);
}

void Ledger::set_throttle(uint64_t most, Micros span) {
  throttle_ = most;
  throttle_span_ = span;
  for (auto& [name, user] : users_)
    if (user.record.placed > 0) resume_span(user);
}

void Ledger::set_limit(uint64_t most) {
  most_attempts_ = most;
  for (auto& [name, user] : users_) check_limit(user);
}

void Ledger::check_limit(User& user) {
  user.at_limit = most_attempts_ > 0 && user.attempts >= most_attempts_;
  note_moved(user);
}

void Ledger::note_forgone(User& user) {
  user.record.has_forgone = true;
  touched_.add(user);
}

void Ledger::owe_turn(User& user) {
  user.turn_owed = true;
  note_moved(user);
}

void Ledger::forget_owed_turns() {
  for (auto& [name, user] : users_)
    if (std::exchange(user.turn_owed, false)) note_moved(user);
}

// Without jobs he waits for no turn.
void Ledger::note_loss(User& user) {
  if (user.jobs == 0) user.turn_owed = false;
  perhaps_spare_.push_back(&user);
}

void Ledger::note_placed(User& user, Micros now) {
  if (std::exchange(user.turn_owed, false)) note_moved(user);
  UserRecord& record = user.record;
  if (std::exchange(record.has_forgone, false)) touched_.add(user);
  if (throttle_ == 0) return;
  if (record.placed++ == 0) record.placed_since = now;
  resume_span(user);
  touched_.add(user);
}

void Ledger::resume_span(User& user) {
  if (throttle_ == 0) return end_span(user);
  user.due_id = user.record.number;
  spans_.set(user, user.record.placed_since + throttle_span_);
  user.throttled = user.record.placed >= throttle_;
  note_moved(user);
}

void Ledger::end_span(User& user) {
  spans_.set(user, 0);
  user.record.placed = 0;
  user.record.placed_since = 0;
  user.throttled = false;
  touched_.add(user);
  note_moved(user);
}

void Ledger::end_spans(Micros now) {
  while (Timed* timed = spans_.reached(now)) end_span(*static_cast<User*>(timed));
}

void Ledger::begin_active(User& user) { active_shares_ += share_units(user); }
void Ledger::end_active(User& user) { active_shares_ -= share_units(user); }

void Ledger::hold(User& user, int64_t cores) {
  user.held += static_cast<uint64_t>(cores);
  held_ += static_cast<uint64_t>(cores);
}

void Ledger::draw(User& user) {
  clock_ = user.record.drawn = std::max(clock_, draw_of(user));
  touched_.add(user);
  note_moved(user);
}

double Ledger::draw_of(const User& user) const {
  // Different users do not draw the same, nor one user twice.
  const uint64_t x =
      hashed(hashed(std::bit_cast<uint64_t>(user.record.drawn)) + user.record.number);
  const double chance = (static_cast<double>(x >> 11) + 1) / (double{1ull << 53} + 1);
  return user.record.drawn - std::log(chance);
}

void Ledger::begin_to_wait(User& user) {
  if (draw_of(user) >= clock_) return;
  user.record.drawn = clock_;
  touched_.add(user);
  note_moved(user);
}

void Ledger::begin_draws() {
  for (auto& [name, user] : users_)
    if (user.waiting > 0) begin_to_wait(user);
}

void Ledger::note_moved(User& user) {
  if (!user.moved) moved_.users.push_back(&user);
  user.moved = true;
  if (moved_.users.size() > kManyMoved) moved_.all = true;
}

void Ledger::settle_moved() {
  for (User* user : moved_.users) user->moved = false;
  moved_.users.clear();
  moved_.all = false;
}

double Ledger::part_of(const User& user) const {
  const int64_t own = share_units(user), all = std::max(active_shares_, own);
  return static_cast<double>(own) / static_cast<double>(all);
}

double Ledger::guarantee_of(const User& user, double floor) const {
  return floor * static_cast<double>(held_ + 1) * part_of(user);
}

double Ledger::due_to(const User& user) const { return static_cast<double>(held_) * part_of(user); }

void Ledger::note_held(Micros since_last_tick, double floor) {
  const double span = static_cast<double>(since_last_tick) / 1e6;
  for (auto& [name, user] : users_) {
    const bool alone = user.active == 0 || share_units(user) >= active_shares_;
    const double fair = guarantee_of(user, floor);
    if (!alone && (user.waiting > 0 || user.held > 0))
      note_held(user, user.waiting > 0 ? fair : 0, std::max(fair, 1.0), span);
    const uint64_t cores =
        user.record.owed > 0 ? std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(fair))) : 0;
    if (cores == user.record.guaranteed) continue;
    user.record.guaranteed = cores;
    touched_.add(user);
    note_moved(user);
  }
}

void Ledger::note_held(User& user, double wanted, double fair, double span) {
  // The others' jobs may run already, or fit no machine: what he gets beside them counts
  // against him for an hour of his guarantee at most.
  const double held = static_cast<double>(user.held);
  user.record.owed = std::max(user.record.owed + (wanted - held) * span, -kSurplus * fair);
  touched_.add(user);
}

void Ledger::update_indices() {
  int64_t least = 0;  // that of anybody who is not known
  for (const auto& [name, user] : users_) least = std::min(least, user.record.index);
  // Table 4.5: the farther above the smallest index, the faster. f, h and l are 1.
  const auto credit = [least](int64_t index) {
    return index - least >= 6 ? 3 : index - least >= 3 ? 2 : 1;
  };
  for (auto& [name, user] : users_) {
    int64_t& index = user.record.index;
    const int64_t before = index;
    if (user.attempts > 0) {
      index += static_cast<int64_t>(user.attempts);
    } else if (user.active > 0) {
      index -= credit(index);
    } else if (index != 0) {
      index += index > 0 ? -1 : 1;
    }
    if (index == before) continue;
    touched_.add(user);
    note_moved(user);
  }
}

Ledger::Decay Ledger::decay(Micros since_last_tick) {
  // The last of the ticks that fell due while the server was down.
  const int64_t ticks = std::max<int64_t>(1, since_last_tick / tick_);
  const Decay kept = {std::pow(k1_, ticks), std::pow(k1_, ticks - 1)};
  moved_.all = true;
  for (auto& [name, user] : users_) {
    UserRecord& record = user.record;
    if (record.usage == 0 && record.charges == 0 && record.owed == 0) continue;
    record.usage = usage_after_ticks(record.usage, record.charges, k1_, ticks);
    record.charges = 0;
    record.owed *= kept.usage;
    if (std::abs(record.owed) < kLeastUsage) record.owed = 0;
    touched_.add(user);
  }
  return kept;
}

std::vector<std::string> Ledger::restore(const UserRecord& row, Micros now) {
  std::vector<std::string> complaints;
  User& user = users_[row.name];
  UserRecord& record = user.record;
  record = row;
  if (row.number > kLargestNumber) record.number = 0;
  last_number_ = std::max(last_number_, record.number);
  last_grant_ = std::max(last_grant_, row.last_grant);
  if (!are_shares(row.shares)) {
    complaints.push_back("user " + row.name + " had no valid shares: default used");
    record.shares = default_shares_;
  }
  if (!std::isfinite(row.owed)) {
    complaints.push_back("user " + row.name + " had no valid balance: 0 used");
    record.owed = 0;
  }
  if (!(row.drawn >= 0 && row.drawn <= kLatestDraw)) {
    complaints.push_back("user " + row.name + " had no valid draw: 0 used");
    record.drawn = 0;
  }
  if (row.index < -kLargestIndex || row.index > kLargestIndex) {
    complaints.push_back("user " + row.name + " had no valid up-down index: 0 used");
    record.index = 0;
  }
  if (row.placed > 0 && (row.placed_since <= 0 || row.placed_since > now)) {
    complaints.push_back("user " + row.name + " had no valid span of the throttle: none used");
    record.placed = 0;
    record.placed_since = 0;
  }
  clock_ = std::max(clock_, record.drawn);
  if (record.placed > 0) resume_span(user);
  for (double* value : {&record.usage, &record.charges}) {
    const double least = value == &record.charges ? -record.usage : 0;
    if (*value >= least && std::isfinite(*value)) continue;
    complaints.push_back("user " + row.name + " had no valid usage: 0 used");
    *value = 0;
  }
  return complaints;
}

void Ledger::number_restored() {
  std::set<uint32_t> taken;
  for (auto& [name, user] : users_) {
    if (last_grant_ != 0 && user.record.last_grant == last_grant_) last_served_ = &user;
    uint32_t& number = user.record.number;
    if (number != 0 && taken.insert(number).second) continue;
    number = ++last_number_;
    taken.insert(number);
  }
  last_restored_ = last_number_;
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
  return record.usage != 0 || record.charges != 0 || record.owed != 0 || record.index != 0 ||
         record.placed != 0 || record.has_forgone || record.shares != default_shares_ ||
         record.by_administrator || user.jobs > 0 || user.attempts > 0 || &user == last_served_;
}

void Ledger::forget_spare() {
  std::sort(perhaps_spare_.begin(), perhaps_spare_.end());
  perhaps_spare_.erase(std::unique(perhaps_spare_.begin(), perhaps_spare_.end()),
                       perhaps_spare_.end());
  for (const User* user : perhaps_spare_)
    if (!worth_knowing(*user)) users_.erase(users_.find(user->record.name));
  perhaps_spare_.clear();
}

void Ledger::end_restoration() {
  touched_.clear();
  settle_moved();
  for (auto& [name, user] : users_) perhaps_spare_.push_back(&user);
  forget_spare();
  for (auto& [name, user] : users_)
    if (user.record.number > last_restored_) touched_.add(user);
}

}  // namespace sublet::scheduling
