// "up-down": users by an index that rises while they hold machines and falls while they wait
// (Mutka, 4.4.1, tables 4.3 and 4.5). The source goes by station; here it is by user, and by
// station if the users of each share an account (Accounts).
//
// The smallest index is next, and equal ones are drawn. The indices are updated at each tick, and
// at each fifth of a tick if capacity has appeared since the last: a machine became idle, or an
// attempt ended (Pool::State::note_capacity). Who is pre-empted is another policy's
// (victims/by_index.h).
#ifndef SUBLET_SCHEDULING_POLICIES_UP_DOWN_H_
#define SUBLET_SCHEDULING_POLICIES_UP_DOWN_H_

#include "scheduling/policies/lottery.h"

namespace sublet::scheduling {

class UpDown : public Lottery {
 public:
  using Lottery::Lottery;
  UserKey key(const User& user) const override {
    return {static_cast<double>(user.record.index), Lottery::key(user).value};
  }
  bool wants_indices() const override { return true; }
  Sentence standing(const User& user, const JobRecord&, Micros) const override {
    return [name = user.record.name, index = user.record.index] {
      return name + ", up-down index " + std::to_string(index);
    };
  }
  double shown(const User& user, const JobRecord&, Micros) const override {
    return static_cast<double>(user.record.index);
  }
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_UP_DOWN_H_
