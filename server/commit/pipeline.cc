#include "server/commit/pipeline.h"

#include <algorithm>
#include <chrono>
#include <future>

#include "scheduling/events/event_codec.h"
#include "server/commit/crash_point.h"
#include "server/refusal.h"

namespace sublet::server {

using scheduling::Event;
using scheduling::Outcome;

namespace {
// The committer wakes at least this often, so that the watchdog sees that it is alive.
constexpr Micros kLongestSleep = 1'000'000;
constexpr int64_t kReloadPauseNs = 1'000'000'000;

Refusal unavailable(const char* code, const std::string& message, const std::string& advice) {
  return Refusal(Refusal::Kind::kUnavailable, code, message, advice, "server");
}

Refusal not_committed(bool out_of_memory) {
  const char* code = out_of_memory ? kOutOfMemory : "server.disk";
  const char* message =
      out_of_memory ? "the server ran out of memory" : "the server could not write its database";
  const char* advice = out_of_memory
                           ? "It may have been done nevertheless: look (`sublet ls`) before you do "
                             "it again, with less at a time; programs repeat it with the same "
                             "request id."
                           : "It may have been done nevertheless: when the administrator has made "
                             "room, look (`sublet ls`) before you do it again; programs repeat it "
                             "with the same request id.";
  return unavailable(code, message, advice);
}
}  // namespace

Outcome Turn::apply(const Event& event) {
  Pipeline& p = *pipeline_;
  p.work_changes_ = true;
  Outcome outcome = p.pool_->apply(event, p.now_);
  for (const auto& record : outcome.records) p.changes_.add(record);
  p.decisions_.insert(p.decisions_.end(), outcome.decisions.begin(), outcome.decisions.end());
  p.changes_.events.push_back(
      EventRow{p.now_, static_cast<uint32_t>(event.index()), encode_event(event)});
  return outcome;
}

void Turn::tick() { apply(scheduling::Ticked{pipeline_->utc_offset()}); }

const scheduling::Pool& Turn::pool() const { return *pipeline_->pool_; }
Changes& Turn::changes() {
  pipeline_->work_changes_ = true;
  return pipeline_->changes_;
}
Micros Turn::now() const { return pipeline_->now_; }

std::optional<std::string> Turn::answered(const std::string& key, const std::string& digest) {
  std::optional<RequestRow> row;
  auto it = pipeline_->changes_.requests.find(key);
  if (it != pipeline_->changes_.requests.end())
    row = it->second;
  else
    row = pipeline_->store_.find_request(key);
  if (!row) return std::nullopt;
  if (row->digest != digest)
    throw Refusal(Refusal::Kind::kConflict, "request.reused",
                  "this request id was used before, for another request",
                  "Make a new random request id for every new request.", "request");
  return row->answer;
}

void Turn::remember(const std::string& key, const std::string& digest, const std::string& answer) {
  changes().requests[key] = RequestRow{key, digest, answer, pipeline_->now_};
}

Pipeline::Pipeline(const PipelineSettings& settings, Store& store, const Clock& clock,
                   Listener listener)
    : settings_(settings), store_(store), clock_(clock), listener_(std::move(listener)) {
  load();
}

Pipeline::~Pipeline() { stop(); }

std::unique_lock<std::mutex> Pipeline::take_brain() {
  std::lock_guard next(next_);
  return std::unique_lock(brain_);
}

void Pipeline::load() {
  const auto brain = take_brain();
  damage_.clear();
  pool_ = std::make_unique<scheduling::Pool>(settings_.policies);
  scheduling::Snapshot snapshot = store_.load(&damage_);
  // The brain's time continues from the last recorded instant and advances with the
  // monotonic clock, so setting back the wall clock does not set it back.
  now_ = std::max({now_, snapshot.pool.now, clock_.utc_us()});
  boot_ns_ = clock_.boot_ns();
  std::vector<scheduling::UserRecord> users = snapshot.users;
  for (auto& sentence : pool_->restore(std::move(snapshot))) damage_.push_back(sentence);
  changes_ = Changes();
  decisions_.clear();
  Turn turn(this);
  turn.apply(scheduling::ServerStarted{settings_.policies, utc_offset()});
  for (const auto& user : users)
    if (!settings_.shares.count(user.name) && user.shares != settings_.policies.default_shares)
      turn.apply(scheduling::SharesSet{user.name, settings_.policies.default_shares});
  for (const auto& [user, shares] : settings_.shares)
    turn.apply(scheduling::SharesSet{user, shares});
  store_.commit(changes_);
  changes_ = Changes();
  if (listener_.decided && !decisions_.empty()) listener_.decided(decisions_);
  decisions_.clear();
  broken_ = false;
}

Micros Pipeline::present() const {
  return now_ + std::max<int64_t>(0, (clock_.boot_ns() - boot_ns_) / 1000);
}

Micros Pipeline::tick_now() {
  const int64_t boot = clock_.boot_ns();
  now_ += std::max<int64_t>(0, (boot - boot_ns_) / 1000);
  boot_ns_ = boot;
  return now_;
}

void Pipeline::start() {
  thread_ = std::thread([this] { loop(); });
}

void Pipeline::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  std::vector<Work> left;
  {
    std::lock_guard lock(mutex_);
    left.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(queue_.end()));
    queue_.clear();
  }
  settle(left, Fate::kLost);
}

void Pipeline::enqueue(Work work, int64_t due_ns) {
  bool sooner = false;
  {
    std::lock_guard lock(mutex_);
    if (stopping_)
      throw unavailable("server.stopping", "the server is stopping", "Try again in a moment.");
    if (queue_.size() >= settings_.queue_limit)
      throw unavailable("server.busy", "the server's queue is full",
                        "Try again in a moment, with fewer calls at a time.");
    queue_.push_back(std::move(work));
    sooner = due_ns < due_ns_;
    due_ns_ = std::min(due_ns_, due_ns);
  }
  if (sooner) wake_.notify_one();
}

void Pipeline::post(std::function<void(Turn&)> work, std::function<void(bool)> done) {
  std::function<void(Fate)> settled;
  if (done) settled = [done = std::move(done)](Fate fate) { done(fate == Fate::kCommitted); };
  enqueue(Work{std::move(work), std::move(settled)});
}

void Pipeline::post_with_next(std::function<void(Turn&)> work) {
  enqueue(Work{std::move(work), {}}, clock_.boot_ns() + kMostDelayNs);
}

void Pipeline::perform(std::function<void(Turn&)> work) { perform(std::move(work), {}, false); }

void Pipeline::perform_alone(std::function<void(Turn&)> work, std::function<void()> committed) {
  perform(std::move(work), std::move(committed), true);
}

void Pipeline::perform(std::function<void(Turn&)> work, std::function<void()> committed,
                       bool alone) {
  struct Ticket {
    std::promise<Fate> settled;
    std::exception_ptr thrown;
  };
  auto ticket = std::make_shared<Ticket>();
  auto run = [ticket, work = std::move(work)](Turn& turn) {
    try {
      work(turn);
    } catch (const Refusal&) {
      ticket->thrown = std::current_exception();
    }
  };
  const auto done = [ticket, committed = std::move(committed)](Fate fate) {
    if (fate == Fate::kCommitted && committed) committed();
    ticket->settled.set_value(fate);
  };
  enqueue(Work{run, done, alone});
  const Fate fate = ticket->settled.get_future().get();
  // A refusal, too, may depend on changes of this group that were not written to disk.
  if (fate != Fate::kCommitted) throw not_committed(fate == Fate::kOutOfMemory);
  if (ticket->thrown) std::rethrow_exception(ticket->thrown);
  crash_point("reply");
}

void Pipeline::ask(const Question& question) {
  if (ask_between_groups(question)) return;
  // The committer rebuilds the brain first.
  perform([&question](Turn& turn) { question(turn.pool(), turn.now()); });
}

bool Pipeline::ask_between_groups(const Question& question) {
  uint64_t seen = 0;
  {
    std::lock_guard turn(questions_);
    const auto brain = take_brain();
    if (broken_) return false;
    question(*pool_, present());
    seen = applied_;
  }
  std::unique_lock lock(mutex_);
  group_settled_.wait(lock, [&] { return settled_ >= seen; });
  return lost_ < seen || seen == 0;
}

std::vector<Pipeline::Work> Pipeline::next_group() {
  std::vector<Work> group;
  std::lock_guard lock(mutex_);
  const size_t count = std::min(queue_.size(), settings_.group_limit);
  group.reserve(count);
  while (group.size() < count) {
    const bool alone = queue_.front().alone;
    if (alone && !group.empty()) break;
    group.push_back(std::move(queue_.front()));
    queue_.pop_front();
    if (alone) break;
  }
  due_ns_ = queue_.empty() ? kNever : 0;
  return group;
}

bool Pipeline::run_once() {
  std::vector<Work> group = next_group();
  if (listener_.beat) listener_.beat();
  if (broken_ && !reload()) {
    settle(group, broken_by_);
    return !group.empty();
  }
  run_group(group);
  return !group.empty();
}

bool Pipeline::reload() {
  const int64_t now = clock_.boot_ns();
  if (reloaded_ns_ && now - reloaded_ns_ < kReloadPauseNs) return false;
  reloaded_ns_ = now;
  try {
    load();
    reloaded_ns_ = 0;
    return true;
  } catch (const std::exception& e) {
    broken_by_ = note_failure(e);
    return false;
  }
}

void Pipeline::settle(std::vector<Work>& group, Fate fate) {
  for (auto& work : group)
    if (work.done) work.done(fate == Fate::kCommitted ? work.fate : fate);
}

Pipeline::Fate Pipeline::note_failure(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) {
    if (listener_.short_of_memory) listener_.short_of_memory();
    return Fate::kOutOfMemory;
  }
  if (listener_.failed) listener_.failed(e.what());
  return Fate::kLost;
}

void Pipeline::run_group(std::vector<Work>& group) {
  auto brain = take_brain();
  ++applied_;
  Turn turn(this);
  tick_now();
  for (auto& work : group) {
    if (listener_.beat) listener_.beat();
    run(work, turn);
    if (broken_) break;
  }
  const bool alone = !group.empty() && group.front().alone;
  if (!broken_ && !alone) apply_due(turn);
  brain.unlock();
  commit_group(group);
  performed_ += group.size();
}

void Pipeline::run(Work& work, Turn& turn) {
  work_changes_ = false;
  try {
    work.run(turn);
  } catch (const Refusal&) {
    // Posted work that was refused: no caller waits, and nothing was applied.
  } catch (const std::exception& e) {
    const Fate fate = note_failure(e);
    if (fate == Fate::kOutOfMemory && !work_changes_) {
      work.fate = fate;
      return;
    }
    broken_ = true;
    broken_by_ = fate;
  }
}

void Pipeline::apply_due(Turn& turn) {
  const Micros next_tick = pool_->counters().last_tick + settings_.policies.tick;
  if (now_ >= next_tick) turn.tick();
  auto deadline = pool_->next_deadline();
  if (deadline && now_ >= *deadline) turn.apply(scheduling::TimePassed{});
}

Pipeline::Fate Pipeline::commit_changes() {
  if (broken_) return broken_by_;
  if (changes_.empty()) return Fate::kCommitted;
  crash_point("commit");
  Fate fate = Fate::kCommitted;
  try {
    store_.commit(changes_);
  } catch (const std::exception& e) {
    broken_ = true;
    fate = broken_by_ = note_failure(e);
  }
  crash_point("committed");
  return fate;
}

void Pipeline::commit_group(std::vector<Work>& group) {
  const uint64_t last_change = changes_.changes.empty() ? 0 : changes_.changes.back().number;
  std::set<std::string> users;
  for (const auto& change : changes_.changes) users.insert(change.user);
  const Fate fate = commit_changes();
  const bool committed = fate == Fate::kCommitted;
  changes_ = Changes();
  std::vector<scheduling::Decision> decisions = std::move(decisions_);
  decisions_.clear();
  if (committed && !decisions.empty() && listener_.decided) listener_.decided(decisions);
  {
    std::lock_guard lock(mutex_);
    ++settled_;
    if (!committed) lost_ = settled_;
  }
  group_settled_.notify_all();
  settle(group, fate);
  if (committed && last_change && listener_.grown) listener_.grown(last_change, users);
}

Micros Pipeline::next_due() const {
  Micros due = pool_->counters().last_tick + settings_.policies.tick;
  if (auto deadline = pool_->next_deadline()) due = std::min(due, *deadline);
  return due;
}

void Pipeline::loop() {
  while (true) {
    {
      const Micros wait =
          broken_ ? kLongestSleep : std::clamp<Micros>(next_due() - present(), 0, kLongestSleep);
      const int64_t until_ns = clock_.boot_ns() + wait * 1000;
      std::unique_lock lock(mutex_);
      while (!stopping_) {
        const int64_t left_ns = std::min(due_ns_, until_ns) - clock_.boot_ns();
        if (left_ns <= 0) break;
        const auto woken = wake_.wait_for(lock, std::chrono::nanoseconds(left_ns));
        if (woken == std::cv_status::timeout) break;
      }
      if (stopping_ && queue_.empty()) return;
    }
    run_once();
  }
}

}  // namespace sublet::server
