// Instants as users write them: "2026-12-01 18:00", local time, or with a zone as in ISO 8601.
#ifndef SUBLET_CLI_BATCH_INSTANT_H_
#define SUBLET_CLI_BATCH_INSTANT_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace sublet::cli {

inline constexpr const char* kInstantForm =
    "write it as \"2026-12-01 18:00\", which is local time, or with a zone as "
    "\"2026-12-01T18:00:00+01:00\" or \"2026-12-01T17:00Z\"";

// Microseconds UTC. std::nullopt: it has not this form, or names no time, such as one that a clock
// skips when daylight saving begins.
std::optional<int64_t> parse_instant(std::string_view text);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_BATCH_INSTANT_H_
