// One decision in a large pool: QUEUED jobs of USERS users wait, in GROUPS groups, for one of
// MACHINES idle machines, none of which has the memory that they need. Measured, in CPU time of one
// event each, so that other programs do not count:
//
// - decision: a machine reports enough memory for one job, and gets the best that fits it;
// - misfit: a job is submitted that fits no machine;
// - choice: a job is submitted that every machine fits, and "best-fit" compares 64 of them;
// - why: the sentence for a waiting job;
// - tick: usage decays, and users are sorted anew.
//
// An eighth of the jobs need little memory, but more disk than any machine has free.
//
//   usage: bench-decide POLICY QUEUED MACHINES USERS GROUPS DECISIONS
//
// Prints {"decision_us": {"p50", "p99", "most"}, "misfit_us": ..., "choice_us": ..., "why_us": ...,
// "tick_us": ...}.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "scheduling/pool.h"

namespace sublet::scheduling {
namespace {

constexpr uint64_t kGiB = 1ull << 30;
constexpr Micros kBegin = 1'000'000'000'000;

struct Setting {
  uint64_t queued = 0, machines = 0, users = 0, groups = 0, decisions = 0;
};

class Series {
 public:
  template <typename Work>
  void time(Work work) {
    const double begin = cpu_us();
    work();
    values_.push_back(cpu_us() - begin);
  }
  void print(const char* name, const char* after) {
    std::sort(values_.begin(), values_.end());
    const auto at = [&](double q) {
      return values_[static_cast<size_t>(q * static_cast<double>(values_.size() - 1))];
    };
    std::printf("\"%s\": {\"p50\": %.3f, \"p99\": %.3f, \"most\": %.3f}%s", name, at(0.5), at(0.99),
                values_.back(), after);
  }

 private:
  static double cpu_us() {
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) * 1e6 + static_cast<double>(used.tv_nsec) / 1e3;
  }

  std::vector<double> values_;
};

class Large {
 public:
  Large(const Parameters& parameters, const Setting& setting) : pool_(parameters), s_(setting) {
    join();
    use();
    submit();
  }

  void decide(uint64_t k, Series& series) {
    const MachineId m = 1 + k * 7919 % s_.machines;
    now_ += 1000;
    Outcome outcome;
    series.time([&] {
      outcome = pool_.apply(MachineReported{m, true, 4 * kGiB, 100 * kGiB}, now_);
    });
    if (outcome.decisions.size() != 1) throw std::logic_error("not one decision");
    const AttemptKey key = std::get<StartAttempt>(outcome.decisions[0]).key;
    pool_.apply(AttemptStarted{key, m}, now_);
    pool_.apply(MachineReported{m, true, kGiB, 100 * kGiB}, now_);
    // As many jobs wait as before.
    pool_.apply(AttemptEnded{key, m, EndReason::kOwner, "", 1'000'000, -1, 1'000'000}, now_ + 1);
  }

  void misfit(uint64_t k, Series& series) {
    Submitted s{1, user(k), "desk", {job(k)}};
    s.jobs[0].needs.memory = 60 * kGiB;
    Outcome outcome;
    series.time([&] { outcome = pool_.apply(s, now_); });
    if (!outcome.decisions.empty()) throw std::logic_error("a job fitted");
  }

  // It ends at once. What else is measured leaves no choice of machines.
  void choose(uint64_t k, Series& series) {
    Submitted s{1, user(k), "desk", {{}}};
    Outcome outcome;
    series.time([&] { outcome = pool_.apply(s, now_); });
    const StartAttempt start = std::get<StartAttempt>(outcome.decisions.at(0));
    pool_.apply(AttemptEnded{start.key, start.machine, EndReason::kDone, "", 1, -1, 1}, now_);
  }

  void why(uint64_t k, Series& series) {
    const JobId id = s_.users + 1 + k * 104729 % (s_.queued / s_.users * s_.users);
    series.time([&] { length_ += pool_.why(id, now_).size(); });
  }

  void tick(Series& series) {
    now_ += 60'000'000;
    series.time([&] { pool_.apply(Ticked(), now_); });
  }

 private:
  std::string user(uint64_t k) const { return "user" + std::to_string(k % s_.users); }

  Submitted::Job job(uint64_t k) const {
    Submitted::Job job;
    job.needs.memory = 2 * kGiB + k % 5 * (kGiB / 4);
    if (k % 8 == 7) job.needs = {"", "", 0, 1 << 20, 900 * kGiB};  // too much of another thing
    if (s_.groups > 1) job.needs.require = "cores >= " + std::to_string(1 + k / 3 % s_.groups);
    return job;
  }

  void join() {
    for (uint64_t i = 0; i < s_.machines; ++i) {
      const auto cores = static_cast<uint32_t>(1 + i % s_.groups);
      const MachineJoined joined{
          0, "m" + std::to_string(i), "linux", "x86_64", cores, 1, 64 * kGiB, 1000 * kGiB};
      const MachineId m = pool_.apply(joined, kBegin).answer.machine;
      pool_.apply(MachineReported{m, true, kGiB, 100 * kGiB}, kBegin);
    }
  }

  // Each user has used something else, so that few are equal.
  void use() {
    pool_.apply(BatchOpened(), kBegin);
    for (uint64_t u = 0; u < s_.users; ++u) {
      const Outcome placed = pool_.apply(Submitted{1, user(u), "desk", {{}}}, kBegin);
      const StartAttempt start = std::get<StartAttempt>(placed.decisions.at(0));
      const Micros cpu = static_cast<Micros>(1 + u * 7919 % 100'003) * 1'000'000;
      pool_.apply(AttemptEnded{start.key, start.machine, EndReason::kDone, "", cpu, -1, cpu},
                  kBegin);
    }
    pool_.apply(Ticked(), kBegin);
  }

  void submit() {
    for (uint64_t u = 0; u < s_.users; ++u) {
      Submitted s{1, user(u), "desk" + std::to_string(u % 1000), {}};
      const uint64_t jobs = s_.queued / s_.users;
      for (uint64_t i = 0; i < jobs; ++i) s.jobs.push_back(job(i * 31 + u));
      pool_.apply(s, kBegin + static_cast<Micros>(u));
    }
  }

  Pool pool_;
  const Setting s_;
  Micros now_ = kBegin + 1'000'000;
  size_t length_ = 0;
};

}  // namespace
}  // namespace sublet::scheduling

int main(int argc, char** argv) {
  using namespace sublet::scheduling;
  if (argc != 7)
    return std::fputs("usage: bench-decide POLICY QUEUED MACHINES USERS GROUPS DECISIONS\n",
                      stderr),
           2;
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  Parameters parameters;
  parameters.job_policy = argv[1];
  parameters.machine_policy = "best-fit";
  // Machines are silent after a lease: they are to stay.
  parameters.lease = Micros{1} << 50;
  const Setting setting{number(2), number(3), number(4), number(5), number(6)};
  Large pool(parameters, setting);
  Series decisions, misfits, choices, whys, ticks;
  for (uint64_t k = 0; k < setting.decisions; ++k) {
    pool.decide(k, decisions);
    pool.misfit(k, misfits);
    pool.choose(k, choices);
    pool.why(k, whys);
    if (k % 100 == 99) pool.tick(ticks);
  }
  pool.tick(ticks);
  std::printf("{");
  decisions.print("decision_us", ", ");
  misfits.print("misfit_us", ", ");
  choices.print("choice_us", ", ");
  whys.print("why_us", ", ");
  ticks.print("tick_us", "}\n");
  return 0;
}
