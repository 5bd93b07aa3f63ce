// For tests of reports: a pool with a real store, a clock set by the test, and a random
// history.
#ifndef SUBLET_SERVER_ACCOUNTING_USAGE_TESTING_H_
#define SUBLET_SERVER_ACCOUNTING_USAGE_TESTING_H_

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/testing/temporary_folder.h"
#include "server/commit/pipeline.h"
#include "server/store/archive/archive.h"
#include "server/store/sql_store.h"

namespace sublet::server::testing {

inline constexpr Micros kSecond = 1'000'000;
inline constexpr Micros kDay = 86'400 * kSecond;
// 2026-12-29, a Tuesday: the year ends in the middle of the week 2026-W53.
inline constexpr Micros kStart = 20'816 * kDay + 12'345'678'901;

class UsedPool {
 public:
  explicit UsedPool(const PipelineSettings& settings = {})
      : clock(kStart, 1'000'000'000),
        store_(folder.path() + "/pool.db"),
        archive(folder.path() + "/pool.db"),
        pipeline(settings, store_, clock, Pipeline::Listener{}) {
    pipeline.start();
    pipeline.perform([](Turn& t) {
      for (int i = 1; i <= 3; ++i) {
        t.apply(scheduling::MachineJoined{0, "m" + std::to_string(i), "linux", "x86_64", 2, 2,
                                          1 << 30, 1 << 30});
        t.apply(scheduling::MachineReported{static_cast<MachineId>(i), true, 1 << 30, 1 << 30});
      }
    });
  }
  ~UsedPool() { pipeline.stop(); }

  // Generates events from these numbers, a few per transaction.
  void live(const std::vector<uint32_t>& choices) {
    for (size_t i = 0; i < choices.size();) {
      clock.advance_ms(choices[i] % 37 == 0 ? 50'000'000 : choices[i] % 4000);
      const size_t end = std::min(choices.size(), i + 8);
      pipeline.perform([&](Turn& t) {
        for (size_t at = i; at < end; ++at) step(t, choices[at] * 2654435761u >> 4);
      });
      i = end;
    }
  }

  // Runs one job of this user with this end, CPU time, and twice as much wall time.
  void use(const std::string& user, Micros cpu,
           scheduling::EndReason ended = scheduling::EndReason::kDone) {
    pipeline.perform([&](Turn& t) {
      owners(t, 1);
      const JobId job = t.apply(scheduling::Submitted{1, user, "desk", {{}}}).answer.first_job;
      const auto* attempt = t.pool().attempt(job);
      if (attempt == nullptr) throw std::logic_error("no machine was free");
      const scheduling::AttemptKey key = attempt->key;
      t.apply(scheduling::AttemptStarted{key, 1});
      owners(t, 0);  // an evicted job is not placed again
      t.apply(scheduling::AttemptEnded{key, 1, ended, "", cpu, -1, 2 * cpu});
      t.apply(scheduling::JobsRemoved{{job}});
    });
  }

  // Makes all machines but this one busy with their owners.
  static void owners(Turn& t, MachineId but) {
    for (MachineId m = 1; m <= 3; ++m)
      t.apply(scheduling::MachineReported{m, m == but, 1 << 30, 1 << 30});
  }

  // The highest job id so far.
  JobId last_job() {
    JobId last = 0;
    pipeline.perform([&](Turn& t) { last = t.pool().counters().next_job - 1; });
    return last;
  }

  // Makes the next `count` commits fail.
  void fail_commits(int count) { store_.fail = count; }

  TemporaryFolder folder;
  ManualClock clock;

 private:
  struct FailingStore : Store {
    explicit FailingStore(const std::string& path) : real(path) {}
    scheduling::Snapshot load(std::vector<std::string>* damage) override {
      return real.load(damage);
    }
    void commit(const Changes& changes) override {
      if (fail > 0) {
        --fail;
        throw StoreError("no room");
      }
      real.commit(changes);
    }
    std::optional<RequestRow> find_request(const std::string& key) override {
      return real.find_request(key);
    }
    SqlStore real;
    std::atomic<int> fail{0};
  };

  static void step(Turn& t, uint32_t bits) {
    using namespace scheduling;
    const auto pick = [&bits](uint32_t n) {
      const uint32_t picked = bits % n;
      bits = bits / n + bits * 7919;
      return picked;
    };
    std::vector<std::pair<AttemptKey, MachineId>> live;
    for (const auto& m : t.pool().machines())
      for (const auto& key : m.running) live.emplace_back(key, m.record.id);
    const MachineId machine = 1 + pick(3);
    const JobId job = 1 + pick(static_cast<uint32_t>(t.pool().counters().next_job));
    switch (const uint32_t what = pick(10)) {
      case 0:
      case 1:
        t.apply(Submitted{1 + pick(3),
                          std::string(1, static_cast<char>('a' + pick(3))),
                          "desk",
                          {{{}, 0, pick(2), 1 + pick(3)}}});
        return;
      case 2:
      case 3:
        t.apply(MachineReported{machine, pick(5) != 0, 1 << 30, 1 << 30});
        return;
      case 8:
        if (pick(3) == 0) t.apply(JobsRemoved{{{job, 1 + pick(2)}}});
        if (pick(2) == 0) t.apply(JobsHeld{{{job, 1 + pick(2)}}});
        return;
      case 9:
        t.apply(JobsReleased{{{job, 3}}});
        return;
      default: {
        if (live.empty()) return;
        const auto& [key, where] = live[pick(static_cast<uint32_t>(live.size()))];
        if (what < 6) {
          t.apply(AttemptStarted{key, where});
          return;
        }
        static constexpr EndReason kAll[] = {
            EndReason::kDone,    EndReason::kDone,    EndReason::kExit, EndReason::kOwner,
            EndReason::kDrained, EndReason::kRefused, EndReason::kHeld, EndReason::kLost};
        const Micros cpu = pick(1'000'003) * 977;
        t.apply(AttemptEnded{key, where, kAll[pick(8)], "", cpu, pick(3) ? cpu / 3 : Micros{-1},
                             cpu + pick(1000)});
      }
    }
  }

  FailingStore store_;

 public:
  Archive archive;
  Pipeline pipeline;
};

}  // namespace sublet::server::testing

#endif  // SUBLET_SERVER_ACCOUNTING_USAGE_TESTING_H_
