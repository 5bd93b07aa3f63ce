// Lease arithmetic: until when a machine may run what it was given, and from
// when the server may give it to another. Pure functions of instants that the
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
// In the server's books a job has at most one live attempt, and gets another only
// after that one has ended there. A job that is removed, held, or released again
// keeps its attempt until then. An attempt ends in the books in one of five ways;
// in each of them none of its processes runs any more, nor will one be started.
//
// (W1) Its time is over: the machine is silent, has withdrawn, or did not answer
//   the order; or it leaves and its checkpoint was waited for long enough, from
//   when on the server acknowledges no renewal.
//   The client counts D from the SENDING s of the newest renewal that the server
//   has acknowledged (lease_end_ns). It freezes the job at the true time
//       F = t(s) + D / r_client                        (or it has ended before),
//   and thaws it only when another renewal was acknowledged. The server counts
//   from the RECEIPT c of the last renewal that it has acknowledged. That is s or a
//   later one, so t(c) >= t(s) by (A2). It gives the job away (reassign_delay_us)
//   at the earliest at
//       R = t(c) + (1.01·D + 2 s) / r_server
//         >= t(s) + 1.01·D / (1.01·r_client) + 2 s / r_server
//          = F + 2 s / r_server,
//   which covers (A3). (Two clocks each within 0.5 % of the truth differ by up to
//   1.00503 %; the missing 0.00503 % of D are 1.5 ms of 30 s, taken from the 2 s.)
//   The first lease is counted from the server's decision d, which takes the
//   place of s and of c. The order carries d by the server's clock, and each answer
//   carries the server's time S. With the newest S, asked for at the client's
//   instant a, an order is at the client's instant n at most
//       S - d + 1.01·(n - a)
//   old by the server's clock, because S was read after a. The client gives it what
//   is missing to D (first_lease_end_ns), at most D, and refuses it when that is
//   nothing, or when it knows no S.
//   A server that restarts counts from its restart: all that it acknowledged
//   before, it had received before, so t(restart) >= t(c). Its time stands still
//   while it is down, so S - d may lack that time, and a first lease may end that
//   much too late; but then d was before it went down, and the lease ends before
//   t(restart) + D / r_client all the same.
// (W2) The client reports the end: it does so when no process is left.
// (W3) The order was refused: the client starts nothing that it has refused. Or it
//   was not delivered: it never left the server, or the transport says so. Any
//   other failure of the call, an exception of the client included, leaves it to
//   the lease (W1).
// (W4) The client has registered anew, and the first renewal of that registration
//   does not name the attempt. Then it does not have it and cannot get it:
//   - only attempts of earlier registrations end this way, and only by the first
//     renewal of the newest one;
//   - before a client sends that renewal it has taken the new registration for its
//     own, and from then on it refuses every order of another (in one step with
//     taking note of the order), so no earlier order can come to it later;
//   - the server delivers an order only under the registration that it was decided
//     in: what waits to be sent when a machine registers anew is never sent;
//   - the client names every attempt from the moment it takes note of the order
//     until the server has its end: while the order is being written to disk, too;
//   - a restarted client finds the others in its folder (A4). One that comes without
//     the machine's folder is registered only when no attempt of that machine lives.
// (W5) A damaged store has lost it: the job waits from the restart as in (W1).
//
// Reports, renewals and checkpoints count only from the machine that holds the live
// attempt, so nothing that an earlier one says ends, renews or feeds a later one.
#ifndef SUBLET_PROTOCOL_LEASE_H_
#define SUBLET_PROTOCOL_LEASE_H_

#include <cstdint>

namespace sublet::protocol {

inline constexpr int64_t kNsPerMs = 1'000'000;
// Time to spare between the save's own deadline and the end of the lease.
inline constexpr int64_t kLeaseSaveSlackMs = 1'000;
// The server's margin beyond 1.01·D.
inline constexpr int64_t kReassignMarginUs = 2'000'000;

// ---- client ----

// How often to renew: with D/3 two renewals may be lost before a job notices.
int64_t renew_every_ms(int64_t lease_ms);

// The end of the lease that the acknowledgement of a renewal sent at `sent_ns`
// gives.
int64_t lease_end_ns(int64_t sent_ns, int64_t lease_ms);

// The newest of the server's times that the client knows.
struct ServerClock {
  int64_t server_time_us = 0;
  int64_t asked_ns = 0;  // when the call was made that brought it; 0: none is known
};
// The end of the first lease of an order that the server decided at `decided_us`;
// not after `now_ns`: it is too old to be accepted.
int64_t first_lease_end_ns(const ServerClock& clock, int64_t decided_us, int64_t lease_ms,
                           int64_t now_ns);

// Client and shepherd: when a job whose lease ends at `end_ns` is asked to save
// (and goes on until then), and when a frozen one is given up.
int64_t lease_save_at(int64_t save_deadline_ms, int64_t end_ns);
int64_t lease_give_up_at(int64_t patience_ms, int64_t end_ns);

// ---- server ----

// How long after the last receipt, the decision or its own restart, whichever is
// the latest, an attempt's job may go to another machine: 1.01·D + 2 s, rounded up.
int64_t reassign_delay_us(int64_t lease_us);

}  // namespace sublet::protocol

#endif  // SUBLET_PROTOCOL_LEASE_H_
