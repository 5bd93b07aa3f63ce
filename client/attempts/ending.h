// How an attempt ended, in the terms of the IDL: from the shepherd's exit record, or
// from the client's own end record if there is none. Pure, except for the clocks
// that the caller passes.
#ifndef SUBLET_CLIENT_ATTEMPTS_ENDING_H_
#define SUBLET_CLIENT_ATTEMPTS_ENDING_H_

#include <string>

#include "attempt/folder.h"
#include "base/clock.h"
#include "client/attempts/assignment.h"
#include "client/attempts/work.h"
#include "client/link/server_calls.h"
#include "protocol/attempt.h"
#include "protocol/eviction.h"

namespace sublet::client {

// The program could not be started, because of the machine and not of the job.
bool machine_failed(const AttemptExit& exit);
protocol::ExitFacts exit_facts(const AttemptExit& exit);
protocol::EvictionSteps steps_of(const sublet_exit& facts);
// Sets everything but generation, checkpoint_bytes and outputs, which the upload
// sets. END_DONE still depends on the required outputs.
AttemptEnd end_from_exit(const Assignment& what, const AttemptExit& exit, const Shortage& shortage,
                         const Clock& clock, const std::string& boot);
// Of an attempt that had to leave.
protocol::EvictionNote note_of(const AttemptEnd& end);
AttemptEnd end_from_record(const Assignment& what, const EndRecord& record);
// Adds what this daemon saw of an eviction whose shepherd could not tell its steps.
void note_seen(const SeenEviction& seen, const Clock& clock, AttemptEnd* end);
// One sentence: why an attempt had to leave. SUBLET_LEAVE_DRAIN with a shortage means that the
// disk or the memory ran low.
std::string leave_sentence(sublet_leave_reason reason, const Shortage& shortage = {});
// CPU time (us) saved in this attempt's newest checkpoint; -1: it made none.
// `reported_cpu_us` is the shepherd's report for generation `reported`.
int64_t cpu_at_checkpoint(const AttemptExit& exit, uint64_t reported, int64_t reported_cpu_us);
// Of the CPU time used from `started` to `now`, how much the files keep in which a program saves
// its state and of which the newest was changed then: not known, so as if it had been used evenly.
int64_t cpu_of_files(int64_t cpu_us, int64_t changed_us, int64_t started_us, int64_t now_us);
// Of the CPU time that a running program has used in this attempt, how much no checkpoint on the
// server holds; now: UTC. -1: not known.
int64_t cpu_at_risk_ms(const AttemptWork& work, int64_t cpu_ms, int64_t now_us);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_ENDING_H_
