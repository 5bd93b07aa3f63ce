// Many workstations in one process, each with its own connection: they join, pass their
// callback reference, renew their leases every D/3 and accept no jobs.
//
//   usage: bench-machines SOCKET FOLDER COUNT SECONDS
//
// FOLDER receives COUNT symbolic links to the server's socket: the ORB takes each for another
// server, so that no two machines share a connection. Prints {"joined_seconds"} when all have
// joined, then renews for SECONDS and prints
//   {"renewals", "p50", "p99", "ping_p50", "ping_p99"}
// in seconds per call: a renewal is durable, a ping is not. Exits at the end of stdin, so that
// the server can be measured with all of them connected.
#include <omniORB4/CORBA.h>
// clang-format off
#include <omniORB4/omniObjRef.h>
// clang-format on
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "execution_server.hh"
#include "machine_allocator.hh"
#include "transport/orb.h"

namespace sublet {
namespace {

namespace v1 = Sublet::v1;
using Stopwatch = std::chrono::steady_clock;

constexpr size_t kThreads = 16;                           // make the machines' calls
constexpr std::chrono::milliseconds kRenewEvery{10'000};  // D/3
constexpr int kCallTimeoutMs = 60'000;

double seconds_since(Stopwatch::time_point began) {
  return std::chrono::duration<double>(Stopwatch::now() - began).count();
}

template <typename Octets>
Octets octets(const std::string& bytes) {
  Octets out;
  out.length(static_cast<CORBA::ULong>(bytes.size()));
  std::copy(bytes.begin(), bytes.end(), out.get_buffer());
  return out;
}

// Receives no orders: the owner of each machine is present.
class Idler : public POA_Sublet::v1::ExecutingClient {
 public:
  v1::RunAnswers* run(const v1::SessionKey&, v1::ServerTerm, const v1::RunOrders&) override {
    no();
  }
  v1::RunAnswer* may_run(const v1::SessionKey&, v1::ServerTerm, const v1::Requirements&) override {
    no();
  }
  void vacate(const v1::SessionKey&, v1::ServerTerm, const v1::VacateOrders&) override { no(); }
  v1::Bytes* read_log(const v1::SessionKey&, v1::ServerTerm, const v1::AttemptKey&, CORBA::ULong,
                      v1::ByteCount, CORBA::ULong) override {
    no();
  }
  v1::Details* state(const v1::SessionKey&, v1::ServerTerm) override { return new v1::Details; }

 private:
  [[noreturn]] static void no() {
    throw v1::Unavailable("bench.idle", "This machine only idles.", "", "");
  }
};

struct Machine {
  v1::ExecutionServer_var server;
  v1::Session_var session;
  v1::SessionKey key;
};

struct Delays {
  std::vector<double> renewals;
  std::vector<double> pings;
};

class Machines {
 public:
  Machines(const std::string& socket, const std::string& folder, size_t count)
      : socket_(socket), folder_(folder), orb_(orb_settings(count)), idler_(new Idler) {
    PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId("ExecutingClient");
    orb_.bidir_poa()->activate_object_with_id(id, idler_.in());
    CORBA::Object_var object = orb_.bidir_poa()->id_to_reference(id);
    self_ = v1::ExecutingClient::_unchecked_narrow(object);
    machines_.resize(count);
  }

  void join() {
    in_parallel([this](size_t thread) {
      for (size_t i = thread; i < machines_.size(); i += kThreads) join(i);
    });
  }

  // Renews each machine's lease every D/3, evenly spread over that time.
  Delays renew(double for_seconds) {
    Delays all;
    std::mutex mutex;
    const auto end = Stopwatch::now() + std::chrono::duration_cast<Stopwatch::duration>(
                                            std::chrono::duration<double>(for_seconds));
    in_parallel([&](size_t thread) {
      Delays mine;
      while (Stopwatch::now() < end) renew_once(thread, end, &mine);
      std::lock_guard lock(mutex);
      all.renewals.insert(all.renewals.end(), mine.renewals.begin(), mine.renewals.end());
      all.pings.insert(all.pings.end(), mine.pings.begin(), mine.pings.end());
    });
    return all;
  }

 private:
  static OrbSettings orb_settings(size_t count) {
    OrbSettings settings;
    settings.call_back = true;
    settings.max_connections = count + 1000;
    settings.client_call_timeout_ms = kCallTimeoutMs;
    return settings;
  }

  template <typename Work>
  void in_parallel(Work work) {
    std::atomic<bool> failed{false};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        omni_thread::ensure_self self;
        try {
          work(t);
        } catch (const CORBA::SystemException& error) {
          std::fprintf(stderr, "bench-machines: %s\n", describe(error).text.c_str());
          failed = true;
        } catch (const CORBA::Exception& error) {
          std::fprintf(stderr, "bench-machines: the server refused: %s\n", error._name());
          failed = true;
        }
      });
    for (auto& thread : threads) thread.join();
    if (failed) throw std::runtime_error("a call failed");
  }

  template <typename Interface>
  typename Interface::_ptr_type find(const std::string& path, const std::string& key) {
    CORBA::Object_var object = orb_.resolve(path, key);
    return Interface::_unchecked_narrow(object);
  }

  // The object's key, percent-encoded as in a corbaloc address.
  static std::string key_of(CORBA::Object_ptr object) {
    omniIOR_var ior = object->_PR_getobj()->_getIOR();
    _CORBA_Unbounded_Sequence_Octet key;
    IIOP::unmarshalObjectKey(ior->iopProfiles()[0], key);
    return percent_encode({reinterpret_cast<const char*>(key.get_buffer()), key.length()});
  }

  void join(size_t i) {
    const std::string path = folder_ + "/" + std::to_string(i);
    if (symlink(socket_.c_str(), path.c_str()) != 0) throw std::runtime_error("no link " + path);
    v1::MachineDescription facts{};
    facts.name = ("machine-" + std::to_string(i)).c_str();
    facts.os = "linux";
    facts.architecture = "x86_64";
    facts.cores = facts.slots = 2;
    facts.memory = facts.disk = 1ull << 32;
    facts.version = "bench";
    v1::MachineAllocator_var allocator = find<v1::MachineAllocator>(path, "MachineAllocator");
    v1::JoinAnswer_var answer = allocator->join(0, octets<v1::Bytes>(random_bytes(32)), facts);
    Machine& machine = machines_[i];
    machine.key = answer->key;
    machine.server = find<v1::ExecutionServer>(path, "ExecutionServer");
    const std::string address =
        "corbaloc:omniunix:" + path + ":/" + key_of(answer->session_reference);
    CORBA::Object_var object = orb_.orb()->string_to_object(address.c_str());
    machine.session = v1::Session::_unchecked_narrow(object);
    machine.session->attach(self_);
    renew(machine);
  }

  static void renew(Machine& machine) {
    v1::MachineReport report{};
    report.away = false;
    report.slots_free = 2;
    report.memory_free = report.disk_free = 1ull << 32;
    v1::RenewAnswer_var answer = machine.server->renew(machine.key, report, v1::AttemptStatuses());
  }

  void renew_once(size_t thread, Stopwatch::time_point end, Delays* delays) {
    const auto round = Stopwatch::now();
    for (size_t i = thread; i < machines_.size(); i += kThreads) {
      std::this_thread::sleep_until(
          std::min<Stopwatch::time_point>(end, round + kRenewEvery * i / machines_.size()));
      if (Stopwatch::now() >= end) return;
      const auto asked = Stopwatch::now();
      renew(machines_[i]);
      delays->renewals.push_back(seconds_since(asked));
      const auto pinged = Stopwatch::now();
      machines_[i].session->ping();
      delays->pings.push_back(seconds_since(pinged));
    }
    std::this_thread::sleep_until(std::min<Stopwatch::time_point>(end, round + kRenewEvery));
  }

  const std::string socket_;
  const std::string folder_;
  Orb orb_;
  PortableServer::Servant_var<Idler> idler_;
  v1::ExecutingClient_var self_;
  std::vector<Machine> machines_;
};

double percentile(std::vector<double>& values, size_t percent) {
  std::sort(values.begin(), values.end());
  return values.at(std::min(values.size() - 1, values.size() * percent / 100));
}

int run(char** argv) {
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  Machines machines(argv[1], argv[2], std::stoull(argv[3]));
  const auto began = Stopwatch::now();
  machines.join();
  std::printf("{\"joined_seconds\": %.3f}\n", seconds_since(began));
  std::fflush(stdout);
  Delays delays = machines.renew(std::stod(argv[4]));
  std::printf(
      "{\"renewals\": %zu, \"p50\": %.9f, \"p99\": %.9f, \"ping_p50\": %.9f, "
      "\"ping_p99\": %.9f}\n",
      delays.renewals.size(), percentile(delays.renewals, 50), percentile(delays.renewals, 99),
      percentile(delays.pings, 50), percentile(delays.pings, 99));
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
  }
  // Closing thousands of connections one by one takes long; the exit closes them at once.
  _exit(0);
}

}  // namespace
}  // namespace sublet

int main(int argc, char** argv) {
  if (argc != 5)
    return std::fputs("usage: bench-machines SOCKET FOLDER COUNT SECONDS\n", stderr), 2;
  try {
    return sublet::run(argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-machines: %s\n", error.what());
    return 1;
  }
}
