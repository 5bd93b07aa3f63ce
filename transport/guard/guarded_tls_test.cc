// The guarded transport over TLS through the real ORB, well-behaved and hostile.
#include <arpa/inet.h>
#include <cppunit/extensions/HelperMacros.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <thread>

#include "transport/testing/echo_world.h"
#include "transport/testing/giop_mutator.h"
#include "transport/testing/tls_pool.h"
#include "transport/tls/dial.h"

// How often this process has resolved a host name.
static std::atomic<int> names_asked{0};

// Replaces the C library's function, to count calls.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  in6_addr address{};
  if (node != nullptr && ::inet_pton(AF_INET, node, &address) != 1 &&
      ::inet_pton(AF_INET6, node, &address) != 1)
    ++names_asked;
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(node, service, hints, found);
}

namespace sublet {
namespace {

using namespace testing;
using Steady = std::chrono::steady_clock;

// Admits all machines and users of the pool except the one called "mallory".
void with_door(OrbSettings& settings, const TlsCredentials& server) {
  settings.accept_call_back = true;
  OrbSettings::Network network;
  network.door.at = {"127.0.0.1", 0};
  network.door.credentials = server;
  network.door.strangers_of_host = 256;
  network.admit = [](const MemberName& who, const std::string&) {
    if (who.name == "mallory") return Admission{Exclusion::kRevoked, 0};
    return Admission{Exclusion::kNone, who.name == "curly" ? 1u : 2u};
  };
  network.join = [](const JoinRequest&) { return JoinAnswer{Exclusion::kTokenUnknown, ""}; };
  settings.network = network;
}

OrbSettings member(const Server& server, const TlsCredentials& credentials, bool call_back) {
  OrbSettings settings;
  settings.call_back = call_back;
  settings.membership = Membership{{"127.0.0.1", server.port()}, credentials};
  return settings;
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

// Simulates another host, where references cannot be used directly. Requires root;
// skipped otherwise.
void take_another_host_name() {
  if (::unshare(CLONE_NEWUTS) != 0 || ::sethostname("elsewhere", 9) != 0)
    std::cout << " [same host name]" << std::flush;
}

}  // namespace

class GuardedTlsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(GuardedTlsTest);
  CPPUNIT_TEST(call_and_caller);
  CPPUNIT_TEST(large_calls);
  CPPUNIT_TEST(calls_back_over_the_same_connection);
  CPPUNIT_TEST(who_is_not_admitted_learns_why);
  CPPUNIT_TEST(server_that_restarts_is_found_again);
  CPPUNIT_TEST(members_may_not_send_what_is_no_giop);
  CPPUNIT_TEST(strangers_never_reach_the_orb);
  CPPUNIT_TEST(cost_beside_the_unix_socket);
  CPPUNIT_TEST_SUITE_END();

 public:
  void call_and_caller() {
    Server server([this](OrbSettings& s) { with_door(s, pool_.server()); });
    CPPUNIT_ASSERT(server.port() != 0);
    CPPUNIT_ASSERT(in_client(member(server, curly(), false), [&](Orb& orb) {
      EchoTest::Echo_var echo = find_echo(orb, "anywhere");
      CORBA::String_var answer = echo->text("gr\xc3\xbc\xc3\x9f");
      CORBA::String_var name = echo->caller_name();
      return std::string(answer) == "gr\xc3\xbc\xc3\x9f" && std::string(name) == "machine curly" &&
             echo->who() == ~0u;
    }));
    OrbSettings local;
    CPPUNIT_ASSERT(in_client(local, [&](Orb& orb) {
      return EchoTest::Echo_var(find_echo(orb, server.socket()))->who() == ::getuid();
    }));
    CPPUNIT_ASSERT_EQUAL(0, server.stop());
    CPPUNIT_ASSERT_EQUAL(std::string(), server.log());
  }

  void large_calls() {
    Server server([this](OrbSettings& s) { with_door(s, pool_.server()); });
    CPPUNIT_ASSERT(in_client(member(server, curly(), false), [&](Orb& orb) {
      EchoTest::Echo_var echo = find_echo(orb, "");
      EchoTest::Bytes bytes;
      bytes.length(1'900'000);
      for (CORBA::ULong i = 0; i < bytes.length(); ++i) bytes[i] = static_cast<uint8_t>(i * 31);
      for (int i = 0; i < 5; ++i) {
        EchoTest::Bytes_var same = echo->blob(bytes);
        if (same->length() != bytes.length() || same[1'234'567] != bytes[1'234'567]) return false;
      }
      return echo->count().violations == 0;
    }));
  }

  // One connection for both directions, no listening port on this side, and no query
  // to a name server, which may be slow or unreachable.
  void calls_back_over_the_same_connection() {
    addrinfo* found = nullptr;
    if (::getaddrinfo("localhost", nullptr, nullptr, &found) == 0) ::freeaddrinfo(found);
    CPPUNIT_ASSERT_EQUAL(1, names_asked.exchange(0));  // the counter works
    Server server([this](OrbSettings& s) { with_door(s, pool_.server()); });
    const OrbSettings settings = member(server, curly(), true);
    Process client([&] {
      take_another_host_name();
      Orb orb(settings);
      EchoTest::Echo_var echo = find_echo(orb, "");
      if (!attach_sink(orb, echo)) return 1;
      echo->begin_call_back(1000);
      const auto end = Steady::now() + std::chrono::seconds(30);
      double cost = 0;
      while ((cost = echo->called_back()) == 0 && Steady::now() < end) std::this_thread::yield();
      std::cout << " [call back " << cost << " us]" << std::flush;
      const EchoTest::Counts counts = echo->count();
      const bool one = counts.accepted == 1 && counts.dialled == 0 && counts.violations == 0;
      if (names_asked != 0) return 3;
      return cost > 0 && one ? 0 : 2;
    });
    CPPUNIT_ASSERT_EQUAL(0, client.wait(60'000));
    CPPUNIT_ASSERT_EQUAL(0, server.stop());
  }

  void who_is_not_admitted_learns_why() {
    Server server([this](OrbSettings& s) { with_door(s, pool_.server()); });
    const TlsCredentials mallory = pool_.credentials(Role::kMachine, "mallory");
    CPPUNIT_ASSERT(in_client(member(server, mallory, false), [&](Orb& orb) {
      try {
        EchoTest::Echo_var echo = find_echo(orb, "");
        return false;
      } catch (const CORBA::SystemException& e) {
        const auto failure = orb.dial_failure();
        return describe(e).kind == CallFailure::kUnreachable && failure &&
               failure->code == "certificate.revoked";
      }
    }));
    CPPUNIT_ASSERT(server.log().find("sublet://lab/machine/mallory") != std::string::npos);
    CPPUNIT_ASSERT(in_client(OrbSettings{}, [&](Orb& orb) {
      return EchoTest::Echo_var(find_echo(orb, server.socket()))->count().accepted == 1;
    }));
  }

  void server_that_restarts_is_found_again() {
    auto first = std::make_unique<Server>([this](OrbSettings& s) { with_door(s, pool_.server()); });
    const OrbSettings settings = member(*first, curly(), false);
    int told[2];
    CPPUNIT_ASSERT_EQUAL(0, ::pipe2(told, O_CLOEXEC));
    Process client([&] {
      Orb orb(settings);
      EchoTest::Echo_var echo = find_echo(orb, "");
      if (echo->count().accepted != 1 || ::write(told[1], "+", 1) != 1) return 1;
      // Lost, then available again, through the same reference.
      bool lost = false;
      for (const auto end = Steady::now() + std::chrono::seconds(30); Steady::now() < end;) {
        try {
          const bool good = echo->count().violations == 0;
          if (lost) return good ? 0 : 1;
        } catch (const CORBA::SystemException&) {
          if (!lost && ::write(told[1], "-", 1) != 1) return 3;
          lost = true;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      return 2;
    });
    ::close(told[1]);
    char byte = 0;
    CPPUNIT_ASSERT_EQUAL(ssize_t{1}, ::read(told[0], &byte, 1));
    CPPUNIT_ASSERT_EQUAL(0, first->stop());
    CPPUNIT_ASSERT_EQUAL(ssize_t{1}, ::read(told[0], &byte, 1));
    CPPUNIT_ASSERT_EQUAL('-', byte);
    Server second([&](OrbSettings& s) {
      with_door(s, pool_.server());
      s.network->door.at.port = settings.membership->server.port;
    });
    CPPUNIT_ASSERT_EQUAL(0, client.wait(60'000));
    ::close(told[0]);
  }

  // Data from a member is filtered, too: bytes that crash the unguarded ORB end the
  // connection, and other clients are still served.
  void members_may_not_send_what_is_no_giop() {
    Server server([this](OrbSettings& s) { with_door(s, pool_.server()); });
    const auto context = TlsContext::of_member(curly());
    GiopMutator mutator(1);
    const std::string huge("GIOP\1\2\0\0\xff\xff\xff\xf4", 12);
    for (int i = 0; i < 300; ++i) {
      TlsSession session = dial_server({"127.0.0.1", server.port()}, context, 20'000);
      const std::string bytes = i == 0 ? huge : i == 1 ? std::string(60'000, 'x') : mutator.any();
      size_t count = 0;
      session.write(bytes.data(), bytes.size(), &count);
      session.say_goodbye();
    }
    CPPUNIT_ASSERT(server.alive());
    CPPUNIT_ASSERT(in_client(member(server, curly(), false), [&](Orb& orb) {
      EchoTest::Echo_var echo = find_echo(orb, "");
      return echo->count().violations > 0;
    }));
    CPPUNIT_ASSERT(server.log().find("connection of machine curly closed") != std::string::npos);
    CPPUNIT_ASSERT_EQUAL(0, server.stop());
  }

  void strangers_never_reach_the_orb() {
    const TlsPool other("lab");
    Server server([this](OrbSettings& s) { with_door(s, pool_.server()); });
    const HostPort at{"127.0.0.1", server.port()};
    TlsCredentials forged = other.credentials(Role::kMachine, "curly");
    forged.authority = pool_.authority().certificate;
    const auto context = TlsContext::of_member(forged);
    for (int i = 0; i < 20; ++i) {
      const int plain = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(at.port);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      CPPUNIT_ASSERT_EQUAL(
          0, ::connect(plain, reinterpret_cast<const sockaddr*>(&address), sizeof address));
      write_all(plain, std::string("GIOP\1\2\0\0\xff\xff\xff\xf4", 12));
      CPPUNIT_ASSERT(closed_by_peer(plain, 20'000));
      ::close(plain);
      CPPUNIT_ASSERT_THROW(dial_server(at, context, 20'000), DialError);
    }
    CPPUNIT_ASSERT(in_client(OrbSettings{}, [&](Orb& orb) {
      const EchoTest::Counts counts = EchoTest::Echo_var(find_echo(orb, server.socket()))->count();
      return counts.accepted == 1 && counts.violations == 0;
    }));
  }

  void cost_beside_the_unix_socket() {
    Server server([this](OrbSettings& s) { with_door(s, pool_.server()); });
    CPPUNIT_ASSERT(in_client(member(server, curly(), false), [&](Orb& orb) {
      std::cout << " [TLS " << median_text_call(EchoTest::Echo_var(find_echo(orb, "")), 3000)
                << " us" << std::flush;
      return true;
    }));
    CPPUNIT_ASSERT(in_client(OrbSettings{}, [&](Orb& orb) {
      EchoTest::Echo_var echo = find_echo(orb, server.socket());
      std::cout << ", Unix socket " << median_text_call(echo, 3000) << " us]" << std::flush;
      return true;
    }));
  }

 private:
  TlsCredentials curly() const { return pool_.credentials(Role::kMachine, "curly"); }

  const TlsPool pool_;
};
CPPUNIT_TEST_SUITE_REGISTRATION(GuardedTlsTest);

}  // namespace sublet
