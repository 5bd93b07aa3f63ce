// Which cgroups attempts can use on this machine, and the folders of each attempt.
// Determined once at the client's start. Supports cgroup v2 alone and the hybrid layout
// (v1 controllers beside a v2 hierarchy without any). Any thread.
//
// An attempt's folders are directly below the root of their hierarchy, beside
// the owner's: weights are compared only among siblings, so an idle folder inside one
// of normal weight would have the same weight as the owner.
#ifndef SUBLET_ATTEMPT_CGROUP_H_
#define SUBLET_ATTEMPT_CGROUP_H_

#include <string>
#include <vector>

#include "attempt/folder.h"

namespace sublet {

class AttemptCgroups {
 public:
  // Searches below `root` and tests, with a temporary folder, which features work.
  // `tag` distinguishes this client's folders from others': at most 64 letters, digits
  // and '-'. `own`: this process's cgroup of version 2 as /proc/self/cgroup names it, if it is to
  // use what has been delegated to its account; else "". Never throws: features that do not work
  // are not used.
  static AttemptCgroups detect(const std::string& root, const std::string& tag,
                               const std::string& own = "");
  // Of this machine. Without root what the service manager has delegated, if jobs have `walls`:
  // else they could leave it. Not for their weight, which would count within the unit only.
  // Controllers only if no process is in that folder itself, as with systemd's
  // DelegateSubgroup=daemons; a process in it would keep the kernel from enabling them.
  static AttemptCgroups of_machine(const std::string& tag, bool walls);

  bool can_kill() const { return !unified_.empty(); }  // can freeze and kill all at once
  bool can_weigh() const { return !cpu_.empty(); }     // cpu.idle
  bool can_limit_memory() const { return !memory_.empty(); }
  bool can_limit_processes() const { return !processes_.empty(); }
  bool can_watch_traffic() const { return no_traffic_.empty(); }
  const std::string& no_traffic() const { return no_traffic_; }  // why not
  // A sentence for each feature that does not work: what is used instead, and why.
  const std::vector<std::string>& missing() const { return missing_; }

  // With cgroup v2 alone: keeps the controllers enabled below the root, in which systemd disables
  // those that none of its units needs; folders of attempts would lose their weights and limits.
  // It cannot while another folder uses them, and there is an empty one for that. To be called
  // before each attempt; cheap if nothing has changed.
  void hold_controllers() const;
  // Removes that folder; not while there are attempts.
  void release_controllers() const;
  // Sets the attempt's folders in the order; the shepherd creates and removes them, or uses those
  // of an attempt before (client/shepherd/cgroups.h).
  void set_folders(const AttemptName& name, AttemptOrder* order) const;
  // The same for a process of the client's that works for jobs (start_demoted): other ones for each
  // call, in every client.
  void set_helper_folders(AttemptOrder* order) const;
  // Where their folders of version 2 are; "": they have none.
  const std::string& unified() const { return unified_; }
  // Removes this client's folders that are left by killed processes: nobody has locked them, and
  // they contain no process. Returns their number. At any time.
  int remove_left_over() const;

 private:
  std::string folder(const std::string& hierarchy, const AttemptName& name) const;
  std::string holder() const;

  std::string tag_;
  std::string unified_;  // roots of the hierarchies; empty: unusable
  std::string cpu_;
  std::string memory_;
  std::string processes_;
  std::string held_;  // the root of cgroup v2, or what is delegated of it, if it is alone
  std::string no_traffic_;
  std::vector<std::string> missing_;
};

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_CGROUP_H_
