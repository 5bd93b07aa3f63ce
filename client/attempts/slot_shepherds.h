// The shepherds of this machine's slots, each started when its slot gets an order and none runs.
// Any thread; the mutex protects the table only, since a slot has one attempt at a time.
#ifndef SUBLET_CLIENT_ATTEMPTS_SLOT_SHEPHERDS_H_
#define SUBLET_CLIENT_ATTEMPTS_SLOT_SHEPHERDS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "attempt/slot_shepherd.h"

namespace sublet::client {

// Of an attempt that a shepherd was given.
struct GivenAttempt {
  pid_t shepherd = 0;
  bool is_new = false;                // a child that nobody reaps yet
  std::shared_ptr<UniqueFd> control;  // our end
};

class SlotShepherds {
 public:
  // `program`: the path of sublet-shepherd. Removes what earlier ones have left.
  SlotShepherds(std::string program, std::string state_folder);

  // The attempt's order has been written. One call at a time for a slot. Throws OsError.
  GivenAttempt run(int64_t slot, const AttemptName& name);
  // The same, but after the attempt that the slot's shepherd runs. Throws OsError, too, if there is
  // no shepherd: what is left of that attempt may still run.
  GivenAttempt run_behind(int64_t slot, const AttemptName& name);

 private:
  std::shared_ptr<SlotShepherd> of(int64_t slot);
  // Of what a shepherd keeps between two attempts; "": of all of them.
  void remove(const std::string& name) const;

  const std::string program_;
  const std::string state_folder_;
  std::mutex mutex_;
  std::map<int64_t, std::shared_ptr<SlotShepherd>> shepherds_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_SLOT_SHEPHERDS_H_
