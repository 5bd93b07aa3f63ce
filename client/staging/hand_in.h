// Moving out: hands checkpoint, outputs and streams of an attempt to the
// server's spool and puts its end together. Everything may be done again, after
// a restart of either side too: an upload's request id comes from the attempt's
// nonce and the file's name, generation and digest. Worker threads; keeps to the
// pace and reads AttemptWork::stop between chunks.
#ifndef SUBLET_CLIENT_STAGING_HAND_IN_H_
#define SUBLET_CLIENT_STAGING_HAND_IN_H_

#include "base/files.h"
#include "client/attempts/work.h"
#include "client/staging/pace.h"
#include "client/staging/staging.h"

namespace sublet::client {

// After the end: fills work.end. Nobody of the job's account can reach the
// folder any more from the first step on. kAgain with the cause in *why.
TaskResult hand_in(AttemptWork& work, ServerCalls& server, Files& files,
                   const JobSettings& settings, Pace& pace, std::string* why);

// While it runs: uploads the newest checkpoint, whose generation then is in
// work.handed_in_generation. One larger than settings.checkpoint_largest is left
// out and not even read: a job can make a file of any size that costs it nothing.
TaskResult hand_in_checkpoint(AttemptWork& work, ServerCalls& server, const JobSettings& settings,
                              Pace& pace, std::string* why);

// The generation that a checkpoint file says it is; `told` where the file is not
// in the format of the checkpoint API.
uint64_t checkpoint_generation(int fd, uint64_t size, uint64_t reported);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_STAGING_HAND_IN_H_
