#include "loadmon/owner_watch.h"

#include <poll.h>

#include <algorithm>

#include "base/log.h"

namespace sublet::loadmon {

void OwnerWatch::use(Senses senses, std::unique_ptr<OwnersRules> rules) {
  senses_ = std::move(senses);
  rules_ = std::move(rules);
  failed_.assign(senses_.size(), false);
}

void OwnerWatch::log_absences() const {
  for (const auto& sense : senses_) {
    const std::string absence = sense->absence();
    if (!absence.empty()) log(Severity::info) << "the sense '" << sense->name() << "': " << absence;
  }
}

void OwnerWatch::notice(size_t sense, int64_t now) {
  // Two events may come within one step of the clock, and time that stands still counts as
  // blindness.
  sample_.instant = std::max(now, sample_.instant + 1);
  failed_[sense] = !senses_[sense]->notice(sample_.instant, &sample_);
  judge();
}

void OwnerWatch::notice_events(int64_t now) {
  for (size_t i = 0; i < senses_.size(); ++i) {
    pollfd event = {senses_[i]->handle(), POLLIN, 0};
    const bool ready = event.fd >= 0 && poll(&event, 1, 0) > 0;
    if (ready || senses_[i]->next_notice(sample_.instant) <= now) notice(i, now);
  }
}

void OwnerWatch::sample(int64_t now, const JobsEffect& jobs) {
  now = std::max(now, sample_.instant + 1);
  sample_ = {};
  sample_.instant = now;
  for (size_t i = 0; i < senses_.size(); ++i) failed_[i] = !senses_[i]->sample(now, jobs, &sample_);
  judge();
  rules_->refresh(now);
}

int64_t OwnerWatch::next_notice() const {
  int64_t next = Sense::kNever;
  for (const auto& sense : senses_) next = std::min(next, sense->next_notice(sample_.instant));
  return next;
}

void OwnerWatch::judge() {
  sample_.blind = std::find(failed_.begin(), failed_.end(), true) != failed_.end();
  sample_.jobs_stay = jobs_stay_;
  sample_.burdened = burdened_;
  rules_->judge(&sample_);
  const protocol::PresenceVerdict before = verdict_;
  verdict_ = presence_.update(sample_);
  if (protocol::is_news(before, verdict_)) changed_();
  note_blindness();
  for (const auto& sense : senses_) sense->told(verdict_);
}

void OwnerWatch::note_blindness() {
  const auto failed = std::find(failed_.begin(), failed_.end(), true);
  const bool blind = failed != failed_.end();
  if (blind == !blind_sense_.empty()) return;
  if (!blind) {
    log(Severity::info) << "the sense '" << blind_sense_ << "' works again";
    blind_sense_.clear();
    return;
  }
  const Sense& sense = *senses_[static_cast<size_t>(failed - failed_.begin())];
  blind_sense_ = sense.name();
  const std::string problem = sense.problem();
  log(Severity::warning) << "the sense '" << blind_sense_
                         << "' failed: the owner is assumed to be here"
                         << (problem.empty() ? "" : "; ") << problem;
}

std::vector<SenseLine> OwnerWatch::describe() const {
  std::vector<SenseLine> lines = sense_lines(sample_, presence_, rule_);
  for (const std::string& reason : rules_->reasons()) lines.push_back({"rule", reason, true});
  for (size_t i = 0; i < senses_.size(); ++i)
    if (failed_[i]) lines.push_back({senses_[i]->name(), "failed: " + senses_[i]->problem(), true});
  return lines;
}

}  // namespace sublet::loadmon
