// A user's program that stays connected: it calls the server as ordered on stdin and prints
// how long each call took, so that the start of a process is not measured.
//
//   usage: bench-caller SOCKET
//
// stdin has one order per line, stdout one JSON object for each. Instants are seconds of
// CLOCK_MONOTONIC. All jobs run `true` unless a program is given.
//   submit PROGRAM [WORD...]      {"job", "asked", "answered"}
//   through SECONDS               single jobs, one after the other, for so long: {"delays"},
//                                 seconds from each call to the news that it is done
//   remove JOB                    {}
//   singles COUNT CALLERS         one job per call, CALLERS concurrent callers:
//                                 {"seconds", "p50", "p99"}; percentiles of a call
//   batch COUNT PER_CALL [KINDS]  one batch, PER_CALL jobs per call: {"seconds"}; with
//                                 2 kinds, adjacent jobs differ (not stored as one row)
//   array COUNT                   one batch of one array: {"seconds"}
//   waiting                       number of waiting jobs, from the brain: {"at", "waiting"}
//   count                         {"waiting", "placed", "running", "done", "failed"}
//   await-other PID               waits until a server with another PID answers:
//                                 {"at", "server_pid"}
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "job_scheduler.hh"
#include "transport/orb.h"

namespace sublet {
namespace {

namespace v1 = Sublet::v1;

constexpr int kCallTimeoutMs = 120'000;
constexpr double kAwaitSeconds = 300;

double now() {
  timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return static_cast<double>(at.tv_sec) + static_cast<double>(at.tv_nsec) / 1e9;
}

template <typename Octets>
Octets octets(const std::string& bytes) {
  Octets out;
  out.length(static_cast<CORBA::ULong>(bytes.size()));
  std::copy(bytes.begin(), bytes.end(), out.get_buffer());
  return out;
}

v1::JobDescription job(const std::string& program, const std::vector<std::string>& words = {}) {
  v1::JobDescription out{};
  out.name = "bench";
  out.program = octets<v1::Bytes>(program);
  out.arguments.length(static_cast<CORBA::ULong>(words.size()));
  for (CORBA::ULong i = 0; i < out.arguments.length(); ++i)
    out.arguments[i] = octets<v1::Bytes>(words[i]);
  return out;
}

class BenchCaller {
 public:
  explicit BenchCaller(const std::string& socket) : orb_(orb_settings()) {
    CORBA::Object_var object = orb_.resolve(socket, "JobScheduler");
    scheduler_ = v1::JobScheduler::_unchecked_narrow(object);
  }

  void obey(const std::string& line) {
    std::istringstream words(line);
    std::string order;
    words >> order;
    if (order == "submit") return submit(words);
    if (order == "through") return through(words);
    if (order == "remove") return remove(words);
    if (order == "singles") return singles(words);
    if (order == "batch") return batch(words);
    if (order == "array") return array(words);
    if (order == "waiting") return waiting();
    if (order == "count") return count();
    if (order == "await-other") return await_other(words);
    throw std::runtime_error("unknown order '" + line + "'");
  }

 private:
  static OrbSettings orb_settings() {
    OrbSettings settings;
    settings.client_call_timeout_ms = kCallTimeoutMs;
    return settings;
  }

  static uint64_t number(std::istream& words) {
    uint64_t value = 0;
    if (!(words >> value)) throw std::runtime_error("a number is missing");
    return value;
  }

  static v1::RequestId request() { return octets<v1::RequestId>(random_bytes(16)); }

  void submit(std::istream& words) {
    std::string program;
    words >> program;
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    const v1::JobDescription what = job(program, arguments);
    const double asked = now();
    const v1::JobId id = scheduler_->submit(request(), "bench", what);
    std::printf("{\"job\": %llu, \"asked\": %.9f, \"answered\": %.9f}\n",
                static_cast<unsigned long long>(id), asked, now());
  }

  // Returns when the job is done; `since`: the last change that is known.
  void await_end(v1::JobId job, v1::HistoryNumber* since) {
    for (const double end = now() + kAwaitSeconds; now() < end;) {
      const v1::ChangePage_var page = scheduler_->changes_since(*since, 10'000);
      *since = page->last;
      for (CORBA::ULong i = 0; i < page->items.length(); ++i) {
        if (page->items[i].job != job) continue;
        if (page->items[i].state == v1::JOB_DONE) return;
        if (page->items[i].state == v1::JOB_FAILED) throw std::runtime_error("a job failed");
      }
    }
    throw std::runtime_error("a job does not end");
  }

  void through(std::istream& words) {
    double seconds = 0;
    words >> seconds;
    const v1::ChangePage_var begin = scheduler_->changes_since(0, 0);
    v1::HistoryNumber since = begin->last;
    std::string delays;
    for (const double end = now() + seconds; now() < end || delays.empty();) {
      const double asked = now();
      const v1::JobId id = scheduler_->submit(request(), "bench", job("true"));
      await_end(id, &since);
      delays += (delays.empty() ? "" : ", ") + std::to_string(now() - asked);
    }
    std::printf("{\"delays\": [%s]}\n", delays.c_str());
  }

  void remove(std::istream& words) {
    v1::JobFilter which{};
    which.ids.length(1);
    which.ids[0] = {number(words), 1};
    const v1::Control_var done = scheduler_->remove(request(), which);
    std::puts("{}");
  }

  void singles(std::istream& words) {
    const int64_t jobs = static_cast<int64_t>(number(words));
    std::vector<std::vector<double>> took(std::max<size_t>(1, number(words)));
    std::atomic<int64_t> left{jobs};
    std::atomic<bool> failed{false};
    const v1::JobDescription what = job("true");
    const double began = now();
    std::vector<std::thread> callers;
    for (auto& mine : took)
      callers.emplace_back([&] {
        omni_thread::ensure_self self;
        try {
          while (left-- > 0) {
            const double asked = now();
            scheduler_->submit(request(), "bench", what);
            mine.push_back(now() - asked);
          }
        } catch (const CORBA::Exception&) {
          failed = true;
        }
      });
    for (auto& caller : callers) caller.join();
    const double seconds = now() - began;
    if (failed) throw std::runtime_error("a submission failed");
    std::vector<double> all;
    for (const auto& mine : took) all.insert(all.end(), mine.begin(), mine.end());
    std::sort(all.begin(), all.end());
    std::printf("{\"seconds\": %.6f, \"p50\": %.9f, \"p99\": %.9f}\n", seconds,
                all.at(all.size() / 2), all.at(all.size() * 99 / 100));
  }

  v1::BatchId open() {
    v1::BatchDescription description{};
    description.name = "bench";
    description.submit_host = "bench";
    return scheduler_->open_batch(request(), description);
  }

  void batch(std::istream& words) {
    const uint64_t jobs = number(words);
    const uint64_t per_call = number(words);
    uint64_t kinds = 1;
    words >> kinds;
    v1::JobDescriptions part;
    const double began = now();
    const v1::BatchId id = open();
    uint64_t sent = 0;
    for (CORBA::ULong call = 0; sent < jobs; ++call) {
      const uint64_t size = std::min(per_call, jobs - sent);
      if (part.length() != size) {
        part.length(static_cast<CORBA::ULong>(size));
        for (CORBA::ULong i = 0; i < part.length(); ++i) {
          part[i] = job("true");
          part[i].retries = i % kinds;
        }
      }
      scheduler_->append(id, call, part);
      sent += size;
    }
    scheduler_->commit_batch(request(), id);
    std::printf("{\"seconds\": %.6f}\n", now() - began);
  }

  void array(std::istream& words) {
    const uint64_t jobs = number(words);
    const double began = now();
    const v1::BatchId id = open();
    scheduler_->append_array(id, 0, job("true"), 0, jobs);
    scheduler_->commit_batch(request(), id);
    std::printf("{\"seconds\": %.6f}\n", now() - began);
  }

  void count() {
    const v1::JobFilter all{};
    v1::Counts_var counts = scheduler_->count(all);
    const auto in_state = [&](CORBA::ULong state) {
      unsigned long long number = 0;
      for (CORBA::ULong i = 0; i < counts->length(); ++i)
        if (counts[i].value == state) number = counts[i].number;
      return number;
    };
    std::printf(
        "{\"waiting\": %llu, \"placed\": %llu, \"running\": %llu, \"done\": %llu, \"failed\": "
        "%llu}\n",
        in_state(v1::JOB_WAITING), in_state(v1::JOB_PLACED), in_state(v1::JOB_RUNNING),
        in_state(v1::JOB_DONE), in_state(v1::JOB_FAILED));
  }

  // The value with this name in the server's answer to about().
  std::string about(const std::string& name) {
    v1::PoolInfo_var info = scheduler_->about();
    for (CORBA::ULong i = 0; i < info->more.length(); ++i)
      if (name == info->more[i].name.in()) return info->more[i].value.in();
    throw std::runtime_error("the server does not report its " + name);
  }

  void waiting() {
    const std::string jobs = about("waiting");
    std::printf("{\"at\": %.6f, \"waiting\": %s}\n", now(), jobs.c_str());
  }

  void await_other(std::istream& words) {
    const std::string old = std::to_string(number(words));
    for (const double end = now() + kAwaitSeconds; now() < end;) {
      try {
        const std::string pid = about("server_pid");
        if (pid != old) {
          std::printf("{\"at\": %.9f, \"server_pid\": %s}\n", now(), pid.c_str());
          return;
        }
      } catch (const CORBA::SystemException&) {
        // No server is listening yet.
      } catch (const v1::Unavailable&) {
        // The old server, shutting down.
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    throw std::runtime_error("no new server has answered");
  }

  Orb orb_;
  v1::JobScheduler_var scheduler_;
};

int run(const std::string& socket) {
  BenchCaller caller(socket);
  for (std::string line; std::getline(std::cin, line);) {
    caller.obey(line);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace sublet

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: bench-caller SOCKET\n", stderr), 2;
  try {
    return sublet::run(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-caller: %s\n", error.what());
  } catch (const CORBA::SystemException& error) {
    std::fprintf(stderr, "bench-caller: %s\n", sublet::describe(error).text.c_str());
  } catch (const CORBA::Exception& error) {
    std::fprintf(stderr, "bench-caller: the server refused: %s\n", error._name());
  }
  return 1;
}
