// One user's waiting jobs of one group, sorted, such that the first job that a machine has room
// for is found without a linear search (matching/search_tree.h).
//
// Intrusive: the jobs are not owned. Private to the brain.
#ifndef SUBLET_SCHEDULING_MATCHING_JOB_LINE_H_
#define SUBLET_SCHEDULING_MATCHING_JOB_LINE_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "scheduling/amounts.h"
#include "scheduling/matching/search_tree.h"
#include "scheduling/types.h"

namespace sublet::scheduling {

struct Job;

struct LineBound {
  Amounts least;     // no job needs less
  Micros since = 0;  // none has waited since an earlier instant
  double order = 0;  // none has a smaller one
};

struct LinePlace : TreeLinks<Job, LineBound> {
  double order = 0;  // JobPolicy::order
};

// The order of one user's jobs: the priority set by the user (higher first), then the
// policy's order (smaller first), then the id.
bool comes_before(const Job& a, const Job& b);

struct LineTraits {
  using Node = Job;
  using Bound = LineBound;
  static LinePlace& links(Job& job);
  static const LinePlace& links(const Job& job);
  static bool before(const Job& a, const Job& b) { return comes_before(a, b); }
  static uint64_t id(const Job& job);
  static LineBound bound(const Job& job);
  static LineBound join(const LineBound& a, const LineBound& b) {
    return {least(a.least, b.least), std::min(a.since, b.since), std::min(a.order, b.order)};
  }
};

enum class Among { kAll, kUnpromised };

// Which jobs a search looks for: those that need no more than `room`; and those that need no more
// than `most`, have waited since `since` or for longer, and are not promised a place.
struct Sought {
  std::optional<Amounts> room;
  Among among = Among::kAll;  // of the first
  std::optional<Amounts> most;
  Micros since = 0;

  bool is_any() const { return room || most; }
  // Whether there may be one among jobs of which none needs less, or has waited for longer.
  bool may_be(const Amounts& least, Micros waiting_since) const {
    return (room && least.within(*room)) || (most && waiting_since <= since && least.within(*most));
  }
  bool is(const Job& job) const;
  // Also what `other` looks for, which is of the same search.
  void include(const Sought& other);
};

class JobLine {
 public:
  bool empty() const { return jobs_.empty(); }
  // Null: the line is empty.
  Job* first() const { return first_; }
  // Only when not empty.
  const LineBound& bound() const { return jobs_.bound(); }
  // The first of these; null: none. O(log jobs), except where the least of each amount is within
  // the room, and many jobs need too much of one thing only and many others of another only; in a
  // group all are of about the same size. So it is where many that have waited for long need too
  // much for `most`, and many that do not have not. Among those without a promised place:
  // O(promised jobs) besides.
  Job* first_of(const Sought& sought) const;
  // `job.place.order` is set; the job is in no line.
  void add(Job& job);
  // The job is in this line.
  void take(Job& job);
  // In order, until `visit` returns false.
  template <typename Visit>
  void walk(Visit visit) const {
    jobs_.walk([](const LineBound&) { return true; }, visit);
  }

 private:
  SearchTree<LineTraits> jobs_;
  Job* first_ = nullptr;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_JOB_LINE_H_
