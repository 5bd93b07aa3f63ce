// A job's sockets are here those that this process creates while it is in a control group. They
// send over a device (TUN) of a network namespace, whose other end this process has, too: so the
// packets that pass are known one by one.
#include "attempt/traffic.h"

#include <arpa/inet.h>
#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace sublet {
namespace {

constexpr uint16_t kPort = 5000;
constexpr char kHere[] = "10.99.0.1", kThere[] = "10.99.0.2";
constexpr char kHereSix[] = "fd99::1", kThereSix[] = "fd99::2";

void must(bool good, const char* what) {
  CPPUNIT_ASSERT_MESSAGE(std::string(what) + ": " + strerror(errno), good);
}

sockaddr_in address(const char* host, uint16_t port = kPort) {
  sockaddr_in out = {};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  inet_pton(AF_INET, host, &out.sin_addr);
  return out;
}

bool connect_to(const UniqueFd& socket, const sockaddr_in& to) {
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
}

// 0, or the error; of a socket that does not wait EINPROGRESS.
int error_of_connecting(const UniqueFd& socket, const std::string& host, uint16_t port) {
  sockaddr_in6 six = {};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  if (inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) != 1)
    return connect_to(socket, address(host.c_str(), port)) ? 0 : errno;
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&six), sizeof six) == 0 ? 0
                                                                                         : errno;
}

// A network that has this process at its only end.
class Wire {
 public:
  Wire() : before_(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) {
    must(unshare(CLONE_NEWNET) == 0, "network namespace");
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    bring_up(socket, "lo");
    far_.reset(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
    ifreq device = named("wire");
    device.ifr_flags = IFF_TUN | IFF_NO_PI;
    must(ioctl(far_.get(), TUNSETIFF, &device) == 0, "device");
    give(socket, SIOCSIFADDR, kHere);
    give(socket, SIOCSIFNETMASK, "255.255.255.0");
    bring_up(socket, "wire");
    struct {
      in6_addr address;
      uint32_t prefix;
      int device;
    } six = {{}, 64, static_cast<int>(if_nametoindex("wire"))};
    inet_pton(AF_INET6, kHereSix, &six.address);
    const UniqueFd socket_six(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    must(ioctl(socket_six.get(), SIOCSIFADDR, &six) == 0, kHereSix);
  }
  ~Wire() { setns(before_.get(), CLONE_NEWNET); }

  // The sizes of the packets of TCP and UDP that have passed since the last call.
  std::vector<size_t> arrived() const {
    std::vector<size_t> sizes;
    char packet[70'000];
    for (ssize_t size; (size = read(far_.get(), packet, sizeof packet)) > 0;)
      if (packet[0] >> 4 == 4 || packet[6] == IPPROTO_TCP || packet[6] == IPPROTO_UDP)
        sizes.push_back(static_cast<size_t>(size));
    return sizes;
  }

  // A datagram from the far end; returns the size of its packet.
  size_t send(uint16_t port, size_t bytes) const {
    std::vector<char> packet(sizeof(iphdr) + sizeof(udphdr) + bytes);
    iphdr ip = {};
    ip.version = 4;
    ip.ihl = sizeof ip / 4;
    ip.tot_len = htons(static_cast<uint16_t>(packet.size()));
    ip.ttl = 64;
    ip.protocol = IPPROTO_UDP;
    ip.saddr = address(kThere).sin_addr.s_addr;
    ip.daddr = address(kHere).sin_addr.s_addr;
    uint32_t sum = 0;
    uint16_t words[sizeof ip / 2];
    memcpy(words, &ip, sizeof ip);
    for (const uint16_t word : words) sum += word;
    sum = (sum & 0xffff) + (sum >> 16);
    ip.check = static_cast<uint16_t>(~(sum + (sum >> 16)));
    udphdr udp = {};
    udp.source = htons(kPort);
    udp.dest = htons(port);
    udp.len = htons(static_cast<uint16_t>(sizeof udp + bytes));
    memcpy(packet.data(), &ip, sizeof ip);
    memcpy(packet.data() + sizeof ip, &udp, sizeof udp);
    must(write(far_.get(), packet.data(), packet.size()) > 0, "packet");
    return packet.size();
  }

 private:
  static ifreq named(const char* device) {
    ifreq out = {};
    strcpy(out.ifr_name, device);
    return out;
  }
  static void bring_up(const UniqueFd& socket, const char* name) {
    ifreq device = named(name);
    device.ifr_flags = IFF_UP;
    must(ioctl(socket.get(), SIOCSIFFLAGS, &device) == 0, name);
  }
  static void give(const UniqueFd& socket, unsigned long what, const char* value) {
    ifreq device = named("wire");
    const sockaddr_in address = sublet::address(value);
    memcpy(&device.ifr_addr, &address, sizeof address);
    must(ioctl(socket.get(), what, &device) == 0, value);
  }

  UniqueFd before_, far_;
};

class Group {
 public:
  Group() : folder_(root() + "/sublet-traffic-test") {
    must(mkdir(path(), 0755) == 0 || errno == EEXIST, path());
  }
  ~Group() { rmdir(path()); }
  const char* path() const { return folder_.c_str(); }

  UniqueFd socket(int kind, int family = AF_INET) const {
    std::string own;
    std::ifstream file("/proc/self/cgroup");
    while (std::getline(file, own) && !own.starts_with("0::")) continue;
    join(folder_);
    UniqueFd made(::socket(family, kind | SOCK_CLOEXEC, 0));
    join(root() + own.substr(3));
    must(made.valid(), "socket");
    return made;
  }

  // "": there is none.
  static std::string root() {
    for (const char* root : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"})
      if (access((std::string(root) + "/cgroup.controllers").c_str(), F_OK) == 0) return root;
    return {};
  }

 private:
  static void join(const std::string& folder) {
    std::ofstream file(folder + "/cgroup.procs");
    file << "0" << std::flush;
    must(file.good(), folder.c_str());
  }

  std::string folder_;
};

bool skip() {
  if (geteuid() == 0 && !Group::root().empty() && access("/dev/net/tun", F_OK) == 0) return false;
  std::cerr << "skipped, needs root, control groups of version 2 and /dev/net/tun\n";
  return true;
}

class TrafficTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(TrafficTest);
  CPPUNIT_TEST(bytes_are_counted_with_their_headers);
  CPPUNIT_TEST(loopback_does_not_count);
  CPPUNIT_TEST(others_do_not_count);
  CPPUNIT_TEST(the_bound_is_kept_in_both_directions);
  CPPUNIT_TEST(without_a_bound_all_pass);
  CPPUNIT_TEST(only_the_server_is_reached);
  CPPUNIT_TEST(headers_that_lead_elsewhere_are_refused);
  CPPUNIT_TEST(nobody_else_reaches_it);
  CPPUNIT_TEST(without_an_address_nobody_is_reached);
  CPPUNIT_TEST(nothing_is_known_without_such_a_group);
  CPPUNIT_TEST_SUITE_END();

  static constexpr size_t kHeaders = sizeof(iphdr) + sizeof(udphdr);

  static void send(const UniqueFd& socket, size_t bytes) {
    const std::vector<char> text(bytes, 'x');
    must(::send(socket.get(), text.data(), bytes, 0) == static_cast<ssize_t>(bytes), "send");
  }

  static size_t receive(const UniqueFd& socket) {
    pollfd wait = {socket.get(), POLLIN, 0};
    must(poll(&wait, 1, 10'000) == 1, "nothing arrives");
    char text[70'000];
    return static_cast<size_t>(recv(socket.get(), text, sizeof text, 0));
  }

  static uint16_t port_of(const UniqueFd& socket) {
    sockaddr_in own = {};
    socklen_t size = sizeof own;
    getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size);
    return ntohs(own.sin_port);
  }

 public:
  void bytes_are_counted_with_their_headers() {
    if (skip()) return;
    const Wire wire;
    const Group group;
    const UniqueFd traffic = watch_traffic(group.path(), {});
    must(traffic.valid(), "start");
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, traffic_in(traffic.get()));
    const UniqueFd socket = group.socket(SOCK_DGRAM);
    must(connect_to(socket, address(kThere)), "connect");
    size_t expected = 0;
    for (const size_t size : {1, 1000, 1400}) {
      send(socket, size);
      expected += size + kHeaders;
    }
    CPPUNIT_ASSERT_EQUAL(size_t{3}, wire.arrived().size());
    CPPUNIT_ASSERT_EQUAL(expected, static_cast<size_t>(traffic_in(traffic.get())));
    expected += wire.send(port_of(socket), 777);
    CPPUNIT_ASSERT_EQUAL(size_t{777}, receive(socket));
    CPPUNIT_ASSERT_EQUAL(expected, static_cast<size_t>(traffic_in(traffic.get())));
    CPPUNIT_ASSERT_EQUAL(expected, static_cast<size_t>(traffic_of(group.path())));
  }

  // Also what goes to an address of this machine.
  void loopback_does_not_count() {
    if (skip()) return;
    const Wire wire;
    const Group group;
    const UniqueFd traffic = watch_traffic(group.path(), {});
    must(traffic.valid(), "start");
    for (const char* host : {"127.0.0.1", kHere}) {
      const UniqueFd from = group.socket(SOCK_DGRAM), to = group.socket(SOCK_DGRAM);
      const sockaddr_in here = address(host);
      must(bind(to.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0, "bind");
      must(connect_to(from, here), "connect");
      send(from, 1000);
      CPPUNIT_ASSERT_EQUAL(size_t{1000}, receive(to));
    }
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, traffic_in(traffic.get()));
  }

  void others_do_not_count() {
    if (skip()) return;
    const Wire wire;
    const Group group;
    const UniqueFd traffic = watch_traffic(group.path(), {});
    must(traffic.valid(), "start");
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    must(connect_to(socket, address(kThere)), "connect");
    send(socket, 1000);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, wire.arrived().size());
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, traffic_in(traffic.get()));
  }

  // Whatever the time that it takes: at least what may pass at once, at most that and the bound.
  void the_bound_is_kept_in_both_directions() {
    if (skip()) return;
    const Wire wire;
    const Group group;
    constexpr uint64_t kBound = 1'000'000, kAtOnce = kBound / 4, kPacket = 1000 + kHeaders;
    const int64_t since = system_clock().boot_ns();
    const UniqueFd traffic = watch_traffic(group.path(), {.bandwidth = kBound});
    must(traffic.valid(), "start");
    const UniqueFd socket = group.socket(SOCK_DGRAM);
    must(connect_to(socket, address(kThere)), "connect");
    uint64_t sent = 0, received = 0;
    for (int i = 0; i < 2000; ++i) {
      send(socket, 1000);
      sent += wire.arrived().size();
      wire.send(port_of(socket), 1000);
      char text[2000];
      while (recv(socket.get(), text, sizeof text, MSG_DONTWAIT) > 0) ++received;
    }
    const auto took = static_cast<uint64_t>(system_clock().boot_ns() - since);
    const uint64_t most = (kAtOnce + kBound * took / 1'000'000'000) / kPacket + 1;
    for (const uint64_t passed : {sent, received})
      CPPUNIT_ASSERT_MESSAGE(std::to_string(passed) + " of at most " + std::to_string(most),
                             passed >= kAtOnce / kPacket && passed <= most);
    CPPUNIT_ASSERT_EQUAL((sent + received) * kPacket,
                         static_cast<uint64_t>(traffic_in(traffic.get())));
  }

  void without_a_bound_all_pass() {
    if (skip()) return;
    const Wire wire;
    const Group group;
    const UniqueFd traffic = watch_traffic(group.path(), {});
    must(traffic.valid(), "start");
    const UniqueFd socket = group.socket(SOCK_DGRAM);
    must(connect_to(socket, address(kThere)), "connect");
    size_t sent = 0;
    for (int i = 0; i < 2000; ++i) {
      send(socket, 1000);
      sent += wire.arrived().size();
    }
    CPPUNIT_ASSERT_EQUAL(size_t{2000}, sent);
  }

  void only_the_server_is_reached() {
    if (skip()) return;
    const Wire wire;
    const std::string mapped = std::string("::ffff:") + kThere;
    for (const bool four : {true, false}) {
      const Group group;
      const std::string server = four ? std::string(kThere) : "[" + std::string(kThereSix) + "]";
      const UniqueFd traffic =
          watch_traffic(group.path(), {.only_server = true, .server = (server + ":5000").c_str()});
      must(traffic.valid(), "start");
      const auto tried = [&](const std::string& host, uint16_t port, int kind = SOCK_STREAM) {
        const int family = host.find(':') == host.npos ? AF_INET : AF_INET6;
        const UniqueFd socket = group.socket(kind | SOCK_NONBLOCK, family);
        const int error = error_of_connecting(socket, host, port);
        return error != 0 || kind == SOCK_STREAM     ? error
               : ::send(socket.get(), "x", 1, 0) < 0 ? errno
                                                     : 0;
      };
      for (const auto& [host, is_four] :
           {std::pair<std::string, bool>{kThere, true}, {mapped, true}, {kThereSix, false}}) {
        wire.arrived();
        const bool is_server = four == is_four;
        CPPUNIT_ASSERT_EQUAL_MESSAGE(host, is_server ? EINPROGRESS : EPERM, tried(host, kPort));
        CPPUNIT_ASSERT_EQUAL_MESSAGE(host, size_t{is_server}, wire.arrived().size());
        CPPUNIT_ASSERT_EQUAL_MESSAGE(host, EPERM, tried(host, kPort + 1));
        CPPUNIT_ASSERT_EQUAL_MESSAGE(host, EPERM, tried(host, kPort, SOCK_DGRAM));
      }
      for (const char* host : {"10.99.0.3", "::ffff:10.99.0.3", "fd99::3", "fd98::2"})
        CPPUNIT_ASSERT_EQUAL_MESSAGE(host, EPERM, tried(host, kPort));
      // Its own machine answers that nobody listens.
      for (const char* host : {"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"}) {
        const int error = tried(host, kPort);
        CPPUNIT_ASSERT_MESSAGE(host + std::string(": ") + strerror(error),
                               error == ECONNREFUSED || error == EINPROGRESS);
      }
      CPPUNIT_ASSERT_EQUAL(size_t{0}, wire.arrived().size());
      const UniqueFd others(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      CPPUNIT_ASSERT_EQUAL(EINPROGRESS, error_of_connecting(others, "10.99.0.3", kPort));
    }
  }

  // A way by other hosts, as the options of IPv4 can say. These are such that they look like the
  // ports that would be there without them.
  void headers_that_lead_elsewhere_are_refused() {
    if (skip()) return;
    const Wire wire;
    const Group group;
    const UniqueFd traffic =
        watch_traffic(group.path(), {.only_server = true, .server = "10.99.0.2:257"});
    must(traffic.valid(), "start");
    for (const bool with : {false, true}) {
      const UniqueFd socket = group.socket(SOCK_STREAM | SOCK_NONBLOCK);
      const char none[] = {1, 1, 1, 1};
      if (with)
        must(setsockopt(socket.get(), IPPROTO_IP, IP_OPTIONS, none, sizeof none) == 0, "options");
      CPPUNIT_ASSERT_EQUAL(EINPROGRESS, error_of_connecting(socket, kThere, 0x0101));
      CPPUNIT_ASSERT_EQUAL(size_t{!with}, wire.arrived().size());
    }
  }

  void nobody_else_reaches_it() {
    if (skip()) return;
    const Wire wire;
    for (const bool only : {false, true}) {
      const Group group;
      const UniqueFd traffic =
          watch_traffic(group.path(), {.only_server = only, .server = "10.99.0.2:5000"});
      must(traffic.valid(), "start");
      const UniqueFd socket = group.socket(SOCK_DGRAM);
      const sockaddr_in here = address(kHere, kPort + 1);
      must(bind(socket.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0, "bind");
      wire.send(kPort + 1, 100);
      // On its own machine it is reached.
      const UniqueFd from = group.socket(SOCK_DGRAM);
      must(connect_to(from, here), "connect");
      send(from, 10);
      CPPUNIT_ASSERT_EQUAL(size_t{only ? 10u : 100u}, receive(socket));
    }
  }

  void without_an_address_nobody_is_reached() {
    if (skip()) return;
    const Wire wire;
    for (const char* server : {"", "somewhere:5000", "10.99.0.2"}) {
      const Group group;
      const UniqueFd traffic = watch_traffic(group.path(), {.only_server = true, .server = server});
      must(traffic.valid(), "start");
      const UniqueFd socket = group.socket(SOCK_STREAM | SOCK_NONBLOCK);
      CPPUNIT_ASSERT_EQUAL(EPERM, error_of_connecting(socket, kThere, kPort));
      CPPUNIT_ASSERT_EQUAL(size_t{0}, wire.arrived().size());
    }
  }

  void nothing_is_known_without_such_a_group() {
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, traffic_in(-1));
    CPPUNIT_ASSERT(!watch_traffic("/tmp", {}).valid());
    CPPUNIT_ASSERT_EQUAL(geteuid() == 0 ? EBADF : EPERM, errno);
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, traffic_of("/tmp"));
    if (!Group::root().empty())
      CPPUNIT_ASSERT_EQUAL(int64_t{-1}, traffic_of(Group::root().c_str()));
    CPPUNIT_ASSERT(!watch_traffic("/no/such/folder", {}).valid());
    CPPUNIT_ASSERT_EQUAL(ENOENT, errno);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(TrafficTest);

}  // namespace
}  // namespace sublet
