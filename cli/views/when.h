// Instants as users write them. Pure.
#ifndef SUBLET_CLI_VIEWS_WHEN_H_
#define SUBLET_CLI_VIEWS_WHEN_H_

#include <cstdint>
#include <string>

namespace sublet::cli {

// "2026-11-20", "2026-11-20 14:00", "2026-11-20T14:00:05Z": UTC, as everything
// that is printed; "7 d", "12h": so long before `now_us`. `option` is named in
// the PoolError (usage) for anything else. Microseconds since 1970, from 1 on.
int64_t parse_when(const std::string& option, const std::string& text, int64_t now_us);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_WHEN_H_
