#include "client/attempts/order_desk.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "client/attempts/work.h"
#include "client/machine/gpus.h"
#include "client/machine/machine.h"
#include "client/staging/work_folder.h"

namespace sublet::client {
namespace {

constexpr size_t kForgottenKept = 4096;
// Orders come in groups, and asking the kernel costs as much as all else that one is checked for.
constexpr int64_t kMemorySeenNs = 10'000'000;
// Beside two for each slot: as many short jobs end before the next removals.
constexpr size_t kSpareFolders = 32;
constexpr int64_t kFirstTroubleMs = 1'000;
constexpr int64_t kLongestTroubleMs = 60'000;
constexpr int64_t kMs = 1'000'000;

int64_t now_ns() { return system_clock().boot_ns(); }

bool equal_in_constant_time(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

}  // namespace

OrderDesk::OrderDesk(const DeskSettings& settings, Files& files, const PublicPresence& presence,
                     std::function<void(std::shared_ptr<const Assignment>, bool)> accepted,
                     std::function<void(std::vector<VacateOrder>)> vacate)
    : settings_(settings),
      files_(files),
      presence_(presence),
      accepted_(std::move(accepted)),
      vacate_(std::move(vacate)),
      spare_folders_(files, settings.state_folder, kSpareFolders + 2 * settings.facts.slots),
      slots_(settings.facts.slots) {}

void OrderDesk::set_session(const std::string& key, uint64_t term) {
  std::lock_guard lock(mutex_);
  session_ = key;
  term_ = term;
}

bool OrderDesk::accept_term(uint64_t term) {
  std::lock_guard lock(mutex_);
  if (term < term_) return false;
  term_ = term;
  return true;
}

bool OrderDesk::is_session(const std::string& key) const {
  std::lock_guard lock(mutex_);
  return !session_.empty() && equal_in_constant_time(key, session_);
}

bool OrderDesk::has_session() const {
  std::lock_guard lock(mutex_);
  return !session_.empty();
}

std::vector<RunAnswer> OrderDesk::run(const std::string& session, std::vector<RunOrder> orders) {
  std::vector<RunAnswer> answers;
  for (auto& order : orders) answers.push_back(take(session, std::move(order)));
  if (has_one_for_a_shepherd()) slot_freed_();
  return answers;
}

std::vector<AttemptName> OrderDesk::being_accepted() const {
  std::lock_guard lock(mutex_);
  std::vector<AttemptName> names;
  for (const auto& [name, known] : known_)
    if (known.being_accepted || known.returning) names.push_back(name);
  return names;
}

std::vector<AttemptName> OrderDesk::waiting() const {
  std::lock_guard lock(mutex_);
  std::vector<AttemptName> names;
  for (const Slot& slot : slots_)
    if (slot.next) names.push_back(slot.next->name);
  for (const RunOrder& order : ahead_) names.push_back(order.what.name);
  return names;
}

void OrderDesk::taken_over(const AttemptName& name) {
  std::lock_guard lock(mutex_);
  const auto known = known_.find(name);
  if (known != known_.end()) known->second.being_accepted = false;
}

std::vector<HeldAttempt> all_held(const OrderDesk& desk,
                                  const std::function<std::vector<HeldAttempt>()>& of_attempts) {
  const std::vector<AttemptName> being_accepted = desk.being_accepted();
  std::vector<HeldAttempt> held = of_attempts();
  for (const AttemptName& name : being_accepted) {
    const bool named =
        std::ranges::any_of(held, [&](const HeldAttempt& one) { return one.name == name; });
    if (!named) held.emplace_back().name = name;
  }
  for (const AttemptName& name : desk.waiting())
    if (const auto it = std::ranges::find(held, name, &HeldAttempt::name); it != held.end())
      it->waits = true;
  const std::map<AttemptName, uint64_t> in_use = desk.disk_in_use();
  for (HeldAttempt& one : held)
    if (const auto it = in_use.find(one.name); it != in_use.end()) one.disk = it->second;
  return held;
}

RunAnswer OrderDesk::may_run(const Requirements& needs) {
  RunAnswer answer;
  std::lock_guard lock(mutex_);
  answer.reason = refusal(needs, {}, &answer.answer);
  return answer;
}

std::vector<std::pair<std::string, std::string>> OrderDesk::state() {
  std::vector<std::pair<std::string, std::string>> out;
  out.emplace_back("presence", presence_.away ? "away" : "active");
  out.emplace_back("draining", draining_ ? "yes" : "no");
  out.emplace_back("slots", std::to_string(settings_.facts.slots));
  out.emplace_back("slots_free", std::to_string(slots_free()));
  std::lock_guard lock(mutex_);
  std::string names;
  for (const auto& [name, known] : known_)
    names +=
        (names.empty() ? "" : " ") + std::to_string(name.job) + "." + std::to_string(name.attempt);
  out.emplace_back("attempts", names);
  return out;
}

std::string OrderDesk::lacking(const Requirements& needs) const {
  const MachineFacts& have = settings_.facts;
  if (!needs.os.empty() && needs.os != have.os)
    return "it needs " + needs.os + ", this machine is " + have.os;
  if (!needs.architecture.empty() && needs.architecture != have.architecture)
    return "it needs " + needs.architecture + ", this machine is " + have.architecture;
  if (needs.cores > std::max(1u, have.cores))
    return "it needs " + std::to_string(needs.cores) + " cores, this machine has " +
           std::to_string(have.cores);
  if (needs.memory > have.memory)
    return "it needs " + format_bytes(needs.memory) + " of memory, this machine has " +
           format_bytes(have.memory);
  return "";
}

namespace {

// Programs of other platforms are of no use here.
void leave_out_other_programs(JobDescription& job) {
  std::erase_if(job.inputs, [&](const auto& input) {
    const std::string program = "./" + input.name;
    return program != job.program && input.name != job.standard_input &&
           std::ranges::any_of(job.programs, [&](const auto& p) { return p.second == program; });
  });
  job.programs.clear();
}

}  // namespace

std::string OrderDesk::choose_program(JobDescription& job) const {
  if (job.programs.empty()) return "";
  const std::string here = settings_.facts.os + "/" + settings_.facts.architecture;
  std::string others;
  for (const auto& [platform, program] : job.programs) {
    if (platform == here) {
      job.program = program;
      leave_out_other_programs(job);
      return "";
    }
    others += (others.empty() ? "" : " or ") + platform;
  }
  return "it has a program for " + others + ", this machine is " + here;
}

bool OrderDesk::is_old(const AttemptName& name) const {
  const auto known = known_.lower_bound(name);
  const auto forgotten = forgotten_.lower_bound(name);
  return (known != known_.end() && known->first.job == name.job) ||
         (forgotten != forgotten_.end() && forgotten->job == name.job);
}

std::string OrderDesk::refusal(const Requirements& needs, const AttemptName& name, uint32_t* code) {
  *code = kRunOld;
  if (is_old(name)) return "this attempt, or a later one of its job, has been here";
  return refusal_now(needs, name.job, code);
}

std::string OrderDesk::refusal_now(const Requirements& needs, uint64_t job, uint32_t* code) {
  *code = kRunDraining;
  if (draining_) return "this client is stopping";
  *code = kRunOwner;
  if (!presence_.away) return "the owner is here";
  *code = kRunLacks;
  std::string lack = lacking(needs);
  if (!lack.empty()) return lack;
  if (disk_low_) return "the disk is nearly full";
  lack = lacking_memory(job);
  if (!lack.empty()) return lack;
  lack = refusal_for_want_of_gpus(needs);
  if (!lack.empty()) return lack;
  return refusal_for_want_of_room(code);
}

std::vector<std::string> OrderDesk::free_gpus() const {
  std::vector<std::string> left = settings_.facts.gpus;
  for (const auto& [name, known] : known_)
    for (const std::string& gpu : known.gpus) std::erase(left, gpu);
  return left;
}

std::string OrderDesk::refusal_for_want_of_gpus(const Requirements& needs) const {
  const uint64_t wanted = needs.resources.of(kGpu), left = wanted > 0 ? free_gpus().size() : 0;
  if (wanted <= left) return "";
  return "it needs " + std::to_string(wanted) + " gpu, " + std::to_string(left) +
         (left == 1 ? " is free" : " are free");
}

std::string OrderDesk::refusal_for_want_of_room(uint32_t* code) const {
  *code = kRunError;
  const auto slotless =
      std::ranges::count_if(known_, [](const auto& item) { return item.second.slot < 0; });
  const auto next = std::ranges::count_if(
      slots_, [](const Slot& one) { return one.next && !one.next->has_slot; });
  const uint64_t waiting = static_cast<uint64_t>(slotless - next) - ahead_.size();
  if (waiting >= settings_.outbox_limit)
    return "the outbox is full: " + std::to_string(waiting) +
           " ended attempts are not yet reported";
  if (now_ns() < trouble_until_ns_) return "this machine has failures: " + trouble_;
  *code = kRunFull;
  if (!has_free_slot()) return "no slot is free";
  *code = kRunAccepted;
  return "";
}

RunAnswer OrderDesk::take(const std::string& session, RunOrder order) {
  Assignment& what = order.what;
  RunAnswer answer{what.name, kRunAccepted, ""};
  {
    std::lock_guard lock(mutex_);
    auto known = known_.find(what.name);
    if (known != known_.end()) return answer;  // a repeated order
    // Checked under the same lock as the insertion into known_ below: after a new
    // registration, known_ contains every order of an earlier one that will be started.
    if (session_.empty() || !equal_in_constant_time(session, session_))
      return {what.name, kRunStale, "the order is older than this registration"};
    answer.reason = refusal(order.what.job.needs, what.name, &answer.answer);
    const bool waits = answer.answer == kRunFull && order.ahead && ahead_.size() < settings_.ahead;
    if (answer.answer != kRunAccepted && !waits) return answer;
    if (!order.not_served.empty()) return {what.name, kRunLacks, order.not_served};
    answer.reason = settings_.network.lacking(what.job.network);
    if (!answer.reason.empty()) return {what.name, kRunLacks, answer.reason};
    answer.reason = choose_program(what.job);
    if (!answer.reason.empty()) return {what.name, kRunLacks, answer.reason};
    const int64_t now = now_ns();
    what.first_lease_ns =
        protocol::first_lease_end_ns(server_clock_, order.decided_us, order.lease_ms, now);
    if (what.first_lease_ns <= now) return {what.name, kRunStale, "this order arrived too late"};
    if (waits) {
      known_[what.name] = {.being_accepted = true};
      ahead_.push_back(std::move(order));
      return {ahead_.back().what.name, kRunAccepted, ""};
    }
    claim_slot(what);
  }
  if (!accept(order, &answer, false)) slot_freed_();
  return answer;
}

bool OrderDesk::has_free_slot() const {
  return std::ranges::find(slots_, false, &Slot::taken) != slots_.end();
}

void OrderDesk::claim_slot(Assignment& what) {
  const auto slot = std::ranges::find(slots_, false, &Slot::taken);
  slot->taken = true;
  what.slot = slot - slots_.begin();
  what.gpus = free_gpus();
  what.gpus.resize(what.job.needs.resources.of(kGpu));
  known_[what.name] = {.slot = what.slot, .being_accepted = true, .gpus = what.gpus};
}

bool OrderDesk::accept(RunOrder& order, RunAnswer* answer, bool was_ahead) {
  const Assignment& what = order.what;
  try {
    keep_promise(order);
    accepted_(std::make_shared<const Assignment>(what), was_ahead);
  } catch (const std::exception& error) {
    undo(what.name, was_ahead);
    answer->answer = dynamic_cast<const OsError*>(&error) ? kRunError : kRunLacks;
    answer->reason = error.what();
    log(Severity::warning) << attempt_label(what.name) << " refused: " << answer->reason;
    return false;
  }
  leave_if_told(what.name);
  return true;
}

void OrderDesk::leave_if_told(const AttemptName& name) {
  sublet_leave_reason leaves = SUBLET_LEAVE_NONE;
  {
    std::lock_guard lock(mutex_);
    const auto known = known_.find(name);
    if (known != known_.end()) leaves = known->second.leaves;
  }
  if (leaves != SUBLET_LEAVE_NONE) vacate_({{name, leaves}});
}

void OrderDesk::keep_promise(RunOrder& order) {
  Assignment& what = order.what;
  find_room(disk_wanted(order));
  for (const auto& input : what.job.inputs) split_name(input.name);
  for (const auto& output : what.job.outputs) OutputName name(output.name);
  what.uid = settings_.slot_uids.at(static_cast<size_t>(what.slot));
  what.nonce = random_id();
  what.accepted_us = system_clock().utc_us();
  const std::string folder = attempt_folder(settings_.state_folder, what.name);
  files_.make_folders(folder_of(folder), 0711, Files::Outlives::kProcess);
  spare_folders_.make(folder, what.uid, what.user);
  write_assignment(files_, folder, what);
}

void OrderDesk::set_server_clock(int64_t server_time_us, int64_t asked_ns) {
  std::lock_guard lock(mutex_);
  if (asked_ns > server_clock_.asked_ns) server_clock_ = {server_time_us, asked_ns};
}

void OrderDesk::note_disk_use(uint64_t job, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  disk_used_[job] = std::max(disk_used_[job], bytes);
  if (disk_used_.size() > kForgottenKept) disk_used_.erase(disk_used_.begin());
}

void OrderDesk::set_disk_in_use(std::map<AttemptName, uint64_t> in_use) {
  std::lock_guard lock(mutex_);
  disk_in_use_ = std::move(in_use);
}

std::map<AttemptName, uint64_t> OrderDesk::disk_in_use() const {
  std::lock_guard lock(mutex_);
  return disk_in_use_;
}

void OrderDesk::note_memory_use(uint64_t job, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  // Without a cgroup pages that processes share count for each: it may be more than there is.
  memory_used_[job] = std::max(memory_used_[job], std::min(bytes, settings_.facts.memory / 2));
  if (memory_used_.size() > kForgottenKept) memory_used_.erase(memory_used_.begin());
}

std::string OrderDesk::lacking_memory(uint64_t job) {
  const int64_t now = now_ns();
  if (now >= memory_again_ns_) {
    memory_available_ = memory_free();
    memory_again_ns_ = now + kMemorySeenNs;
  }
  const uint64_t available = memory_available_;
  if (lacks_memory(available)) return "the memory is nearly used up";
  const auto used = memory_used_.find(job);
  if (used == memory_used_.end() || available >= used->second) return "";
  return "it used " + format_bytes(used->second) + " of memory here, " + format_bytes(available) +
         " are available";
}

void OrderDesk::note_unsaved(uint64_t job) {
  std::lock_guard lock(mutex_);
  if (std::ranges::find(unsaved_, job) != unsaved_.end()) return;
  unsaved_.push_back(job);
  if (unsaved_.size() > kForgottenKept) unsaved_.pop_front();
}

bool OrderDesk::may_be_lifted(uint64_t job) const {
  std::lock_guard lock(mutex_);
  return std::ranges::find(unsaved_, job) == unsaved_.end();
}

uint64_t OrderDesk::disk_wanted(const RunOrder& order) {
  std::lock_guard lock(mutex_);
  auto used = disk_used_.find(order.what.name.job);
  uint64_t known = used == disk_used_.end() ? 0 : 2 * used->second;
  return std::max(order.what.job.needs.disk, known) + order.what.checkpoint_bytes +
         settings_.disk_reserve;
}

void OrderDesk::find_room(uint64_t wanted) {
  uint64_t free = files_.free_bytes(settings_.state_folder);
  if (free < wanted && wanted - free <= removable_()) {
    make_room_(wanted - free);
    free = files_.free_bytes(settings_.state_folder);
  }
  if (free < wanted)
    throw std::runtime_error("it needs " + format_bytes(wanted) + " of disk, " +
                             format_bytes(free) + " are free");
}

void OrderDesk::machine_failed(const std::string& why) {
  {
    std::lock_guard lock(mutex_);
    trouble_ = why;
    trouble_pause_ms_ = std::clamp(trouble_pause_ms_ * 2, kFirstTroubleMs, kLongestTroubleMs);
    trouble_until_ns_ = now_ns() + trouble_pause_ms_ * kMs;
  }
  refuse_next();
}

void OrderDesk::machine_worked() {
  std::lock_guard lock(mutex_);
  trouble_pause_ms_ = 0;
  trouble_until_ns_ = 0;
}

void OrderDesk::remove_folder(const AttemptName& name) {
  try {
    files_.remove_tree(attempt_folder(settings_.state_folder, name));
  } catch (const std::exception& error) {
    log(Severity::warning) << error.what();
  }
}

void OrderDesk::undo(const AttemptName& name, bool returning) {
  remove_folder(name);
  free_slot(name);
  std::lock_guard lock(mutex_);
  if (returning)
    known_[name] = {.returning = true};
  else
    known_.erase(name);
}

void OrderDesk::adopt(const Assignment& assignment, bool holds_slot) {
  std::lock_guard lock(mutex_);
  auto slot = static_cast<size_t>(assignment.slot);
  bool has = holds_slot && assignment.slot >= 0 && slot < slots_.size();
  if (has) slots_[slot].taken = true;
  known_[assignment.name] = {.slot = has ? assignment.slot : -1,
                             .gpus = has ? assignment.gpus : std::vector<std::string>()};
}

bool OrderDesk::free_slot(const AttemptName& name) {
  std::lock_guard lock(mutex_);
  auto known = known_.find(name);
  if (known == known_.end() || known->second.slot < 0) return false;
  const int64_t number = std::exchange(known->second.slot, -1);
  known->second.gpus.clear();
  Slot& slot = slots_[static_cast<size_t>(number)];
  slot.runs = slot.is_long = false;
  slot.taken = slot.next.has_value();
  if (slot.next) {
    slot.next->has_slot = true;
    known_[slot.next->name].slot = number;
  }
  return !ahead_.empty() || has_next();
}

void OrderDesk::runs(const AttemptName& name) {
  std::lock_guard lock(mutex_);
  const auto known = known_.find(name);
  if (known != known_.end() && known->second.slot >= 0)
    slots_[static_cast<size_t>(known->second.slot)].runs = true;
}

void OrderDesk::release_slot(const AttemptName& name) {
  if (free_slot(name)) slot_freed_();
}

std::optional<uint64_t> OrderDesk::untouched_folder(const Assignment& what,
                                                    const std::string& folder) const {
  return spare_folders_.untouched(folder, what.uid);
}

bool OrderDesk::reuse_folder(const Assignment& what, const std::string& folder, bool is_untouched) {
  return spare_folders_.take(folder, what.uid, what.user, is_untouched);
}

void OrderDesk::forget(const AttemptName& name) {
  release_slot(name);
  std::lock_guard lock(mutex_);
  known_.erase(name);
  if (forgotten_.insert(name).second) forgotten_in_turn_.push_back(name);
  if (forgotten_in_turn_.size() <= kForgottenKept) return;
  forgotten_.erase(forgotten_in_turn_.front());
  forgotten_in_turn_.pop_front();
}

uint32_t OrderDesk::slots_free() {
  std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(std::ranges::count(slots_, false, &Slot::taken));
}

}  // namespace sublet::client
