// Uploads checkpoint, outputs and streams of an attempt to the server's spool and
// completes its end report. Everything can be repeated, even after a restart of either
// side: an upload's request id derives from the attempt's nonce and the file's name,
// generation and digest. Worker threads; observes the pace and checks AttemptWork::stop
// between chunks.
#ifndef SUBLET_CLIENT_STAGING_HAND_IN_H_
#define SUBLET_CLIENT_STAGING_HAND_IN_H_

#include "base/files.h"
#include "client/attempts/work.h"
#include "client/mover/mover.h"
#include "client/staging/pace.h"
#include "client/staging/staging.h"

namespace sublet::client {

// The attempt's exit record, read once. None, with *error: it cannot be read.
const std::optional<AttemptExit>& exit_of(AttemptWork& work, const Files& files,
                                          std::string* error);
// Whether the hand-in will not call the server: it ended by itself and left nothing.
bool has_nothing_to_send(AttemptWork& work, const Files& files);
// Sets work.end, except for what the hand-in adds, from the records in the attempt's folder; a
// damaged exit record means a lost attempt.
void find_end(AttemptWork& work, Files& files);

// After the attempt's end: fills work.end. The folder must already be closed to the
// job's account. kAgain with the cause in *why.
TaskResult hand_in(AttemptWork& work, ServerCalls& server, Mover& mover, Files& files,
                   const JobSettings& settings, Pace& pace, std::string* why);

// While it runs: uploads the newest checkpoint and sets work.handed_in_generation. One
// larger than settings.checkpoint_largest is not even read: a sparse file of any size
// costs the job nothing.
TaskResult hand_in_checkpoint(AttemptWork& work, ServerCalls& server, Mover& mover,
                              const JobSettings& settings, Pace& pace, std::string* why);

// The generation in a checkpoint file's header; `reported` if the file is not in the
// format of the checkpoint API.
uint64_t checkpoint_generation(int fd, uint64_t size, uint64_t reported);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_STAGING_HAND_IN_H_
