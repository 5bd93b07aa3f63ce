// Lease arithmetic: until when a machine may run what it was given, and from
// when the server may give it to another. Pure functions of instants that the
// caller reads from its own clock; instants and results are nanoseconds of
// that clock (client: CLOCK_BOOTTIME; server: its own steady clock).
//
// Never two machines. Let D be the lease, t(x) the true time of event x, and
// let a clock of rate r show r·(true time) as elapsed.
//   Assumptions: (1) of two clocks neither gains more than 1 % on the other:
//   r_server / r_client <= 1.01; (2) no message arrives before it was sent;
//   (3) a shepherd that is due to freeze its job has done so within the 2 s of
//   margin (a stopped shepherd's job is frozen by client or monitor).
//   The client counts D from the SENDING s of the last renewal whose
//   acknowledgement it has, so it freezes at the true time
//       F = t(s) + D / r_client                      (earlier if it saves and ends)
//   The server counts from the RECEIPT c of the last renewal it acknowledged. It
//   has acknowledged s, so c is s or a later one: t(c) >= t(s) by (2). It gives
//   the job away at the earliest at the true time
//       R = t(c) + (1.01·D + 2 s) / r_server
//         >= t(s) + 1.01·D / (1.01·r_client) + 2 s / r_server
//         =  F + 2 s / r_server,
//   that is 2 s (of the server's clock) after F, which covers (3).
//   A server that restarts has acknowledged nothing after its restart that it
//   does not remember, and everything before it was received before it: with
//   the restart in the place of c the same holds. A job is frozen while its
//   lease has run out, and thawed only by an acknowledgement; the server
//   acknowledges no renewal for an attempt that it has given away.
//   (Two clocks each within 0.5 % of the truth differ by up to 1.00503 %; the
//   missing 0.00503 % of D are 1.5 ms of 30 s, taken from the 2 s.)
// An attempt's first lease is counted from the server's decision d, which takes
// the place of s and c alike: the order carries d by the server's clock, and each
// acknowledgement the server's time S. With the newest one, asked for at the
// client's instant a, an order is at the client's instant n at most
//       S - d + 1.01·(n - a)
// old (by the server's clock; S was read after a). A client refuses an order that
// may be as old as D, and else gives it a lease of what is missing to D. So a
// `run` that was long under way, or found a suspended machine, starts nothing
// that may have been given away.
#ifndef SUBLET_PROTOCOL_LEASE_H_
#define SUBLET_PROTOCOL_LEASE_H_

#include <cstdint>

namespace sublet::protocol {

struct LeaseTerms {
  int64_t lease_ms = 30'000;         // D
  int64_t save_deadline_ms = 2'000;  // what a job gets to save in
  int64_t patience_ms = 3'600'000;   // how long a frozen job is kept
};

inline constexpr int64_t kNsPerMs = 1'000'000;
// Time to spare between the save's own deadline and the end of the lease.
inline constexpr int64_t kLeaseSaveSlackMs = 1'000;
// The server's margin beyond 1.01·D.
inline constexpr int64_t kReassignMarginMs = 2'000;

// Client: when to send the next renewal after one sent at `sent_ns`. With D/3
// two renewals may be lost before a job notices.
int64_t renew_at(const LeaseTerms& terms, int64_t sent_ns);
// Client: the end of the lease that the acknowledgement of a renewal sent at
// `sent_ns` gives.
int64_t lease_end(const LeaseTerms& terms, int64_t sent_ns);
// Client and shepherd: when a job whose lease ends at `end_ns` is asked to save
// (and goes on until then), and when a frozen one is given up.
int64_t lease_save_at(int64_t save_deadline_ms, int64_t end_ns);
int64_t lease_give_up_at(int64_t patience_ms, int64_t end_ns);

// Client: how old an order may be at most (see above). Server's times in
// microseconds, the client's and the result in nanoseconds.
int64_t order_age_at_most_ns(int64_t server_time_us, int64_t asked_ns, int64_t decided_us,
                             int64_t now_ns);

// Server: how long after the last receipt (or its own restart) an attempt's
// job may go to another machine, 1.01·D + 2 s, rounded up.
int64_t reassign_delay_ns(const LeaseTerms& terms);

// The client's book of renewals: which are under way, and what the
// acknowledged ones are worth. One caller at a time.
class LeaseKeeper {
 public:
  explicit LeaseKeeper(const LeaseTerms& terms) : terms_(terms) {}

  // A renewal leaves now; its number goes with it.
  uint64_t sent(int64_t now_ns);
  // The server acknowledged that one. True when the lease became longer. A
  // number too old to be remembered, or never sent, changes nothing.
  bool acknowledged(uint64_t number);
  // 0 before the first acknowledgement.
  int64_t end_ns() const { return end_ns_; }
  bool holds(int64_t now_ns) const { return now_ns < end_ns_; }
  // When the next renewal is due; 0 (at once) before the first.
  int64_t next_renewal_ns() const { return next_ns_; }

 private:
  static constexpr uint64_t kRemembered = 8;
  LeaseTerms terms_;
  uint64_t last_ = 0;
  int64_t sent_ns_[kRemembered] = {};
  int64_t end_ns_ = 0;
  int64_t next_ns_ = 0;
};

}  // namespace sublet::protocol

#endif  // SUBLET_PROTOCOL_LEASE_H_
