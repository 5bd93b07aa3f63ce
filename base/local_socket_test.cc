#include "base/local_socket.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>

#include "base/files.h"
#include "base/testing/temporary_folder.h"

namespace sublet {
namespace {

int code_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const OsError& e) {
    return e.code();
  }
  return 0;
}

}  // namespace

class LocalSocketTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(LocalSocketTest);
  CPPUNIT_TEST(messages_keep_their_borders);
  CPPUNIT_TEST(the_peer_is_known);
  CPPUNIT_TEST(long_paths_work);
  CPPUNIT_TEST(a_stale_socket_is_replaced);
  CPPUNIT_TEST(a_living_one_is_not);
  CPPUNIT_TEST(a_file_is_not_removed);
  CPPUNIT_TEST(nobody_listening_is_said);
  CPPUNIT_TEST(mode_and_flags);
  CPPUNIT_TEST(non_blocking_accept_returns_nothing);
  CPPUNIT_TEST_SUITE_END();

 public:
  void messages_keep_their_borders() {
    const UniqueFd listener = listen_local(SocketKind::seqpacket, path_, 0600, 4);
    const UniqueFd client = connect_local(SocketKind::seqpacket, path_);
    const UniqueFd server = accept_local(listener.get());
    CPPUNIT_ASSERT_EQUAL(ssize_t{3}, send(client.get(), "abc", 3, 0));
    CPPUNIT_ASSERT_EQUAL(ssize_t{2}, send(client.get(), "de", 2, 0));
    char bytes[16];
    CPPUNIT_ASSERT_EQUAL(ssize_t{3}, recv(server.get(), bytes, sizeof bytes, 0));
    CPPUNIT_ASSERT_EQUAL(ssize_t{2}, recv(server.get(), bytes, sizeof bytes, 0));
    CPPUNIT_ASSERT_EQUAL(EPROTOTYPE, code_of([&] { connect_local(SocketKind::stream, path_); }));
  }

  void the_peer_is_known() {
    const UniqueFd listener = listen_local(SocketKind::stream, path_, 0600, 4);
    const UniqueFd client = connect_local(SocketKind::stream, path_);
    const UniqueFd server = accept_local(listener.get());
    for (int fd : {client.get(), server.get()}) {
      const PeerCredentials peer = peer_credentials(fd);
      CPPUNIT_ASSERT_EQUAL(getpid(), peer.pid);
      CPPUNIT_ASSERT_EQUAL(geteuid(), peer.uid);
      CPPUNIT_ASSERT_EQUAL(getegid(), peer.gid);
    }
    CPPUNIT_ASSERT_THROW(peer_credentials(-1), OsError);
  }

  void long_paths_work() {
    std::string folder = folder_.path();
    for (int i = 0; i < 10; ++i) folder += "/" + std::string(60, 'x');
    system_files().make_folders(folder);
    const std::string path = folder + "/socket";
    for (int round = 0; round < 2; ++round) {  // the second finds a stale one
      const UniqueFd listener = listen_local(SocketKind::seqpacket, path, 0600, 4);
      CPPUNIT_ASSERT_EQUAL(EADDRINUSE,
                           code_of([&] { listen_local(SocketKind::seqpacket, path, 0600, 4); }));
      const UniqueFd client = connect_local(SocketKind::seqpacket, path);
      const UniqueFd server = accept_local(listener.get());
      CPPUNIT_ASSERT_EQUAL(ssize_t{1}, send(client.get(), "a", 1, 0));
    }
    CPPUNIT_ASSERT(system_files().exists(path));
    CPPUNIT_ASSERT_EQUAL(ENAMETOOLONG, code_of([&] {
                           listen_local(SocketKind::stream, folder_ / std::string(100, 'x'), 0600,
                                        4);
                         }));
  }

  void a_stale_socket_is_replaced() {
    listen_local(SocketKind::stream, path_, 0600, 4);  // closed at once, its name stays
    CPPUNIT_ASSERT(system_files().exists(path_));
    CPPUNIT_ASSERT_EQUAL(ECONNREFUSED, code_of([&] { connect_local(SocketKind::stream, path_); }));
    const UniqueFd listener = listen_local(SocketKind::stream, path_, 0600, 4);
    CPPUNIT_ASSERT(connect_local(SocketKind::stream, path_).valid());
  }

  void a_living_one_is_not() {
    const UniqueFd listener = listen_local(SocketKind::stream, path_, 0600, 0);
    // Even while its backlog is full.
    const UniqueFd waiting = connect_local(SocketKind::stream, path_, true);
    for (SocketKind kind : {SocketKind::stream, SocketKind::seqpacket}) {
      CPPUNIT_ASSERT_EQUAL(EADDRINUSE, code_of([&] { listen_local(kind, path_, 0600, 4); }));
    }
    CPPUNIT_ASSERT(accept_local(listener.get()).valid());
    CPPUNIT_ASSERT(connect_local(SocketKind::stream, path_).valid());
  }

  void a_file_is_not_removed() {
    system_files().write_atomic(path_, "precious");
    CPPUNIT_ASSERT_EQUAL(EADDRINUSE,
                         code_of([&] { listen_local(SocketKind::stream, path_, 0600, 4); }));
    CPPUNIT_ASSERT_EQUAL(std::string("precious"), system_files().read_file(path_, 100));
  }

  void nobody_listening_is_said() {
    try {
      connect_local(SocketKind::stream, path_);
      CPPUNIT_FAIL("connected to nobody");
    } catch (const OsError& e) {
      CPPUNIT_ASSERT_EQUAL(ENOENT, e.code());
      CPPUNIT_ASSERT(std::string(e.what()).find("is the daemon running?") != std::string::npos);
    }
    CPPUNIT_ASSERT_EQUAL(
        ENOENT, code_of([&] { listen_local(SocketKind::stream, folder_ / "no/s", 0600, 4); }));
  }

  void mode_and_flags() {
    const UniqueFd listener = listen_local(SocketKind::stream, path_, 0666, 4, true);
    struct stat st {};
    CPPUNIT_ASSERT_EQUAL(0, stat(path_.c_str(), &st));
    CPPUNIT_ASSERT_EQUAL(mode_t{0666}, static_cast<mode_t>(st.st_mode & 07777));
    const UniqueFd client = connect_local(SocketKind::stream, path_, true);
    const UniqueFd server = accept_local(listener.get(), true);
    for (int fd : {listener.get(), client.get(), server.get()}) {
      CPPUNIT_ASSERT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
      CPPUNIT_ASSERT(fcntl(fd, F_GETFL) & O_NONBLOCK);
    }
  }

  void non_blocking_accept_returns_nothing() {
    const UniqueFd listener = listen_local(SocketKind::stream, path_, 0600, 4, true);
    CPPUNIT_ASSERT(!accept_local(listener.get()).valid());
    CPPUNIT_ASSERT_EQUAL(EBADF, code_of([] { accept_local(-1); }));
  }

 private:
  TemporaryFolder folder_;
  std::string path_ = folder_ / "socket";
};

CPPUNIT_TEST_SUITE_REGISTRATION(LocalSocketTest);

}  // namespace sublet
