// Forecasts when a waiting job will start, from the brain's outlook and the recent uses
// in the archive.
#ifndef SUBLET_SERVER_JOBS_START_FORECAST_H_
#define SUBLET_SERVER_JOBS_START_FORECAST_H_

#include "scheduling/queries/forecast.h"
#include "server/store/archive/archive.h"

namespace sublet::server {

// Based on the last hour, or on the last 1,000 uses if there were more. Throws StoreError.
scheduling::Forecast start_forecast(Archive& archive, const scheduling::Outlook& outlook,
                                    Micros now);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOBS_START_FORECAST_H_
