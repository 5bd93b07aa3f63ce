// Decoded descriptions: an array's is asked for again and again, once or more for
// every one of its jobs, and decoding one of a million values anew takes longer
// than running a small job; a single job's when it starts and when it ends.
// Descriptions never change, and their jobs' ids are never given again. The least
// recently used go when they are too large together.
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
  // `most`: octets of all descriptions, as they take them in memory.
  explicit SpecCache(size_t most) : most_(most) {}

  // The description that covers that job, and its first job. Null: not here.
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
  std::list<uint64_t> used_;           // first jobs, the last used first
  size_t size_ = 0;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOBS_SPEC_CACHE_H_
