#include "scheduling/books/changes.h"

#include <algorithm>

namespace sublet::scheduling {

void Changes::begin(Micros now) {
  counters_.now = std::max({now, counters_.now, Micros{1}});
  outcome_ = Outcome();
  outcome_.records.reserve(16);  // as many as an attempt that ends and the next one cause
}

Outcome Changes::finish() {
  PoolRecord as_stored = stored_;
  as_stored.now = counters_.now;  // time passing alone is not worth a row
  if (counters_ != as_stored) {
    outcome_.records.emplace_back(counters_);
    stored_ = counters_;
  }
  return std::move(outcome_);
}

void Changes::add_change(const JobRecord& record, EndReason ended) {
  outcome_.records.emplace_back(ChangeRecord{counters_.next_change++, now(), record.id,
                                             record.count, record.batch, record.user, record.state,
                                             record.attempts, ended});
}

Micros Changes::tick() {
  const Micros last = std::exchange(counters_.last_tick, now());
  return last == 0 ? 0 : now() - last;
}

void Changes::restore(const PoolRecord& stored, const PoolRecord& raised) {
  stored_ = stored;
  counters_ = raised;
  counters_.now = std::max<Micros>(counters_.now, 1);
}

}  // namespace sublet::scheduling
