#include "server/jobs/start_forecast.h"

namespace sublet::server {
namespace {
constexpr Micros kLookedBack = 3600ll * 1'000'000;
constexpr uint32_t kLookedAt = 1000;
}  // namespace

scheduling::Forecast start_forecast(Archive& archive, const scheduling::Outlook& outlook,
                                    Micros now) {
  Micros since = now - kLookedBack;
  std::vector<scheduling::Freed> freed;
  const auto uses = archive.recent_uses(since, kLookedAt);
  if (uses.size() == kLookedAt) since = uses.back().finished;
  for (const auto& use : uses)
    if (scheduling::frees_a_place(use.ended))
      freed.push_back({use.machine, use.started, use.finished});
  return scheduling::forecast(outlook, freed, since, now);
}

}  // namespace sublet::server
