// The identity of peers over the loopback interface.
#include "transport/loopback_door.h"

#include <arpa/inet.h>
#include <cppunit/extensions/HelperMacros.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

namespace sublet {
namespace {

// A listening socket and connections to it.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    CPPUNIT_ASSERT_EQUAL(0, ::bind(socket_.get(), as_plain(), size));
    CPPUNIT_ASSERT_EQUAL(0, ::listen(socket_.get(), 8));
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address_), &size);
  }
  UniqueFd connect() const {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket.get(), as_plain(), sizeof address_) != 0) socket.reset();
    return socket;
  }
  UniqueFd accept() const { return UniqueFd(::accept(socket_.get(), nullptr, nullptr)); }

 private:
  const sockaddr* as_plain() const { return reinterpret_cast<const sockaddr*>(&address_); }
  UniqueFd socket_;
  sockaddr_in address_{};
};

}  // namespace

class LoopbackDoorTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(LoopbackDoorTest);
  CPPUNIT_TEST(the_kernel_names_the_user);
  CPPUNIT_TEST(another_user_is_told_apart);
  CPPUNIT_TEST(who_has_closed_is_not_taken_for_root);
  CPPUNIT_TEST(other_sockets_have_no_user);
  CPPUNIT_TEST(the_door_hands_over_who_comes);
  CPPUNIT_TEST_SUITE_END();

 public:
  void the_kernel_names_the_user() {
    const Listener listener;
    const UniqueFd mine = listener.connect();
    const UniqueFd theirs = listener.accept();
    CPPUNIT_ASSERT(loopback_peer_uid(theirs.get()) == ::getuid());
    CPPUNIT_ASSERT(loopback_peer_uid(mine.get()) == ::getuid());
  }

  void another_user_is_told_apart() {
    if (::geteuid() != 0) return;  // only root may become another user
    const Listener listener;
    int go[2];
    CPPUNIT_ASSERT_EQUAL(0, ::pipe(go));
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setuid(12345) != 0) ::_exit(1);
      const UniqueFd mine = listener.connect();
      char end;
      ::_exit(::read(go[0], &end, 1) == 1 ? 0 : 1);
    }
    const UniqueFd theirs = listener.accept();
    CPPUNIT_ASSERT(loopback_peer_uid(theirs.get()) == 12345u);
    CPPUNIT_ASSERT_EQUAL(ssize_t{1}, ::write(go[1], "+", 1));
    int status = 0;
    CPPUNIT_ASSERT_EQUAL(child, ::waitpid(child, &status, 0));
    CPPUNIT_ASSERT_EQUAL(0, status);
    ::close(go[0]);
    ::close(go[1]);
  }

  // The kernel reports uid 0 for a socket that has been closed.
  void who_has_closed_is_not_taken_for_root() {
    const Listener listener;
    UniqueFd mine = listener.connect();
    const UniqueFd theirs = listener.accept();
    mine.reset();
    CPPUNIT_ASSERT(!loopback_peer_uid(theirs.get()));
  }

  void other_sockets_have_no_user() {
    int pair[2];
    CPPUNIT_ASSERT_EQUAL(0, ::socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    CPPUNIT_ASSERT(!loopback_peer_uid(pair[0]) && !loopback_peer_uid(-1));
    ::close(pair[0]);
    ::close(pair[1]);
  }

  void the_door_hands_over_who_comes() {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<uint32_t> came;
    LoopbackDoor::Hooks hooks;
    hooks.arrived = [&](UniqueFd, uint32_t uid) {
      std::lock_guard lock(mutex);
      came.push_back(uid);
      changed.notify_all();
    };
    hooks.log = [](std::string_view) {};
    LoopbackDoor door(0, hooks);
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(door.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CPPUNIT_ASSERT_EQUAL(
        0, ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address));
    std::unique_lock lock(mutex);
    CPPUNIT_ASSERT(changed.wait_for(lock, std::chrono::seconds(20), [&] { return !came.empty(); }));
    CPPUNIT_ASSERT_EQUAL(::getuid(), came.front());
    CPPUNIT_ASSERT_THROW(LoopbackDoor(door.port(), hooks), std::exception);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(LoopbackDoorTest);

}  // namespace sublet
