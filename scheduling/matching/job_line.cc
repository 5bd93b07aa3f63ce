#include "scheduling/matching/job_line.h"

#include "scheduling/books/job_book.h"

namespace sublet::scheduling {

bool comes_before(const Job& a, const Job& b) {
  if (a.record.priority != b.record.priority) return a.record.priority > b.record.priority;
  if (a.place.order != b.place.order) return a.place.order < b.place.order;
  return a.record.id < b.record.id;
}

LinePlace& LineTraits::links(Job& job) { return job.place; }
const LinePlace& LineTraits::links(const Job& job) { return job.place; }
uint64_t LineTraits::id(const Job& job) { return job.record.id; }
LineBound LineTraits::bound(const Job& job) {
  return {amounts_of(job.record.needs), job.place.order};
}

Job* JobLine::first_within(const Amounts& room, Among among) const {
  const auto fits = [&](const Job& job) {
    return (among == Among::kAll || job.promised == nullptr) &&
           amounts_of(job.record.needs).within(room);
  };
  if (first_ != nullptr && fits(*first_)) return first_;
  return jobs_.first([&](const LineBound& bound) { return bound.least.within(room); }, fits);
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
