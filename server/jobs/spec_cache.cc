#include "server/jobs/spec_cache.h"

namespace sublet::server {
namespace {

size_t size_of(const std::string& text) { return sizeof text + text.size(); }
size_t size_of(const std::vector<std::string>& texts) {
  size_t sum = 0;
  for (const auto& text : texts) sum += size_of(text);
  return sum;
}

// The nodes of map and list, and the allocator's overhead.
constexpr size_t kPerEntry = 256;

size_t size_of(const SpecRange& range) {
  const JobDescription& spec = range.spec;
  size_t sum = sizeof range + kPerEntry + spec.name.size() + spec.program.size() +
               spec.submit_folder.size() + spec.submit_host.size() + spec.standard_input.size() +
               spec.hours.size() + spec.needs.os.size() + spec.needs.architecture.size() +
               spec.needs.require.size() + spec.needs.prefer.size() +
               spec.needs.resources.text().size() + size_of(spec.arguments) +
               size_of(spec.environment) + spec.waits_for.size() * sizeof(JobReference);
  for (const auto& input : range.spec.inputs)
    sum += sizeof input + input.name.size() + input.source.name.size();
  for (const auto& output : range.spec.outputs) sum += sizeof output + output.name.size();
  for (const auto& [platform, program] : spec.programs) sum += size_of(platform) + size_of(program);
  for (const auto& axis : range.axes)
    sum += sizeof axis + size_of(axis.names) + size_of(axis.values);
  return sum;
}

}  // namespace

std::shared_ptr<const SpecRange> SpecCache::find(uint64_t job, uint64_t* first) {
  std::lock_guard lock(mutex_);
  auto it = entries_.upper_bound(job);
  if (it == entries_.begin()) return nullptr;
  --it;
  if (job - it->first >= it->second.range->count) return nullptr;
  used_.splice(used_.begin(), used_, it->second.place);
  *first = it->first;
  return it->second.range;
}

void SpecCache::keep(uint64_t first, std::shared_ptr<const SpecRange> range) {
  const size_t size = size_of(*range);
  if (size > most_) return;
  std::lock_guard lock(mutex_);
  if (entries_.contains(first)) return;  // another thread was faster
  while (size_ + size > most_) drop_oldest();
  used_.push_front(first);
  entries_[first] = {std::move(range), size, used_.begin()};
  size_ += size;
}

void SpecCache::drop_oldest() {
  const auto it = entries_.find(used_.back());
  size_ -= it->second.size;
  entries_.erase(it);
  used_.pop_back();
}

size_t SpecCache::size() const {
  std::lock_guard lock(mutex_);
  return size_;
}

}  // namespace sublet::server
