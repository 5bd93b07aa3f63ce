#include "transport/tls/connect.h"

#include <cppunit/extensions/HelperMacros.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <vector>

namespace sublet {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A listening loopback socket, as one of a host's addresses.
struct Listener {
  explicit Listener(int backlog) : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    CPPUNIT_ASSERT_EQUAL(0, ::bind(socket.get(), raw, size));
    CPPUNIT_ASSERT_EQUAL(0, ::listen(socket.get(), backlog));
    CPPUNIT_ASSERT_EQUAL(0, ::getsockname(socket.get(), raw, &size));
    entry.ai_family = AF_INET;
    entry.ai_addr = raw;
    entry.ai_addrlen = size;
  }
  // Fills the backlog, so that it no longer answers.
  void fill() {
    for (int i = 0; i < 8; ++i) {
      waiting.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      ::connect(waiting.back().get(), entry.ai_addr, entry.ai_addrlen);
    }
  }

  UniqueFd socket;
  sockaddr_in address{};
  addrinfo entry{};
  std::vector<UniqueFd> waiting;
};

uint16_t port_of_peer(const UniqueFd& socket) {
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  CPPUNIT_ASSERT_EQUAL(0, ::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&peer), &size));
  return peer.sin_port;
}

class TlsConnectTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(TlsConnectTest);
  CPPUNIT_TEST(an_address_that_does_not_answer_leaves_time_for_the_next);
  CPPUNIT_TEST(the_last_failure_is_told);
  CPPUNIT_TEST_SUITE_END();

  void an_address_that_does_not_answer_leaves_time_for_the_next() {
    Listener silent(0), good(8);
    silent.fill();
    silent.entry.ai_next = &good.entry;
    UniqueFd socket;
    CPPUNIT_ASSERT_EQUAL(
        0, connect_to_any(&silent.entry, Steady::now() + milliseconds(4000), &socket));
    CPPUNIT_ASSERT_EQUAL(good.address.sin_port, port_of_peer(socket));
  }

  void the_last_failure_is_told() {
    Listener silent(0), closed(0);
    silent.fill();
    closed.socket.reset();
    silent.entry.ai_next = &closed.entry;
    UniqueFd socket;
    CPPUNIT_ASSERT_EQUAL(
        ECONNREFUSED, connect_to_any(&silent.entry, Steady::now() + milliseconds(4000), &socket));
    silent.entry.ai_next = nullptr;
    closed.entry.ai_next = &silent.entry;
    CPPUNIT_ASSERT_EQUAL(ETIMEDOUT,
                         connect_to_any(&closed.entry, Steady::now() + milliseconds(400), &socket));
    CPPUNIT_ASSERT(!socket.valid());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(TlsConnectTest);

}  // namespace
}  // namespace sublet
