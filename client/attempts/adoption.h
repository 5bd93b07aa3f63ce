// Restores the attempts of a restarted client from its state folder and sets damaged
// records aside. Main thread, before other threads start.
#ifndef SUBLET_CLIENT_ATTEMPTS_ADOPTION_H_
#define SUBLET_CLIENT_ATTEMPTS_ADOPTION_H_

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "client/attempts/assignment.h"
#include "protocol/attempt.h"

namespace sublet::client {

// To remove an attempt's folder, it is first renamed into this one, so that a
// half-removed folder is never taken for an attempt.
std::string trash_folder(const std::string& state_folder);

struct Adopted {
  std::shared_ptr<const Assignment> assignment;
  protocol::FolderFacts facts;
};

// Every attempt of `state_folder`, in order, but for those that had not begun behind another one of
// their slot, which are removed. If an attempt's records are damaged, its
// processes are killed, its folder is moved to `state_folder`/damaged and logged, and
// it is returned as an ended attempt, so that its end is reported. Entries that are
// not named like an attempt are moved there, too.
std::vector<Adopted> adopt_attempts(Files& files, const std::string& state_folder);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_ADOPTION_H_
