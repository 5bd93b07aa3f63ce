// A user's position among the others as a sentence. Pure.
#ifndef SUBLET_SCHEDULING_QUERIES_USER_ORDER_H_
#define SUBLET_SCHEDULING_QUERIES_USER_ORDER_H_

#include <optional>
#include <string>

#include "scheduling/pool.h"

namespace sublet::scheduling {

// "12 CPU hours in the last day at a share of 1 of 4: behind ann, ahead of bob".
// `all_shares`: the sum over all users in the standings, including this one. `cpu_day`:
// CPU time of the user's attempts that ended in the last day; none: not mentioned.
std::string user_order_text(const Standing& standing, double all_shares,
                            std::optional<Micros> cpu_day);

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_QUERIES_USER_ORDER_H_
