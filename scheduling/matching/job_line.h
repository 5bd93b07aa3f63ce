// One user's waiting jobs of one group, sorted, such that the first job that a
// machine has room for is found without a linear search: a search tree ordered by
// comes_before. It is a treap whose ranks derive from the ids, so that equal
// histories give equal trees; each node holds the minimum needs of its subtree.
//
// Intrusive: the nodes are in the jobs, which the line does not own. Private to the
// brain.
#ifndef SUBLET_SCHEDULING_MATCHING_JOB_LINE_H_
#define SUBLET_SCHEDULING_MATCHING_JOB_LINE_H_

#include <cstdint>
#include <functional>

namespace sublet::scheduling {

struct Job;

struct LinePlace {
  double order = 0;  // JobPolicy::order
  Job* left = nullptr;
  Job* right = nullptr;
  uint64_t least_memory = 0;  // of this job and all below it
  uint64_t least_disk = 0;
};

// The order of one user's jobs: the priority set by the user (higher first), then the
// policy's order (smaller first), then the id.
bool comes_before(const Job& a, const Job& b);

class JobLine {
 public:
  bool empty() const { return root_ == nullptr; }
  // Null: the line is empty.
  Job* first() const { return first_; }
  // The first that needs no more than this; null: none. O(log jobs), except in lines
  // where many jobs need too much memory only and many others too much disk only.
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

#endif  // SUBLET_SCHEDULING_MATCHING_JOB_LINE_H_
