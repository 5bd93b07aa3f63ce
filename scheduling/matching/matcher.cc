// IDLE is served from its head: for each machine the best waiting job that fits it is found
// (JobQueue::best_for), which gets this machine or another that it fits as well
// (matching/machine_choice.h); if none fits, the machine keeps its position. If one that has waited
// for long comes before it, and would fit but for the jobs that are there, the machine is promised
// to that one instead: so a stream of small jobs does not keep it waiting for ever. If it lacks
// licences, these are kept for it as they come back. Only possible changes are considered: machines
// that have changed, and, for groups with new jobs, the idle machines with room for the least of
// them. So no decision scans the queue, and after each apply no waiting job fits an idle machine,
// but for promised places.
#include "scheduling/matching/matcher.h"

#include <algorithm>

#include "scheduling/books/job_book.h"
#include "scheduling/books/ledger.h"
#include "scheduling/books/machine_book.h"
#include "scheduling/matching/machine_choice.h"

namespace sublet::scheduling {
namespace {

// Of licences and hours apart, if there were no others. Not while the owner's programs need what
// it would take.
bool could_fit(const Job& job, const Machine& machine) {
  return Ask{amounts_of(job.record.needs), job.demand->group->of_machine}.within(
      {lent_by(machine), machine.kind->offers});
}

// Of licences and hours apart.
bool fits_now(const Job& job, const Machine& machine) {
  return Ask{amounts_of(job.record.needs), job.demand->group->of_machine}.within(machine.place);
}

}  // namespace

void Matcher::set_kind(Machine& machine) {
  MachineKind* before = machine.kind;
  bool split = false;
  machine.kind = suitability_.enter_kind(machine.record, split);
  if (split) queue_.sort_out(ledger_.users());
  if (before != nullptr) suitability_.leave_kind(before);
}

void Matcher::set_licences(const std::string& licences) {
  if (licences_.offered() == rules::NamedAmounts::stored(licences)) return;
  licences_.set(licences);
  suitability_.note_licences();
  // What a job lacks of its machine may be the pool's from now on.
  for (const auto& [id, machine] : promises_.of_restricted()) promises_.note(*machine);
}

// O(groups), only after an attempt that held a licence, or when hours open.
void Matcher::note_startable() {
  const bool released = !licences_.released().empty(), opened = hours_.have_opened();
  if (!released && !opened) return;
  for (const auto& [key, group] : suitability_.groups()) {
    const bool concerned =
        (released && !group->licences.empty()) || (opened && group->hours != nullptr);
    if (concerned && !group->lines.empty() && queue_.may_start(*group))
      queue_.note_new(*group, group->lines.bound().least);
  }
  licences_.note_searched();
  hours_.note_searched();
}

void Matcher::rekey() {
  const Ledger::Moved& moved = ledger_.moved();
  if (moved.all) queue_.rekey_all(ledger_.users());
  for (User* user : moved.users) queue_.rekey(*user);
  ledger_.settle_moved();
}

void Matcher::allocate(Micros now, const Actions& actions) {
  rekey();
  note_startable();
  if (idle_.changed().empty() && queue_.newly_queued().empty()) return;
  std::vector<Search> searches = searches_for_new_jobs();
  uint64_t served = 0;
  while (!hosts_.requesting().empty()) {
    Machine* m = next_to_serve(served, searches);
    if (m == nullptr) break;
    served = m->place.number;
    serve(*m, now, actions);
  }
  idle_.changed().clear();
  for (Group* group : queue_.newly_queued()) group->newly_queued = false;
  queue_.newly_queued().clear();
}

// Until nothing fits it any more. What is promised is decided only where a lesser job would get a
// place: so it depends on nothing but the decisions before.
void Matcher::serve(Machine& m, Micros now, const Actions& actions) {
  while (m.place.number != 0) {
    Job* job = first_for(m, now);
    Job* overdue = job == nullptr || may_start(*job, m) ? nullptr : job;
    if (overdue != nullptr) job = queue_.best_for(m, {m.place});
    if (job == nullptr) return;
    // What was promised elsewhere and fits here comes before another promise.
    const bool is_promised = job->promised != nullptr;
    if (overdue != nullptr && !is_promised) {
      wait_for(*overdue, m, actions);
      continue;
    }
    Machine& chosen = choose_machine(policies_, suitability_, *job, m, now);
    overdue = &chosen == &m || is_promised ? nullptr : first_for(chosen, now);
    if (overdue != nullptr && !may_start(*overdue, chosen)) {
      wait_for(*overdue, chosen, actions);
      continue;
    }
    actions.place(*job, chosen);
    ++placed_;
    rekey();
  }
}

// Jobs that are not overdue do not hide those behind them that are, nor do those with a promise.
Job* Matcher::first_for(const Machine& machine, Micros now) {
  const Micros since = now - policies_.wide_wait;
  if (machine.running.empty() || machine.promised_to != nullptr)
    return queue_.best_for(machine, {machine.place, Among::kAll, &machine.place, since});
  const Space most = {lent_by(machine), machine.kind->offers};
  return queue_.best_for(machine, {machine.place, Among::kAll, &most, since});
}

// One that would fit if others left the machine is not passed over, even if the pool keeps it
// waiting: one behind it may have waited for long.
Job* Matcher::next_for(const Machine& machine, const Amounts& room, Micros now) {
  rekey();
  const Space space = {room, {}}, most = {lent_by(machine), machine.kind->offers};
  Job* job = queue_.best_for(machine, {space, Among::kAll, &most, now});
  if (job == nullptr || job->promised != nullptr) return nullptr;
  const Group& group = *job->demand->group;
  const bool plain = group.named.empty() && group.hours == nullptr;
  return plain && amounts_of(job->record.needs).within(room) ? job : nullptr;
}

bool Matcher::may_start(const Job& job, const Machine& machine) const {
  return fits_now(job, machine) && may_start(job);
}

void Matcher::wait_for(Job& job, Machine& machine, const Actions& actions) {
  (has_licences(job) ? actions.promise : actions.keep_licences)(job, machine);
}

void Matcher::keep_licences(Job& job, Machine& machine) {
  job.licensed = &machine;
  licensed_[job.record.id] = &job;
  licences_.keep(job.demand->group->licences);
  queue_.requeue(job);
}

void Matcher::give_up_licences(Job& job) {
  if (job.licensed == nullptr) return;
  job.licensed = nullptr;
  licensed_.erase(job.record.id);
  licences_.give_up(job.demand->group->licences);
  queue_.requeue(job);
}

void Matcher::give_up_all_licences() {
  while (!licensed_.empty()) give_up_licences(*licensed_.begin()->second);
}

bool Matcher::has_licences(const Job& job) const {
  const rules::NamedAmounts& licences = job.demand->group->licences;
  return job.licensed != nullptr ? licences_.has_left_of_kept(licences)
                                 : licences_.has_left(licences);
}

bool Matcher::may_start(const Job& job) const {
  return queue_.is_open(*job.demand->group) && has_licences(job);
}

void Matcher::end_vain_promises() {
  std::vector<Machine*> vain;
  for (const auto& [id, machine] : promises_.of_restricted()) {
    const Job& job = *machine->promised_to;
    if (!may_start(job) || !job.demand->group->suits[machine->kind->index]) vain.push_back(machine);
  }
  for (Machine* machine : vain) promises_.forget(*machine);
  std::vector<Job*> given_up;
  for (const auto& [id, job] : licensed_) {
    const bool full = job->user->at_limit || (job->batch != nullptr && is_full(*job->batch));
    const bool suits = job->demand->group->suits[job->licensed->kind->index];
    const bool open = queue_.is_open(*job->demand->group);
    const bool has_room = may_make_room(*job->licensed, *job) && could_fit(*job, *job->licensed);
    if (full || !suits || !open || !has_room) given_up.push_back(job);
  }
  for (Job* job : given_up) give_up_licences(*job);
}

// One search for each kind with idle machines that suit new jobs.
std::vector<Matcher::Search> Matcher::searches_for_new_jobs() const {
  std::vector<Search> searches;
  if (queue_.newly_queued().empty()) return searches;
  for (const auto& kind : suitability_.kinds()) {
    if (kind->idle.empty()) continue;
    Search search{kind.get(), least_of_new(*kind), placed_, nullptr, 0};
    advance(search, 0);
    if (search.next != nullptr) searches.push_back(std::move(search));
  }
  return searches;
}

// Of the new jobs that suit this kind. Groups are not put together: one may need little memory, and
// the other little disk, and no machine have room for either. But no more than kMost asks are
// compared with each machine: those beyond are one that asks for the least of each amount.
std::vector<Ask> Matcher::least_of_new(const MachineKind& kind) const {
  constexpr size_t kMost = 16;
  std::vector<Ask> asks;
  for (const Group* group : queue_.newly_queued()) {
    if (group->lines.empty() || !group->suits[kind.index]) continue;
    if (!queue_.may_start(*group)) continue;
    const Amounts amounts = most(group->newly_least, group->lines.bound().least);
    const auto covers = [&](const Ask& other) {
      return other.amounts.within(amounts) && other.named.within(group->of_machine);
    };
    if (std::any_of(asks.begin(), asks.end(), covers)) continue;
    std::erase_if(asks, [&](const Ask& other) {
      return amounts.within(other.amounts) && group->of_machine.within(other.named);
    });
    if (asks.size() < kMost) {
      asks.push_back({amounts, group->of_machine});
    } else {
      asks.back() = {least(asks.back().amounts, amounts), {}};
    }
  }
  return asks;
}

void Matcher::advance(Search& search, uint64_t after) const {
  search.next = nullptr;
  if (search.placed != placed_) {
    search.asks = least_of_new(*search.kind);
    search.placed = placed_;
  }
  const auto fits_in = [&](const Space& space) {
    return std::any_of(search.asks.begin(), search.asks.end(),
                       [&](const Ask& ask) { return ask.within(space); });
  };
  search.next =
      search.kind->idle.first_behind([after](const Machine& m) { return m.place.number > after; },
                                     fits_in, [&](const Machine& m) { return fits_in(m.place); });
  if (search.next != nullptr) search.place = search.next->place.number;
}

// The next machine towards the tail of IDLE that may fit a job: a changed one, or one with room
// for a new job.
Machine* Matcher::next_to_serve(uint64_t after, std::vector<Search>& searches) {
  Machine* next = nullptr;
  const auto it = idle_.changed().upper_bound(after);
  if (it != idle_.changed().end()) next = it->second;
  for (Search& search : searches) {
    if (search.next == nullptr) continue;
    // It was served, or has left IDLE.
    if (search.place <= after || search.next->place.number != search.place) advance(search, after);
    if (search.next != nullptr && (next == nullptr || search.place < next->place.number))
      next = search.next;
  }
  return next;
}

}  // namespace sublet::scheduling
