// The brain alone: no store, no threads. Jobs of ten users run on 100 machines while QUEUED
// jobs wait: accepted, started, ended (and the next one placed). For each job that ends, one
// is submitted. Then each policy for the next job takes over in turn.
//
//   usage: bench-brain QUEUED JOBS
//
// Prints {"events", "seconds", "switch_seconds"}: the longest of those switches.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "scheduling/policies/job_policies.h"
#include "scheduling/pool.h"

namespace sublet::scheduling {
namespace {
constexpr int kMachines = 100;
constexpr int kUsers = 10;
constexpr Micros kBegin = 1'000'000'000'000;

std::string user(uint64_t number) { return "user" + std::to_string(number % kUsers); }

void submit(Pool& pool, uint64_t jobs) {
  for (uint64_t u = 0; u < kUsers; ++u) {
    Submitted s{1, user(u), "desk" + std::to_string(u), {}};
    s.jobs.resize(jobs / kUsers);
    for (size_t i = 0; i < s.jobs.size(); ++i) s.jobs[i].needs.memory = (1 + i % 4) << 20;
    pool.apply(s, kBegin);
  }
}

std::vector<StartAttempt> first_orders(Pool& pool) {
  std::vector<StartAttempt> orders;
  for (int i = 0; i < kMachines; ++i) {
    const MachineJoined joined{0, "m" + std::to_string(i), "linux", "x86_64", 1, 1, 1u << 30, 0};
    const MachineId m = pool.apply(joined, kBegin).answer.machine;
    for (const Decision& d : pool.apply(MachineReported{m, true, 0, 0}, kBegin).decisions)
      orders.push_back(std::get<StartAttempt>(d));
  }
  return orders;
}

uint64_t run(Pool& pool, std::vector<StartAttempt> orders, uint64_t jobs) {
  uint64_t events = 0;
  orders.reserve(orders.size() + jobs);
  Micros now = kBegin;
  for (uint64_t done = 0; done < jobs && done < orders.size(); ++done) {
    const StartAttempt order = orders[done];
    now += 1000;
    pool.apply(OrderAnswered{order.key, OrderAnswered::Answer::kAccepted, ""}, now);
    pool.apply(AttemptStarted{order.key, order.machine}, now);
    pool.apply(Submitted{1, user(done), "desk", {Submitted::Job()}}, now);
    const AttemptEnded ended{order.key, order.machine, EndReason::kDone, "", 1000};
    for (const Decision& d : pool.apply(ended, now).decisions)
      orders.push_back(std::get<StartAttempt>(d));
    events += 4;
    if (done % 1000 == 0) pool.apply(Ticked(), now);
  }
  return events;
}

double longest_switch(Pool& pool) {
  std::chrono::duration<double> longest{};
  for (const std::string& policy : known_job_policies()) {
    const auto begin = std::chrono::steady_clock::now();
    pool.apply(PolicySet{{.job_policy = policy}, "bench"}, kBegin);
    longest = std::max(longest, {std::chrono::steady_clock::now() - begin});
  }
  return longest.count();
}
}  // namespace
}  // namespace sublet::scheduling

int main(int argc, char** argv) {
  using namespace sublet::scheduling;
  if (argc != 3) return std::fputs("usage: bench-brain QUEUED JOBS\n", stderr), 2;
  Pool pool{Parameters()};
  submit(pool, std::strtoull(argv[1], nullptr, 10));
  const std::vector<StartAttempt> orders = first_orders(pool);
  const auto begin = std::chrono::steady_clock::now();
  const uint64_t events = run(pool, orders, std::strtoull(argv[2], nullptr, 10));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("{\"events\": %llu, \"seconds\": %.6f, \"switch_seconds\": %.6f}\n",
              static_cast<unsigned long long>(events), took.count(), longest_switch(pool));
  return 0;
}
