#include "transport/tls/relay.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/epoll_thread.h"

namespace sublet {
namespace {

using Step = TlsSession::Step;
using Steady = std::chrono::steady_clock;

constexpr size_t kPiece = 16384;  // a TLS record
// Pieces that one connection may transfer before the others get their turn.
constexpr int kTurn = 16;

// One connection. At most one piece is buffered in each direction: while one side
// cannot be written, the other is not read.
struct Link {
  Link(uint64_t which, uint64_t whose, TlsSession with, UniqueFd to)
      : number(which), member(whose), session(std::move(with)), plain(std::move(to)) {}

  const uint64_t number;
  const uint64_t member;
  TlsSession session;
  UniqueFd plain;
  std::string in, out;     // not yet written to plain, to the session
  bool in_ended = false;   // the session has ended
  bool deaf = false;       // the plain end is no longer read
  bool out_ended = false;  // plain has ended
  bool over = false;
  bool read_wants_write = false, write_wants_read = false;
  uint32_t tls_events = 0, plain_events = 0;
  bool plain_watched = true;

  bool pump();
  bool pull_in();
  bool push_in();
  bool pull_out();
  bool push_out();
  void choose_events(uint32_t* tls, uint32_t* of_plain) const;
};

bool Link::pull_in() {
  if (!in.empty() || in_ended || deaf) return false;
  char bytes[kPiece];
  size_t count = 0;
  const Step step = session.read(bytes, sizeof bytes, &count);
  read_wants_write = step == Step::kWantsWrite;
  if (step == Step::kDone) in.assign(bytes, count);
  if (step == Step::kOver) in_ended = true;
  return step == Step::kDone;
}

bool Link::push_in() {
  if (in.empty()) {
    // All data has been delivered; the ORB sees the end.
    if (in_ended) over = true;
    return false;
  }
  const ssize_t sent = ::send(plain.get(), in.data(), in.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) {
    in.erase(0, static_cast<size_t>(sent));
    return true;
  }
  if (errno == EAGAIN || errno == EINTR) return false;
  // The ORB has stopped reading; the data it has written is still sent.
  deaf = true;
  in.clear();
  return false;
}

bool Link::pull_out() {
  if (!out.empty() || out_ended) return false;
  char bytes[kPiece];
  const ssize_t got = ::recv(plain.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (got > 0) {
    out.assign(bytes, static_cast<size_t>(got));
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  out_ended = true;
  return false;
}

bool Link::push_out() {
  if (out.empty()) {
    if (out_ended) over = true;
    return false;
  }
  size_t count = 0;
  const Step step = session.write(out.data(), out.size(), &count);
  write_wants_read = step == Step::kWantsRead;
  if (step == Step::kDone) out.erase(0, count);
  if (step == Step::kOver) over = true;
  return step == Step::kDone;
}

// True if there may be more to do at once.
bool Link::pump() {
  for (int turn = 0; turn < kTurn && !over; ++turn) {
    bool moved = pull_in();
    moved = push_in() || moved;
    moved = pull_out() || moved;
    moved = push_out() || moved;
    if (!moved) return false;
  }
  return !over;
}

void Link::choose_events(uint32_t* tls, uint32_t* of_plain) const {
  *tls = 0;
  *of_plain = 0;
  if (in.empty() && !in_ended && !deaf) *tls |= EPOLLIN;
  if (!out.empty()) *tls |= EPOLLOUT;
  if (read_wants_write) *tls |= EPOLLOUT;
  if (write_wants_read) *tls |= EPOLLIN;
  if (!in.empty()) *of_plain |= EPOLLOUT;
  if (out.empty() && !out_ended) *of_plain |= EPOLLIN;
}

}  // namespace

struct TlsRelay::State {
  EpollThread loop;
  std::map<uint64_t, Link> links;
  std::vector<uint64_t> unfinished;  // had more to do after their turn
  // Links whose plain end has closed, ordered by deadline.
  std::deque<std::pair<Steady::time_point, uint64_t>> closing;
  std::chrono::milliseconds last_words{0};
  uint64_t next = 1;

  void add(TlsSession session, UniqueFd plain, uint64_t member);
  void ready(uint64_t number, uint32_t events);
  void serve(uint64_t number);
  int round();
  int end_late_ones();
  void end(Link& link);
};

// Each link has two numbers in the loop, 2n for the session and 2n + 1 for the
// plain end.
void TlsRelay::State::add(TlsSession session, UniqueFd plain, uint64_t member) {
  const uint64_t number = next++;
  Link& link =
      links.try_emplace(number, number, member, std::move(session), std::move(plain)).first->second;
  try {
    loop.add(link.session.socket(), 2 * number, 0);
    loop.add(link.plain.get(), 2 * number + 1, 0);
  } catch (const std::exception&) {
    return end(link);
  }
  serve(number);
}

void TlsRelay::State::end(Link& link) {
  link.session.say_goodbye();
  links.erase(link.number);  // closing the descriptors removes them from the loop
}

void TlsRelay::State::serve(uint64_t number) {
  const auto found = links.find(number);
  if (found == links.end()) return;
  Link& link = found->second;
  if (link.pump()) unfinished.push_back(number);
  if (link.over) return end(link);
  uint32_t tls = 0, plain = 0;
  link.choose_events(&tls, &plain);
  if (tls != link.tls_events) loop.change(link.session.socket(), 2 * number, tls);
  if (plain != link.plain_events && link.plain_watched)
    loop.change(link.plain.get(), 2 * number + 1, plain);
  link.tls_events = tls;
  link.plain_events = plain;
}

int TlsRelay::State::round() {
  std::vector<uint64_t> now;
  now.swap(unfinished);
  for (const uint64_t number : now) serve(number);
  const int wait_ms = end_late_ones();
  return unfinished.empty() ? wait_ms : 0;
}

// Ends links whose peers take too long; returns the ms until the next deadline, -1: none.
int TlsRelay::State::end_late_ones() {
  while (!closing.empty()) {
    const auto [until, number] = closing.front();
    const auto found = links.find(number);
    const auto left = until - Steady::now();
    if (found != links.end() && left > Steady::duration::zero())
      return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
    if (found != links.end()) end(found->second);
    closing.pop_front();
  }
  return -1;
}

// epoll always reports a hang-up: one that is not waited for must be handled, or it would
// wake this thread again and again.
void TlsRelay::State::ready(uint64_t number, uint32_t events) {
  const auto found = links.find(number / 2);
  if (found == links.end()) return;
  Link& link = found->second;
  const bool of_plain = number % 2 == 1;
  const uint32_t wanted = of_plain ? link.plain_events : link.tls_events;
  if ((events & (EPOLLHUP | EPOLLERR)) != 0 && wanted == 0) {
    if (!of_plain || link.out.empty()) return end(link);
    // The ORB has closed and the peer is slow to receive the remaining data.
    loop.remove(link.plain.get());
    link.plain_watched = false;
    closing.emplace_back(Steady::now() + last_words, link.number);
  }
  serve(number / 2);
}

TlsRelay::TlsRelay(int last_words_ms) : state_(std::make_unique<State>()) {
  State* s = state_.get();
  s->last_words = std::chrono::milliseconds(last_words_ms);
  s->loop.start({[s](uint64_t number, uint32_t events) { s->ready(number, events); },
                 [s] { return s->round(); }});
}

TlsRelay::~TlsRelay() { state_->loop.stop(); }

UniqueFd TlsRelay::take(TlsSession session, uint64_t member) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return UniqueFd();
  UniqueFd ours(ends[0]), theirs(ends[1]);
  // std::function requires a copyable callable.
  auto packed =
      std::make_shared<std::pair<TlsSession, UniqueFd>>(std::move(session), std::move(ours));
  const bool posted = state_->loop.post([s = state_.get(), packed, member] {
    s->add(std::move(packed->first), std::move(packed->second), member);
  });
  return posted ? std::move(theirs) : UniqueFd();
}

void TlsRelay::cut(uint64_t member) {
  state_->loop.post([s = state_.get(), member] {
    for (auto it = s->links.begin(); it != s->links.end();) {
      Link& link = (it++)->second;
      if (link.member == member) s->end(link);
    }
  });
}

}  // namespace sublet
