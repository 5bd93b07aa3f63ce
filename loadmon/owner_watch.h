// The senses, and what they show together: their events and samples go in, the verdict comes out.
// It reads no clock, so that a test can watch a day within seconds. One thread; nothing here waits
// for a disk, a network or a lock.
#ifndef SUBLET_LOADMON_OWNER_WATCH_H_
#define SUBLET_LOADMON_OWNER_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "loadmon/owners_rules.h"
#include "loadmon/sense_lines.h"
#include "loadmon/senses/sense.h"
#include "protocol/presence.h"

namespace sublet::loadmon {

using Senses = std::vector<std::unique_ptr<Sense>>;

class OwnerWatch {
 public:
  // changed: everybody is to be told now (protocol::is_news).
  OwnerWatch(const protocol::PresenceRule& rule, std::function<void()> changed)
      : rule_(rule), presence_(rule), changed_(std::move(changed)) {}

  // Whether the load average counts, or a rule asks for it.
  bool uses_load() const { return rule_.uses_load() || rules_->use(Fact::kLoad); }

  // To be called once, first.
  void use(Senses senses, std::unique_ptr<OwnersRules> rules);
  const Senses& senses() const { return senses_; }
  // What they cannot see on this machine.
  void log_absences() const;

  // Whether jobs are here that wait, or run on, while the owner is here, and slow him down.
  void note_jobs_that_stay(bool any, bool burdened) {
    jobs_stay_ = any;
    burdened_ = burdened;
  }

  // Instants are of CLOCK_BOOTTIME, ns. A sense has an event: asks it, and judges.
  void notice(size_t sense, int64_t now);
  // The same for each sense that has an event or is due.
  void notice_events(int64_t now);
  // Asks all senses, and judges.
  void sample(int64_t now, const JobsEffect& jobs);
  // When a sense is due without an event; Sense::kNever.
  int64_t next_notice() const;

  // What was seen last, and the verdict on it.
  const protocol::PresenceSample& seen() const { return sample_; }
  const protocol::PresenceVerdict& verdict() const { return verdict_; }
  protocol::PresenceVerdict verdict_at(int64_t now) const { return presence_.at(now); }
  // What each sense sees, for `sublet owner status`.
  std::vector<SenseLine> describe() const;
  // The rules that keep jobs away now.
  std::vector<std::string> rules_against() const { return rules_->reasons(); }

 private:
  void judge();
  // Logs that a sense fails, or works again.
  void note_blindness();

  const protocol::PresenceRule rule_;
  std::unique_ptr<OwnersRules> rules_;
  Senses senses_;
  std::vector<bool> failed_;  // of each sense, when it was last asked
  protocol::OwnerPresence presence_;
  protocol::PresenceVerdict verdict_;
  protocol::PresenceSample sample_;
  bool jobs_stay_ = false;
  bool burdened_ = false;
  std::string blind_sense_;  // the sense that failed at the last sample; "": none
  const std::function<void()> changed_;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_OWNER_WATCH_H_
