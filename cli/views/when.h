// Instants as users write them. Pure.
#ifndef SUBLET_CLI_VIEWS_WHEN_H_
#define SUBLET_CLI_VIEWS_WHEN_H_

#include <cstdint>
#include <string>

namespace sublet::cli {

// Parses "2026-11-20", "2026-11-20 14:00", "2026-11-20T14:00:05Z" (UTC, as in all output),
// or "7 d", "12h": that long before `now_us`. Throws PoolError (usage) that names `option`
// for anything else. Returns microseconds since 1970, at least 1.
int64_t parse_when(const std::string& option, const std::string& text, int64_t now_us);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_WHEN_H_
