// What a restarted client finds in its state folder: reads the records of every
// attempt and sets aside what is damaged. Main thread, before the others.
#ifndef SUBLET_CLIENT_ATTEMPTS_ADOPTION_H_
#define SUBLET_CLIENT_ATTEMPTS_ADOPTION_H_

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "client/attempts/assignment.h"
#include "protocol/attempt.h"

namespace sublet::client {

// Where an attempt's folder goes first when it is removed, in one step, so that
// no half of one is ever taken for an attempt. Emptied at the start.
std::string trash_folder(const std::string& state_folder);

struct Adopted {
  std::shared_ptr<const Assignment> assignment;
  protocol::FolderFacts facts;
};

// Every attempt of `state_folder`, in order. One whose records are damaged is
// ended, its folder moved to `state_folder`/damaged and named in the log, and it
// is returned as an ended attempt, so that the server hears of it. Names that
// are no attempt's are moved there, too.
std::vector<Adopted> adopt_attempts(Files& files, const std::string& state_folder);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_ADOPTION_H_
