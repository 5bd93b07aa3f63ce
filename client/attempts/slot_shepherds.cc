#include "client/attempts/slot_shepherds.h"

#include <cerrno>

#include "base/log.h"

namespace sublet::client {

SlotShepherds::SlotShepherds(std::string program, std::string state_folder)
    : program_(std::move(program)), state_folder_(std::move(state_folder)) {
  remove("");
}

void SlotShepherds::remove(const std::string& name) const {
  const std::string folder = state_folder_ + "/" SUBLET_SLOTS_FOLDER + name;
  try {
    system_files().remove_tree(folder);
  } catch (const std::exception& error) {
    log(Severity::warning) << error.what();
  }
}

std::shared_ptr<SlotShepherd> SlotShepherds::of(int64_t slot) {
  std::lock_guard lock(mutex_);
  const auto found = shepherds_.find(slot);
  return found == shepherds_.end() ? nullptr : found->second;
}

GivenAttempt SlotShepherds::run_behind(int64_t slot, const AttemptName& name) {
  const auto present = of(slot);
  auto given = present ? present->run(name, true) : SlotShepherd::Given();
  if (!given.taken) throw OsError(ESRCH, "hand an order to", "the slot's shepherd");
  return {present->id().pid, false, std::make_shared<UniqueFd>(std::move(given.control))};
}

GivenAttempt SlotShepherds::run(int64_t slot, const AttemptName& name) {
  if (const auto present = of(slot)) {
    auto given = present->run(name);
    if (given.taken)
      return {present->id().pid, false, std::make_shared<UniqueFd>(std::move(given.control))};
    const std::string kept = "/" + std::to_string(present->id().pid);
    remove(kept);
    remove(kept + ".control");
  }
  const auto shepherd = std::make_shared<SlotShepherd>(program_, state_folder_);
  // If somebody has killed it already, the attempt is lost as it would be a moment later: the
  // machine is not to blame.
  auto given = shepherd->run(name);
  {
    // From now on others may be behind it.
    std::lock_guard lock(mutex_);
    shepherds_[slot] = shepherd;
  }
  return {shepherd->id().pid, true, std::make_shared<UniqueFd>(std::move(given.control))};
}

}  // namespace sublet::client
