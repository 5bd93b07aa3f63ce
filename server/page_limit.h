// The maximum number of items on one page of a list.
#ifndef SUBLET_SERVER_PAGE_LIMIT_H_
#define SUBLET_SERVER_PAGE_LIMIT_H_

#include <cstdint>

#include "server/refusal.h"

namespace sublet::server {

inline constexpr uint32_t kPageItems = 1000;  // PAGE_ITEMS of the IDL

// Throws Refusal kInvalid "limit.range" outside 1 to kPageItems.
inline void check_limit(uint32_t limit) {
  if (limit < 1 || limit > kPageItems)
    throw Refusal(Refusal::Kind::kInvalid, "limit.range", "a limit outside 1 to 1,000",
                  "Give one in that range.", "limit");
}

}  // namespace sublet::server

#endif  // SUBLET_SERVER_PAGE_LIMIT_H_
