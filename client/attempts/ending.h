// How an attempt ended, in the contract's terms: from the shepherd's exit record,
// or from the client's own note where there is none. Pure, except for the
// clocks that the caller passes.
#ifndef SUBLET_CLIENT_ATTEMPTS_ENDING_H_
#define SUBLET_CLIENT_ATTEMPTS_ENDING_H_

#include <string>

#include "attempt/folder.h"
#include "base/clock.h"
#include "client/attempts/assignment.h"
#include "client/attempts/work.h"
#include "client/link/server_calls.h"
#include "protocol/attempt.h"

namespace sublet::client {

// The program could not be started, and it was not the job's fault.
bool machine_failed(const AttemptExit& exit);
protocol::ExitFacts exit_facts(const AttemptExit& exit);
// Everything but generation, checkpoint_bytes and outputs, which the
// upload sets. END_DONE still depends on the required outputs.
AttemptEnd end_from_exit(const Assignment& what, const AttemptExit& exit, const LowDisk& disk,
                         const Clock& clock, const std::string& boot);
AttemptEnd end_from_record(const Assignment& what, const EndRecord& record);
// One sentence: why an attempt that left had to. A machine that withdraws from one
// attempt because its disk ran low says so.
std::string leave_sentence(sublet_leave_reason reason, const LowDisk& disk = {});
// CPU time that the newest checkpoint holds; -1: there is none. `told_cpu_us`
// is what the shepherd said when it told of generation `told`.
int64_t cpu_at_checkpoint(const AttemptExit& exit, uint64_t reported, int64_t reported_cpu_us);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_ENDING_H_
