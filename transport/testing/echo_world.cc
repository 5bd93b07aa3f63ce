#include "transport/testing/echo_world.h"

#include <fcntl.h>
#include <omniORB4/omniObjRef.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/text.h"

namespace sublet::testing {
namespace {

using Steady = std::chrono::steady_clock;

// The sink attached last, shared by sessions and Echo.
class Callback {
 public:
  void set(EchoTest::Sink_ptr sink) {
    std::lock_guard<std::mutex> lock(mutex_);
    sink_ = EchoTest::Sink::_duplicate(sink);
  }
  EchoTest::Sink_ptr get() {
    std::lock_guard<std::mutex> lock(mutex_);
    return EchoTest::Sink::_duplicate(sink_);
  }

 private:
  std::mutex mutex_;
  EchoTest::Sink_var sink_;
};

class SessionServant : public POA_EchoTest::Session {
 public:
  explicit SessionServant(Callback* callback) : callback_(callback) {}
  CORBA::Boolean attach(EchoTest::Sink_ptr target) override {
    if (!leads_back_to_caller(target)) return false;
    callback_->set(target);
    return true;
  }

 private:
  Callback* callback_;
};

double median_call(EchoTest::Sink_ptr sink, uint32_t times) {
  std::vector<double> costs;
  for (uint32_t i = 0; i < times; ++i) {
    const auto before = Steady::now();
    if (sink->next(i) != i + 1) return -1;
    costs.push_back(std::chrono::duration<double, std::micro>(Steady::now() - before).count());
  }
  std::nth_element(costs.begin(), costs.begin() + costs.size() / 2, costs.end());
  return costs[costs.size() / 2];
}

class EchoServant : public POA_EchoTest::Echo {
 public:
  // Sessions require an Orb.
  EchoServant(const Orb* orb, Callback* callback) : orb_(orb), callback_(callback) {}
  char* text(const char* words) override { return CORBA::string_dup(words); }
  EchoTest::Bytes* blob(const EchoTest::Bytes& data) override { return new EchoTest::Bytes(data); }
  EchoTest::Texts* list(const EchoTest::Texts& words) override {
    return new EchoTest::Texts(words);
  }
  void linger(CORBA::ULong milliseconds) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  }
  CORBA::ULong who() override { return caller_uid().value_or(~0u); }
  char* caller_name() override {
    const auto peer = calling_peer();
    return CORBA::string_dup(peer ? peer->text().c_str() : "nobody");
  }
  EchoTest::Counts count() override {
    const OrbCounters now = Orb::counters();
    return {now.accepted, now.refused, now.dialled, now.violations, now.open_now};
  }
  EchoTest::Session_ptr open() override {
    CORBA::Object_var object = orb_->bidir_poa()->id_to_reference(
        PortableServer::ObjectId_var(PortableServer::string_to_ObjectId("session")));
    return EchoTest::Session::_narrow(object);
  }
  void begin_call_back(CORBA::ULong times) override {
    if (calling_.joinable()) calling_.join();
    cost_ = 0;
    EchoTest::Sink_var sink = callback_->get();
    calling_ = std::thread([this, sink, times] {
      omni_thread::ensure_self self;
      try {
        const double cost = median_call(sink, times);
        called_as_ = sink->caller();
        cost_ = cost;
      } catch (const CORBA::SystemException& exception) {
        std::cerr << "call back: " << describe(exception).text << "\n";
        cost_ = -1;
      }
    });
  }
  CORBA::Double called_back() override { return cost_; }
  CORBA::ULong called_as() override { return called_as_; }
  ~EchoServant() override {
    if (calling_.joinable()) calling_.join();
  }

 private:
  const Orb* orb_;
  Callback* callback_;
  std::thread calling_;
  std::atomic<double> cost_{0};
  std::atomic<uint32_t> called_as_{0};
};

class SinkServant : public POA_EchoTest::Sink {
 public:
  CORBA::ULongLong next(CORBA::ULongLong n) override { return n + 1; }
  CORBA::ULong caller() override { return caller_uid().value_or(~0u); }
};

// When loaded, omniORB creates pipes that its threads use to wake each other.
// Forked children would share them and steal each other's wake-ups (a shutdown
// then hangs), so each child replaces them by new ones.
struct WakePipe {
  int read_end;
  int write_end;
};

std::vector<WakePipe> find_pipes() {
  std::map<ino_t, WakePipe> ends;
  for (int fd = 3; fd < 64; ++fd) {
    struct stat about {};
    if (::fstat(fd, &about) != 0 || !S_ISFIFO(about.st_mode)) continue;
    WakePipe& pipe = ends.try_emplace(about.st_ino, WakePipe{-1, -1}).first->second;
    ((::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY ? pipe.read_end : pipe.write_end) = fd;
  }
  std::vector<WakePipe> pipes;
  for (const auto& [inode, pipe] : ends) {
    if (pipe.read_end >= 0 && pipe.write_end >= 0) pipes.push_back(pipe);
  }
  return pipes;
}

// Initialised after the libraries are loaded and before a test creates pipes.
const std::vector<WakePipe> kWakePipes = find_pipes();

void renew_wake_pipes() {
  for (const WakePipe& old : kWakePipes) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) ::_exit(96);
    ::dup2(ends[0], old.read_end);
    ::dup2(ends[1], old.write_end);
    ::close(ends[0]);
    ::close(ends[1]);
  }
}

bool attach_sink_to(const Orb& orb, CORBA::Object_ptr session) {
  // Kept until the process ends: the server may call at any time.
  static SinkServant sink;
  PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId("sink");
  try {
    orb.bidir_poa()->activate_object_with_id(id, &sink);
  } catch (const PortableServer::POA::ObjectAlreadyActive&) {
  }
  CORBA::Object_var object = orb.bidir_poa()->id_to_reference(id);
  EchoTest::Session_var narrowed = EchoTest::Session::_unchecked_narrow(session);
  return narrowed->attach(EchoTest::Sink_var(EchoTest::Sink::_narrow(object)));
}

void wait_for_sigterm() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  int signal = 0;
  sigwait(&set, &signal);
}

}  // namespace

Folder::Folder() {
  char pattern[] = "/tmp/sublet-guard-XXXXXX";
  if (::mkdtemp(pattern) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = pattern;
}

Folder::~Folder() { std::filesystem::remove_all(path_); }

Process::Process(const std::function<int()>& body) {
  std::cout.flush();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) {
    renew_wake_pipes();
    int code = 99;
    try {
      code = body();
    } catch (const CORBA::SystemException& exception) {
      std::cerr << "uncaught: " << describe(exception).text << "\n";
    } catch (const std::exception& exception) {
      std::cerr << "uncaught: " << exception.what() << "\n";
    }
    std::cerr.flush();
    ::_exit(code);
  }
}

Process::~Process() {
  if (!alive()) return;
  ::kill(pid_, SIGKILL);
  wait(10'000);
}

int Process::wait(int deadline_ms) {
  const auto until = Steady::now() + std::chrono::milliseconds(deadline_ms);
  while (alive()) {
    if (Steady::now() > until) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return code_;
}

bool Process::alive() {
  if (code_ >= 0) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

int serve_echo(const OrbSettings& settings, int ready) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  Orb orb(settings);
  Callback callback;
  EchoServant echo(&orb, &callback);
  SessionServant session(&callback);
  orb.ins_poa()->activate_object_with_id(
      PortableServer::ObjectId_var(PortableServer::string_to_ObjectId("Echo")), &echo);
  orb.bidir_poa()->activate_object_with_id(
      PortableServer::ObjectId_var(PortableServer::string_to_ObjectId("session")), &session);
  orb.open_door();
  if (orb.port() != 0) std::ofstream(settings.listen_path + ".port") << orb.port();
  if (::write(ready, "+", 1) != 1) return 98;
  wait_for_sigterm();
  callback.set(EchoTest::Sink::_nil());
  orb.shutdown();
  return 0;
}

std::unique_ptr<Process> start_server(const std::function<int(int ready)>& serve) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  auto process = std::make_unique<Process>([&] {
    ::close(pipe[0]);
    return serve(pipe[1]);
  });
  ::close(pipe[1]);
  pollfd readable{pipe[0], POLLIN, 0};
  char answer = 0;
  const bool good = ::poll(&readable, 1, 20'000) == 1 && ::read(pipe[0], &answer, 1) == 1;
  ::close(pipe[0]);
  if (!good) throw std::runtime_error("the echo server did not start");
  return process;
}

Server::Server(const std::function<void(OrbSettings&)>& prepare)
    : socket_(folder_.path() + "/socket") {
  const std::string log = folder_.path() + "/log";
  process_ = start_server([&](int ready) {
    const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    OrbSettings settings;
    settings.listen_path = socket_;
    settings.log = [file](std::string_view line) {
      const std::string text = std::string(line) + "\n";
      if (::write(file, text.data(), text.size()) < 0) ::_exit(97);
    };
    if (prepare) prepare(settings);
    return serve_echo(settings, ready);
  });
}

PlainServer::PlainServer() : socket_(folder_.path() + "/socket") {
  process_ = start_server([&](int ready) {
    int argc = 5;
    std::string words[] = {"plain", "-ORBendPoint", "giop:unix:" + socket_,
                           "-ORBserverCallTimeOutPeriod", "3000"};
    char* argv[] = {words[0].data(), words[1].data(), words[2].data(),
                    words[3].data(), words[4].data(), nullptr};
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    CORBA::Object_var object = orb->resolve_initial_references("omniINSPOA");
    PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
    EchoServant echo(nullptr, nullptr);
    poa->activate_object_with_id(
        PortableServer::ObjectId_var(PortableServer::string_to_ObjectId("Echo")), &echo);
    PortableServer::POAManager_var(poa->the_POAManager())->activate();
    if (::write(ready, "+", 1) != 1) return 98;
    for (;;) ::pause();
  });
}

int Server::stop() {
  ::kill(pid(), SIGTERM);
  return process_->wait(20'000);
}

uint16_t Server::port() const {
  uint16_t port = 0;
  std::ifstream(socket_ + ".port") >> port;
  return port;
}

std::string Server::log() const {
  std::ostringstream text;
  text << std::ifstream(folder_.path() + "/log").rdbuf();
  return text.str();
}

bool in_client(const OrbSettings& settings, const std::function<bool(Orb&)>& body,
               int deadline_ms) {
  Process client([&] {
    Orb orb(settings);
    bool good = false;
    try {
      good = body(orb);
    } catch (const CORBA::SystemException& exception) {
      std::cerr << "client: " << describe(exception).text << "\n";
    }
    orb.shutdown();
    return good ? 0 : 1;
  });
  return client.wait(deadline_ms) == 0;
}

EchoTest::Echo_ptr find_echo(const Orb& orb, const std::string& socket) {
  CORBA::Object_var object = orb.resolve(socket, "Echo");
  return EchoTest::Echo::_narrow(object);
}

bool attach_sink(const Orb& orb, EchoTest::Echo_ptr echo) {
  EchoTest::Session_var there = echo->open();
  CORBA::Object_var here = orb.at_server(there);
  return attach_sink_to(orb, here);
}

bool attach_sink_over(const Orb& orb, const std::string& socket) {
  EchoTest::Echo_var echo = find_echo(orb, socket);
  EchoTest::Session_var there = echo->open();
  omniIOR_var ior = there->_PR_getobj()->_getIOR();
  _CORBA_Unbounded_Sequence_Octet key;
  IIOP::unmarshalObjectKey(ior->iopProfiles()[0], key);
  const std::string address =
      "corbaloc:omniunix:" + socket + ":/" +
      percent_encode({reinterpret_cast<const char*>(key.get_buffer()), key.length()});
  CORBA::Object_var here = orb.orb()->string_to_object(address.c_str());
  return attach_sink_to(orb, here);
}

int dial(const std::string& socket) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

bool closed_by_peer(int socket, int deadline_ms) {
  const auto until = Steady::now() + std::chrono::milliseconds(deadline_ms);
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Steady::now());
    pollfd readable{socket, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&readable, 1, static_cast<int>(left.count())) != 1)
      return false;
    char buffer[4096];
    if (::recv(socket, buffer, sizeof buffer, 0) <= 0) return true;
  }
}

bool write_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

}  // namespace sublet::testing
