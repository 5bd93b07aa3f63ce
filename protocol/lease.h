// Lease arithmetic: until when a machine may run an attempt, and from when the
// server may give its job to another machine. Pure functions of instants that the
// caller reads from its own clock: the client's are nanoseconds of
// CLOCK_BOOTTIME, the server's microseconds of the brain's time.
//
// Never two machines: a proof
// ---------------------------
// Let D be the lease, t(x) the true time of event x, and let a clock of rate r
// show r·(true time) as elapsed. Assumptions:
//   (A1) of two clocks neither gains more than 1 %: r_server / r_client <= 1.01;
//   (A2) no message arrives before it was sent;
//   (A3) a job that is due to be frozen is frozen within 2 s (a stopped shepherd's
//        job is frozen by the client or the monitor);
//   (A4) one client process at a time uses a state folder, and what it wrote there
//        outlives it; a loss of power ends the jobs together with the client.
// In the server's state a job has at most one live attempt, and gets another only
// after that one has ended there. A job that is removed, held, or released again
// keeps its attempt until then. An attempt ends in the server's state in one of five
// ways; in each of them none of its processes is still running, and none will be
// started.
//
// (W1) Its lease has run out: the machine is silent, has withdrawn, or did not answer
//   the order; or it is leaving and its checkpoint was waited for long enough, or
//   delivering without progress for as long, after which the server acknowledges no renewal.
//   The client counts D from the SENDING s of the newest renewal that the server
//   has acknowledged (lease_end_ns). It freezes the job at the true time
//       F = t(s) + D / r_client                        (or it has ended before),
//   and thaws it only after another renewal was acknowledged. The server counts
//   from the RECEIPT c of the last renewal that it has acknowledged. That is s or a
//   later one, so t(c) >= t(s) by (A2). It gives the job to another machine
//   (reassign_delay_us) at the earliest at
//       R = t(c) + (1.01·D + 2 s) / r_server
//         >= t(s) + 1.01·D / (1.01·r_client) + 2 s / r_server
//          = F + 2 s / r_server,
//   which covers (A3). (Two clocks each within 0.5 % of the truth differ by up to
//   1.00503 %; the missing 0.00503 % of D are 1.5 ms of 30 s, taken from the 2 s.)
//   The first lease is counted from the server's decision d, which takes the
//   place of s and of c. The order carries d by the server's clock, and each answer
//   carries the server's time S. With the newest S, requested at the client's
//   instant a, the age of an order at the client's instant n is at most
//       S - d + 1.01·(n - a)
//   by the server's clock, because S was read after a. The client grants it D minus
//   this age (first_lease_end_ns), at most D, and refuses it if nothing is left or
//   if it knows no S.
//   A restarted server counts from its restart: every renewal that it acknowledged
//   before, it had received before, so t(restart) >= t(c). Its clock does not advance
//   while it is down, so S - d may lack that time, and a first lease may end too late
//   by as much; but then d was before it went down, and the lease still ends before
//   t(restart) + D / r_client.
// (W2) The client reports the end: it does so when no process is left.
// (W3) The order was refused: the client never starts an attempt that it has refused.
//   Or it was not delivered: it never left the server, or the transport reports that
//   it was not delivered. After any other failure of the call, including an exception
//   from the client, the lease decides (W1).
// (W4) The client has registered again, and the first renewal of that registration
//   does not name the attempt. Then the client does not have it and cannot get it:
//   - only attempts of earlier registrations end this way, and only by the first
//     renewal of the newest registration;
//   - before a client sends that renewal it has adopted the new registration, and from
//     then on it refuses every order of another (the check and noting the order are one
//     atomic step), so it cannot accept an earlier order later;
//   - the server delivers an order only under the registration in which it was decided:
//     orders still queued when a machine registers again are never sent;
//   - the client names every attempt from the moment it notes the order until the
//     server has its end, including while the order is being written to disk;
//   - a restarted client finds the others in its folder (A4), but for orders that were
//     still waiting for a slot: it knows nothing of them, and so never starts them. A
//     client without the machine's folder is registered only when no attempt of that
//     machine is live.
// (W5) A damaged store has lost its record: the job waits from the restart as in (W1).
//
// Reports, renewals and checkpoints count only from the machine that holds the live
// attempt, so no message about an earlier one ends, renews or advances a later one.
#ifndef SUBLET_PROTOCOL_LEASE_H_
#define SUBLET_PROTOCOL_LEASE_H_

#include <cstdint>

namespace sublet::protocol {

inline constexpr int64_t kNsPerMs = 1'000'000;
// Slack between the deadline of the save and the end of the lease.
inline constexpr int64_t kLeaseSaveSlackMs = 1'000;
// The server's margin beyond 1.01·D.
inline constexpr int64_t kReassignMarginUs = 2'000'000;

// ---- client ----

// How often to renew: with D/3 two renewals may be lost before a job notices.
int64_t renew_every_ms(int64_t lease_ms);

// The end of the lease after a renewal sent at `sent_ns` was acknowledged.
int64_t lease_end_ns(int64_t sent_ns, int64_t lease_ms);

// The newest server time that the client knows.
struct ServerClock {
  int64_t server_time_us = 0;
  int64_t asked_ns = 0;  // when the call that returned it was made; 0: none is known
};
// The end of the first lease of an order that the server decided at `decided_us`;
// if it is not after `now_ns`, the order is too old to be accepted.
int64_t first_lease_end_ns(const ServerClock& clock, int64_t decided_us, int64_t lease_ms,
                           int64_t now_ns);

// Client and shepherd: when a job whose lease ends at `end_ns` is asked to save
// (it continues to run), and when a frozen one is given up.
int64_t lease_save_at(int64_t save_deadline_ms, int64_t end_ns);
int64_t lease_give_up_at(int64_t patience_ms, int64_t end_ns);

// ---- server ----

// How long after the last receipt, the decision or its own restart, whichever is
// latest, the server may place an attempt's job on another machine: 1.01·D + 2 s,
// rounded up.
int64_t reassign_delay_us(int64_t lease_us);

}  // namespace sublet::protocol

#endif  // SUBLET_PROTOCOL_LEASE_H_
