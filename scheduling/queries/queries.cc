// The queries of Pool.
#include <algorithm>
#include <cmath>

#include "scheduling/state.h"

namespace sublet::scheduling {
JobRecord one_of(const JobRecord& record, uint64_t k) {
  JobRecord one = record;
  one.id += k;
  one.index += static_cast<uint32_t>(k);
  // As if each had been submitted on its own: an exact multiple of the step.
  if (const double step = record.share_priority_step; step > 0)
    one.share_priority = (std::round(record.share_priority / step) + static_cast<double>(k)) * step;
  one.share_priority_step = 0;
  one.count = 1;
  return one;
}

std::optional<JobRecord> Pool::job(JobId id) const {
  const Job* job = state_->jobs.with(id);
  if (job == nullptr) return std::nullopt;
  return one_of(job->record, id - job->record.id);
}

const AttemptRecord* Pool::attempt(JobId id) const {
  const Attempt* attempt = state_->attempts.find(id);
  return attempt == nullptr ? nullptr : &attempt->record;
}

namespace {
MachineView view_of(const Machine& m, const Pool::State& state) {
  MachineView view;
  view.record = m.record;
  view.away = m.away;
  view.last_contact = m.last_contact;
  view.memory_free = m.memory_free;
  view.disk_free = m.disk_free;
  view.places = places_of(m);
  view.used = m.used;
  view.reserved = m.reserved;
  if (m.promised_to != nullptr) view.promised = m.promised_to->record.id;
  view.named_reserved = m.named_reserved;
  const Host* host = state.matcher.hosts().known(m.record.name);
  view.requesting = host != nullptr && host->waiting > 0;
  for (const JobId id : m.running) {
    const Attempt& attempt = *state.attempts.find(id);
    view.running.push_back(attempt.record.key);
    if (attempt.ahead) view.ahead.push_back(attempt.record.key);
  }
  return view;
}
}  // namespace

std::optional<MachineView> Pool::machine(MachineId id) const {
  const Machine* m = state_->machines.find(id);
  if (m == nullptr) return std::nullopt;
  return view_of(*m, *state_);
}

std::vector<MachineView> Pool::machines() const {
  std::vector<MachineView> views;
  for (const Machine* m : state_->machines.all()) views.push_back(view_of(*m, *state_));
  return views;
}

std::optional<MachineId> Pool::promised(JobId id) const {
  const Job* job = state_->jobs.live(id);
  if (job == nullptr || job->promised == nullptr) return std::nullopt;
  return job->promised->record.id;
}

std::optional<MachineId> Pool::machine_named(std::string_view name) const {
  return state_->machines.named(name);
}

std::vector<LicenceView> Pool::licences() const {
  const LicenceBook& book = state_->licences;
  std::vector<LicenceView> views;
  for (const auto& [name, offered] : book.offered())
    views.push_back({name, offered, book.held(name)});
  return views;
}

std::vector<std::string> Pool::requesting() const {
  std::vector<std::string> names;
  for (const auto& [turn, host] : state_->matcher.hosts().requesting())
    names.push_back(host->name.str());
  return names;
}

std::vector<MachineId> Pool::idle() const {
  std::vector<std::pair<uint64_t, MachineId>> line;
  for (const Machine* m : state_->machines.all())
    if (m->place.number != 0) line.emplace_back(m->place.number, m->record.id);
  std::sort(line.begin(), line.end());
  std::vector<MachineId> ids;
  for (const auto& [place, id] : line) ids.push_back(id);
  return ids;
}

uint64_t Pool::waiting() const { return state_->jobs.waiting(); }

uint64_t Pool::limited_batches(const std::string& user) const {
  const User* known = state_->ledger.known_counted_for(user);
  return known == nullptr ? 0 : known->limited_batches;
}

std::set<std::string> Pool::hours_of(const std::string& user) const {
  std::set<std::string> texts;
  if (const User* known = state_->ledger.known_counted_for(user))
    for (const auto& [hours, records] : known->hours) texts.insert(hours);
  return texts;
}

const Accounts& Pool::accounts() const { return state_->ledger.accounts(); }

size_t Pool::groups() const { return state_->matcher.suitability().groups().size(); }

const PolicyRecord& Pool::policy() const { return state_->policy; }
const PoolRecord& Pool::counters() const { return state_->changes.counters(); }

}  // namespace sublet::scheduling
