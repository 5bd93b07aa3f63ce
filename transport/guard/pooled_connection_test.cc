// Accepted connections at rest, through the real ORB.
#include <cppunit/extensions/HelperMacros.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "transport/testing/echo_world.h"
#include "transport/testing/giop_mutator.h"

namespace sublet {
namespace {

using namespace testing;
using Steady = std::chrono::steady_clock;

constexpr int kDeadlineMs = 20'000;
// Without padding, which the ORB refuses at the end of a message.
const std::string kText = cdr_text("hello there");

bool eventually(const std::function<bool()>& condition) {
  const auto until = Steady::now() + std::chrono::milliseconds(kDeadlineMs);
  while (!condition()) {
    if (Steady::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

void accept_call_back(OrbSettings& settings) { settings.accept_call_back = true; }

OrbSettings called_back() {
  OrbSettings settings;
  settings.call_back = true;
  return settings;
}

size_t threads_of(pid_t pid) {
  size_t count = 0;
  const std::string folder = "/proc/" + std::to_string(pid) + "/task";
  DIR* directory = ::opendir(folder.c_str());
  if (directory == nullptr) return 0;
  while (const dirent* entry = ::readdir(directory)) count += entry->d_name[0] != '.';
  ::closedir(directory);
  return count;
}

// The offer of these addresses, as the contexts of a request.
std::string offer(uint32_t addresses) {
  std::string data = std::string("\1\0\0\0", 4) + cdr_number(addresses);
  for (uint32_t i = 0; i < addresses; ++i) {
    const std::string host = std::to_string(i % 10'000);
    data += cdr_number(static_cast<uint32_t>(host.size() + 1)) + host;
    data.push_back('\0');
    if (data.size() % 2 != 0) data.push_back('\0');
    const uint32_t port = 1 + i / 10'000;
    data += {static_cast<char>(port), static_cast<char>(port >> 8)};
    data.resize((data.size() + 3) / 4 * 4);
  }
  return cdr_number(1) + cdr_number(5) + cdr_number(static_cast<uint32_t>(data.size())) + data;
}

// A caller without an ORB.
class Caller {
 public:
  explicit Caller(const Server& server) : socket_(dial(server.socket())) {
    CPPUNIT_ASSERT(socket_ >= 0);
  }
  ~Caller() { ::close(socket_); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  int socket() const { return socket_; }
  void say(const std::string& bytes) { CPPUNIT_ASSERT(write_all(socket_, bytes)); }
  // Waits until the server has read everything.
  bool heard() const {
    return eventually([this] {
      int unread = 0;
      return ::ioctl(socket_, SIOCOUTQ, &unread) == 0 && unread == 0;
    });
  }
  // The id of the next reply; 0: there was none.
  uint32_t answer() {
    const std::string head = read(16);
    if (head.size() < 16 || head[7] != 1) return 0;
    uint32_t size = 0, id = 0;
    std::copy_n(head.data() + 8, 4, reinterpret_cast<char*>(&size));
    std::copy_n(head.data() + 12, 4, reinterpret_cast<char*>(&id));
    return read(size - 4).size() == size - 4 ? id : 0;
  }
  bool ask(uint32_t id, const std::string& contexts = {}) {
    say(giop_request(id, "text", kText, contexts));
    return answer() == id;
  }
  // Whether so many bytes of answers have arrived.
  bool has(int bytes) const {
    return eventually([&] {
      int unread = 0;
      return ::ioctl(socket_, FIONREAD, &unread) == 0 && unread >= bytes;
    });
  }

 private:
  std::string read(size_t size) {
    std::string bytes;
    while (bytes.size() < size) {
      char part[4096];
      pollfd readable{socket_, POLLIN, 0};
      if (::poll(&readable, 1, kDeadlineMs) != 1) break;
      const ssize_t got = ::recv(socket_, part, std::min(size - bytes.size(), sizeof part), 0);
      if (got <= 0) break;
      bytes.append(part, static_cast<size_t>(got));
    }
    return bytes;
  }

  const int socket_;
};

using Callers = std::vector<std::unique_ptr<Caller>>;

// A client in a process of its own that has offered to be called back, and then waits.
class Called {
 public:
  explicit Called(const Server& server) {
    CPPUNIT_ASSERT_EQUAL(0, ::pipe2(hold_, O_CLOEXEC));
    process_ = start_server([&](int ready) {
      ::close(hold_[1]);
      Orb orb(called_back());
      EchoTest::Echo_var echo = find_echo(orb, server.socket());
      if (!attach_sink(orb, echo) || ::write(ready, "+", 1) != 1) return 1;
      char end;
      return static_cast<int>(::read(hold_[0], &end, 1));
    });
    ::close(hold_[0]);
  }
  ~Called() { ::close(hold_[1]); }
  void stop() { ::kill(process_->pid(), SIGSTOP); }

 private:
  int hold_[2];
  std::unique_ptr<Process> process_;
};

// What the call back of the sink attached last costs, negative: it failed.
double call_back(EchoTest::Echo_ptr echo) {
  echo->begin_call_back(1);
  double cost = 0;
  return eventually([&] { return (cost = echo->called_back()) != 0; }) ? cost : -2;
}

bool calls_back(const Server& server) {
  return in_client({}, [&](Orb& orb) {
    return call_back(EchoTest::Echo_var(find_echo(orb, server.socket()))) > 0;
  });
}

}  // namespace

class PooledConnectionTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PooledConnectionTest);
  CPPUNIT_TEST(no_thread_at_rest);
  CPPUNIT_TEST(no_thread_after_calls_back);
  CPPUNIT_TEST(slow_peers_keep_nobody_waiting);
  CPPUNIT_TEST(call_back_that_fails_closes_the_connection);
  CPPUNIT_TEST(client_that_ends_is_let_go);
  CPPUNIT_TEST(request_behind_an_empty_last_fragment);
  CPPUNIT_TEST(requests_in_one_packet);
  CPPUNIT_TEST(message_begun_behind_another);
  CPPUNIT_TEST(newest_connection_is_called_back);
  CPPUNIT_TEST(excessive_offer_is_refused);
  CPPUNIT_TEST(goodbye_does_not_wait);
  CPPUNIT_TEST(stops_with_many_at_rest);
  CPPUNIT_TEST(stops_while_they_come_and_go);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override {
    rlimit files;
    CPPUNIT_ASSERT_EQUAL(0, ::getrlimit(RLIMIT_NOFILE, &files));
    files.rlim_cur = std::min<rlim_t>(files.rlim_max, 16'384);
    CPPUNIT_ASSERT_EQUAL(0, ::setrlimit(RLIMIT_NOFILE, &files));
    many_ = std::min<size_t>(1000, (files.rlim_cur - 100) / 2);
  }

  void no_thread_at_rest() {
    Server server(accept_call_back);
    Callers callers;
    for (uint32_t i = 0; i < 300; ++i) {
      callers.push_back(std::make_unique<Caller>(server));
      CPPUNIT_ASSERT(callers.back()->ask(1, i % 2 == 0 ? offer(1) : std::string()));
    }
    for (const auto& caller : callers) CPPUNIT_ASSERT(caller->ask(2));
    CPPUNIT_ASSERT(eventually([&] { return threads_of(server.pid()) < 100; }));
    CPPUNIT_ASSERT_EQUAL(0, server.stop());
    CPPUNIT_ASSERT_EQUAL(std::string(), server.log());
  }

  // The thread that receives the reply must not wait for a request.
  void no_thread_after_calls_back() {
    constexpr size_t kClients = 25;
    Server server(accept_call_back);
    std::vector<std::unique_ptr<Called>> clients;
    for (size_t i = 0; i < kClients; ++i) {
      clients.push_back(std::make_unique<Called>(server));
      CPPUNIT_ASSERT(calls_back(server));
    }
    CPPUNIT_ASSERT(eventually([&] { return threads_of(server.pid()) < kClients; }));
    CPPUNIT_ASSERT_EQUAL(std::string(), server.log());
  }

  void slow_peers_keep_nobody_waiting() {
    Server server([](OrbSettings& settings) { settings.server_call_timeout_ms = 60'000; });
    Callers slow;
    for (int i = 0; i < 150; ++i) {
      slow.push_back(std::make_unique<Caller>(server));
      slow.back()->say("GIOP");
      CPPUNIT_ASSERT(slow.back()->heard());
    }
    CPPUNIT_ASSERT(Caller(server).ask(1));
  }

  void call_back_that_fails_closes_the_connection() {
    Server server([](OrbSettings& settings) {
      settings.accept_call_back = true;
      settings.client_call_timeout_ms = 300;
    });
    for (int round = 0; round < 3; ++round) {
      Called client(server);
      if (round == 1) CPPUNIT_ASSERT(calls_back(server));
      client.stop();
      CPPUNIT_ASSERT(in_client({}, [&](Orb& orb) {
        EchoTest::Echo_var echo = find_echo(orb, server.socket());
        if (echo->count().open_now != 2 || call_back(echo) >= 0) return false;
        return eventually([&] { return echo->count().open_now == 1; });
      }));
    }
    CPPUNIT_ASSERT_EQUAL(0, server.stop());
  }

  void client_that_ends_is_let_go() {
    Server server(accept_call_back);
    Caller observer(server);
    for (const bool called : {false, true}) {
      {
        Called client(server);
        if (called) CPPUNIT_ASSERT(calls_back(server));
      }
      CPPUNIT_ASSERT(in_client({}, [&](Orb& orb) {
        EchoTest::Echo_var echo = find_echo(orb, server.socket());
        return eventually([&] { return echo->count().open_now == 2; }) && call_back(echo) < 0;
      }));
    }
    CPPUNIT_ASSERT(observer.ask(1));
  }

  // The ORB looks for more data before it has read the last fragment.
  void request_behind_an_empty_last_fragment() {
    Server server;
    Caller caller(server);
    for (uint32_t id = 1; id < 100; id += 2) {
      std::string first = giop_request(id, "text", kText);
      CPPUNIT_ASSERT_EQUAL(size_t{0}, first.size() % 8);
      first[6] = 3;
      caller.say(first);
      CPPUNIT_ASSERT(caller.heard());
      caller.say(giop(7, cdr_number(id)) + giop_request(id + 1, "text", kText));
      CPPUNIT_ASSERT_EQUAL(id, caller.answer());
      CPPUNIT_ASSERT_EQUAL(id + 1, caller.answer());
    }
  }

  void requests_in_one_packet() {
    Server server;
    Caller caller(server);
    std::string packet;
    for (uint32_t id = 1; id <= 40; ++id)
      packet += id % 4 == 0 ? giop(2, cdr_number(id - 1))
                            : giop_request(id, "text", cdr_text(std::string(4 * id + 3, 'x')));
    caller.say(packet);
    for (uint32_t id = 1; id <= 40; ++id)
      if (id % 4 != 0) CPPUNIT_ASSERT_EQUAL(id, caller.answer());
    CPPUNIT_ASSERT(caller.ask(100));
  }

  void message_begun_behind_another() {
    Server server([](OrbSettings& settings) { settings.server_call_timeout_ms = 1000; });
    const std::string request = giop_request(2, "text", kText);
    for (const size_t size : {size_t{1}, size_t{5}, size_t{14}, size_t{30}}) {
      Caller caller(server);
      caller.say(giop_request(1, "text", kText) + request.substr(0, size));
      CPPUNIT_ASSERT_EQUAL(uint32_t{1}, caller.answer());
      caller.say(request.substr(size));
      CPPUNIT_ASSERT_EQUAL(uint32_t{2}, caller.answer());
      // The limit of time applies to a message that nobody has yet begun to serve.
      caller.say(request + request.substr(0, size));
      CPPUNIT_ASSERT_EQUAL(uint32_t{2}, caller.answer());
      CPPUNIT_ASSERT(closed_by_peer(caller.socket(), kDeadlineMs));
    }
  }

  // The same client over two connections, with the same address in its references.
  void newest_connection_is_called_back() {
    Server server(accept_call_back);
    Folder folder;
    const std::string old_way = folder.path() + "/old", new_way = folder.path() + "/new";
    for (const std::string& way : {old_way, new_way})
      CPPUNIT_ASSERT_EQUAL(0, ::symlink(server.socket().c_str(), way.c_str()));
    CPPUNIT_ASSERT(in_client(called_back(), [&](Orb& orb) {
      if (!attach_sink_over(orb, old_way) || !attach_sink_over(orb, new_way)) return false;
      EchoTest::Echo_var echo = find_echo(orb, server.socket());
      if (echo->count().open_now != 3 || call_back(echo) <= 0) return false;
      // The old connection is the process's first socket.
      for (int fd = 3; fd < 100; ++fd) {
        int kind = 0;
        socklen_t size = sizeof kind;
        if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &size) != 0) continue;
        ::shutdown(fd, SHUT_RDWR);
        break;
      }
      return eventually([&] { return echo->count().open_now == 2; }) && call_back(echo) > 0;
    }));
  }

  void excessive_offer_is_refused() {
    Server server(accept_call_back);
    Caller hostile(server);
    hostile.say(giop_request(1, "text", kText, offer(120'000)));
    CPPUNIT_ASSERT(Caller(server).ask(1, offer(10)));
    CPPUNIT_ASSERT_EQUAL(uint32_t{1}, hostile.answer());
    CPPUNIT_ASSERT(server.log().find("octets of addresses for calls back") != std::string::npos);
    // Small ones add up to nothing.
    for (uint32_t id = 2; id < 50; ++id) CPPUNIT_ASSERT(hostile.ask(id, offer(10)));
    CPPUNIT_ASSERT_EQUAL(0, server.stop());
  }

  // The ORB waits 5 s for each that does not read. Here the answers have filled the sockets as
  // far as the kernel calls them writable.
  void goodbye_does_not_wait() {
    Server server;
    Callers callers;
    for (int i = 0; i < 8; ++i) {
      callers.push_back(std::make_unique<Caller>(server));
      for (int id = 1; id <= 6; ++id) {
        const std::string words(7999, 'w');
        callers.back()->say(giop_request(static_cast<uint32_t>(id), "text", cdr_text(words)));
        CPPUNIT_ASSERT(callers.back()->has(id * 8000));
      }
    }
    CPPUNIT_ASSERT_EQUAL(0, server.stop());
  }

  void stops_with_many_at_rest() {
    Server server(accept_call_back);
    Callers callers;
    for (size_t i = 0; i < many_; ++i) {
      callers.push_back(std::make_unique<Caller>(server));
      if (i % 10 != 0)
        CPPUNIT_ASSERT(callers.back()->ask(1, i % 10 < 7 ? offer(1) : std::string()));
    }
    const auto began = Steady::now();
    CPPUNIT_ASSERT_EQUAL(0, server.stop());
    std::cout << " [" << std::chrono::duration<double>(Steady::now() - began).count() << " s]"
              << std::flush;
    for (const auto& caller : callers)
      CPPUNIT_ASSERT(closed_by_peer(caller->socket(), kDeadlineMs));
  }

  void stops_while_they_come_and_go() {
    for (int round = 0; round < 5; ++round) {
      Server server(accept_call_back);
      Caller caller(server);
      std::vector<std::unique_ptr<Process>> clients;
      for (int i = 0; i < 3; ++i)
        clients.push_back(std::make_unique<Process>([&] {
          for (uint32_t id = 1;; ++id) {
            const int fd = dial(server.socket());
            if (fd < 0) return 0;
            write_all(fd, giop_request(id, "text", kText, id % 2 == 0 ? offer(1) : std::string()));
            char answer[256];
            if (id % 3 != 0 && ::recv(fd, answer, sizeof answer, 0) <= 0) return 0;
            ::close(fd);
          }
        }));
      // While so many calls of this one are served.
      for (int id = 1; id <= 1 + 20 * round; ++id)
        CPPUNIT_ASSERT(caller.ask(static_cast<uint32_t>(id)));
      CPPUNIT_ASSERT_EQUAL(0, server.stop());
      for (const auto& client : clients) CPPUNIT_ASSERT_EQUAL(0, client->wait(kDeadlineMs));
    }
  }

 private:
  size_t many_ = 0;
};
CPPUNIT_TEST_SUITE_REGISTRATION(PooledConnectionTest);

}  // namespace sublet
