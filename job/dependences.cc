#include "job/dependences.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "job/check.h"
#include "job/description.h"

namespace sublet {
namespace {

constexpr size_t kNamedOfCycle = 8;  // of a longer one the rest is counted

[[noreturn]] void refuse(const char* code, const std::string& what, const std::string& advice,
                         const std::string& subject) {
  throw JobError(JobError::Kind::kInvalid, code, what, advice, subject);
}

// The references among the descriptions of a batch: all jobs of one wait for the same, so a cycle
// of jobs is one of descriptions.
class BatchGraph {
 public:
  explicit BatchGraph(const std::vector<SpecRange>& specs) : specs_(specs) {
    firsts_.reserve(specs.size());
    for (const SpecRange& range : specs) {
      firsts_.push_back(jobs_);
      jobs_ += range.count;
    }
  }

  void check() {
    size_t references = 0, sources = 0;
    for (size_t spec = 0; spec < specs_.size(); ++spec) {
      const Dependences& waits_for = specs_[spec].spec.waits_for;
      references += waits_for.size();
      for (const InputFile& input : specs_[spec].spec.inputs) sources += input.source.is_set();
      for (const auto& [name, list] : lists_of(waits_for))
        for (const JobReference& reference : *list)
          if (reference.of_this_batch) check(spec, reference);
    }
    if (references > kReferencesPerBatch)
      over_limit("relation.too_many", "the batch", "its jobs wait for more than 200,000 others",
                 "Name jobs that follow each other as one range, such as an array.");
    if (sources > kReferencesPerBatch)
      over_limit("relation.too_many", "the batch",
                 "more than 200,000 of its inputs are outputs of other jobs",
                 "Pack outputs that are needed together into one archive.");
    find_cycle();
  }

 private:
  // "job 3 (mesh)"
  std::string name_of(uint64_t job) const {
    return "job " + std::to_string(job) + " (" + specs_[spec_of(job)].spec.name + ")";
  }
  size_t spec_of(uint64_t job) const {
    return static_cast<size_t>(std::upper_bound(firsts_.begin(), firsts_.end(), job) -
                               firsts_.begin()) -
           1;
  }

  void check(size_t spec, const JobReference& reference) const {
    const std::string name = name_of(firsts_[spec]);
    const uint64_t last = reference.first + reference.count - 1;
    if (last >= jobs_)
      refuse("relation.unknown",
             name + " of the batch waits for job " + std::to_string(last) + " of it, but it has " +
                 std::to_string(jobs_),
             "Count the jobs of the batch from 0.", name);
    const uint64_t own_last = firsts_[spec] + specs_[spec].count - 1;
    if (reference.first <= own_last && firsts_[spec] <= last)
      refuse("relation.itself",
             name + " of the batch waits for itself" +
                 (specs_[spec].count > 1 ? ": for jobs of its own array" : ""),
             "Let it wait for others.", name);
  }

  // The descriptions of the jobs that a reference names: consecutive ones.
  struct Targets {
    size_t first, last;
  };
  std::vector<Targets> targets_of(size_t spec) const {
    std::vector<Targets> targets;
    for (const auto& [name, list] : lists_of(specs_[spec].spec.waits_for))
      for (const JobReference& r : *list)
        if (r.of_this_batch) targets.push_back({spec_of(r.first), spec_of(r.first + r.count - 1)});
    return targets;
  }

  // A depth-first search with a stack of its own. What has been visited is skipped (next_new_), so
  // that a reference to many jobs does not cost as many steps each time.
  void find_cycle() {
    next_new_.resize(specs_.size() + 1);
    std::iota(next_new_.begin(), next_new_.end(), size_t{0});
    for (size_t spec = 0; spec < specs_.size(); ++spec)
      if (first_new_from(spec) == spec) visit_all_from(spec);
  }

  void visit_all_from(size_t start) {
    enter(start);
    while (!path_.empty()) {
      Visit& top = path_.back();
      if (top.left.empty()) {
        on_path_.erase(top.spec);
        path_.pop_back();
        continue;
      }
      const Targets targets = top.left.back();
      const size_t next = first_new_from(targets.first);
      if (next <= targets.last) {
        enter(next);
        continue;
      }
      top.left.pop_back();
    }
  }

  void enter(size_t spec) {
    next_new_[spec] = spec + 1;
    path_.push_back({spec, targets_of(spec)});
    on_path_.insert(spec);
    for (const Targets& targets : path_.back().left) {
      const auto back = on_path_.lower_bound(targets.first);
      if (back != on_path_.end() && *back <= targets.last) refuse_cycle(*back);
    }
  }

  size_t first_new_from(size_t spec) {
    size_t found = spec;
    while (next_new_[found] != found) found = next_new_[found];
    while (next_new_[spec] != spec) spec = std::exchange(next_new_[spec], found);
    return found;
  }

  // The path from `back` on, and back to it.
  [[noreturn]] void refuse_cycle(size_t back) const {
    auto it = std::find_if(path_.begin(), path_.end(),
                           [&](const Visit& visit) { return visit.spec == back; });
    const auto length = static_cast<size_t>(path_.end() - it);
    const std::string start = name_of(firsts_[back]);
    std::string text = start;
    for (size_t i = 1; i < length; ++i) {
      if (length > kNamedOfCycle && i == kNamedOfCycle / 2) {
        const size_t left_out = length - kNamedOfCycle;
        text += " -> ... " + std::to_string(left_out) + " more ...";
        i += left_out;
      }
      text += " -> " + name_of(firsts_[it[static_cast<ptrdiff_t>(i)].spec]);
    }
    refuse("relation.cycle", "jobs of the batch wait for each other: " + text + " -> " + start,
           "Let one of them not wait for the next.", start);
  }

  struct Visit {
    size_t spec;
    std::vector<Targets> left;  // not yet visited, the last one first
  };

  const std::vector<SpecRange>& specs_;
  std::vector<uint64_t> firsts_;  // index of the first job of each
  uint64_t jobs_ = 0;
  std::vector<size_t> next_new_;  // itself: not visited; else one that comes after it
  std::vector<Visit> path_;
  std::set<size_t> on_path_;
};

}  // namespace

std::array<NamedReferences, 3> lists_of(Dependences& dependences) {
  return {{{"after", &dependences.after},
           {"after_any", &dependences.after_any},
           {"after_start", &dependences.after_start}}};
}
std::array<ConstNamedReferences, 3> lists_of(const Dependences& dependences) {
  return {{{"after", &dependences.after},
           {"after_any", &dependences.after_any},
           {"after_start", &dependences.after_start}}};
}

std::string on_never_name(OnNever on_never) {
  return on_never == OnNever::kRemove ? "remove" : "hold";
}

std::optional<OnNever> on_never_named(std::string_view name) {
  for (const OnNever on_never : {OnNever::kHold, OnNever::kRemove})
    if (name == on_never_name(on_never)) return on_never;
  return std::nullopt;
}

void wait_for_sources(JobDescription& job) {
  JobReferences& after = job.waits_for.after;
  std::set<std::pair<bool, uint64_t>> single;
  for (const JobReference& reference : after)
    if (reference.count == 1) single.emplace(reference.of_this_batch, reference.first);
  for (const InputFile& input : job.inputs) {
    const OutputOfJob& source = input.source;
    if (source.is_set() && single.emplace(source.of_this_batch, source.job).second)
      after.push_back({source.of_this_batch, source.job, 1});
  }
}

OnNever read_on_never(const std::vector<std::pair<std::string, std::string>>& details) {
  OnNever result = OnNever::kHold;
  for (const auto& [name, value] : details) {
    if (name != kNeverSatisfied) continue;
    const auto on_never = on_never_named(value);
    if (!on_never)
      refuse("field.invalid", std::string(kNeverSatisfied) + " is neither `hold` nor `remove`",
             "Write one of these.", std::string(kNeverSatisfied));
    result = *on_never;
  }
  return result;
}

void check_dependences(const std::vector<SpecRange>& specs) { BatchGraph(specs).check(); }

}  // namespace sublet
