#include "protocol/lease.h"

namespace sublet::protocol {
namespace {

// An instant near the end of time stays there: orders come from files.
int64_t later(int64_t instant_ns, int64_t by_ms) {
  int64_t by_ns, sum;
  if (__builtin_mul_overflow(by_ms, kNsPerMs, &by_ns) ||
      __builtin_add_overflow(instant_ns, by_ns, &sum))
    return by_ms > 0 ? INT64_MAX : INT64_MIN;
  return sum;
}

}  // namespace

int64_t renew_at(const LeaseTerms& terms, int64_t sent_ns) {
  return later(sent_ns, terms.lease_ms / 3);
}

int64_t lease_end(const LeaseTerms& terms, int64_t sent_ns) {
  return later(sent_ns, terms.lease_ms);
}

int64_t lease_save_at(int64_t save_deadline_ms, int64_t end_ns) {
  return later(end_ns, -(save_deadline_ms + kLeaseSaveSlackMs));
}

int64_t lease_give_up_at(int64_t patience_ms, int64_t end_ns) { return later(end_ns, patience_ms); }

int64_t reassign_delay_ns(const LeaseTerms& terms) {
  return later(0, terms.lease_ms + (terms.lease_ms + 99) / 100 + kReassignMarginMs);
}

int64_t order_age_at_most_ns(int64_t server_time_us, int64_t asked_ns, int64_t decided_us,
                             int64_t now_ns) {
  const int64_t since_asked = now_ns > asked_ns ? now_ns - asked_ns : 0;
  return (server_time_us - decided_us) * 1000 + since_asked + since_asked / 100 + 1;
}

uint64_t LeaseKeeper::sent(int64_t now_ns) {
  ++last_;
  sent_ns_[last_ % kRemembered] = now_ns;
  next_ns_ = renew_at(terms_, now_ns);
  return last_;
}

bool LeaseKeeper::acknowledged(uint64_t number) {
  if (number == 0 || number > last_ || last_ - number >= kRemembered) return false;
  int64_t end = lease_end(terms_, sent_ns_[number % kRemembered]);
  if (end <= end_ns_) return false;
  end_ns_ = end;
  return true;
}

}  // namespace sublet::protocol
