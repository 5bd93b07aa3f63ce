#include "cli/batch/equal_outputs.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/batch/sweep.h"
#include "job/output_name.h"

namespace sublet::cli {
namespace {

// Names may be compared without knowing what a job leaves only if no part is a pattern.
bool is_literal(const OutputName& name) {
  for (size_t depth = 0; depth < name.depth(); ++depth)
    if (!name.is_literal(depth)) return false;
  return true;
}

// A required output of a job or array.
struct Source {
  const PlannedJob* job;
  size_t output;  // of the job's
  bool is_folder;
  std::string name;    // before parameters are replaced; a folder's without the slash
  uint64_t first_job;  // of the plan's, counted one by one
};

// Of an array that leaves the same name in all its jobs, two show this.
uint64_t names_of(const Source& source) {
  const uint64_t count = std::max<uint64_t>(source.job->count, 1);
  if (source.job->count == 0) return 1;
  const bool all_equal = names_in(source.name, values_of(*source.job, 0)).empty();
  return all_equal ? std::min<uint64_t>(count, 2) : count;
}

std::vector<Source> sources_of(const BatchPlan& plan) {
  std::vector<Source> sources;
  uint64_t first_job = 0;
  for (const PlannedJob& job : plan.jobs) {
    for (size_t i = 0; i < job.what.outputs.size(); ++i) {
      const OutputFile& output = job.what.outputs[i];
      const OutputName name(output.name);
      if (output.required && is_literal(name))
        sources.push_back({&job, i, name.is_folder(), name.file(), first_job});
    }
    first_job += std::max<uint64_t>(job.count, 1);
  }
  return sources;
}

// The names one behind another, each '/' replaced by NUL: so that those that lie in a folder
// are sorted directly behind it.
class Names {
 public:
  struct Name {
    uint32_t begin, size;
    uint32_t job;
    uint32_t source;
  };

  void reserve(uint64_t names) { names_.reserve(names); }
  size_t bytes() const { return text_.size(); }
  uint64_t size() const { return names_.size(); }
  void add(std::string_view name, uint64_t job, size_t source) {
    names_.push_back({static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(name.size()),
                      static_cast<uint32_t>(job), static_cast<uint32_t>(source)});
    text_ += name;
    std::replace(text_.end() - static_cast<ptrdiff_t>(name.size()), text_.end(), '/', '\0');
  }

  // Two of different jobs of which the second is, or lies in, the first. False: there are none.
  bool find(Name* first, Name* second) {
    std::ranges::sort(names_, [&](const Name& a, const Name& b) {
      const int order = text(a).compare(text(b));
      return order != 0 ? order < 0 : a.job < b.job;
    });
    std::vector<Name> around;  // what the next name is or lies in
    for (const Name& name : names_) {
      while (!around.empty() && !holds(around.back(), name)) around.pop_back();
      const auto other =
          std::ranges::find_if(around, [&](const Name& outer) { return outer.job != name.job; });
      if (other != around.end()) {
        *first = *other;
        *second = name;
        return true;
      }
      around.push_back(name);
    }
    return false;
  }

  std::string written(const Name& name, bool is_folder) const {
    std::string text(this->text(name));
    std::ranges::replace(text, '\0', '/');
    return text + (is_folder ? "/" : "");
  }
  bool are_equal(const Name& a, const Name& b) const { return text(a) == text(b); }

 private:
  std::string_view text(const Name& name) const {
    return std::string_view(text_).substr(name.begin, name.size);
  }
  bool holds(const Name& outer, const Name& inner) const {
    const std::string_view inside = text(inner);
    return inside.starts_with(text(outer)) &&
           (inside.size() == outer.size || inside[outer.size] == '\0');
  }

  std::string text_;
  std::vector<Name> names_;
};

}  // namespace

EqualOutputs find_equal_outputs(const BatchPlan& plan, const ComparedOutputs& most) {
  const std::vector<Source> sources = sources_of(plan);
  EqualOutputs found;
  for (const Source& source : sources) found.names += names_of(source);
  Names names;
  names.reserve(std::min(found.names, most.names));
  for (size_t i = 0; i < sources.size(); ++i) {
    const Source& source = sources[i];
    const uint64_t count = names_of(source);
    for (uint64_t k = 0; k < count && names.size() < most.names && names.bytes() < most.bytes; ++k)
      names.add(source.job->count == 0 ? source.name : fill(source.name, values_of(*source.job, k)),
                source.first_job + k, i);
  }
  found.compared = names.size();
  Names::Name first, second;
  if (!names.find(&first, &second)) return found;
  found.name = names.written(second, sources[second.source].is_folder);
  if (!names.are_equal(first, second))
    found.inside = names.written(first, sources[first.source].is_folder);
  const Source& later = sources[std::max(first.source, second.source)];
  if (later.output < later.job->output_places.size())
    found.where = later.job->output_places[later.output];
  return found;
}

}  // namespace sublet::cli
