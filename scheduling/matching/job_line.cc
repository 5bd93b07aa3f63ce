#include "scheduling/matching/job_line.h"

#include <algorithm>

#include "scheduling/books/job_book.h"

namespace sublet::scheduling {
namespace {

// Hashed, so that the tree is balanced in any order of arrival.
uint64_t rank_of(const Job& job) {
  uint64_t x = job.record.id + 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

void refresh(Job& job) {
  LinePlace& p = job.place;
  p.least_memory = job.record.needs.memory;
  p.least_disk = job.record.needs.disk;
  for (const Job* below : {p.left, p.right}) {
    if (below == nullptr) continue;
    p.least_memory = std::min(p.least_memory, below->place.least_memory);
    p.least_disk = std::min(p.least_disk, below->place.least_disk);
  }
}

// Splits the tree into the jobs before `at` and those after it.
void split(Job* top, const Job& at, Job*& before, Job*& after) {
  if (top == nullptr) {
    before = after = nullptr;
    return;
  }
  if (comes_before(*top, at)) {
    before = top;
    split(top->place.right, at, before->place.right, after);
  } else {
    after = top;
    split(top->place.left, at, before, after->place.left);
  }
  refresh(*top);
}

// All of `a` comes before all of `b`.
Job* merge(Job* a, Job* b) {
  if (a == nullptr) return b;
  if (b == nullptr) return a;
  if (rank_of(*a) > rank_of(*b)) {
    a->place.right = merge(a->place.right, b);
    refresh(*a);
    return a;
  }
  b->place.left = merge(a, b->place.left);
  refresh(*b);
  return b;
}

void insert(Job*& top, Job& job) {
  if (top == nullptr || rank_of(job) > rank_of(*top)) {
    split(top, job, job.place.left, job.place.right);
    top = &job;
  } else {
    insert(comes_before(job, *top) ? top->place.left : top->place.right, job);
  }
  refresh(*top);
}

void erase(Job*& top, Job& job) {
  if (top == &job) {
    top = merge(job.place.left, job.place.right);
    return;
  }
  erase(comes_before(job, *top) ? top->place.left : top->place.right, job);
  refresh(*top);
}

Job* find_within(Job* top, uint64_t memory, uint64_t disk) {
  if (top == nullptr || top->place.least_memory > memory || top->place.least_disk > disk) {
    return nullptr;
  }
  if (Job* found = find_within(top->place.left, memory, disk)) return found;
  const Requirements& needs = top->record.needs;
  if (needs.memory <= memory && needs.disk <= disk) return top;
  return find_within(top->place.right, memory, disk);
}

bool walk_below(const Job* top, const std::function<bool(const Job&)>& visit) {
  return top == nullptr ||
         (walk_below(top->place.left, visit) && visit(*top) && walk_below(top->place.right, visit));
}

}  // namespace

bool comes_before(const Job& a, const Job& b) {
  if (a.record.priority != b.record.priority) return a.record.priority > b.record.priority;
  if (a.place.order != b.place.order) return a.place.order < b.place.order;
  return a.record.id < b.record.id;
}

Job* JobLine::first_within(uint64_t memory, uint64_t disk) const {
  return find_within(root_, memory, disk);
}

void JobLine::walk(const std::function<bool(const Job&)>& visit) const { walk_below(root_, visit); }

void JobLine::add(Job& job) {
  insert(root_, job);
  if (first_ == nullptr || comes_before(job, *first_)) first_ = &job;
}

void JobLine::take(Job& job) {
  erase(root_, job);
  job.place.left = job.place.right = nullptr;
  if (first_ != &job) return;
  first_ = root_;
  while (first_ != nullptr && first_->place.left != nullptr) first_ = first_->place.left;
}

}  // namespace sublet::scheduling
