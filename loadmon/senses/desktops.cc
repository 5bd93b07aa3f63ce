#include "loadmon/senses/desktops.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/local_socket.h"
#include "base/log.h"
#include "base/os_error.h"

namespace sublet::loadmon {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int kBacklog = 16;
constexpr int kEventsAtOnce = Desktops::kMostAgents + 1;
// An agent says "here" at most four times a second, that a program fills the screen once, and
// answers pings.
constexpr double kFramesBurst = 16;
constexpr double kFramesPerSecond = 8;
// Each visit wakes the monitor up. When there were too many, the others wait.
constexpr double kVisitsBurst = 16;
constexpr double kVisitsPerSecond = 4;
// A repeated report may be late.
constexpr int64_t kGoesOnAtMost = SUBLET_AGENT_GOES_ON_NS + 2'000 * kMs;
constexpr double kLinesBurst = 20;
constexpr double kLinesPerSecond = 0.1;

bool is_desktop(uint32_t value) {
  return value >= SUBLET_DESKTOP_X11 && value <= SUBLET_DESKTOP_MUTTER;
}

const char* words(uint32_t desktop) {
  switch (desktop) {
    case SUBLET_DESKTOP_X11:
      return "X11";
    case SUBLET_DESKTOP_WAYLAND_EXT:
      return "Wayland, ext-idle-notify-v1";
    case SUBLET_DESKTOP_WAYLAND_KDE:
      return "Wayland, KDE's idle protocol";
    default:
      return "Mutter";
  }
}

// Visitors that are too many to be heard.
const protocol::Place kVisitors("agents");

protocol::Place place_of(const WatchedDesktop& watched) {
  const bool x11 = watched.desktop == SUBLET_DESKTOP_X11;
  protocol::Place place(x11 ? "X11" : "Wayland");
  const std::string& session =
      watched.server_session.empty() ? watched.agent_session : watched.server_session;
  if (x11 && watched.display > 0)
    place.append(" :" + std::to_string(watched.display - 1));
  else if (!session.empty())
    place.append(", session " + session);
  return place;
}

bool send_ping(int fd, uint32_t sequence) {
  sublet_frame frame = {};
  frame.magic = SUBLET_FRAME_MAGIC;
  frame.kind = SUBLET_FRAME_PING;
  frame.sequence = sequence;
  return send(fd, &frame, sizeof frame, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

}  // namespace

bool Allowance::any(int64_t now) {
  left_ = std::min(burst_, left_ + static_cast<double>(now - at_) * 1e-9 * per_second_);
  at_ = now;
  return left_ >= 1;
}

bool Allowance::take(int64_t now) {
  if (!any(now)) return false;
  left_ -= 1;
  return true;
}

Desktops::Desktops(const std::string& folder, const std::string& root, JobsHere jobs)
    : root_(root),
      jobs_(std::move(jobs)),
      events_(epoll_create1(EPOLL_CLOEXEC)),
      listener_(listen_local(SocketKind::seqpacket, folder + "/agent.sock", 0666, kBacklog, true)),
      visits_(kVisitsBurst, kVisitsPerSecond),
      lines_(kLinesBurst, kLinesPerSecond) {
  if (!events_.valid()) throw OsError(errno, "watch", "desktops");
  watch(listener_.get());
  listening_ = true;
}

void Desktops::watch(int fd) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    throw OsError(errno, "watch", "desktops");
}

bool Desktops::sample(int64_t now, const JobsEffect& /*jobs*/, protocol::PresenceSample* sample) {
  hear_all(now);
  ping_all(now);
  listen_again(now);
  fill(now, sample);
  return true;
}

bool Desktops::notice(int64_t now, protocol::PresenceSample* sample) {
  hear_all(now);
  fill(now, sample);
  return true;
}

void Desktops::fill(int64_t now, protocol::PresenceSample* sample) {
  for (auto& [fd, agent] : agents_) {
    if (now >= agent.goes_on_until) continue;
    agent.watched.touched_at = now;
    seen(now, agent.watched.place);
  }
  if (seen_ != 0) note_input(now, seen_, "desktops", seen_in_, sample);
}

void Desktops::seen(int64_t now, const protocol::Place& place) {
  seen_ = now;
  seen_in_ = place;
}

void Desktops::hear_all(int64_t now) {
  epoll_event ready[kEventsAtOnce];
  const int count = epoll_wait(events_.get(), ready, kEventsAtOnce, 0);
  for (int i = 0; i < count; ++i) {
    const Place agent = agents_.find(ready[i].data.fd);
    if (agent != agents_.end())
      read(agent, now);
    else
      accept_all(now);
  }
}

void Desktops::read(Place agent, int64_t now) {
  sublet_frame frame;
  const ssize_t got = recv(agent->first, &frame, sizeof frame, MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return dismiss(agent, agent->second.known ? "it hung up" : "", now);
  if (got != static_cast<ssize_t>(sizeof frame)) return dismiss(agent, "it sent no frame", now);
  const std::string why = hear(agent->second, frame, now);
  if (!why.empty()) dismiss(agent, why, now);
}

std::string Desktops::hear(Agent& agent, const sublet_frame& frame, int64_t now) {
  if (frame.magic != SUBLET_FRAME_MAGIC || frame.reserved != 0) return "it is of another version";
  const bool known = agent.known;
  if (known && frame.kind == SUBLET_FRAME_HERE) {
    agent.watched.touched_at = now;
    agent.goes_on_until = frame.state == 1 ? now + kGoesOnAtMost : 0;
    seen(now, agent.watched.place);
  }
  if (!agent.frames.take(now)) {
    banned_[agent.who.uid] = now + kBannedFor;
    return "it said too much; its user's agents are refused for a minute";
  }
  if (known && frame.kind == SUBLET_FRAME_FULL_SCREEN) agent.watched.full_screen = frame.state == 1;
  if (known && frame.kind == SUBLET_FRAME_ACK && frame.sequence == agent.ping) agent.ping = 0;
  if (known) return "";
  if (frame.kind != SUBLET_FRAME_AGENT || !is_desktop(frame.state)) return "it sent a wrong frame";
  if (may_belong_to_job(agent.who, jobs_)) return "it belongs to a job, or has ended";
  greet(agent, frame, now);
  return "";
}

void Desktops::greet(Agent& agent, const sublet_frame& frame, int64_t now) {
  agent.known = true;
  WatchedDesktop& watched = agent.watched;
  watched.uid = agent.who.uid;
  watched.pid = agent.who.pid;
  watched.desktop = static_cast<sublet_desktop>(frame.state);
  watched.server = static_cast<pid_t>(frame.arg[0]);
  watched.display = frame.arg[1];
  watched.touched_at = now;
  watched.place = place_of(watched);
  watched.server_session = session_of_process(root_, watched.server);
  watched.agent_session = session_of_process(root_, watched.pid);
  if (!lines_.take(now)) return;
  log(Severity::info) << "the desktop of user id " << watched.uid << " is watched ("
                      << words(watched.desktop) << ", process " << watched.pid << ")";
}

void Desktops::accept_all(int64_t now) {
  try {
    for (;;) {
      UniqueFd fd = accept_local(listener_.get(), true);
      if (!fd.valid()) return;
      admit(std::move(fd), now);
      if (visits_.take(now)) continue;
      epoll_ctl(events_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
      listening_ = false;
      seen(now, kVisitors);
      return;
    }
  } catch (const OsError& error) {
    log(Severity::warning) << error.what();
  }
}

void Desktops::listen_again(int64_t now) {
  if (listening_ || !visits_.any(now)) return;
  watch(listener_.get());
  listening_ = true;
}

void Desktops::admit(UniqueFd fd, int64_t now) {
  const Visitor who = visitor_at(fd.get());
  // Who is turned away sees the connection close.
  if (!has_room_for(who.uid, now)) {
    if (!may_belong_to_job(who, jobs_)) seen(now, kVisitors);
    return;
  }
  const int number = fd.get();
  watch(number);
  agents_.emplace(number, Agent{.fd = std::move(fd),
                                .who = who,
                                .frames = Allowance(kFramesBurst, kFramesPerSecond),
                                .asked_at = now});
}

bool Desktops::has_room_for(uid_t uid, int64_t now) {
  std::erase_if(banned_, [now](const auto& one) { return now >= one.second; });
  const auto same = std::count_if(agents_.begin(), agents_.end(),
                                  [uid](const auto& one) { return one.second.who.uid == uid; });
  return agents_.size() < kMostAgents && static_cast<size_t>(same) < kMostOfAUser &&
         !banned_.contains(uid);
}

void Desktops::ping_all(int64_t now) {
  for (Place place = agents_.begin(); place != agents_.end();) {
    const Place next = std::next(place);
    Agent& agent = place->second;
    const int64_t since = now - agent.asked_at;
    if (agent.ping != 0 || !agent.known) {
      if (since >= kAnswerWithin) dismiss(place, "it does not answer", now);
    } else if (since >= kPingEvery) {
      agent.asked_at = now;
      agent.ping = ++pings_ != 0 ? pings_ : ++pings_;
      if (!send_ping(place->first, agent.ping)) dismiss(place, "it does not read", now);
    }
    place = next;
  }
}

void Desktops::dismiss(Place place, const std::string& why, int64_t now) {
  const Agent& agent = place->second;
  if (!why.empty() && lines_.take(now)) {
    log(Severity::warning) << "process " << agent.who.pid << " of user id " << agent.who.uid
                           << " no longer speaks for a desktop: " << why;
  }
  epoll_ctl(events_.get(), EPOLL_CTL_DEL, place->first, nullptr);
  agents_.erase(place);
}

std::vector<WatchedDesktop> Desktops::live() const {
  std::vector<WatchedDesktop> live;
  for (const auto& [fd, agent] : agents_)
    if (agent.known) live.push_back(agent.watched);
  return live;
}

}  // namespace sublet::loadmon
