// An LRU cache of decoded descriptions. An array's description is needed at least once
// for each of its jobs, and decoding one with a million values takes longer than
// running a small job; a single job's is needed when it starts and when it ends.
// Descriptions never change, and job ids are never reused. The least recently used
// entries are dropped when the total size exceeds the limit.
//
// Threads: any.
#ifndef SUBLET_SERVER_JOBS_SPEC_CACHE_H_
#define SUBLET_SERVER_JOBS_SPEC_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "job/description.h"

namespace sublet::server {

class SpecCache {
 public:
  // `most`: total size of the descriptions in memory, in octets.
  explicit SpecCache(size_t most) : most_(most) {}

  // The description that covers this job, and its first job. Null: not in the cache.
  std::shared_ptr<const SpecRange> find(uint64_t job, uint64_t* first);
  void keep(uint64_t first, std::shared_ptr<const SpecRange> range);
  size_t size() const;  // octets

 private:
  struct Entry {
    std::shared_ptr<const SpecRange> range;
    size_t size = 0;
    std::list<uint64_t>::iterator place;  // in used_
  };
  void drop_oldest();

  const size_t most_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Entry> entries_;  // by first job
  std::list<uint64_t> used_;           // first jobs, most recently used first
  size_t size_ = 0;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOBS_SPEC_CACHE_H_
