#include "scheduling/matching/search_tree.h"

#include <memory>

#include "scheduling/hashed.h"

namespace sublet::scheduling {

uint64_t tree_rank(uint64_t id) {
  // Where the kernel has put the program and its memory, which differs from process to process.
  static const uint64_t secret = [] {
    static const char here = 0;
    const auto there = std::make_unique<char>();
    return hashed(reinterpret_cast<uintptr_t>(&here)) ^
           hashed(reinterpret_cast<uintptr_t>(there.get()));
  }();
  return hashed(hashed(id) ^ secret);
}

}  // namespace sublet::scheduling
