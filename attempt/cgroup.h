// Which cgroups attempts can use on this machine, and the folders of each attempt.
// Determined once at the client's start. cgroup v2 alone and the hybrid layout (v1
// controllers beside a v2 hierarchy without any) are known. Any thread.
//
// An attempt's folders are directly below the root of their hierarchy, beside
// the owner's: weights are compared only among siblings, so that an idle
// folder inside one of normal weight would weigh as much as the owner.
#ifndef SUBLET_ATTEMPT_CGROUP_H_
#define SUBLET_ATTEMPT_CGROUP_H_

#include <string>
#include <vector>

#include "attempt/folder.h"

namespace sublet {

class AttemptCgroups {
 public:
  // Looks below `root` and tries, with a folder made and removed, what works.
  // `tag` distinguishes this client's folders from others': letters, digits and '-',
  // not longer than 64. Never throws: what does not work is not used.
  static AttemptCgroups detect(const std::string& root, const std::string& tag);
  static AttemptCgroups detect(const std::string& tag) { return detect("/sys/fs/cgroup", tag); }

  bool can_kill() const { return !unified_.empty(); }  // freezes and kills all at once
  bool can_weigh() const { return !cpu_.empty(); }     // cpu.idle
  bool can_limit_memory() const { return !memory_.empty(); }
  // A sentence for each thing that does not work: what is used instead, and why.
  const std::vector<std::string>& missing() const { return missing_; }

  // Names the attempt's folders in the order; the shepherd makes and removes them.
  void set_folders(const AttemptName& name, AttemptOrder* order) const;
  // Removes this client's folders whose attempts `keep` does not name and in
  // which no process lives (of killed shepherds). Returns their number.
  int remove_left_over(const std::vector<AttemptName>& keep) const;

 private:
  std::string folder(const std::string& hierarchy, const AttemptName& name) const;

  std::string tag_;
  std::string unified_;  // hierarchies' roots; empty: cannot be used
  std::string cpu_;
  std::string memory_;
  std::vector<std::string> missing_;
};

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_CGROUP_H_
