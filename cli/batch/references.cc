#include "cli/batch/references.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/text.h"
#include "cli/names.h"

namespace sublet::cli {
namespace {

// The jobs of a batch by their names, each as ranges of indices.
class Names {
 public:
  explicit Names(const BatchPlan& plan) {
    uint64_t index = 0;
    for (const PlannedJob& job : plan.jobs) {
      const uint64_t count = std::max<uint64_t>(job.count, 1);
      JobReferences& ranges = ranges_[job.what.name];
      if (!ranges.empty() && ranges.back().first + ranges.back().count == index)
        ranges.back().count += count;
      else
        ranges.push_back({true, index, count});
      index += count;
    }
  }

  // Returns an error text, or "".
  std::string find(const std::string& text, JobReferences* found) const {
    if (const auto it = ranges_.find(text); it != ranges_.end()) {
      found->insert(found->end(), it->second.begin(), it->second.end());
      return "";
    }
    const size_t bracket = text.find_last_of('[');
    const auto it =
        bracket == std::string::npos ? ranges_.end() : ranges_.find(text.substr(0, bracket));
    if (it != ranges_.end()) return find_element(text, bracket, it->second, found);
    if (!text.empty() && text.find_first_not_of("0123456789-") == std::string::npos)
      return find_ids(text, found);
    const std::string near = nearest_word(text, names());
    return "no job of this batch is called '" + escape_for_terminal(text) + "'" +
           (near.empty() ? "" : "; did you mean '" + near + "'?");
  }

 private:
  static std::string find_element(const std::string& text, size_t bracket,
                                  const JobReferences& ranges, JobReferences* found) {
    uint64_t number = 0, total = 0;
    const char* end = text.data() + text.size() - 1;
    const auto [at, error] = std::from_chars(text.data() + bracket + 1, end, number);
    const std::string name = escape_for_terminal(text.substr(0, bracket));
    if (error != std::errc() || at != end || *end != ']')
      return "'" + escape_for_terminal(text) + "' is not one of the jobs called '" + name +
             "': write " + name + "[0] for the first";
    for (const JobReference& range : ranges) {
      if (number - total < range.count) {
        found->push_back({true, range.first + number - total, 1});
        return "";
      }
      total += range.count;
    }
    return "there is no job " + escape_for_terminal(text) + ": " + std::to_string(total) +
           (total == 1 ? " is" : " are") + " called '" + name + "', counted from 0";
  }

  static std::string find_ids(const std::string& text, JobReferences* found) {
    try {
      for (const IdRange& range : parse_ids({text}))
        found->push_back({false, range.first, range.count});
    } catch (const PoolError& e) {
      return e.message;
    }
    return "";
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, ranges] : ranges_) names.push_back(name);
    return names;
  }

  std::map<std::string, JobReferences> ranges_;
};

}  // namespace

namespace {

// Returns an error text, or "".
std::string find_source(const Names& names, const PlannedReference& reference, PlannedJob* job) {
  JobReferences found;
  if (std::string wrong = names.find(reference.text, &found); !wrong.empty()) return wrong;
  if (found.size() != 1 || found[0].count != 1)
    return "'" + escape_for_terminal(reference.text) +
           "' are several jobs: name the one whose output it is, such as NAME[0]";
  OutputOfJob& source = job->what.inputs[reference.input].source;
  source.of_this_batch = found[0].of_this_batch;
  source.job = found[0].first;
  return "";
}

std::string find(const Names& names, const PlannedReference& reference, PlannedJob* job) {
  for (const auto& [name, list] : lists_of(job->what.waits_for))
    if (name == reference.list) return names.find(reference.text, list);
  return find_source(names, reference, job);
}

}  // namespace

WrongReference find_references(BatchPlan* plan) {
  const auto waits = [](const PlannedJob& job) { return !job.references.empty(); };
  if (std::none_of(plan->jobs.begin(), plan->jobs.end(), waits)) return {};
  const Names names(*plan);
  for (PlannedJob& job : plan->jobs) {
    for (const PlannedReference& reference : job.references) {
      std::string wrong = find(names, reference, &job);
      if (!wrong.empty()) return {std::move(wrong), reference.line, reference.column};
    }
    job.references.clear();
  }
  return {};
}

}  // namespace sublet::cli
