// Scheduling and bookkeeping alone: the server's own services, pipeline, store and
// dispatcher, in one process with many simulated workstations. No ORB, no job processes;
// every transition is as durable as in the server.
//
//   usage: bench-dispatch FOLDER MACHINES SLOTS JOBS REPORTERS
//
// The workstations accept every order at once, then report its start and its end, each
// workstation one call at a time as the client does. REPORTERS threads make these calls; one
// more renews the leases.
// Prints {"submit_seconds", "seconds", "cpu_seconds"}; the last two until the last end is on
// disk.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "server/jobs/service.h"
#include "server/machines/service.h"
#include "server/store/sql_store.h"

namespace sublet::server {
namespace {

using scheduling::AttemptKey;
using scheduling::OrderAnswered;
using Stopwatch = std::chrono::steady_clock;

constexpr size_t kDispatcherThreads = 8;  // the server's default
constexpr uint64_t kJobsPerAppend = 1000;
constexpr Micros kCpu = 1000;  // CPU and wall time that each job reports
constexpr uint64_t kBytes = 1ull << 34;
constexpr std::chrono::seconds kRenewEvery{10};  // D/3

double seconds_since(Stopwatch::time_point began) {
  return std::chrono::duration<double>(Stopwatch::now() - began).count();
}

double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Everything behind the servants, set up as in server.cc.
class Books {
 public:
  explicit Books(const std::string& folder)
      : store_(folder + "/pool.db"),
        archive_(folder + "/pool.db"),
        access_({}),
        dispatcher_({[this](const auto& start) { return describe(start); },
                     [this](auto answers) { answered(std::move(answers)); }},
                    kDispatcherThreads),
        pipeline_(PipelineSettings{}, store_, system_clock(), listener()),
        jobs(pipeline_, archive_, sessions_, access_, questions_, [] {}),
        machines(pipeline_, archive_, sessions_, access_, dispatcher_) {
    pipeline_.start();
  }
  ~Books() {
    jobs.stop();
    pipeline_.stop();
    dispatcher_.stop();
  }
  Books(const Books&) = delete;

 private:
  Pipeline::Listener listener() {
    Pipeline::Listener l;
    l.decided = [this](const auto& decisions) { dispatcher_.decided(decisions); };
    l.failed = [](const std::string& why) { std::fprintf(stderr, "bench: %s\n", why.c_str()); };
    return l;
  }

  std::optional<RunRequest> describe(const scheduling::StartAttempt& start) {
    auto spec = archive_.spec_with_files(start.key.job);
    if (!spec) return std::nullopt;
    return RunRequest{
        start.key,    start.user, std::move(*spec), start.generation, start.checkpoint_bytes,
        start.decided};
  }

  void answered(std::vector<OrderAnswered> answers) {
    pipeline_.post([answers = std::move(answers)](Turn& turn) {
      for (const auto& answer : answers) turn.apply(answer);
    });
  }

  SqlStore store_;
  Archive archive_;
  Sessions sessions_;
  Access access_;
  QuestionGate questions_{{}};
  Dispatcher dispatcher_;
  Pipeline pipeline_;

 public:
  JobService jobs;
  MachineService machines;
};

// Orders that workstations have accepted and not yet reported.
class Floor {
 public:
  explicit Floor(size_t machines) : orders_(machines), busy_(machines) {}

  void accept(size_t machine, AttemptKey key) {
    std::lock_guard lock(mutex_);
    orders_[machine].push_back(key);
    make_ready(machine);
  }

  // Blocks until a workstation has attempts to report; nullopt after close().
  std::optional<std::pair<size_t, std::vector<AttemptKey>>> take() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return over_ || !ready_.empty(); });
    if (over_) return std::nullopt;
    const size_t machine = ready_.front();
    ready_.pop_front();
    std::vector<AttemptKey> keys;
    keys.swap(orders_[machine]);
    return std::pair(machine, std::move(keys));
  }

  void reported(size_t machine) {
    std::lock_guard lock(mutex_);
    busy_[machine] = false;
    make_ready(machine);
  }

  void close() {
    std::lock_guard lock(mutex_);
    over_ = true;
    wake_.notify_all();
    closed_.notify_all();
  }

  // Returns whether close() was called within this time.
  bool closed_within(std::chrono::microseconds time) {
    std::unique_lock lock(mutex_);
    return closed_.wait_for(lock, time, [this] { return over_; });
  }

 private:
  void make_ready(size_t machine) {
    if (busy_[machine] || orders_[machine].empty()) return;
    busy_[machine] = true;
    ready_.push_back(machine);
    wake_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable closed_;
  std::vector<std::vector<AttemptKey>> orders_;
  std::vector<bool> busy_;  // in ready_, or its reports are in progress
  std::deque<size_t> ready_;
  bool over_ = false;
};

class Simulated : public Workstation {
 public:
  Simulated(Floor& floor, size_t machine) : floor_(floor), machine_(machine) {}
  std::vector<OrderAnswered> run(const std::vector<RunRequest>& requests) override {
    std::vector<OrderAnswered> answers;
    for (const auto& request : requests) {
      answers.push_back({request.key, OrderAnswered::Answer::kAccepted, ""});
      floor_.accept(machine_, request.key);
    }
    return answers;
  }
  bool vacate(const std::vector<LeaveRequest>&) override { return true; }
  bool alive() override { return true; }
  TextAnswer read_log(const TextRequest&) override { return {}; }

 private:
  Floor& floor_;
  const size_t machine_;
};

class Bench {
 public:
  Bench(const std::string& folder, size_t machines, uint32_t slots)
      : floor_(machines), books_(folder), slots_(slots), sessions_(machines) {}

  void submit(uint64_t jobs) {
    SpecRange one;
    one.spec.name = one.spec.program = "true";
    const BatchId batch = books_.jobs.open_batch(user_, random_bytes(16), {"bench", "desk"});
    for (uint32_t call = 0; jobs > 0; ++call) {
      const uint64_t size = std::min(jobs, kJobsPerAppend);
      books_.jobs.append(user_, batch, call, std::vector<SpecRange>(size, one));
      jobs -= size;
    }
    books_.jobs.commit_batch(user_, random_bytes(16), batch);
  }

  void join(size_t threads) {
    in_parallel(threads, [&](size_t thread) {
      for (size_t i = thread; i < sessions_.size(); i += threads) {
        const MachineFacts facts{"machine-" + std::to_string(i),
                                 "linux",
                                 "x86_64",
                                 slots_,
                                 slots_,
                                 kBytes,
                                 kBytes,
                                 "",
                                 "bench"};
        sessions_[i] = books_.machines.join(user_, 0, random_bytes(32), facts).session;
        books_.machines.attach(sessions_[i].key, user_, std::make_shared<Simulated>(floor_, i));
        books_.machines.renew(sessions_[i].key, user_, {}, {});
      }
    });
  }

  // The machines become idle, and all jobs run.
  void run(uint64_t jobs, size_t reporters) {
    left_ = static_cast<int64_t>(jobs);
    ReportedState idle;
    idle.away = true;
    idle.slots_free = slots_;
    idle.memory_free = idle.disk_free = kBytes;
    in_parallel(reporters + 1, [&](size_t thread) {
      if (thread == reporters) return renew_leases(idle);
      for (size_t i = thread; i < sessions_.size(); i += reporters)
        books_.machines.report(sessions_[i].key, user_, idle);
      while (auto work = floor_.take()) report(work->first, work->second);
    });
  }

 private:
  template <typename Work>
  void in_parallel(size_t count, Work work) {
    std::atomic<bool> failed{false};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < count; ++t)
      threads.emplace_back([&, t] {
        try {
          work(t);
        } catch (const std::exception& error) {
          std::fprintf(stderr, "bench-dispatch: %s\n", error.what());
          failed = true;
          floor_.close();
        }
      });
    for (auto& thread : threads) thread.join();
    if (failed) throw std::runtime_error("a call was refused");
  }

  // One machine after the other, each every D/3.
  void renew_leases(const ReportedState& idle) {
    const auto pause = std::chrono::microseconds(kRenewEvery) / sessions_.size();
    for (size_t i = 0; !floor_.closed_within(pause); i = (i + 1) % sessions_.size())
      books_.machines.renew(sessions_[i].key, user_, idle, {});
  }

  void report(size_t machine, const std::vector<AttemptKey>& keys) {
    const std::string& session = sessions_[machine].key;
    std::vector<ReportedEnd> ends;
    for (const AttemptKey& key : keys) {
      books_.machines.started(session, user_, {{key, 0}});
      ReportedEnd end;
      end.event.key = end.row.key = key;
      end.event.ended = scheduling::EndReason::kDone;
      end.event.cpu = end.event.wall = kCpu;
      end.row.exit_status = 0;
      ends.push_back(end);
    }
    const Verdicts verdicts = books_.machines.ended(session, user_, ends);
    floor_.reported(machine);
    int64_t known = 0;
    for (const auto& [key, verdict] : verdicts) known += verdict == scheduling::Verdict::kKnown;
    if ((left_ -= known) <= 0) floor_.close();
  }

  Floor floor_;
  Books books_;
  const uint32_t slots_;
  const Caller user_{0, "bench", true, true};
  std::vector<SessionInfo> sessions_;
  std::atomic<int64_t> left_{0};
};

int run(char** argv) {
  const uint64_t jobs = std::stoull(argv[4]);
  const size_t reporters = std::stoull(argv[5]);
  log_level(Severity::warning);
  Bench bench(argv[1], std::stoull(argv[2]), static_cast<uint32_t>(std::stoul(argv[3])));
  bench.join(reporters);
  const auto submitting = Stopwatch::now();
  bench.submit(jobs);
  const double submitted = seconds_since(submitting);
  const double cpu_before = cpu_seconds();
  const auto began = Stopwatch::now();
  bench.run(jobs, reporters);
  std::printf("{\"submit_seconds\": %.6f, \"seconds\": %.6f, \"cpu_seconds\": %.6f}\n", submitted,
              seconds_since(began), cpu_seconds() - cpu_before);
  return 0;
}

}  // namespace
}  // namespace sublet::server

int main(int argc, char** argv) {
  if (argc != 6)
    return std::fputs("usage: bench-dispatch FOLDER MACHINES SLOTS JOBS REPORTERS\n", stderr), 2;
  try {
    return sublet::server::run(argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-dispatch: %s\n", error.what());
    return 1;
  }
}
