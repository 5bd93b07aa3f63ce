// Another user's load on a server, until the end of stdin.
//
//   usage: bench-neighbour SOCKET FOLDER LOAD THREADS [COUNT]
//
// Each thread has a connection of its own: FOLDER receives a symbolic link to the server's socket
// for each, because the ORB takes each for another server. LOAD is one of
//   watch    calls of changes_since that are held
//   count    counts of all jobs
//   list     pages of all jobs, from the first to the last
//   why      `show` of a job that waits
//   commit   batches of COUNT different jobs, which are removed again; "ready" is printed when the
//            first one only needs to be committed
//   chain    batches of COUNT jobs, each of which waits for the one before; they stay, and "ready"
//            is printed as for `commit`
//   follow   the same of jobs, each of which waits for one of another batch
//   append   jobs of 64 KiB appended to batches that are never committed, until that is refused
//   finish   COUNT different jobs are submitted and removed, once, before "ready" is printed
// Prints {"ready"} when it has begun, and at the end {"calls", "refused"}.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "job_scheduler.hh"
#include "transport/orb.h"

namespace sublet {
namespace {

namespace v1 = Sublet::v1;

constexpr int kCallTimeoutMs = 120'000;
constexpr v1::Duration kHoldMs = 1000;
constexpr uint64_t kPerCall = 1000;
constexpr size_t kLargeOctets = 64 << 10;
constexpr v1::Instant kIn2100 = 4'102'444'800'000'000;

template <typename Octets>
Octets octets(const std::string& bytes) {
  Octets out;
  out.length(static_cast<CORBA::ULong>(bytes.size()));
  std::copy(bytes.begin(), bytes.end(), out.get_buffer());
  return out;
}

v1::RequestId request() { return octets<v1::RequestId>(random_bytes(16)); }

// It waits for a year that no benchmark sees.
v1::JobDescription idle_job() {
  v1::JobDescription out{};
  out.name = "neighbour";
  out.program = octets<v1::Bytes>("true");
  out.not_before = kIn2100;
  return out;
}

OrbSettings orb_settings() {
  OrbSettings settings;
  settings.client_call_timeout_ms = kCallTimeoutMs;
  return settings;
}

class Neighbour {
 public:
  Neighbour(const std::string& socket, const std::string& folder, uint64_t count)
      : orb_(orb_settings()), socket_(socket), folder_(folder), count_(count) {}

  void run(const std::string& load, size_t threads) {
    const auto found = kLoads.find(load);
    if (found == kLoads.end()) throw std::runtime_error("unknown load '" + load + "'");
    std::vector<v1::JobScheduler_var> schedulers;
    for (size_t i = 0; i < threads; ++i) schedulers.push_back(connect(i));
    if (load == "why" || load == "follow")
      waiting_ = schedulers[0]->submit(request(), "bench", idle_job());
    if (load == "finish") come_and_go(schedulers[0]);
    if (load == "commit") filled_ = fill(schedulers[0]);
    if (load == "chain") filled_ = fill(schedulers[0], Waits::kForOneBefore);
    if (load == "follow") filled_ = fill(schedulers[0], Waits::kForAnotherBatch);
    std::vector<std::thread> at_work;
    if (load != "finish")
      for (const auto& scheduler : schedulers)
        at_work.emplace_back([&, call = found->second] { repeat(scheduler, call); });
    std::puts("{\"ready\": true}");
    std::fflush(stdout);
    while (std::cin.get() != EOF) {
    }
    over_ = true;
    for (auto& one : at_work) one.join();
    std::printf("{\"calls\": %llu, \"refused\": %llu}\n",
                static_cast<unsigned long long>(calls_.load()),
                static_cast<unsigned long long>(refused_.load()));
  }

 private:
  using Call = void (Neighbour::*)(v1::JobScheduler_ptr);
  static const std::map<std::string, Call> kLoads;

  v1::JobScheduler_var connect(size_t i) {
    const std::string link = folder_ + "/" + std::to_string(i);
    std::filesystem::create_symlink(socket_, link);
    CORBA::Object_var object = orb_.resolve(link, "JobScheduler");
    return v1::JobScheduler::_unchecked_narrow(object);
  }

  void repeat(v1::JobScheduler_ptr scheduler, Call call) {
    omni_thread::ensure_self self;
    while (!over_) {
      try {
        (this->*call)(scheduler);
        ++calls_;
      } catch (const CORBA::Exception&) {
        // Its quota is used up, or the server asks it to be slower.
        ++refused_;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    }
  }

  void watch(v1::JobScheduler_ptr scheduler) {
    const v1::ChangePage_var page = scheduler->changes_since(1, kHoldMs);
  }
  void count(v1::JobScheduler_ptr scheduler) {
    const v1::JobFilter all{};
    const v1::JobCounts_var counts = scheduler->count(all);
  }
  void list(v1::JobScheduler_ptr scheduler) {
    const v1::JobFilter all{};
    v1::Bytes cursor;
    do {
      const v1::JobPage_var page = scheduler->list(all, cursor, kPerCall);
      cursor = page->next;
      ++calls_;
    } while (cursor.length() > 0 && !over_);
  }
  void why(v1::JobScheduler_ptr scheduler) {
    const v1::JobDetail_var detail = scheduler->show(waiting_);
  }

  v1::BatchId open(v1::JobScheduler_ptr scheduler) {
    v1::BatchDescription description{};
    description.name = "neighbour";
    description.submit_host = "bench";
    return scheduler->open_batch(request(), description);
  }
  // Adjacent jobs differ, so that each is a row.
  enum class Waits { kForNone, kForOneBefore, kForAnotherBatch };
  v1::BatchId fill(v1::JobScheduler_ptr scheduler, Waits waits = Waits::kForNone) {
    const v1::BatchId batch = open(scheduler);
    v1::JobDescriptions part;
    part.length(kPerCall);
    uint64_t sent = 0;
    for (CORBA::ULong call = 0; sent < count_ && !over_; ++call, sent += kPerCall) {
      for (CORBA::ULong i = 0; i < kPerCall; ++i) {
        part[i] = idle_job();
        part[i].name = ("n" + std::to_string(sent + i)).c_str();
        part[i].retries = i % 2;
        if (waits == Waits::kForOneBefore && sent + i > 0) wait_for(part[i], true, sent + i - 1);
        if (waits == Waits::kForAnotherBatch) wait_for(part[i], false, waiting_);
      }
      scheduler->append(batch, call, part);
    }
    return batch;
  }
  static void wait_for(v1::JobDescription& job, bool of_this_batch, v1::JobId other) {
    job.waits_for.after.length(1);
    job.waits_for.after[0].of_this_batch = of_this_batch;
    job.waits_for.after[0].jobs.first = other;
    job.waits_for.after[0].jobs.count = 1;
  }
  void come_and_stay(v1::JobScheduler_ptr scheduler, Waits waits) {
    v1::BatchId batch = std::exchange(filled_, 0);
    if (batch == 0) batch = fill(scheduler, waits);
    if (!over_) scheduler->commit_batch(request(), batch);
  }
  void chain(v1::JobScheduler_ptr scheduler) { come_and_stay(scheduler, Waits::kForOneBefore); }
  void follow(v1::JobScheduler_ptr scheduler) { come_and_stay(scheduler, Waits::kForAnotherBatch); }
  void come_and_go(v1::JobScheduler_ptr scheduler) {
    v1::JobFilter batch{};
    batch.batch = std::exchange(filled_, 0);
    if (batch.batch == 0) batch.batch = fill(scheduler);
    if (over_) return;  // it may be empty, which cannot be committed
    scheduler->commit_batch(request(), batch.batch);
    const v1::Control_var removed = scheduler->remove(request(), batch);
  }
  void append(v1::JobScheduler_ptr scheduler) {
    v1::JobDescriptions part;
    part.length(16);
    for (CORBA::ULong i = 0; i < part.length(); ++i) {
      part[i] = idle_job();
      part[i].arguments.length(1);
      part[i].arguments[0] = octets<v1::Bytes>(std::string(kLargeOctets, 'x'));
    }
    const v1::BatchId batch = open(scheduler);
    for (CORBA::ULong call = 0; !over_; ++call, ++calls_) scheduler->append(batch, call, part);
  }

  Orb orb_;
  const std::string socket_;
  const std::string folder_;
  const uint64_t count_;
  v1::JobId waiting_ = 0;
  v1::BatchId filled_ = 0;  // for the only thread
  std::atomic<bool> over_{false};
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint64_t> refused_{0};
};

const std::map<std::string, Neighbour::Call> Neighbour::kLoads = {
    {"watch", &Neighbour::watch},        {"count", &Neighbour::count},
    {"list", &Neighbour::list},          {"why", &Neighbour::why},
    {"commit", &Neighbour::come_and_go}, {"append", &Neighbour::append},
    {"finish", &Neighbour::come_and_go}, {"chain", &Neighbour::chain},
    {"follow", &Neighbour::follow},
};

}  // namespace
}  // namespace sublet

int main(int argc, char** argv) {
  if (argc < 5 || argc > 6)
    return std::fputs("usage: bench-neighbour SOCKET FOLDER LOAD THREADS [COUNT]\n", stderr), 2;
  try {
    const uint64_t count = argc == 6 ? std::stoull(argv[5]) : 0;
    sublet::Neighbour(argv[1], argv[2], count).run(argv[3], std::stoul(argv[4]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-neighbour: %s\n", error.what());
  } catch (const CORBA::SystemException& error) {
    std::fprintf(stderr, "bench-neighbour: %s\n", sublet::describe(error).text.c_str());
  } catch (const CORBA::Exception& error) {
    std::fprintf(stderr, "bench-neighbour: the server refused: %s\n", error._name());
  }
  return 1;
}
