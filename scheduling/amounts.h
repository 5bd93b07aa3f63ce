// Amounts of what a machine offers and an attempt reserves.
#ifndef SUBLET_SCHEDULING_AMOUNTS_H_
#define SUBLET_SCHEDULING_AMOUNTS_H_

#include <algorithm>
#include <cstdint>

namespace sublet::scheduling {

struct Amounts {
  uint64_t cores = 0;
  uint64_t memory = 0;  // bytes
  uint64_t disk = 0;    // bytes
  bool operator==(const Amounts&) const = default;

  bool within(const Amounts& room) const {
    return cores <= room.cores && memory <= room.memory && disk <= room.disk;
  }
};

// The smallest, the largest, of each.
inline Amounts least(const Amounts& a, const Amounts& b) {
  return {std::min(a.cores, b.cores), std::min(a.memory, b.memory), std::min(a.disk, b.disk)};
}
inline Amounts most(const Amounts& a, const Amounts& b) {
  return {std::max(a.cores, b.cores), std::max(a.memory, b.memory), std::max(a.disk, b.disk)};
}
inline Amounts operator+(const Amounts& a, const Amounts& b) {
  return {a.cores + b.cores, a.memory + b.memory, a.disk + b.disk};
}
// Never below 0.
inline Amounts operator-(const Amounts& a, const Amounts& b) {
  return {a.cores - std::min(a.cores, b.cores), a.memory - std::min(a.memory, b.memory),
          a.disk - std::min(a.disk, b.disk)};
}

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_AMOUNTS_H_
