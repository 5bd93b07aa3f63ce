#include "client/attempts/slot_shepherds.h"

#include <sys/wait.h>

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

std::shared_ptr<SlotShepherd> SlotShepherds::start(int64_t slot) {
  auto shepherd = std::make_shared<SlotShepherd>(program_, state_folder_);
  std::lock_guard lock(mutex_);
  shepherds_[slot] = shepherd;
  return shepherd;
}

GivenAttempt SlotShepherds::run(int64_t slot, const AttemptName& name) {
  if (const auto present = of(slot)) {
    if (auto control = present->run(name))
      return {present->id().pid, false, std::make_shared<UniqueFd>(std::move(*control))};
    const std::string kept = "/" + std::to_string(present->id().pid);
    remove(kept);
    remove(kept + ".control");
  }
  const auto shepherd = start(slot);
  auto control = shepherd->run(name);
  if (!control) {
    waitpid(shepherd->id().pid, nullptr, 0);  // it has ended, and nobody else knows of it
    throw OsError(EPIPE, "give an attempt to", program_);
  }
  return {shepherd->id().pid, true, std::make_shared<UniqueFd>(std::move(*control))};
}

}  // namespace sublet::client
