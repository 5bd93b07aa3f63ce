#include "cli/views/metrics.h"

#include <cstdio>
#include <map>

#include "cli/names.h"

namespace sublet::cli {
namespace {

std::string seconds(int64_t us) {
  char text[32];
  snprintf(text, sizeof text, "%.6f", static_cast<double>(us) / 1e6);
  return text;
}

std::string heading(const std::string& name, const char* type, const char* help) {
  return "# TYPE " + name + " " + type + "\n# HELP " + name + " " + help + "\n";
}

std::string gauge(const std::string& name, const char* help, const std::string& value) {
  return heading(name, "gauge", help) + name + " " + value + "\n";
}

std::string of_states(const std::string& name, const char* help,
                      const std::map<std::string, uint64_t>& counts) {
  std::string text = heading(name, "gauge", help);
  for (const auto& [state, count] : counts)
    text += name + "{state=\"" + state + "\"} " + std::to_string(count) + "\n";
  return text;
}

std::map<std::string, uint64_t> by_state(const std::vector<MachineInfo>& machines) {
  std::map<std::string, uint64_t> counts = {{"idle", 0}, {"busy", 0}, {"silent", 0}};
  for (const MachineInfo& machine : machines) ++counts[machine_state_name(machine.state)];
  return counts;
}

std::string steps_text(const std::vector<StepSpread>& steps) {
  const std::string name = "sublet_eviction_step_seconds";
  std::string text = heading(
      name, "summary", "From what was sensed to each step of an eviction, over the last hour.");
  for (const StepSpread& step : steps)
    for (const auto& [quantile, us] : {std::pair("0.5", step.p50_us),
                                       {"0.95", step.p95_us},
                                       {"0.99", step.p99_us},
                                       {"1.0", step.most_us}})
      text +=
          name + "{step=\"" + step.step + "\",quantile=\"" + quantile + "\"} " + seconds(us) + "\n";
  return text;
}

}  // namespace

std::string metrics_text(const PoolMetrics& metrics) {
  const JobCounts& jobs = metrics.jobs;
  const UsageLine& hour = metrics.last_hour;
  return of_states("sublet_jobs", "Jobs that have not ended.",
                   {{"waiting", jobs.waiting},
                    {"placed", jobs.placed},
                    {"running", jobs.running},
                    {"suspended", jobs.suspended},
                    {"delivering", jobs.delivering},
                    {"held", jobs.held}}) +
         of_states("sublet_machines", "Workstations.", by_state(metrics.machines)) +
         gauge("sublet_evictions_last_hour", "Attempts that had to leave within the last hour.",
               std::to_string(hour.evictions)) +
         gauge("sublet_jobs_done_last_hour", "Jobs that were done within the last hour.",
               std::to_string(hour.jobs_done)) +
         gauge("sublet_cpu_kept_seconds_last_hour",
               "CPU time of attempts that ended within the last hour, whose work was kept.",
               seconds(hour.kept_us)) +
         gauge("sublet_cpu_lost_seconds_last_hour",
               "CPU time of attempts that ended within the last hour, whose work was lost.",
               seconds(hour.lost_us)) +
         steps_text(hour.steps) + "# EOF\n";
}

}  // namespace sublet::cli
