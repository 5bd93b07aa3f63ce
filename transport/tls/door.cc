#include "transport/tls/door.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "base/epoll_thread.h"
#include "base/os_error.h"
#include "transport/tls/socket.h"

namespace sublet {
namespace {

using Step = TlsSession::Step;
using Steady = std::chrono::steady_clock;

constexpr int kBacklog = 512;
constexpr uint64_t kListener = 0;
// How long to stop accepting when out of descriptors.
constexpr auto kPause = std::chrono::milliseconds(50);

enum class Stage { kShakes, kAsks, kWaits, kHears };

struct Stranger {
  Stranger(uint64_t n, TlsSession s, std::string h, Steady::time_point u)
      : number(n), session(std::move(s)), host(std::move(h)), until(u) {}
  const uint64_t number;
  TlsSession session;
  const std::string host;
  const Steady::time_point until;
  Stage stage = Stage::kShakes;
  std::string bytes;  // received so far, or still to be sent
  Exclusion said = Exclusion::kNone;
  Admission admission;
};

// Answers join requests one after the other in its own thread: an answer takes as
// long as a commit.
class Answerer {
 public:
  Answerer(std::function<JoinAnswer(const JoinRequest&)> join, size_t most)
      : join_(std::move(join)), most_(most), thread_([this] { run(); }) {}
  ~Answerer() { stop(); }

  void stop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  // False: too many are waiting.
  bool ask(JoinRequest request, std::function<void(JoinAnswer)> done) {
    {
      std::lock_guard lock(mutex_);
      if (questions_.size() >= most_) return false;
      questions_.emplace_back(std::move(request), std::move(done));
    }
    changed_.notify_all();
    return true;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stopping_ || !questions_.empty(); });
      if (stopping_) return;
      auto [request, done] = std::move(questions_.front());
      questions_.pop_front();
      lock.unlock();
      done(join_(request));
      lock.lock();
    }
  }

  const std::function<JoinAnswer(const JoinRequest&)> join_;
  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<JoinRequest, std::function<void(JoinAnswer)>>> questions_;
  bool stopping_ = false;
  std::thread thread_;
};

std::string host_of(const sockaddr_storage& address, socklen_t size) {
  char host[NI_MAXHOST] = "?";
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, nullptr, 0,
                NI_NUMERICHOST);
  return host;
}

UniqueFd listen_at(const HostPort& at) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* found = nullptr;
  const int unknown =
      ::getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &wanted, &found);
  if (unknown != 0)
    throw OsError(EADDRNOTAVAIL, "listen on", to_text(at),
                  std::string(gai_strerror(unknown)) + ": use an address of this machine");
  UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool done = socket.valid() &&
                    ::bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0 &&
                    ::listen(socket.get(), kBacklog) == 0;
  const int error = errno;
  ::freeaddrinfo(found);
  if (!done) throw OsError(error, "listen on", to_text(at));
  return socket;
}

}  // namespace

struct TlsDoor::State {
  State(const DoorSettings& s, DoorHooks h)
      : settings(s),
        hooks(std::move(h)),
        context(TlsContext::of_server(s.credentials)),
        listener(listen_at(s.at)),
        answerer(hooks.join, s.joins_waiting) {}

  const DoorSettings settings;
  const DoorHooks hooks;
  const std::shared_ptr<const TlsContext> context;
  const UniqueFd listener;
  Answerer answerer;
  EpollThread loop;
  // In order of arrival, which is also that of their time limits.
  std::map<uint64_t, Stranger> strangers;
  std::map<std::string, size_t> of_host;
  uint64_t next = 1;
  // Until then no connections are accepted.
  std::optional<Steady::time_point> rests_until;
  Steady::time_point second{};
  int joins = 0;

  void accept_some();
  void welcome(UniqueFd socket, const std::string& host);
  void ready(uint64_t number);
  void go_on(Stranger& stranger);
  void shaken(Stranger& stranger);
  void asked(Stranger& stranger);
  void answered(uint64_t number, const JoinAnswer& answer);
  void say(Stranger& stranger);
  void wait_for(Stranger& stranger, Step step);
  void turn_away(Stranger& stranger, const std::string& why);
  void forget(Stranger& stranger);
  Stranger& oldest_of(const std::string& host);
  bool may_join();
  int round();
};

void TlsDoor::State::forget(Stranger& stranger) {
  const auto host = of_host.find(stranger.host);
  if (--host->second == 0) of_host.erase(host);
  strangers.erase(stranger.number);
}

void TlsDoor::State::turn_away(Stranger& stranger, const std::string& why) {
  hooks.log("connection from " + stranger.host + " refused: " + why);
  forget(stranger);
}

// There must be one, according to of_host.
Stranger& TlsDoor::State::oldest_of(const std::string& host) {
  return std::find_if(strangers.begin(), strangers.end(),
                      [&](const auto& one) { return one.second.host == host; })
      ->second;
}

void TlsDoor::State::accept_some() {
  // Limited, so that many new connections do not delay the existing ones.
  for (int i = 0; i < 16; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    UniqueFd socket(::accept4(listener.get(), reinterpret_cast<sockaddr*>(&address), &size,
                              SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
      hooks.log("cannot accept connections: out of file descriptors");
      loop.change(listener.get(), kListener, 0);
      rests_until = Steady::now() + kPause;
      return;
    }
    welcome(std::move(socket), host_of(address, size));
  }
}

void TlsDoor::State::welcome(UniqueFd socket, const std::string& host) {
  set_options(socket.get());
  const auto others = of_host.find(host);
  if (others != of_host.end() && others->second >= settings.strangers_of_host)
    turn_away(oldest_of(host),
              "too many unfinished connections from that host; this was the oldest");
  if (strangers.size() >= settings.strangers)
    turn_away(strangers.begin()->second, "too many unfinished connections; this was the oldest");
  const uint64_t number = next++;
  try {
    TlsSession session(context, std::move(socket), TlsPurpose::kMember);
    const int descriptor = session.socket();
    ++of_host[host];
    strangers.try_emplace(number, number, std::move(session), host,
                          Steady::now() + std::chrono::milliseconds(settings.patience_ms));
    loop.add(descriptor, number, EPOLLIN);
  } catch (const std::exception& e) {
    const auto found = strangers.find(number);
    if (found != strangers.end()) turn_away(found->second, e.what());
  }
}

void TlsDoor::State::wait_for(Stranger& stranger, Step step) {
  loop.change(stranger.session.socket(), stranger.number,
              step == Step::kWantsWrite ? EPOLLOUT : EPOLLIN);
}

void TlsDoor::State::ready(uint64_t number) {
  if (number == kListener) return accept_some();
  const auto found = strangers.find(number);
  if (found != strangers.end()) go_on(found->second);
}

void TlsDoor::State::go_on(Stranger& stranger) {
  switch (stranger.stage) {
    case Stage::kShakes: {
      const Step step = stranger.session.handshake();
      if (step == Step::kDone) return shaken(stranger);
      if (step == Step::kOver) return turn_away(stranger, "the handshake failed");
      return wait_for(stranger, step);
    }
    case Stage::kAsks:
      return asked(stranger);
    case Stage::kWaits:  // it hung up, or sent more than the request
      return turn_away(stranger, "not a valid join request");
    case Stage::kHears:
      return say(stranger);
  }
}

void TlsDoor::State::shaken(Stranger& stranger) {
  if (stranger.session.purpose() == TlsPurpose::kJoin) {
    stranger.stage = Stage::kAsks;
    return asked(stranger);
  }
  Admission& admission = stranger.admission;
  admission.excluded = stranger.session.excluded();
  if (admission.excluded == Exclusion::kNone)
    admission = hooks.admit(*stranger.session.peer().member, stranger.session.peer().serial);
  stranger.said = admission.excluded;
  stranger.bytes = to_greeting(admission.excluded);
  stranger.stage = Stage::kHears;
  say(stranger);
}

void TlsDoor::State::asked(Stranger& stranger) {
  for (;;) {
    const auto size = size_of_request(stranger.bytes);
    if (!size) return turn_away(stranger, "not a valid join request");
    if (*size != 0 && stranger.bytes.size() == *size) break;
    char bytes[512];
    size_t count = 0;
    const Step step = stranger.session.read(bytes, sizeof bytes, &count);
    if (step == Step::kOver) return turn_away(stranger, "it closed the connection");
    if (step != Step::kDone) return wait_for(stranger, step);
    stranger.bytes.append(bytes, count);
  }
  stranger.stage = Stage::kWaits;
  loop.change(stranger.session.socket(), stranger.number, 0);
  const uint64_t number = stranger.number;
  const bool taken =
      may_join() &&
      answerer.ask(request_from_bytes(stranger.bytes), [this, number](const JoinAnswer& answer) {
        loop.post([this, number, answer] { answered(number, answer); });
      });
  if (!taken) answered(number, {Exclusion::kTooMany, ""});
}

bool TlsDoor::State::may_join() {
  const auto now = Steady::now();
  if (now - second >= std::chrono::seconds(1)) {
    second = now;
    joins = 0;
  }
  return ++joins <= settings.joins_per_second;
}

void TlsDoor::State::answered(uint64_t number, const JoinAnswer& answer) {
  const auto found = strangers.find(number);
  if (found == strangers.end()) return;  // closed meanwhile
  Stranger& stranger = found->second;
  stranger.said = answer.excluded;
  stranger.bytes = to_bytes(answer);
  stranger.stage = Stage::kHears;
  say(stranger);
}

void TlsDoor::State::say(Stranger& stranger) {
  while (!stranger.bytes.empty()) {
    size_t count = 0;
    const Step step = stranger.session.write(stranger.bytes.data(), stranger.bytes.size(), &count);
    if (step == Step::kOver) return turn_away(stranger, "it closed the connection");
    if (step != Step::kDone) return wait_for(stranger, step);
    stranger.bytes.erase(0, count);
  }
  const TlsPeer& peer = stranger.session.peer();
  if (stranger.said != Exclusion::kNone) {
    stranger.session.say_goodbye();
    const std::string name = peer.member ? " (" + to_uri(*peer.member) + ")" : "";
    return turn_away(stranger, message_of(stranger.said) + name);
  }
  if (stranger.session.purpose() == TlsPurpose::kJoin) {
    stranger.session.say_goodbye();
    return forget(stranger);
  }
  loop.remove(stranger.session.socket());
  const TlsPeer known = peer;
  TlsSession session = std::move(stranger.session);
  const Admission admission = stranger.admission;
  forget(stranger);
  hooks.arrived(std::move(session), admission, known);
}

// Closes those whose time has run out. Returns the ms until the next deadline; -1: none.
int TlsDoor::State::round() {
  const auto now = Steady::now();
  if (rests_until && *rests_until <= now) {
    loop.change(listener.get(), kListener, EPOLLIN);
    rests_until.reset();
  }
  while (!strangers.empty() && strangers.begin()->second.until <= now)
    turn_away(strangers.begin()->second, "it did not finish in time");
  auto next_due = rests_until;
  if (!strangers.empty())
    next_due =
        std::min(next_due.value_or(Steady::time_point::max()), strangers.begin()->second.until);
  if (!next_due) return -1;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(*next_due - now).count());
}

TlsDoor::TlsDoor(const DoorSettings& settings, DoorHooks hooks)
    : state_(std::make_unique<State>(settings, std::move(hooks))) {
  State* s = state_.get();
  s->loop.add(s->listener.get(), kListener, EPOLLIN);
  s->loop.start({[s](uint64_t number, uint32_t) { s->ready(number); }, [s] { return s->round(); }});
}

TlsDoor::~TlsDoor() {
  state_->answerer.stop();
  state_->loop.stop();
}

uint16_t TlsDoor::port() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(state_->listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace sublet
