// When a waiting job will start: the brain's outlook and what the archive knows of
// recent uses, put together.
#ifndef SUBLET_SERVER_JOBS_START_FORECAST_H_
#define SUBLET_SERVER_JOBS_START_FORECAST_H_

#include "scheduling/queries/forecast.h"
#include "server/store/archive/archive.h"

namespace sublet::server {

// From the last hour, or the last 1,000 uses where there were more. Throws StoreError.
scheduling::Forecast start_forecast(Archive& archive, const scheduling::Outlook& outlook,
                                    Micros now);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOBS_START_FORECAST_H_
