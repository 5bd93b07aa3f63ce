#include "transport/tls/dial.h"

#include <netdb.h>
#include <poll.h>

#include <chrono>
#include <cstring>

#include "transport/tls/connect.h"
#include "transport/tls/joining.h"

namespace sublet {
namespace {

using Step = TlsSession::Step;
using Steady = std::chrono::steady_clock;

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// One exchange with a server, under one time limit.
class Exchange {
 public:
  Exchange(const HostPort& server, int timeout_ms)
      : server_(server), until_(Steady::now() + std::chrono::milliseconds(timeout_ms)) {}

  UniqueFd connect();
  void handshake(TlsSession& session);
  void send(TlsSession& session, const std::string& bytes);
  // Reads more into *bytes, at most `room`; false at the end.
  bool receive(TlsSession& session, std::string* bytes, size_t room);
  [[noreturn]] void fail(const std::string& why) const;
  [[noreturn]] void excluded(Exclusion why, bool by_server) const;

 private:
  bool wait(int socket, short events) const;

  const HostPort& server_;
  const Steady::time_point until_;
};

void Exchange::fail(const std::string& why) const {
  throw DialError("server.unreachable",
                  "the server at " + to_text(server_) + " cannot be reached: " + why,
                  "check that it runs, that it listens there, and that no firewall blocks it");
}

void Exchange::excluded(Exclusion why, bool by_server) const {
  const std::string who = by_server ? "the server at " + to_text(server_) + " refuses: "
                                    : "the server at " + to_text(server_) + " is not trusted: ";
  throw DialError(code_of(why), who + message_of(why), advice_of(why));
}

bool Exchange::wait(int socket, short events) const { return wait_for(socket, events, until_); }

UniqueFd Exchange::connect() {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int unknown =
      ::getaddrinfo(server_.host.c_str(), std::to_string(server_.port).c_str(), &wanted, &found);
  if (unknown != 0) fail(gai_strerror(unknown));
  const Addresses all(found);
  UniqueFd socket;
  const int error = connect_to_any(found, until_, &socket);
  if (error != 0) fail(std::strerror(error));
  return socket;
}

void Exchange::handshake(TlsSession& session) {
  for (;;) {
    const Step step = session.handshake();
    if (step == Step::kDone) return;
    if (step == Step::kOver) {
      const Exclusion why = session.excluded();
      if (why == Exclusion::kNone || why == Exclusion::kMalformed)
        fail("it does not use TLS 1.3 as Sublet does");
      excluded(why, false);
    }
    if (!wait(session.socket(), step == Step::kWantsRead ? POLLIN : POLLOUT))
      fail("no answer in time");
  }
}

void Exchange::send(TlsSession& session, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    size_t count = 0;
    const Step step = session.write(bytes.data() + at, bytes.size() - at, &count);
    if (step == Step::kOver) fail("it closed the connection");
    if (step == Step::kDone)
      at += count;
    else if (!wait(session.socket(), step == Step::kWantsRead ? POLLIN : POLLOUT))
      fail("no answer in time");
  }
}

bool Exchange::receive(TlsSession& session, std::string* bytes, size_t room) {
  char buffer[512];
  for (;;) {
    size_t count = 0;
    const Step step = session.read(buffer, std::min(room, sizeof buffer), &count);
    if (step == Step::kOver) return false;
    if (step == Step::kDone) {
      bytes->append(buffer, count);
      return true;
    }
    if (!wait(session.socket(), step == Step::kWantsRead ? POLLIN : POLLOUT))
      fail("no answer in time");
  }
}

// Checks that the received certificate is as specified by the token: of its authority,
// currently valid, of the server's pool and with the token's role.
Exclusion check_given(const std::string& certificate, const TlsPeer& server, Role role) {
  const Exclusion why = check_member(certificate, server.authority);
  if (why != Exclusion::kNone) return why;
  const auto member = read_certificate(certificate).member;
  if (!member) return Exclusion::kMalformed;
  if (member->pool != server.member.value().pool) return Exclusion::kWrongPool;
  return member->role == role ? Exclusion::kNone : Exclusion::kWrongRole;
}

}  // namespace

TlsSession dial_server(const HostPort& server, std::shared_ptr<const TlsContext> context,
                       int timeout_ms) {
  const PipeSignalBlocked quiet;
  Exchange exchange(server, timeout_ms);
  TlsSession session(std::move(context), exchange.connect(), TlsPurpose::kMember);
  exchange.handshake(session);
  std::string greeting;
  while (greeting.size() < kGreeting)
    if (!exchange.receive(session, &greeting, kGreeting - greeting.size()))
      exchange.fail("it closed the connection");
  const auto said = from_greeting(greeting);
  if (!said) exchange.fail("it is not a Sublet server");
  if (*said != Exclusion::kNone) exchange.excluded(*said, true);
  return session;
}

Membership join_pool(const JoinToken& token, const std::string& key, int timeout_ms) {
  const PipeSignalBlocked quiet;
  Exchange exchange(token.server, timeout_ms);
  TlsSession session(TlsContext::of_newcomer(token.authority), exchange.connect(),
                     TlsPurpose::kJoin);
  exchange.handshake(session);
  exchange.send(session, to_bytes(JoinRequest{token.id, token.secret, make_request(key)}));
  std::string bytes;
  for (;;) {
    const auto size = size_of_answer(bytes);
    if (!size) exchange.fail("it is not a Sublet server");
    if (*size != 0 && bytes.size() == *size) break;
    const size_t room = *size == 0 ? 7 - bytes.size() : *size - bytes.size();
    if (!exchange.receive(session, &bytes, room)) exchange.fail("it closed the connection");
  }
  const JoinAnswer answer = answer_from_bytes(bytes);
  if (answer.excluded != Exclusion::kNone) exchange.excluded(answer.excluded, true);
  const Exclusion why = check_given(answer.certificate, session.peer(), token.role);
  if (why != Exclusion::kNone) exchange.excluded(why, false);
  Membership made{token.server, {session.peer().authority, answer.certificate, key}};
  TlsContext::of_member(made.credentials);  // throws unless it is for this key
  return made;
}

}  // namespace sublet
