#include "protocol/lease.h"

namespace sublet::protocol {
namespace {

// Saturates: instants and durations may come from files.
int64_t later(int64_t instant_ns, int64_t by_ms) {
  int64_t by_ns, sum;
  if (__builtin_mul_overflow(by_ms, kNsPerMs, &by_ns) ||
      __builtin_add_overflow(instant_ns, by_ns, &sum))
    return by_ms > 0 ? INT64_MAX : INT64_MIN;
  return sum;
}

// Upper bound of the order's age by the server's clock; not negative.
int64_t order_age_ns(const ServerClock& clock, int64_t decided_us, int64_t now_ns) {
  const int64_t since_asked = now_ns > clock.asked_ns ? now_ns - clock.asked_ns : 0;
  const int64_t age =
      (clock.server_time_us - decided_us) * 1000 + since_asked + since_asked / 100 + 1;
  return age > 0 ? age : 0;
}

}  // namespace

int64_t renew_every_ms(int64_t lease_ms) { return lease_ms / 3; }

int64_t lease_end_ns(int64_t sent_ns, int64_t lease_ms) { return later(sent_ns, lease_ms); }

int64_t first_lease_end_ns(const ServerClock& clock, int64_t decided_us, int64_t lease_ms,
                           int64_t now_ns) {
  if (clock.asked_ns == 0) return 0;
  return lease_end_ns(now_ns - order_age_ns(clock, decided_us, now_ns), lease_ms);
}

int64_t lease_save_at(int64_t save_deadline_ms, int64_t end_ns) {
  return later(end_ns, -(save_deadline_ms + kLeaseSaveSlackMs));
}

int64_t lease_give_up_at(int64_t patience_ms, int64_t end_ns) { return later(end_ns, patience_ms); }

int64_t reassign_delay_us(int64_t lease_us) {
  return lease_us + (lease_us + 99) / 100 + kReassignMarginUs;
}

}  // namespace sublet::protocol
