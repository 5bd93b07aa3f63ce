// A number scattered over all 64 bits, always the same: for what must look random and be
// repeatable.
#ifndef SUBLET_SCHEDULING_HASHED_H_
#define SUBLET_SCHEDULING_HASHED_H_

#include <cstdint>

namespace sublet::scheduling {

// splitmix64
inline uint64_t hashed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_HASHED_H_
