#include "scheduling/books/relation_book.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace sublet::scheduling {
namespace {

JobId end_of(const JobRange& range) { return range.first + range.count; }

JobRange common(const JobRange& a, const JobRange& b) {
  const JobId first = std::max(a.first, b.first), end = std::min(end_of(a), end_of(b));
  return {first, end > first ? end - first : 0};
}

std::string name_of(const JobRange& jobs) {
  if (jobs.count == 1) return "job " + std::to_string(jobs.first);
  return "jobs " + std::to_string(jobs.first) + " to " + std::to_string(end_of(jobs) - 1);
}

// "job 17 is done", "jobs 17 to 26 have ended (4 to go)".
std::string condition_text(const Dependence& dependence, uint64_t unmet) {
  const bool one = dependence.jobs.count == 1;
  std::string text = name_of(dependence.jobs);
  switch (dependence.condition) {
    case After::kDone:
      text += one ? " is done" : " are done";
      break;
    case After::kEnded:
      text += one ? " has ended" : " have ended";
      break;
    case After::kStarted:
      text += one ? " has started" : " have started";
      break;
  }
  return one ? text : text + " (" + std::to_string(unmet) + " to go)";
}

}  // namespace

std::string loss_text(const RelationRecord& lost) {
  const std::string name = "job " + std::to_string(lost.lost_by) + ", which it waits for, ";
  if (lost.lost_as == JobState::kFailed) return name + "has failed";
  if (lost.lost_as == JobState::kRemoved) return name + "was removed";
  return name + "can never run either";
}

Dependent* RelationBook::add(RelationRecord record) {
  std::sort(record.on.begin(), record.on.end());
  record.on.erase(std::unique(record.on.begin(), record.on.end()), record.on.end());
  const auto [it, added] = dependents_.try_emplace(record.jobs.first);
  if (!added) return nullptr;
  it->second.record = std::move(record);
  return &it->second;
}

void RelationBook::begin(Dependent& dependent, uint64_t live,
                         const std::function<Seen(const Dependence&)>& look) {
  RelationRecord& record = dependent.record;
  if (record.gate == Gate::kEntering) {
    record.gate = Gate::kClosed;
    touch(dependent);
  }
  dependent.live = live;
  if (live == 0) return end(dependent);
  if (dependent.is_lost()) return;
  for (const Dependence& dependence : record.on) {
    const Key key = key_of(dependence);
    if (awaited_.contains(key)) continue;
    auto seen = seen_.find(key);
    if (seen == seen_.end()) seen = seen_.emplace(key, look(dependence)).first;
    const auto [unmet, lost_by, lost_as] = seen->second;
    if (lost_by != 0) return lose(dependent, lost_by, lost_as);
  }
  for (const Dependence& dependence : record.on) await(dependent, key_of(dependence));
  if (dependent.unmet == 0) release(dependent);
}

void RelationBook::await(Dependent& dependent, const Key& key) {
  auto it = awaited_.find(key);
  if (it == awaited_.end()) {
    const uint64_t unmet = seen_.at(key).unmet;
    if (unmet == 0) return;
    it = awaited_.emplace(key, Awaited{unmet, 0, {}}).first;
    ++sizes_[key.size];
  }
  it->second.dependents.push_back(dependent.record.jobs.first);
  ++it->second.wanted;
  ++dependent.unmet;
}

void RelationBook::open(Dependent& dependent) {
  dependent.record.gate = Gate::kOpen;
  touch(dependent);
  if (dependent.unmet == 0 && !dependent.is_lost() && !dependent.record.over) release(dependent);
}

void RelationBook::release(Dependent& dependent) {
  if (dependent.record.gate != Gate::kOpen) return;
  consequences_.push_back({dependent.record.jobs, std::nullopt});
  end(dependent);
}

void RelationBook::note(const JobRange& jobs, News::What what, bool had_started) {
  if (!awaited_.empty()) news_.push_back({jobs, what, had_started});
}

void RelationBook::note_end(const JobRecord& job, Dependent* dependent) {
  const bool has_begun = dependent != nullptr && dependent->record.gate != Gate::kEntering;
  if (has_begun && (dependent->live -= job.count) == 0) {
    release_awaited(*dependent);
    end(*dependent);
  }
  const News::What what = job.state == JobState::kDone     ? News::kDone
                          : job.state == JobState::kFailed ? News::kFailed
                                                           : News::kRemoved;
  note({job.id, job.count}, what, job.has_started);
}

std::optional<RelationBook::Consequence> RelationBook::next() {
  seen_.clear();
  while (consequences_.empty() && !news_.empty()) {
    const News news = news_.front();
    news_.pop_front();
    settle(news);
  }
  if (consequences_.empty()) return std::nullopt;
  const Consequence first = consequences_.front();
  consequences_.pop_front();
  return first;
}

Dependent* RelationBook::of(JobId job) {
  auto it = dependents_.upper_bound(job);
  if (it == dependents_.begin()) return nullptr;
  Dependent& dependent = (--it)->second;
  const bool inside = job - dependent.record.jobs.first < dependent.record.jobs.count;
  return inside && !dependent.record.over ? &dependent : nullptr;
}

std::pair<std::vector<Dependent*>, JobId> RelationBook::gated(const JobRange& jobs, uint64_t most) {
  std::vector<Dependent*> found;
  uint64_t looked_at = 0;
  const auto end = dependents_.lower_bound(end_of(jobs));
  auto it = dependents_.lower_bound(jobs.first);
  for (; it != end && looked_at < most; ++it) {
    ++looked_at;
    if (it->second.record.gate == Gate::kOpen) continue;
    looked_at += it->second.record.on.size();
    found.push_back(&it->second);
  }
  return {std::move(found), it == end ? 0 : it->first};
}

std::string RelationBook::why(const Dependent& dependent) const {
  if (dependent.is_lost()) return "it can never run: " + loss_text(dependent.record);
  if (dependent.record.gate != Gate::kOpen && dependent.unmet == 0)
    return "waits until all jobs of its batch have been entered";
  std::string text = "waits until ";
  bool first = true;
  for (const Dependence& dependence : dependent.record.on) {
    const auto it = awaited_.find(key_of(dependence));
    if (it == awaited_.end()) continue;
    if (first) text += condition_text(dependence, it->second.unmet);
    first = false;
  }
  if (dependent.unmet > 1) text += "; " + std::to_string(dependent.unmet - 1) + " more";
  return text;
}

void RelationBook::emit() {
  std::vector<JobId> over;
  for (const Dependent* dependent : touched_.all()) {
    changes_.add(dependent->record);
    if (dependent->record.over) over.push_back(dependent->record.jobs.first);
  }
  touched_.clear();
  for (const JobId first : over) dependents_.erase(first);
}

RelationBook::Key RelationBook::key_of(const Dependence& dependence) {
  return {static_cast<uint32_t>(std::bit_width(dependence.jobs.count)), dependence};
}

RelationBook::Effect RelationBook::effect_of(const News& news, After condition) {
  switch (condition) {
    case After::kDone:
      if (news.what == News::kStarted) return Effect::kNone;
      return news.what == News::kDone ? Effect::kMet : Effect::kLost;
    case After::kEnded:
      return news.what == News::kStarted || news.what == News::kStuck ? Effect::kNone
                                                                      : Effect::kMet;
    case After::kStarted:
      if (news.what == News::kStarted) return Effect::kMet;
      if (news.had_started) return Effect::kNone;
      return news.what == News::kDone ? Effect::kMet : Effect::kLost;
  }
  return Effect::kNone;
}

// Of each size that occurs, the ranges that begin close enough before the end of `jobs`: most of
// those overlap it.
std::vector<RelationBook::Key> RelationBook::overlapping(const JobRange& jobs) const {
  std::vector<Key> found;
  for (uint32_t size = 0; size < sizes_.size(); ++size) {
    if (sizes_[size] == 0) continue;
    const uint64_t longest = size >= 64 ? UINT64_MAX : (uint64_t{1} << size) - 1;
    const JobId from = jobs.first >= longest ? jobs.first - longest + 1 : 0;
    Key first{size, {}};
    first.dependence.jobs = {from, 0};
    for (auto it = awaited_.lower_bound(first); it != awaited_.end(); ++it) {
      const auto& [key, awaited] = *it;
      if (key.size != size || key.dependence.jobs.first >= end_of(jobs)) break;
      if (common(key.dependence.jobs, jobs).count > 0) found.push_back(key);
    }
  }
  return found;
}

// In the order that it would have if the jobs came one after the other: a dependence is lost with
// the first of its jobs, and met with the last.
void RelationBook::settle(const News& news) {
  std::vector<std::pair<JobId, Key>> keys;
  for (const Key& key : overlapping(news.jobs)) {
    const Effect effect = effect_of(news, key.dependence.condition);
    const JobRange jobs = common(key.dependence.jobs, news.jobs);
    if (effect != Effect::kNone)
      keys.emplace_back(effect == Effect::kLost ? jobs.first : end_of(jobs) - 1, key);
  }
  std::sort(keys.begin(), keys.end());
  for (const auto& [job, key] : keys) settle(key, news);
}

void RelationBook::settle(const Key& key, const News& news) {
  const auto it = awaited_.find(key);
  if (it == awaited_.end()) return;  // those who waited for it were lost a moment ago
  const Effect effect = effect_of(news, key.dependence.condition);
  const uint64_t jobs = common(key.dependence.jobs, news.jobs).count;
  if (effect == Effect::kMet && (it->second.unmet -= jobs) > 0) return;
  const Awaited awaited = std::move(it->second);
  awaited_.erase(it);
  --sizes_[key.size];
  effect == Effect::kMet ? meet(awaited) : lose(awaited, news);
}

void RelationBook::meet(const Awaited& awaited) {
  for (const JobId first : awaited.dependents) {
    Dependent* dependent = waiting(first);
    if (dependent != nullptr && --dependent->unmet == 0) release(*dependent);
  }
}

// The first of these jobs that the dependent waits for in vain.
JobId RelationBook::lost_by(const Dependent& dependent, const News& news) {
  JobId first = end_of(news.jobs);
  for (const Dependence& dependence : dependent.record.on) {
    const JobRange jobs = common(dependence.jobs, news.jobs);
    if (jobs.count > 0 && effect_of(news, dependence.condition) == Effect::kLost)
      first = std::min(first, jobs.first);
  }
  return first;
}

void RelationBook::lose(const Awaited& awaited, const News& news) {
  for (const JobId first : awaited.dependents) {
    Dependent* dependent = waiting(first);
    if (dependent == nullptr) continue;
    release_awaited(*dependent);
    lose(*dependent, lost_by(*dependent, news),
         news.what == News::kFailed    ? JobState::kFailed
         : news.what == News::kRemoved ? JobState::kRemoved
                                       : JobState::kHeld);
  }
}

void RelationBook::lose(Dependent& dependent, JobId by, JobState as) {
  dependent.record.lost_by = by;
  dependent.record.lost_as = as;
  touch(dependent);
  consequences_.push_back({dependent.record.jobs, dependent.record.on_never});
}

void RelationBook::release_awaited(Dependent& dependent) {
  if (dependent.is_lost()) return;
  for (const Dependence& dependence : dependent.record.on) {
    const Key key = key_of(dependence);
    const auto it = awaited_.find(key);
    if (it == awaited_.end() || --it->second.wanted > 0) continue;
    awaited_.erase(it);
    --sizes_[key.size];
  }
  dependent.unmet = 0;
}

void RelationBook::end(Dependent& dependent) {
  dependent.record.over = true;
  touch(dependent);
}

// Neither lost nor over.
Dependent* RelationBook::waiting(JobId first) {
  const auto it = dependents_.find(first);
  if (it == dependents_.end() || it->second.is_lost() || it->second.record.over) return nullptr;
  return &it->second;
}

}  // namespace sublet::scheduling
