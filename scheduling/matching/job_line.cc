#include "scheduling/matching/job_line.h"

#include "scheduling/books/job_book.h"

namespace sublet::scheduling {

bool comes_before(const Job& a, const Job& b) {
  if (a.record.priority != b.record.priority) return a.record.priority > b.record.priority;
  if (a.place.order != b.place.order) return a.place.order < b.place.order;
  return a.record.id < b.record.id;
}

namespace {
Micros waits_since(const JobRecord& job) { return std::max(job.changed, job.earliest); }
}  // namespace

LinePlace& LineTraits::links(Job& job) { return job.place; }
const LinePlace& LineTraits::links(const Job& job) { return job.place; }
uint64_t LineTraits::id(const Job& job) { return job.record.id; }
LineBound LineTraits::bound(const Job& job) {
  return {amounts_of(job.record.needs), waits_since(job.record), job.place.order};
}

bool Sought::is(const Job& job) const {
  const Amounts needs = amounts_of(job.record.needs);
  const bool unpromised = job.promised == nullptr;
  if (room && needs.within(*room) && (unpromised || among == Among::kAll)) return true;
  return most && unpromised && waits_since(job.record) <= since && needs.within(*most);
}

void Sought::include(const Sought& other) {
  if (!other.is_any()) return;  // nor has it an `among` and a `since`
  if (other.room) room = other.room;
  if (other.most) most = other.most;
  among = other.among;
  since = other.since;
}

Job* JobLine::first_of(const Sought& sought) const {
  const auto is = [&](const Job& job) { return sought.is(job); };
  if (first_ != nullptr && is(*first_)) return first_;
  return jobs_.first(
      [&](const LineBound& bound) { return sought.may_be(bound.least, bound.since); }, is);
}

void JobLine::add(Job& job) {
  jobs_.add(job);
  if (first_ == nullptr || comes_before(job, *first_)) first_ = &job;
}

void JobLine::take(Job& job) {
  jobs_.take(job);
  if (first_ == &job) first_ = jobs_.front();
}

}  // namespace sublet::scheduling
