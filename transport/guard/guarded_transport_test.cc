// The guarded transport through the real ORB: well-behaved servers and clients.
// Hostile ones are in guarded_hostile_test.cc.
#include <cppunit/extensions/HelperMacros.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <thread>

#include "transport/testing/echo_world.h"

namespace sublet {
namespace {

using namespace testing;
using Steady = std::chrono::steady_clock;

OrbSettings caller() { return {}; }

OrbSettings called_back() {
  OrbSettings settings;
  settings.call_back = true;
  return settings;
}

// Has the server call us back `times` times; the median time in us, negative on failure.
double call_back(EchoTest::Echo_ptr echo, uint32_t times) {
  echo->begin_call_back(times);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  double cost = 0;
  while ((cost = echo->called_back()) == 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  return cost == 0 ? -1 : cost;
}

void accept_call_back(OrbSettings& settings) { settings.accept_call_back = true; }

// The sockets of a process, as "socket:[inode]".
std::set<std::string> sockets_of(pid_t pid) {
  std::set<std::string> found;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  DIR* directory = ::opendir(folder.c_str());
  if (directory == nullptr) return found;
  while (const dirent* entry = ::readdir(directory)) {
    char target[256] = {};
    const std::string path = folder + "/" + entry->d_name;
    if (::readlink(path.c_str(), target, sizeof target - 1) > 0 &&
        std::string_view(target).starts_with("socket:")) {
      found.insert(target);
    }
  }
  ::closedir(directory);
  return found;
}

// How many of the sockets appear in /proc/net/tcp and similar files.
size_t internet_sockets_of(pid_t pid) {
  const std::set<std::string> own = sockets_of(pid);
  size_t count = 0;
  for (const char* table : {"tcp", "tcp6", "udp", "udp6"}) {
    std::ifstream lines("/proc/" + std::to_string(pid) + "/net/" + table);
    std::string line;
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string word;
      for (int i = 0; i < 10; ++i) words >> word;
      count += own.count("socket:[" + word + "]");
    }
  }
  return count;
}

// Starts an ORB on this path in its own process, which must fail. Empty if the error
// contains the reason, else the error.
std::string missing_from_error(const std::string& path, const std::string& reason) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return "pipe";
  Process process([&] {
    OrbSettings settings;
    settings.listen_path = path;
    std::string said = "started";
    try {
      Orb orb(settings);
    } catch (const OrbError& error) {
      said = error.what();
    }
    return ::write(pipe[1], said.data(), said.size()) > 0 ? 0 : 1;
  });
  ::close(pipe[1]);
  std::string said(1024, '\0');
  said.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(pipe[0], said.data(), said.size()))));
  ::close(pipe[0]);
  return said.find(reason) == std::string::npos ? "said: " + said : std::string();
}

double median_text_call(EchoTest::Echo_ptr echo, int times) {
  std::vector<double> costs;
  for (int i = 0; i < times; ++i) {
    const auto before = Steady::now();
    CORBA::String_var answer = echo->text("hello");
    costs.push_back(std::chrono::duration<double, std::micro>(Steady::now() - before).count());
  }
  std::nth_element(costs.begin(), costs.begin() + times / 2, costs.end());
  return costs[times / 2];
}

}  // namespace

class GuardedTransportTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(GuardedTransportTest);
  CPPUNIT_TEST(call_and_caller);
  CPPUNIT_TEST(large_and_fragmented_calls);
  CPPUNIT_TEST(calls_back_over_the_same_connection);
  CPPUNIT_TEST(two_clients_are_told_apart);
  CPPUNIT_TEST(environment_cannot_loosen_it);
  CPPUNIT_TEST(start_that_fails_says_why);
  CPPUNIT_TEST(stale_socket_is_replaced);
  CPPUNIT_TEST(time_limits);
  CPPUNIT_TEST(text_is_utf8_at_a_fixed_address);
  CPPUNIT_TEST(failures_are_described);
  CPPUNIT_TEST(latency_beside_the_plain_transport);
  CPPUNIT_TEST_SUITE_END();

 public:
  void call_and_caller() {
    Server server;
    CPPUNIT_ASSERT(in_client(caller(), [&](Orb& orb) {
      EchoTest::Echo_var echo = find_echo(orb, server.socket());
      CORBA::String_var answer = echo->text("gr\xc3\xbc\xc3\x9f");
      return std::string(answer) == "gr\xc3\xbc\xc3\x9f" && echo->who() == ::getuid();
    }));
    CPPUNIT_ASSERT_EQUAL(size_t{0}, internet_sockets_of(server.pid()));
    CPPUNIT_ASSERT_EQUAL(0, server.stop());
    CPPUNIT_ASSERT(::access(server.socket().c_str(), F_OK) != 0);
    CPPUNIT_ASSERT_EQUAL(std::string(), server.log());
  }

  void large_and_fragmented_calls() {
    Server server;
    CPPUNIT_ASSERT(in_client(caller(), [&](Orb& orb) {
      EchoTest::Echo_var echo = find_echo(orb, server.socket());
      EchoTest::Bytes bytes;
      bytes.length(1'900'000);
      for (CORBA::ULong i = 0; i < bytes.length(); ++i) bytes[i] = static_cast<uint8_t>(i * 31);
      EchoTest::Bytes_var same = echo->blob(bytes);
      if (same->length() != bytes.length() || same[1'234'567] != bytes[1'234'567]) return false;
      // Texts of many sizes are split into fragments of many sizes.
      EchoTest::Texts words;
      words.length(3000);
      for (CORBA::ULong i = 0; i < words.length(); ++i) {
        words[i] = std::string(i % 371, 'x').c_str();
      }
      EchoTest::Texts_var back = echo->list(words);
      for (CORBA::ULong i = 0; i < words.length(); ++i) {
        if (std::string(back[i]) != std::string(words[i])) return false;
      }
      return echo->count().violations == 0;
    }));
  }

  void calls_back_over_the_same_connection() {
    Server server(accept_call_back);
    CPPUNIT_ASSERT(in_client(called_back(), [&](Orb& orb) {
      EchoTest::Echo_var echo = find_echo(orb, server.socket());
      if (!attach_sink(orb, echo)) return false;
      const double cost = call_back(echo, 1000);
      std::cout << " [call back " << cost << " us]" << std::flush;
      const EchoTest::Counts counts = echo->count();
      return cost > 0 && echo->called_as() == ::getuid() && counts.accepted == 1 &&
             counts.dialled == 0 && counts.violations == 0 && internet_sockets_of(::getpid()) == 0;
    }));
    CPPUNIT_ASSERT_EQUAL(size_t{0}, internet_sockets_of(server.pid()));
    CPPUNIT_ASSERT_EQUAL(0, server.stop());
  }

  // All clients have the same unopened end point in their references; the server must
  // still call each over its own connection.
  void two_clients_are_told_apart() {
    Server server(accept_call_back);
    int hold[2];
    CPPUNIT_ASSERT_EQUAL(0, ::pipe2(hold, O_CLOEXEC));
    int ready[2];
    CPPUNIT_ASSERT_EQUAL(0, ::pipe2(ready, O_CLOEXEC));
    Process first([&] {
      ::close(hold[1]);
      Orb orb(called_back());
      EchoTest::Echo_var echo = find_echo(orb, server.socket());
      if (!attach_sink(orb, echo) || ::write(ready[1], "+", 1) != 1) return 1;
      char end;
      return static_cast<int>(::read(hold[0], &end, 1));
    });
    char answer = 0;
    CPPUNIT_ASSERT_EQUAL(ssize_t{1}, ::read(ready[0], &answer, 1));
    CPPUNIT_ASSERT(in_client(called_back(), [&](Orb& orb) {
      EchoTest::Echo_var echo = find_echo(orb, server.socket());
      return call_back(echo, 10) > 0 && attach_sink(orb, echo) && call_back(echo, 10) > 0;
    }));
    // The last sink is gone with its client: no connection is opened to it.
    CPPUNIT_ASSERT(in_client(caller(), [&](Orb& orb) {
      EchoTest::Echo_var echo = find_echo(orb, server.socket());
      return call_back(echo, 1) < 0 && echo->count().dialled == 0;
    }));
    for (const int fd : {hold[0], hold[1], ready[0], ready[1]}) ::close(fd);
    CPPUNIT_ASSERT_EQUAL(0, first.wait(20'000));
  }

  void environment_cannot_loosen_it() {
    Server server([](OrbSettings&) {
      ::setenv("ORBendPoint", "giop:tcp::", 1);
      ::setenv("ORBserverTransportRule", "* none", 1);
      ::setenv("ORBgiopMaxMsgSize", "8192", 1);
      ::setenv("OMNIORB_CONFIG", "/nonexistent", 1);
    });
    CPPUNIT_ASSERT_EQUAL(size_t{0}, internet_sockets_of(server.pid()));
    CPPUNIT_ASSERT(in_client(caller(), [&](Orb& orb) {
      EchoTest::Bytes bytes;
      bytes.length(100'000);
      EchoTest::Echo_var echo = find_echo(orb, server.socket());
      return EchoTest::Bytes_var(echo->blob(bytes))->length() == bytes.length();
    }));
  }

  void start_that_fails_says_why() {
    Folder folder;
    Server other;
    CPPUNIT_ASSERT_EQUAL(std::string(), missing_from_error(folder.path() + std::string(120, 'x'),
                                                           "at most 107 are allowed"));
    CPPUNIT_ASSERT_EQUAL(std::string(),
                         missing_from_error(other.socket(), "another process listens on"));
    CPPUNIT_ASSERT_EQUAL(std::string(),
                         missing_from_error(folder.path() + "/no/folder", "No such file"));
    std::ofstream(folder.path() + "/file") << "precious";
    CPPUNIT_ASSERT_EQUAL(std::string(),
                         missing_from_error(folder.path() + "/file", "is not a socket"));
    CPPUNIT_ASSERT(in_client(caller(), [&](Orb& orb) {
      EchoTest::Echo_var echo = find_echo(orb, other.socket());
      return echo->who() == ::getuid();
    }));
  }

  void stale_socket_is_replaced() {
    Folder folder;
    OrbSettings settings;
    settings.listen_path = folder.path() + "/socket";
    for (int life = 0; life < 2; ++life) {
      const auto process = start_server([&](int ready) { return serve_echo(settings, ready); });
      CPPUNIT_ASSERT(in_client(caller(), [&](Orb& orb) {
        EchoTest::Echo_var echo = find_echo(orb, settings.listen_path);
        return echo->who() == ::getuid();
      }));
      ::kill(process->pid(), SIGKILL);
      CPPUNIT_ASSERT_EQUAL(128 + SIGKILL, process->wait(20'000));
      CPPUNIT_ASSERT_EQUAL(0, ::access(settings.listen_path.c_str(), F_OK));
    }
  }

  void time_limits() {
    Server server([](OrbSettings& settings) { settings.server_call_timeout_ms = 200; });
    CPPUNIT_ASSERT(in_client(caller(), [&](Orb& orb) {
      EchoTest::Echo_var echo = find_echo(orb, server.socket());
      // The server's limit applies to messages, not to the servant's work.
      echo->linger(700);
      set_call_timeout(echo, 100);
      try {
        echo->linger(2000);
      } catch (const CORBA::SystemException& exception) {
        const CallError error = describe(exception);
        return error.kind == CallFailure::kTimeout && error.maybe_done;
      }
      return false;
    }));
  }

  // The ORB's default there is Latin-1. It does not validate text if both sides use UTF-8.
  void text_is_utf8_at_a_fixed_address() {
    Server server;
    CPPUNIT_ASSERT(in_client(caller(), [&](Orb& orb) {
      EchoTest::Echo_var echo = find_echo(orb, server.socket());
      for (const std::string text :
           {"f\xc3\xbcr", "\xe2\x82\xac \xe6\xbc\xa2 \xf0\x9f\x98\x80", "\xef\xbf\xbd", "\xff\xfe"})
        if (CORBA::String_var(echo->text(text.c_str())).in() != text) return false;
      return true;
    }));
  }

  void failures_are_described() {
    Server server;
    CPPUNIT_ASSERT(in_client(caller(), [&](Orb& orb) {
      const auto kind_of = [](const std::function<void()>& call) {
        try {
          call();
        } catch (const CORBA::SystemException& exception) {
          return describe(exception).kind;
        }
        return CallFailure::kInternal;
      };
      CORBA::Object_var gone = orb.resolve(server.socket(), "Nobody");
      CORBA::Object_var nowhere = orb.resolve(server.socket() + ".not", "Echo");
      EchoTest::Echo_var echo = find_echo(orb, server.socket());
      return kind_of([&] { EchoTest::Echo_var(EchoTest::Echo::_unchecked_narrow(gone))->who(); }) ==
                 CallFailure::kGone &&
             kind_of([&] {
               EchoTest::Echo_var(EchoTest::Echo::_unchecked_narrow(nowhere))->who();
             }) == CallFailure::kUnreachable &&
             kind_of([&] { CORBA::String_var(echo->text(std::string(3u << 20, 'x').c_str())); }) ==
                 CallFailure::kProtocol;
    }));
  }

  void latency_beside_the_plain_transport() {
    Server guarded;
    double with = 0;
    int pipe[2];
    CPPUNIT_ASSERT_EQUAL(0, ::pipe2(pipe, O_CLOEXEC));
    const auto measure = [&](EchoTest::Echo_ptr echo) {
      const double cost = median_text_call(echo, 5000);
      return ::write(pipe[1], &cost, sizeof cost) == sizeof cost;
    };
    CPPUNIT_ASSERT(in_client(caller(), [&](Orb& orb) {
      return measure(EchoTest::Echo_var(find_echo(orb, guarded.socket())));
    }));
    CPPUNIT_ASSERT_EQUAL(ssize_t{sizeof with}, ::read(pipe[0], &with, sizeof with));
    PlainServer plain;
    Process client([&] {
      int argc = 3;
      std::string words[] = {"plain", "-ORBclientCallTimeOutPeriod", "5000"};
      char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
      CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
      const std::string address = "corbaloc:omniunix:" + plain.socket() + ":/Echo";
      CORBA::Object_var object = orb->string_to_object(address.c_str());
      return measure(EchoTest::Echo_var(EchoTest::Echo::_narrow(object))) ? 0 : 1;
    });
    double without = 0;
    CPPUNIT_ASSERT_EQUAL(0, client.wait(60'000));
    CPPUNIT_ASSERT_EQUAL(ssize_t{sizeof without}, ::read(pipe[0], &without, sizeof without));
    std::cout << " [guarded " << with << " us, plain " << without << " us, ratio " << with / without
              << "]" << std::flush;
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(GuardedTransportTest);

}  // namespace sublet
