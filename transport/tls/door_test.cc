// The door, connecting to it and the relay behind it, without the ORB.
#include "transport/tls/door.h"

#include <arpa/inet.h>
#include <cppunit/extensions/HelperMacros.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/testing/temporary_folder.h"
#include "transport/membership_file.h"
#include "transport/testing/tls_pool.h"
#include "transport/tls/dial.h"
#include "transport/tls/relay.h"

namespace sublet {
namespace {

using testing::TlsPool;
using Steady = std::chrono::steady_clock;

constexpr int kPatient = 20'000;

// A door on the loopback and a relay behind it; keeps the admitted members.
class House {
 public:
  explicit House(const TlsCredentials& server, int patience_ms = kPatient, size_t strangers = 64,
                 size_t of_host = 64, int last_words_ms = kPatient)
      : relay_(last_words_ms), door_(settings(server, patience_ms, strangers, of_host), hooks()) {}

  HostPort at() const { return {"127.0.0.1", door_.port()}; }
  TlsRelay& relay() { return relay_; }

  // The plain end of the next admitted member.
  UniqueFd next() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(kPatient), [this] { return !in_.empty(); });
    if (in_.empty()) return UniqueFd();
    UniqueFd first = std::move(in_.front());
    in_.erase(in_.begin());
    return first;
  }
  // Waits for a log line with these words.
  bool said(const std::string& words) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(kPatient), [&] {
      for (const auto& line : lines_)
        if (line.find(words) != std::string::npos) return true;
      return false;
    });
  }

  std::atomic<Exclusion> verdict{Exclusion::kNone};
  std::function<JoinAnswer(const JoinRequest&)> join;

 private:
  static DoorSettings settings(const TlsCredentials& server, int patience_ms, size_t strangers,
                               size_t of_host) {
    DoorSettings s;
    s.at = {"127.0.0.1", 0};
    s.credentials = server;
    s.patience_ms = patience_ms;
    s.strangers = strangers;
    s.strangers_of_host = of_host;
    s.joins_per_second = 1000;
    return s;
  }
  DoorHooks hooks() {
    DoorHooks h;
    h.admit = [this](const MemberName&, const std::string&) { return Admission{verdict, 7}; };
    h.arrived = [this](TlsSession session, const Admission& admission, const TlsPeer&) {
      UniqueFd plain = relay_.take(std::move(session), admission.member);
      std::lock_guard lock(mutex_);
      in_.push_back(std::move(plain));
      changed_.notify_all();
    };
    h.join = [this](const JoinRequest& request) { return join(request); };
    h.log = [this](std::string_view line) {
      std::lock_guard lock(mutex_);
      lines_.emplace_back(line);
      changed_.notify_all();
    };
    return h;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<UniqueFd> in_;
  std::vector<std::string> lines_;
  TlsRelay relay_;
  TlsDoor door_;
};

// The error code of connecting; "" on success.
std::string refusal(const HostPort& at, const TlsCredentials& credentials) {
  try {
    dial_server(at, TlsContext::of_member(credentials), kPatient);
    return "";
  } catch (const DialError& e) {
    CPPUNIT_ASSERT(*e.what() != '\0' && !e.advice().empty());
    return e.code();
  }
}

UniqueFd plain_connection(const HostPort& at) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(at.port);
  ::inet_pton(AF_INET, at.host.c_str(), &address.sin_addr);
  CPPUNIT_ASSERT_EQUAL(
      0, ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address));
  return socket;
}

// True when the other side closes, false after a while.
bool closes(const UniqueFd& socket) {
  const auto end = Steady::now() + std::chrono::milliseconds(kPatient);
  char bytes[4096];
  while (Steady::now() < end) {
    pollfd one{socket.get(), POLLIN, 0};
    if (::poll(&one, 1, 100) > 0 && ::recv(socket.get(), bytes, sizeof bytes, 0) <= 0) return true;
  }
  return false;
}

void send_all(int socket, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t sent = ::send(socket, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return;
    at += static_cast<size_t>(sent);
  }
}

// The number of open descriptors of this process.
size_t descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

std::string receive_all(int socket, size_t size) {
  std::string bytes(size, '\0');
  size_t at = 0;
  while (at < size) {
    const ssize_t got = ::recv(socket, bytes.data() + at, size - at, 0);
    if (got <= 0) break;
    at += static_cast<size_t>(got);
  }
  bytes.resize(at);
  return bytes;
}

}  // namespace

class TlsDoorTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(TlsDoorTest);
  CPPUNIT_TEST(members_come_in_and_bytes_pass_both_ways);
  CPPUNIT_TEST(each_wrong_certificate_has_its_word);
  CPPUNIT_TEST(wrong_servers_are_not_trusted);
  CPPUNIT_TEST(without_certificate_nobody_comes_in);
  CPPUNIT_TEST(newcomer_gets_a_certificate);
  CPPUNIT_TEST(newcomer_is_told_why_not);
  CPPUNIT_TEST(newcomer_keeps_nothing_that_is_not_good);
  CPPUNIT_TEST(newcomer_trusts_only_the_authority_of_the_token);
  CPPUNIT_TEST(silent_strangers_are_cut);
  CPPUNIT_TEST(strangers_take_no_place_from_members);
  CPPUNIT_TEST(one_host_has_so_many_unfinished_connections);
  CPPUNIT_TEST(garbage_ends_the_connection);
  CPPUNIT_TEST(cut_ends_connections_at_once);
  CPPUNIT_TEST(end_on_one_side_ends_the_other);
  CPPUNIT_TEST(last_words_have_their_time);
  CPPUNIT_TEST(port_that_is_taken_is_named);
  CPPUNIT_TEST_SUITE_END();

 public:
  void members_come_in_and_bytes_pass_both_ways() {
    const TlsPool pool;
    House house(pool.server());
    TlsRelay relay;
    const UniqueFd mine = relay.take(
        dial_server(house.at(), TlsContext::of_member(pool.credentials(Role::kMachine, "curly")),
                    kPatient),
        0);
    const UniqueFd theirs = house.next();
    CPPUNIT_ASSERT(mine.valid() && theirs.valid());
    const std::string there = random_bytes(5'000'000), back = random_bytes(3'000'000);
    // Both directions at once, each larger than all buffers in between.
    std::thread sends([&] { send_all(mine.get(), there); });
    std::thread answers([&] { send_all(theirs.get(), back); });
    std::string got_there;
    std::thread receives([&] { got_there = receive_all(theirs.get(), there.size()); });
    const std::string got_back = receive_all(mine.get(), back.size());
    sends.join();
    answers.join();
    receives.join();
    CPPUNIT_ASSERT(got_there == there && got_back == back);
  }

  void each_wrong_certificate_has_its_word() {
    const TlsPool pool, other("lab"), elsewhere("barn");
    House house(pool.server());
    constexpr int64_t kHour = TlsPool::kHour;
    const auto machine = [&](int64_t from, int64_t until) {
      return refusal(house.at(), pool.credentials(Role::kMachine, "curly", from, until));
    };
    CPPUNIT_ASSERT_EQUAL(std::string(), machine(-kHour, kHour));
    CPPUNIT_ASSERT_EQUAL(std::string("certificate.expired"), machine(-2 * kHour, -kHour));
    CPPUNIT_ASSERT_EQUAL(std::string("certificate.not_yet_valid"), machine(kHour, 2 * kHour));
    // It trusts the server, but its own certificate is of another authority.
    TlsCredentials mixed = other.credentials(Role::kMachine, "curly");
    mixed.authority = pool.authority().certificate;
    CPPUNIT_ASSERT_EQUAL(std::string("certificate.authority"), refusal(house.at(), mixed));
    // Of the right authority, but a server's: no client may use one.
    CPPUNIT_ASSERT_EQUAL(std::string("certificate.role"), refusal(house.at(), pool.server()));
    for (const Exclusion why : {Exclusion::kRevoked, Exclusion::kUnknownMember,
                                Exclusion::kWrongName, Exclusion::kWrongRole}) {
      house.verdict = why;
      CPPUNIT_ASSERT_EQUAL(std::string(code_of(why)), machine(-kHour, kHour));
    }
    CPPUNIT_ASSERT(house.said("sublet://lab/machine/curly"));
  }

  // The client's side: a certificate of the pool's authority is not enough.
  void wrong_servers_are_not_trusted() {
    const TlsPool pool, other("lab");
    const TlsCredentials curly = pool.credentials(Role::kMachine, "curly");
    const auto served_by = [&](const TlsCredentials& server) {
      House house(server);
      const std::string code = refusal(house.at(), curly);
      CPPUNIT_ASSERT(house.said("the handshake failed"));
      return code;
    };
    CPPUNIT_ASSERT_EQUAL(std::string("certificate.authority"), served_by(other.server()));
    CPPUNIT_ASSERT_EQUAL(std::string("certificate.role"),
                         served_by(pool.credentials(Role::kMachine, "moe")));
    CPPUNIT_ASSERT_EQUAL(std::string("certificate.name"),
                         served_by(pool.credentials(Role::kServer, "moe")));
    CPPUNIT_ASSERT_EQUAL(std::string("certificate.pool"),
                         served_by(pool.credentials(MemberName{"barn", Role::kServer, "server"})));
    CPPUNIT_ASSERT_EQUAL(
        std::string("certificate.expired"),
        served_by(pool.credentials(Role::kServer, "server", -2 * TlsPool::kHour, -1)));
    CPPUNIT_ASSERT_EQUAL(
        std::string("certificate.not_yet_valid"),
        served_by(pool.credentials(Role::kServer, "server", TlsPool::kHour, 2 * TlsPool::kHour)));
  }

  void without_certificate_nobody_comes_in() {
    const TlsPool pool;
    House house(pool.server());
    const auto newcomer =
        TlsContext::of_newcomer(read_certificate(pool.authority().certificate).fingerprint);
    try {
      dial_server(house.at(), newcomer, kPatient);
      CPPUNIT_FAIL("came in");
    } catch (const DialError& e) {
      CPPUNIT_ASSERT_EQUAL(std::string("certificate.missing"), e.code());
    }
  }

  void newcomer_gets_a_certificate() {
    const TlsPool pool;
    House house(pool.server());
    JoinToken token{Role::kMachine, house.at(),
                    read_certificate(pool.authority().certificate).fingerprint,
                    random_bytes(kTokenId), random_bytes(kTokenSecret)};
    house.join = [&](const JoinRequest& request) {
      CPPUNIT_ASSERT(request.id == token.id && request.secret == token.secret);
      const int64_t now = system_clock().utc_us();
      return JoinAnswer{
          Exclusion::kNone,
          issue_certificate(pool.authority(), request.request, {"lab", Role::kMachine, "curly"},
                            {now - TlsPool::kHour, now + TlsPool::kHour})};
    };
    const Membership made = join_pool(token, make_key(), kPatient);
    CPPUNIT_ASSERT_EQUAL(std::string(), refusal(made.server, made.credentials));
  }

  void newcomer_is_told_why_not() {
    const TlsPool pool;
    House house(pool.server());
    const JoinToken token{Role::kMachine, house.at(),
                          read_certificate(pool.authority().certificate).fingerprint,
                          random_bytes(kTokenId), random_bytes(kTokenSecret)};
    for (const Exclusion why : {Exclusion::kTokenUnknown, Exclusion::kTokenUsed,
                                Exclusion::kTokenExpired, Exclusion::kTokenRevoked}) {
      house.join = [why](const JoinRequest&) { return JoinAnswer{why, ""}; };
      try {
        join_pool(token, make_key(), kPatient);
        CPPUNIT_FAIL("joined");
      } catch (const DialError& e) {
        CPPUNIT_ASSERT_EQUAL(std::string(code_of(why)), e.code());
      }
    }
  }

  // An existing membership is kept, and the same join can be repeated.
  void newcomer_keeps_nothing_that_is_not_good() {
    const TlsPool pool, other("lab");
    House house(pool.server());
    const JoinToken token{Role::kMachine, house.at(),
                          read_certificate(pool.authority().certificate).fingerprint,
                          random_bytes(kTokenId), random_bytes(kTokenSecret)};
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/membership";
    write_membership(system_files(), path,
                     {house.at(), pool.credentials(Role::kMachine, "before")});
    const std::string before = system_files().read_file(path, 100'000);
    constexpr int64_t kHour = TlsPool::kHour;
    const auto given = [&](const TlsPool& by, const MemberName& who, int64_t from, int64_t until) {
      house.join = [&, who, from, until](const JoinRequest& request) {
        const int64_t now = system_clock().utc_us();
        return JoinAnswer{Exclusion::kNone, issue_certificate(by.authority(), request.request, who,
                                                              {now + from, now + until})};
      };
      try {
        join_and_keep(system_files(), path, token, kPatient);
        return std::string();
      } catch (const DialError& e) {
        CPPUNIT_ASSERT_EQUAL(before, system_files().read_file(path, 100'000));
        return e.code();
      }
    };
    const MemberName curly{"lab", Role::kMachine, "curly"};
    CPPUNIT_ASSERT_EQUAL(std::string("certificate.authority"), given(other, curly, -kHour, kHour));
    CPPUNIT_ASSERT_EQUAL(std::string("certificate.expired"),
                         given(pool, curly, -2 * kHour, -kHour));
    CPPUNIT_ASSERT_EQUAL(std::string("certificate.not_yet_valid"),
                         given(pool, curly, kHour, 2 * kHour));
    CPPUNIT_ASSERT_EQUAL(std::string("certificate.pool"),
                         given(pool, {"barn", Role::kMachine, "curly"}, -kHour, kHour));
    CPPUNIT_ASSERT_EQUAL(std::string("certificate.role"),
                         given(pool, {"lab", Role::kUser, "curly"}, -kHour, kHour));
    CPPUNIT_ASSERT_EQUAL(std::string(), given(pool, curly, -kHour, kHour));
    CPPUNIT_ASSERT_EQUAL(
        std::string("curly"),
        read_certificate(read_membership(system_files(), path)->credentials.certificate)
            .member->name);
  }

  void newcomer_trusts_only_the_authority_of_the_token() {
    const TlsPool pool, other("lab");
    House house(other.server());
    std::atomic<bool> asked{false};
    house.join = [&](const JoinRequest&) {
      asked = true;
      return JoinAnswer{Exclusion::kTokenUnknown, ""};
    };
    const JoinToken token{Role::kMachine, house.at(),
                          read_certificate(pool.authority().certificate).fingerprint,
                          random_bytes(kTokenId), random_bytes(kTokenSecret)};
    try {
      join_pool(token, make_key(), kPatient);
      CPPUNIT_FAIL("joined");
    } catch (const DialError& e) {
      CPPUNIT_ASSERT_EQUAL(std::string("certificate.authority"), e.code());
    }
    CPPUNIT_ASSERT(house.said("the handshake failed"));
    CPPUNIT_ASSERT(!asked);  // the secret was not sent
  }

  void silent_strangers_are_cut() {
    const TlsPool pool;
    House house(pool.server(), 200);
    const UniqueFd silent = plain_connection(house.at());
    const UniqueFd half = plain_connection(house.at());
    send_all(half.get(), std::string("\x16\x03\x01\x02\x00\x01", 6));  // an incomplete record
    CPPUNIT_ASSERT(closes(silent) && closes(half));
    CPPUNIT_ASSERT(house.said("did not finish in time"));
  }

  void strangers_take_no_place_from_members() {
    const TlsPool pool;
    House house(pool.server(), kPatient, 8);
    std::vector<UniqueFd> crowd;
    for (int i = 0; i < 40; ++i) crowd.push_back(plain_connection(house.at()));
    CPPUNIT_ASSERT_EQUAL(std::string(),
                         refusal(house.at(), pool.credentials(Role::kMachine, "curly")));
    CPPUNIT_ASSERT(closes(crowd.front()));
    CPPUNIT_ASSERT(house.said("this was the oldest"));
  }

  void one_host_has_so_many_unfinished_connections() {
    const TlsPool pool;
    House house(pool.server(), kPatient, 64, 4);
    std::vector<UniqueFd> crowd;
    for (int i = 0; i < 5; ++i) crowd.push_back(plain_connection(house.at()));
    CPPUNIT_ASSERT(closes(crowd.front()));
    CPPUNIT_ASSERT(house.said("too many unfinished connections from that host"));
    crowd.clear();
    CPPUNIT_ASSERT(house.said("the handshake failed"));
  }

  void garbage_ends_the_connection() {
    const TlsPool pool;
    House house(pool.server());
    for (const std::string& bytes :
         {std::string("GIOP\1\2\0\0\0\0\0\0", 12), std::string("GET / HTTP/1.0\r\n\r\n"),
          random_bytes(4096), std::string(70'000, '\x16')}) {
      const UniqueFd socket = plain_connection(house.at());
      send_all(socket.get(), bytes);
      CPPUNIT_ASSERT(closes(socket));
    }
    CPPUNIT_ASSERT_EQUAL(std::string(),
                         refusal(house.at(), pool.credentials(Role::kMachine, "curly")));
  }

  void cut_ends_connections_at_once() {
    const TlsPool pool;
    House house(pool.server());
    TlsRelay relay;
    const UniqueFd mine = relay.take(
        dial_server(house.at(), TlsContext::of_member(pool.credentials(Role::kMachine, "curly")),
                    kPatient),
        0);
    const UniqueFd theirs = house.next();
    house.relay().cut(8);  // another member
    send_all(mine.get(), "hello");
    CPPUNIT_ASSERT_EQUAL(std::string("hello"), receive_all(theirs.get(), 5));
    house.relay().cut(7);
    CPPUNIT_ASSERT(closes(theirs) && closes(mine));
  }

  void end_on_one_side_ends_the_other() {
    const TlsPool pool;
    House house(pool.server());
    TlsRelay relay;
    const auto context = TlsContext::of_member(pool.credentials(Role::kUser, "ann"));
    UniqueFd mine = relay.take(dial_server(house.at(), context, kPatient), 0);
    UniqueFd theirs = house.next();
    // Data written before closing arrives.
    send_all(theirs.get(), "last words");
    theirs.reset();
    CPPUNIT_ASSERT_EQUAL(std::string("last words"), receive_all(mine.get(), 100));
    mine = relay.take(dial_server(house.at(), context, kPatient), 0);
    theirs = house.next();
    mine.reset();
    CPPUNIT_ASSERT(closes(theirs));
  }

  // A peer that reads nothing is dropped some time after the plain end has closed.
  void last_words_have_their_time() {
    const TlsPool pool;
    House house(pool.server(), kPatient, 64, 64, 100);
    const TlsSession silent = dial_server(
        house.at(), TlsContext::of_member(pool.credentials(Role::kUser, "ann")), kPatient);
    UniqueFd theirs = house.next();
    // Another one, whose answers show that the relay has handled its events.
    TlsRelay relay;
    const UniqueFd lively = relay.take(
        dial_server(house.at(), TlsContext::of_member(pool.credentials(Role::kUser, "bob")),
                    kPatient),
        0);
    const UniqueFd to_lively = house.next();
    const std::string much(1'000'000, 'x');
    // Until all buffers in between are full.
    for (int rounds = 0; rounds < 50; ++rounds) {
      if (::send(theirs.get(), much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        rounds = 0;
      send_all(to_lively.get(), "x");
      CPPUNIT_ASSERT_EQUAL(size_t{1}, receive_all(lively.get(), 1).size());
    }
    const size_t with_it = descriptors();
    theirs.reset();
    // Ours and the relay's two are closed well before TCP gives up.
    const auto end = Steady::now() + std::chrono::seconds(10);
    while (descriptors() > with_it - 3 && Steady::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CPPUNIT_ASSERT_EQUAL(with_it - 3, descriptors());
  }

  void port_that_is_taken_is_named() {
    const TlsPool pool;
    House house(pool.server());
    DoorSettings second;
    second.at = house.at();
    second.credentials = pool.server();
    try {
      TlsDoor door(second, {});
      CPPUNIT_FAIL("two at one port");
    } catch (const std::exception& e) {
      CPPUNIT_ASSERT(std::string(e.what()).find(to_text(house.at())) != std::string::npos);
    }
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(TlsDoorTest);

}  // namespace sublet
