// What the owner says of this machine, in place of being seen: "not now" (`sublet owner
// pause`) counts as presence until it is taken back or over. Anybody at this machine may say
// it, known by the kernel's word; only processes of jobs may not. A pause is ended or shortened
// only by the account that asked for it, if that is known, the monitor's own, or root. Anybody may
// withdraw the machine, too (`sublet owner reclaim`); only its owners may lend it again.
//
// The word takes effect with the sample that reads it. Only when everybody has been told is
// it stored, on a thread of its own, and then answered. It survives the monitor and the
// machine. One thread, but for storing.
#ifndef SUBLET_LOADMON_SENSES_OWNERS_WORD_H_
#define SUBLET_LOADMON_SENSES_OWNERS_WORD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/unique_fd.h"
#include "loadmon/jobs_here.h"
#include "loadmon/owners_rules.h"
#include "loadmon/sense_lines.h"
#include "loadmon/senses/event_set.h"
#include "loadmon/senses/sense.h"
#include "loadmon/stored_text.h"
#include "loadmon/visitor.h"
#include "protocol/frame.h"
#include "protocol/pause.h"

namespace sublet::loadmon {

class OwnersWord : public Sense {
 public:
  // Listens on FOLDER/owner.sock and keeps FOLDER/pause and FOLDER/lending. What cannot be read
  // there counts as a pause without end, or as withdrawn. What descends from `jobs` and its daemons
  // may not speak for the owner, nor may the accounts of jobs. `describe`: what all senses see now.
  // `rules`: what the accounts of `owners`, the monitor's own and root may change; kept in
  // FOLDER/rules. Throws OsError if it cannot listen.
  OwnersWord(const std::string& folder, Files& files, JobsHere jobs,
             std::function<std::vector<SenseLine>()> describe, OwnersRules& rules,
             std::set<uid_t> owners);

  std::string name() const override { return "owner's word"; }
  bool sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) override;
  void told(const protocol::PresenceVerdict& verdict) override;
  int handle() const override { return events_.handle(); }
  bool notice(int64_t now, protocol::PresenceSample* sample) override;
  int64_t next_notice(int64_t now) const override;

 private:
  struct Speaker {
    UniqueFd fd;
    Visitor who;
    int64_t speak_by = 0;                // CLOCK_BOOTTIME, ns; 0: it has spoken
    int refusal = 0;                     // errno
    uint32_t word = 0;                   // sublet_owner_word
    std::string complaint = {};          // why it was refused, if that needs words
    const StoredText* awaits = nullptr;  // what is to be stored before its answer ...
    uint64_t answered_after = 0;         // ... and which change of it
  };

  void load(Files& files);
  void load_rules(Files& files);
  void log_pause() const;
  void log_lending() const;
  void watch(int fd);
  // False: nobody came.
  bool accept_all(int64_t now);
  // One word, so that a job that speaks all the time hardly delays what other senses see. False:
  // nobody spoke.
  bool read_one();
  // Somebody came or spoke: who does so too often has to wait.
  void slow_down(int64_t now);
  void hear(Speaker& speaker, const sublet_frame& frame, const std::string& text);
  void hear_rules(Speaker& speaker, const std::string& text);
  void hear_pool(Speaker& speaker, const std::string& text);
  void hear_lending(Speaker& speaker, const sublet_frame& frame);
  // False: refused, since only the owners may `doing`.
  bool is_owner(Speaker& speaker, const std::string& doing) const;
  bool is_withdrawn() const;
  // As in SUBLET_FRAME_OWNER_STATUS.
  uint32_t lent_s() const;
  // errno, 0: it may say this word (nullopt: resume). EPERM: it may belong to a job; EACCES: the
  // pause of another account would end earlier.
  int refusal_of(const Speaker& speaker, const std::optional<protocol::Pause>& word) const;
  // Returns its number in pause_file_.
  uint64_t change(std::optional<protocol::Pause> pause);
  void close(std::map<int, Speaker>::iterator speaker);
  void answer(const Speaker& speaker, const protocol::PresenceVerdict& verdict) const;
  void describe(const Speaker& speaker) const;
  void list_rules(const Speaker& speaker) const;
  const JobsHere jobs_;
  const std::function<std::vector<SenseLine>()> describe_;
  OwnersRules& rules_;
  const std::set<uid_t> owners_;
  StoredText pause_file_, rules_file_, lending_file_;
  EventSet events_;  // the listener, the speakers and what has been stored
  UniqueFd listener_;
  int64_t wakes_left_ = 0;           // until it rests; see slow_down()
  int64_t wakes_counted_at_ = 0;     // CLOCK_BOOTTIME, ns
  int64_t complained_ = 0;           // of a job that spoke; CLOCK_BOOTTIME, ns
  std::map<int, Speaker> speakers_;  // by descriptor
  std::optional<protocol::Pause> pause_;
  // The machine is withdrawn after so long; length 0: it is. None: it is lent without end.
  std::optional<protocol::Pause> withdrawal_;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_SENSES_OWNERS_WORD_H_
