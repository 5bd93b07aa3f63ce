// Keys typed at terminals: virtual consoles, pseudo-terminals (terminal windows, ssh) and serial
// lines with a login. inotify tells at once that a terminal was read from, which no output does.
// A terminal that this process may not read cannot be watched so: its access time is looked at
// every 2 s, which the kernel updates in steps of 8 s.
//
// Terminals that belong to jobs never count. One thread.
#ifndef SUBLET_LOADMON_SENSES_TERMINALS_H_
#define SUBLET_LOADMON_SENSES_TERMINALS_H_

#include <time.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "base/unique_fd.h"
#include "loadmon/job_terminals.h"
#include "loadmon/senses/event_set.h"
#include "loadmon/senses/sense.h"

struct inotify_event;

namespace sublet::loadmon {

class Terminals : public Sense {
 public:
  // `root`: "" or, in tests, a folder that contains dev/. `jobs`: finds the jobs' terminals; it
  // is called only when a pseudo-terminal has appeared, and at most every 100 ms. Throws OsError if
  // there is no inotify.
  Terminals(const std::string& root, std::function<JobTerminals()> jobs);

  std::string name() const override { return "terminals"; }
  bool sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) override;
  int handle() const override { return events_.handle(); }
  bool notice(int64_t now, protocol::PresenceSample* sample) override;
  std::string problem() const override;
  std::string absence() const override;
  int64_t next_notice(int64_t now) const override;

 private:
  static constexpr int64_t kUnseen = std::numeric_limits<int64_t>::min();
  struct Terminal {
    std::string path;
    bool owners = false;    // false: not decided yet
    bool heard = false;     // read from, or opened, while undecided
    timespec changed = {};  // its st_ctim while undecided
  };

  void look_for_terminals();
  // The terminal if it can be watched, else nullptr.
  Terminal* add(const std::string& path);
  void drain(int64_t now);
  void take(const inotify_event& event, int64_t now);
  // A name in dev/ or dev/pts/ was made, changed or removed.
  void take_name(const inotify_event& event, int64_t now);
  void heard(Terminal& terminal, int64_t now);
  // Decides whose the undecided terminals are.
  void decide(int64_t now);
  enum class Whose { owners, jobs, nobodys, another };
  // Called after `jobs` was found, so that a terminal that was replaced meanwhile is noticed.
  // `began_utc_us`: when the search began.
  Whose whose(Terminal& terminal, const JobTerminals& jobs, int64_t began_utc_us) const;
  // The owner's terminals have been read from in the last seconds: /dev/tty is any of them.
  bool any_was_just_read() const;
  void look_at_times(int64_t now, bool all);
  // `path`: of the terminal; "": not known.
  void seen(int64_t now, const std::string& path);
  protocol::Place place_of(const std::string& path) const;
  void fill(int64_t now, protocol::PresenceSample* sample) const;

  const std::string dev_;
  const std::function<JobTerminals()> find_jobs_;
  UniqueFd inotify_;
  EventSet events_;
  int dev_watch_ = -1, pts_watch_ = -1;
  std::map<int, Terminal> watched_;  // by watch
  std::set<std::string> unwatched_;  // paths: of these the access time is looked at
  std::set<std::string> of_jobs_;    // paths: not watched, since they say nothing of the owner
  bool lost_ = false;                // the kernel dropped events: all is looked at again
  bool undecided_ = false;           // there are such terminals,
  bool heard_ = false;               // and one was read from
  int64_t decide_at_ = 0;            // not before; CLOCK_BOOTTIME, ns
  int64_t times_at_ = 0;             // the last look at access times; 0: none
  int64_t seen_at_ = kUnseen;        // the last key
  protocol::Place seen_in_;
  int error_ = 0;  // errno: a terminal cannot be watched for want of watches
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_SENSES_TERMINALS_H_
