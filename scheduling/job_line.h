// One user's waiting jobs of one group in their order, such that the first one
// which a machine has room for is found without walking the line: a search tree
// by comes_before (a treap, its ranks drawn from the ids, so that equal histories
// give equal trees), each node knowing the least that any job below it needs.
//
// The nodes are in the jobs: a line owns nothing. Private to the brain.
#ifndef SUBLET_SCHEDULING_JOB_LINE_H_
#define SUBLET_SCHEDULING_JOB_LINE_H_

#include <cstdint>
#include <functional>

namespace sublet::scheduling {

struct Job;

struct LinePlace {
  double order = 0;  // Drift::order
  Job* left = nullptr;
  Job* right = nullptr;
  uint64_t least_memory = 0;  // of this job and all below it
  uint64_t least_disk = 0;
};

// Among one user's jobs: the user's own priority (higher first), then the share
// priority (smaller first), then the id.
bool comes_before(const Job& a, const Job& b);

class JobLine {
 public:
  bool empty() const { return root_ == nullptr; }
  // Null: the line is empty.
  Job* first() const { return first_; }
  // The first that needs no more than this; null: none. O(log jobs), but for
  // lines where many jobs lack memory only and many others disk only.
  Job* first_within(uint64_t memory, uint64_t disk) const;
  // `job.place.order` is set; the job is in no line.
  void add(Job& job);
  // The job is in this line.
  void take(Job& job);
  // In order, until `visit` returns false.
  void walk(const std::function<bool(const Job&)>& visit) const;

 private:
  Job* root_ = nullptr;
  Job* first_ = nullptr;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_JOB_LINE_H_
