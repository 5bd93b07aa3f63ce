// metrics: the state of the pool for a monitoring system.
#include "cli/views/metrics.h"

#include "cli/commands/commands.h"
#include "cli/pool/pool_client.h"
#include "cli/views/output.h"

namespace sublet::cli {
namespace {

constexpr int64_t kHourUs = 3'600'000'000;

int run_metrics(Context& context) {
  if (context.json)
    throw PoolError(ErrorKind::usage, "usage.metrics", "metrics are not printed as JSON",
                    "leave out --json, or use `sublet report evictions --json`");
  PoolClient& pool = context.pool();
  PoolMetrics metrics;
  JobFilter unfinished;
  unfinished.unfinished_only = true;
  metrics.jobs = pool.count(unfinished);
  metrics.machines = all_machines(pool);
  ReportQuery hour;
  hour.since_us = now_us() - kHourUs;
  hour.steps = true;
  const UsagePage page = pool.usage(hour, "", 1);
  if (!page.lines.empty()) metrics.last_hour = page.lines.front();
  print(metrics_text(metrics));
  return 0;
}

}  // namespace

Command metrics_command(Arguments& top) {
  Arguments& a = top.command(
      "metrics",
      "Print jobs, machines and the steps of evictions as OpenMetrics text, for Prometheus");
  return {&a, run_metrics};
}

}  // namespace sublet::cli
