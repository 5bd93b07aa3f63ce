// Many workstations in one process, each with its own connection: they join, pass their
// callback reference, renew their leases every D/3 and accept no jobs.
//
//   usage: bench-machines SOCKET FOLDER FIRST COUNT
//
// FOLDER receives COUNT symbolic links to the server's socket, named by the machines' numbers
// from FIRST on: the ORB takes each for another server, so that no two machines share a
// connection. Prints {"joined_seconds"} when all have joined, and renews until the end of stdin,
// so that the server can be measured with all of them connected. A line of stdin is a number of
// seconds: prints how long the calls that begin in that time take, in seconds, as
//   {"renewals": [...], "pings": [...]}
// A renewal is durable, a ping is not.
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

// How long calls took, while somebody asks. Thread-safe.
class Delays {
 public:
  // Longer if there is no call in that time.
  void measure(double seconds) {
    measuring_ = true;
    do {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    } while (none());
    measuring_ = false;
    std::lock_guard lock(mutex_);
    std::printf("{\"renewals\": ");
    print(renewals_);
    std::printf(", \"pings\": ");
    print(pings_);
    std::printf("}\n");
    std::fflush(stdout);
  }

  template <typename Renew, typename Ping>
  void time(Renew renew, Ping ping) {
    const bool wanted = measuring_;
    const auto asked = Stopwatch::now();
    renew();
    const auto pinged = Stopwatch::now();
    ping();
    if (!wanted) return;
    std::lock_guard lock(mutex_);
    renewals_.push_back(std::chrono::duration<double>(pinged - asked).count());
    pings_.push_back(seconds_since(pinged));
  }

 private:
  bool none() {
    std::lock_guard lock(mutex_);
    return pings_.empty();
  }
  static void print(const std::vector<double>& values) {
    for (size_t i = 0; i < values.size(); ++i)
      std::printf("%s%.9f", i == 0 ? "[" : ", ", values[i]);
    std::printf(values.empty() ? "[]" : "]");
  }

  std::atomic<bool> measuring_{false};
  std::mutex mutex_;
  std::vector<double> renewals_;
  std::vector<double> pings_;
};

class Machines {
 public:
  Machines(const std::string& socket, const std::string& folder, size_t first, size_t count)
      : socket_(socket),
        folder_(folder),
        first_(first),
        orb_(orb_settings(count)),
        idler_(new Idler) {
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

  // Renews each machine's lease every D/3, evenly spread over that time, until the process
  // ends.
  void renew(Delays* delays) {
    in_parallel([&](size_t thread) {
      for (;;) renew_once(thread, delays);
    });
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
    const std::string number = std::to_string(first_ + i);
    const std::string path = folder_ + "/" + number;
    if (symlink(socket_.c_str(), path.c_str()) != 0) throw std::runtime_error("no link " + path);
    v1::MachineDescription facts{};
    facts.name = ("machine-" + number).c_str();
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

  void renew_once(size_t thread, Delays* delays) {
    const auto round = Stopwatch::now();
    for (size_t i = thread; i < machines_.size(); i += kThreads) {
      std::this_thread::sleep_until(round + kRenewEvery * i / machines_.size());
      delays->time([&] { renew(machines_[i]); }, [&] { machines_[i].session->ping(); });
    }
    std::this_thread::sleep_until(round + kRenewEvery);
  }

  const std::string socket_;
  const std::string folder_;
  const size_t first_;
  Orb orb_;
  PortableServer::Servant_var<Idler> idler_;
  v1::ExecutingClient_var self_;
  std::vector<Machine> machines_;
};

int run(char** argv) {
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  Machines machines(argv[1], argv[2], std::stoull(argv[3]), std::stoull(argv[4]));
  const auto began = Stopwatch::now();
  machines.join();
  std::printf("{\"joined_seconds\": %.3f}\n", seconds_since(began));
  std::fflush(stdout);
  Delays delays;
  std::thread renewing([&] {
    try {
      machines.renew(&delays);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "bench-machines: %s\n", error.what());
      _exit(1);
    }
  });
  for (std::string line; std::getline(std::cin, line);) delays.measure(std::stod(line));
  // Closing thousands of connections one by one takes long; the exit closes them at once.
  _exit(0);
}

}  // namespace
}  // namespace sublet

int main(int argc, char** argv) {
  if (argc != 5) return std::fputs("usage: bench-machines SOCKET FOLDER FIRST COUNT\n", stderr), 2;
  try {
    return sublet::run(argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-machines: %s\n", error.what());
    return 1;
  }
}
