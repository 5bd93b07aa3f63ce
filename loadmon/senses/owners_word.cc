#include "loadmon/senses/owners_word.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <stdexcept>

#include "base/clock.h"
#include "base/local_socket.h"
#include "base/log.h"
#include "base/os_error.h"
#include "base/process.h"
#include "base/text.h"

namespace sublet::loadmon {
namespace {

using protocol::Pause;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSpeakWithin = 5'000 * kMs;
constexpr size_t kMostSpeakers = 64;
constexpr size_t kMostOfAUser = 4;
constexpr int kBacklog = 16;
// Wake-ups by those who come and speak: so many in a row, then one in so long.
constexpr int64_t kMostWakes = 20;
constexpr int64_t kBetweenWakes = 20 * kMs;
constexpr int64_t kBetweenComplaints = 10'000 * kMs;
constexpr size_t kMostAttempts = 64;
constexpr uint64_t kLargestPause = 4096;
constexpr uint64_t kLargestRules = 1 << 20;

protocol::Moment moment() { return {boot_id(), system_clock().boot_ns(), system_clock().utc_us()}; }

bool is_well_formed(const sublet_frame& frame) {
  return frame.magic == SUBLET_FRAME_MAGIC && frame.kind == SUBLET_FRAME_OWNER &&
         frame.reserved == 0 && frame.state >= SUBLET_OWNER_STATUS &&
         frame.state <= SUBLET_OWNER_POOL && frame.arg[0] >= 0 &&
         frame.arg[0] <= protocol::kLongestPauseMs;
}

bool send_text(int socket, sublet_frame_kind kind, uint32_t state, const std::string& text) {
  sublet_frame frame = {};
  frame.magic = SUBLET_FRAME_MAGIC;
  frame.kind = static_cast<uint16_t>(kind);
  frame.state = state;
  const std::string message =
      std::string(reinterpret_cast<const char*>(&frame), sizeof frame) + text;
  return ::send(socket, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

bool is_readable(int fd) {
  pollfd event = {fd, POLLIN, 0};
  return poll(&event, 1, 0) > 0;
}

}  // namespace

OwnersWord::OwnersWord(const std::string& folder, Files& files, JobsHere jobs,
                       std::function<std::vector<SenseLine>()> describe, OwnersRules& rules,
                       std::set<uid_t> owners)
    : jobs_(std::move(jobs)),
      describe_(std::move(describe)),
      rules_(rules),
      owners_(std::move(owners)),
      pause_file_(folder + "/pause", files),
      rules_file_(folder + "/rules", files),
      lending_file_(folder + "/lending", files),
      listener_(listen_local(SocketKind::seqpacket, folder + "/owner.sock", 0666, kBacklog, true)) {
  watch(listener_.get());
  watch(pause_file_.handle());
  watch(rules_file_.handle());
  watch(lending_file_.handle());
  load(files);
  load_rules(files);
}

void OwnersWord::watch(int fd) {
  if (!events_.add(fd)) throw OsError(errno, "watch", "the owner's word");
}

void OwnersWord::load(Files& files) {
  const auto read = [&files](const StoredText& file, const char* remedy) -> std::optional<Pause> {
    std::string problem = file.path() + " is damaged";
    try {
      const auto stored = protocol::decode_pause(files.read_file(file.path(), kLargestPause));
      if (stored) return stored;
    } catch (const FileError& error) {
      if (error.code() == ENOENT) return std::nullopt;
      problem = error.what();
    }
    log(Severity::error) << problem << "; no jobs run here until `sublet owner " << remedy << "`";
    return Pause{moment(), 0, Pause::kUnknown};
  };
  pause_ = read(pause_file_, "resume");
  withdrawal_ = read(lending_file_, "lend");
}

void OwnersWord::load_rules(Files& files) {
  std::string problem = "is damaged";
  try {
    if (rules_.load(files.read_file(rules_file_.path(), kLargestRules))) return;
  } catch (const FileError& error) {
    if (error.code() == ENOENT) return;
    rules_.load("");
    problem = std::strerror(error.code());
  }
  log(Severity::error) << rules_file_.path() << ": " << problem
                       << "; no jobs run here until `sublet owner rules` sets rules";
}

bool OwnersWord::sample(int64_t now, const JobsEffect&, protocol::PresenceSample* sample) {
  return notice(now, sample);
}

bool OwnersWord::notice(int64_t now, protocol::PresenceSample* sample) {
  events_.wake(now);
  const bool came = accept_all(now);
  if (read_one() || came) slow_down(now);
  for (auto speaker = speakers_.begin(); speaker != speakers_.end();) {
    const auto next = std::next(speaker);
    if (speaker->second.speak_by != 0 && now >= speaker->second.speak_by) close(speaker);
    speaker = next;
  }
  for (StoredText* file : {&pause_file_, &rules_file_, &lending_file_})
    if (is_readable(file->handle())) file->note();
  if (pause_ && pause_->left_ms(moment()) == 0) change(std::nullopt);
  // A clock that is set back later must not lend it again.
  if (is_withdrawn() && withdrawal_->length_ms != 0) {
    withdrawal_ = Pause{moment(), 0, withdrawal_->by};
    lending_file_.change(protocol::encode(*withdrawal_));
  }
  sample->paused = pause_ || is_withdrawn();
  return true;
}

void OwnersWord::slow_down(int64_t now) {
  const int64_t more = (now - wakes_counted_at_) / kBetweenWakes;
  if (more > 0) wakes_counted_at_ = now;
  wakes_left_ = std::min(kMostWakes, wakes_left_ + more) - 1;
  if (wakes_left_ > 0) return;
  wakes_left_ = 0;
  events_.rest(now + kBetweenWakes);
}

bool OwnersWord::accept_all(int64_t now) {
  bool came = false;
  try {
    for (size_t n = 0; n < kMostSpeakers; ++n) {
      UniqueFd fd = accept_local(listener_.get(), true);
      if (!fd.valid()) return came;
      came = true;
      const Visitor who = visitor_at(fd.get());
      const auto same = std::count_if(speakers_.begin(), speakers_.end(), [&](const auto& one) {
        return one.second.who.uid == who.uid;
      });
      // Who is turned away sees the connection close.
      if (speakers_.size() >= kMostSpeakers || static_cast<size_t>(same) >= kMostOfAUser) continue;
      const int number = fd.get();
      watch(number);
      speakers_[number] = Speaker{.fd = std::move(fd), .who = who, .speak_by = now + kSpeakWithin};
    }
  } catch (const OsError& error) {
    log(Severity::warning) << error.what();
  }
  return came;
}

bool OwnersWord::read_one() {
  for (const int fd : events_.ready()) {
    const auto speaker = speakers_.find(fd);
    if (speaker == speakers_.end()) continue;
    sublet_frame frame = {};
    char text[SUBLET_OWNER_RULE_BYTES];
    iovec parts[] = {{&frame, sizeof frame}, {text, sizeof text}};
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = std::size(parts);
    const ssize_t got = recvmsg(speaker->first, &message, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    const bool first = speaker->second.speak_by != 0;
    const ssize_t more = got - static_cast<ssize_t>(sizeof frame);
    const bool whole =
        more >= 0 && (message.msg_flags & MSG_TRUNC) == 0 &&
        (more == 0 || frame.state == SUBLET_OWNER_RULES || frame.state == SUBLET_OWNER_POOL);
    if (!whole || !first || !is_well_formed(frame)) {
      close(speaker);
    } else {
      hear(speaker->second, frame, std::string(text, static_cast<size_t>(more)));
    }
    return true;
  }
  return false;
}

bool OwnersWord::is_owner(Speaker& speaker, const std::string& doing) const {
  const uid_t account = speaker.who.uid;
  if (account == 0 || account == geteuid() || owners_.contains(account)) return true;
  speaker.refusal = EACCES;
  speaker.complaint =
      "only root, the account of the client and the accounts of the load monitor's setting "
      "`owners` may " +
      doing;
  return false;
}

void OwnersWord::hear_lending(Speaker& speaker, const sublet_frame& frame) {
  if (may_belong_to_job(speaker.who, jobs_)) {
    speaker.refusal = EPERM;
    return;
  }
  const bool lends = frame.state == SUBLET_OWNER_LEND;
  if (lends && !is_owner(speaker, "lend this machine")) return;
  withdrawal_.reset();
  if (!lends) withdrawal_ = Pause{moment(), 0, speaker.who.uid};
  if (lends && frame.arg[0] != 0) withdrawal_ = Pause{moment(), frame.arg[0], speaker.who.uid};
  speaker.awaits = &lending_file_;
  speaker.answered_after = lending_file_.change(withdrawal_ ? protocol::encode(*withdrawal_) : "");
}

bool OwnersWord::is_withdrawn() const {
  return withdrawal_ && (withdrawal_->length_ms == 0 || withdrawal_->left_ms(moment()) == 0);
}

uint32_t OwnersWord::lent_s() const {
  if (!withdrawal_) return 0;
  if (is_withdrawn()) return SUBLET_OWNER_WITHDRAWN;
  return static_cast<uint32_t>((withdrawal_->left_ms(moment()) + 999) / 1000);
}

void OwnersWord::hear_rules(Speaker& speaker, const std::string& text) {
  if (may_belong_to_job(speaker.who, jobs_)) {
    speaker.refusal = EPERM;
    return;
  }
  if (!is_owner(speaker, "change the rules")) return;
  const size_t idle = text.find('\n'), evict = text.find('\n', idle + 1);
  try {
    if (idle == std::string::npos || evict == std::string::npos)
      throw std::invalid_argument("this is no pair of rules");
    rules_.set(text.substr(0, idle), text.substr(idle + 1, evict - idle - 1),
               text.substr(evict + 1));
  } catch (const std::invalid_argument& refusal) {
    speaker.refusal = EINVAL;
    speaker.complaint = refusal.what();
    return;
  }
  speaker.awaits = &rules_file_;
  speaker.answered_after = rules_file_.change(rules_.stored_form());
}

void OwnersWord::hear_pool(Speaker& speaker, const std::string& text) {
  if (!is_client(speaker.who, jobs_))
    speaker.refusal = EPERM;
  else if (!rules_.note_pool(text))
    speaker.refusal = EINVAL;
}

void OwnersWord::hear(Speaker& speaker, const sublet_frame& frame, const std::string& text) {
  speaker.speak_by = 0;
  speaker.word = frame.state;
  if (frame.state == SUBLET_OWNER_RULES && !text.empty()) return hear_rules(speaker, text);
  if (frame.state == SUBLET_OWNER_RECLAIM || frame.state == SUBLET_OWNER_LEND)
    return hear_lending(speaker, frame);
  if (frame.state == SUBLET_OWNER_POOL) return hear_pool(speaker, text);
  if (frame.state == SUBLET_OWNER_STATUS || frame.state == SUBLET_OWNER_RULES) return;
  speaker.awaits = &pause_file_;
  speaker.answered_after = pause_file_.stored();
  std::optional<Pause> word;
  if (frame.state == SUBLET_OWNER_PAUSE) word = Pause{moment(), frame.arg[0], speaker.who.uid};
  speaker.refusal = refusal_of(speaker, word);
  // Who only makes another's pause longer must not be able to end it then.
  const uid_t account = speaker.who.uid;
  if (word && pause_ && pause_->by != Pause::kUnknown && account != 0 && account != geteuid())
    word->by = pause_->by;
  if (speaker.refusal == EACCES) return;
  if (speaker.refusal != 0) {
    const int64_t now = system_clock().boot_ns();
    if (complained_ != 0 && now - complained_ < kBetweenComplaints) return;
    complained_ = now;
    log(Severity::warning) << "refused process " << speaker.who.pid << " of user id "
                           << speaker.who.uid
                           << ", which belongs to a job: only the owner may pause or resume";
    return;
  }
  if (word || pause_) speaker.answered_after = change(std::move(word));
}

int OwnersWord::refusal_of(const Speaker& speaker, const std::optional<Pause>& word) const {
  if (may_belong_to_job(speaker.who, jobs_)) return EPERM;
  if (!pause_ || pause_->by == Pause::kUnknown || speaker.who.uid == pause_->by ||
      speaker.who.uid == 0 || speaker.who.uid == geteuid())
    return 0;
  const auto now = moment();
  return word && word->left_ms(now) >= pause_->left_ms(now) ? 0 : EACCES;
}

uint64_t OwnersWord::change(std::optional<Pause> pause) {
  pause_ = std::move(pause);
  return pause_file_.change(pause_ ? protocol::encode(*pause_) : "");
}

void OwnersWord::close(std::map<int, Speaker>::iterator speaker) {
  events_.remove(speaker->first);
  speakers_.erase(speaker);
}

void OwnersWord::told(const protocol::PresenceVerdict& verdict) {
  if (pause_file_.begin()) log_pause();
  if (rules_file_.begin()) log(Severity::info) << "the owner's rules have changed";
  if (lending_file_.begin()) log_lending();
  for (auto speaker = speakers_.begin(); speaker != speakers_.end();) {
    const auto next = std::next(speaker);
    const Speaker& one = speaker->second;
    if (one.speak_by == 0 &&
        (one.awaits == nullptr || one.answered_after <= one.awaits->stored())) {
      answer(one, verdict);
      close(speaker);
    }
    speaker = next;
  }
}

void OwnersWord::answer(const Speaker& speaker, const protocol::PresenceVerdict& verdict) const {
  const auto attempts = jobs_.attempts();
  sublet_frame frame = {};
  frame.magic = SUBLET_FRAME_MAGIC;
  frame.kind = SUBLET_FRAME_OWNER_STATUS;
  frame.sequence = static_cast<uint32_t>(speaker.refusal);
  frame.state = verdict.state;
  frame.reason = verdict.reason;
  frame.instant = verdict.since;
  frame.job = attempts.size();
  frame.attempt = lent_s();
  frame.arg[0] = verdict.ms_until_idle;
  if (pause_) {
    const int64_t left = pause_->left_ms(moment());
    frame.arg[1] = left == Pause::kEndless ? -1 : std::max<int64_t>(left, 1);
    frame.arg[2] = pause_->by;
  }
  frame.arg[3] = speaker.awaits != nullptr ? speaker.awaits->error() : 0;
  const auto send = [&] {
    return ::send(speaker.fd.get(), &frame, sizeof frame, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
  };
  if (!send()) return;
  frame = {};
  frame.magic = SUBLET_FRAME_MAGIC;
  frame.kind = SUBLET_FRAME_OWNER_ATTEMPT;
  for (size_t n = 0; n < std::min(attempts.size(), kMostAttempts); ++n) {
    frame.job = attempts[n].first;
    frame.attempt = attempts[n].second;
    const JobUse use = jobs_.use(frame.job, frame.attempt);
    frame.arg[0] = use.cpu_ms;
    frame.arg[1] = use.memory;
    frame.arg[2] = use.processes;
    frame.arg[3] = use.network;
    if (!send()) return;
  }
  if (!speaker.complaint.empty())
    send_text(speaker.fd.get(), SUBLET_FRAME_OWNER_COMPLAINT, 0, speaker.complaint);
  if (speaker.word == SUBLET_OWNER_STATUS) describe(speaker);
  if (speaker.word == SUBLET_OWNER_RULES) list_rules(speaker);
  if (speaker.word == SUBLET_OWNER_POOL && speaker.refusal == 0)
    send_text(speaker.fd.get(), SUBLET_FRAME_OWNER_LOGINS, 0, rules_.pool_answer());
}

void OwnersWord::list_rules(const Speaker& speaker) const {
  for (const OwnersRules::Line& line : rules_.lines())
    if (!send_text(speaker.fd.get(), SUBLET_FRAME_OWNER_RULE, line.fixed ? 1 : 0,
                   line.scope + "\n" + line.idle + "\n" + line.evict))
      return;
}

void OwnersWord::describe(const Speaker& speaker) const {
  for (const SenseLine& line : describe_()) {
    const std::string text = (line.name + "\n" + line.value).substr(0, SUBLET_OWNER_SENSE_BYTES);
    if (!send_text(speaker.fd.get(), SUBLET_FRAME_OWNER_SENSE, line.keeps_jobs_away ? 1 : 0, text))
      return;
  }
}

void OwnersWord::log_pause() const {
  if (!pause_) {
    log(Severity::info) << "no longer paused: the owner's absence is judged again";
    return;
  }
  const int64_t left = pause_->left_ms(moment());
  log(Severity::info) << "paused by user id " << pause_->by << ", "
                      << (left == Pause::kEndless ? "until `sublet owner resume`"
                                                  : "for " + format_duration_ms(left));
}

void OwnersWord::log_lending() const {
  if (!withdrawal_) {
    log(Severity::info) << "this machine is lent";
    return;
  }
  log(Severity::info) << "this machine is "
                      << (is_withdrawn()
                              ? "withdrawn until `sublet owner lend`"
                              : "lent for " + format_duration_ms(withdrawal_->length_ms) +
                                    ", and withdrawn then")
                      << ", by user id " << withdrawal_->by;
}

int64_t OwnersWord::next_notice(int64_t now) const {
  int64_t next = kNever;
  if (pause_) {
    const int64_t left = pause_->left_ms(moment());
    if (left != Pause::kEndless) next = now + left * kMs;
  }
  if (withdrawal_ && !is_withdrawn())
    next = std::min(next, now + withdrawal_->left_ms(moment()) * kMs);
  for (const auto& [fd, speaker] : speakers_)
    if (speaker.speak_by != 0) next = std::min(next, speaker.speak_by);
  if (events_.rests_until() != 0) next = std::min(next, events_.rests_until());
  return next;
}

}  // namespace sublet::loadmon
