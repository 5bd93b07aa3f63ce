// The descriptors of a sense that reports each key or movement. After an event that showed the
// owner nothing is reported for a while, because a mouse sends a thousand a second and one is
// enough. One thread.
#ifndef SUBLET_LOADMON_SENSES_EVENT_SET_H_
#define SUBLET_LOADMON_SENSES_EVENT_SET_H_

#include <cstdint>
#include <vector>

#include "base/unique_fd.h"

namespace sublet::loadmon {

class EventSet {
 public:
  // Throws OsError.
  EventSet();

  // False, with errno, if it cannot be watched.
  bool add(int fd);
  // To be called before `fd` is closed.
  void remove(int fd);
  // Readable when one of them is, except during a rest.
  int handle() const { return outer_.get(); }
  // Those that are readable now, also during a rest: at most 64.
  std::vector<int> ready() const;
  // handle() reports nothing until wake() is called at `until` (CLOCK_BOOTTIME, ns) or later.
  void rest(int64_t until);
  void wake(int64_t now);
  // 0: it does not rest.
  int64_t rests_until() const { return rests_until_; }

 private:
  UniqueFd outer_;  // epoll: contains inner_, but for a rest
  UniqueFd inner_;  // epoll: contains all
  int64_t rests_until_ = 0;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_SENSES_EVENT_SET_H_
