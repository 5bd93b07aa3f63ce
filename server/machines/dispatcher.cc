#include "server/machines/dispatcher.h"

#include <algorithm>
#include <set>

#include "server/commit/crash_point.h"

namespace sublet::server {

using scheduling::MachineId;
using scheduling::OrderAnswered;

namespace {
constexpr size_t kOrdersPerCall = 100;  // idl/executing_client.idl, run

OrderAnswered not_delivered(scheduling::AttemptKey key, const std::string& why) {
  return {key, OrderAnswered::Answer::kNotDelivered, why};
}
}  // namespace

Dispatcher::Dispatcher(Hooks hooks, size_t threads)
    : hooks_(std::move(hooks)), kept_(threads), most_texts_(std::max<size_t>(threads / 2, 1)) {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < kept_; ++i) add_thread();
  watch_ = std::thread([this] { watch(); });
}

Dispatcher::~Dispatcher() { stop(); }

void Dispatcher::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  watch_wake_.notify_all();
  if (watch_.joinable()) watch_.join();
  // None is added any more, and those that are left only leave their loops.
  for (auto& [id, thread] : threads_) thread.join();
  threads_.clear();
  for (std::thread& thread : ended_) thread.join();
  ended_.clear();
}

// With the lock held.
void Dispatcher::add_thread() {
  std::thread thread([this] { work(); });
  const auto id = thread.get_id();
  threads_[id] = std::move(thread);
}

void Dispatcher::watch() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    watch_wake_.wait(lock, [this] { return stopping_ || starved() || !ended_.empty(); });
    const uint64_t taken = taken_;
    const bool went_on = watch_wake_.wait_for(
        lock, kPatience, [&] { return stopping_ || !starved() || taken_ != taken; });
    if (!went_on && threads_.size() < kMostThreads) add_thread();
    std::vector<std::thread> ended;
    ended.swap(ended_);
    lock.unlock();
    for (std::thread& thread : ended) thread.join();
    lock.lock();
  }
}

void Dispatcher::attach(MachineId machine, std::shared_ptr<Workstation> workstation) {
  std::lock_guard lock(mutex_);
  Mailbox& box = boxes_[machine];
  box.workstation = std::move(workstation);
  make_ready(machine, box);
}

void Dispatcher::detach(MachineId machine) {
  std::lock_guard lock(mutex_);
  auto it = boxes_.find(machine);
  if (it == boxes_.end()) return;
  Mailbox& box = it->second;
  box.workstation = nullptr;
  for (const auto& start : box.starts)
    box.undelivered.push_back(not_delivered(start.key, "its machine's registration has ended"));
  box.starts.clear();
  make_ready(machine, box);
}

void Dispatcher::make_ready(MachineId machine, Mailbox& box) {
  if (box.called) return;
  if (box.has_orders() && !box.queued) {
    box.queued = true;
    ready_.push_back(machine);
    wake_.notify_one();
    if (starved()) watch_wake_.notify_one();
  }
  if (!box.texts.empty() && !box.text_queued) {
    box.text_queued = true;
    ready_texts_.push_back(machine);
    wake_.notify_one();
  }
}

void Dispatcher::decided(const std::vector<scheduling::Decision>& decisions) {
  std::lock_guard lock(mutex_);
  for (const auto& decision : decisions) {
    if (auto* start = std::get_if<scheduling::StartAttempt>(&decision)) {
      Mailbox& box = boxes_[start->machine];
      box.starts.push_back(*start);
      make_ready(start->machine, box);
    } else if (auto* leave = std::get_if<scheduling::TellToLeave>(&decision)) {
      Mailbox& box = boxes_[leave->machine];
      box.leaves.push_back(LeaveRequest{leave->key, leave->reason});
      make_ready(leave->machine, box);
    }
  }
}

void Dispatcher::probe(MachineId machine, std::function<void(bool)> callback) {
  std::lock_guard lock(mutex_);
  Mailbox& box = boxes_[machine];
  box.probes.push_back(std::move(callback));
  make_ready(machine, box);
}

void Dispatcher::read_log(MachineId machine, const TextRequest& request,
                          std::function<void(TextAnswer)> callback) {
  std::lock_guard lock(mutex_);
  Mailbox& box = boxes_[machine];
  box.texts.push_back({request, std::move(callback)});
  make_ready(machine, box);
}

Dispatcher::Load Dispatcher::take_orders(Mailbox& box) {
  Load load;
  load.workstation = box.workstation;
  load.undelivered.swap(box.undelivered);
  // An attempt that is to leave before its start was sent never starts. This includes starts
  // that do not fit into this call, because the leave requests are removed now.
  std::set<scheduling::AttemptKey> leaving;
  for (const LeaveRequest& leave : box.leaves) leaving.insert(leave.key);
  std::erase_if(box.starts, [&](const auto& start) {
    if (!leaving.contains(start.key)) return false;
    load.undelivered.push_back(not_delivered(start.key, "removed or held"));
    return true;
  });
  const size_t starts = std::min(box.starts.size(), kOrdersPerCall);
  load.starts.assign(box.starts.begin(), box.starts.begin() + starts);
  box.starts.erase(box.starts.begin(), box.starts.begin() + starts);
  load.leaves.assign(box.leaves.begin(), box.leaves.end());
  box.leaves.clear();
  load.probes.swap(box.probes);
  return load;
}

// One at a time, so that an order waits for at most one text request.
Dispatcher::Load Dispatcher::take_text(Mailbox& box) {
  Load load;
  load.workstation = box.workstation;
  load.text = std::move(box.texts.front());
  box.texts.pop_front();
  return load;
}

// False: the thread is to end.
bool Dispatcher::wait_for_work(std::unique_lock<std::mutex>& lock) {
  ++waiting_;
  const bool news =
      wake_.wait_for(lock, kKeepIdle, [this] { return stopping_ || !ready_.empty() || may_ask(); });
  --waiting_;
  if (stopping_) return false;
  if (news || threads_.size() <= kept_) return true;
  auto self = threads_.extract(std::this_thread::get_id());
  ended_.push_back(std::move(self.mapped()));
  watch_wake_.notify_one();
  return false;
}

void Dispatcher::work() {
  std::unique_lock lock(mutex_);
  while (wait_for_work(lock)) {
    if (ready_.empty() && !may_ask()) continue;
    const bool orders = !ready_.empty();
    auto& line = orders ? ready_ : ready_texts_;
    const MachineId machine = line.front();
    line.pop_front();
    ++taken_;
    if (starved()) watch_wake_.notify_one();
    Mailbox& box = boxes_[machine];
    (orders ? box.queued : box.text_queued) = false;
    if (box.called) continue;  // make_ready() queues it again after the current call
    box.called = true;
    Load load = orders ? take_orders(box) : take_text(box);
    if (!orders) ++texts_under_way_;
    lock.unlock();
    deliver(std::move(load));
    lock.lock();
    if (!orders) --texts_under_way_;
    Mailbox& after = boxes_[machine];
    after.called = false;
    make_ready(machine, after);
    // This thread may continue with orders, so wake another one for the text request.
    if (may_ask()) wake_.notify_one();
  }
}

void Dispatcher::deliver(Load load) {
  if (!load.leaves.empty() && load.workstation) load.workstation->vacate(load.leaves);
  if (!load.starts.empty() || !load.undelivered.empty()) deliver_starts(load);
  if (!load.probes.empty()) {
    const bool alive = load.workstation && load.workstation->alive();
    for (auto& callback : load.probes) callback(alive);
  }
  if (!load.text) return;
  load.text->callback(load.workstation
                          ? load.workstation->read_log(load.text->request)
                          : TextAnswer{TextAnswer::Kind::kFailed, "it is not connected"});
}

void Dispatcher::deliver_starts(Load& load) {
  std::vector<OrderAnswered> answers = std::move(load.undelivered);
  std::vector<RunRequest> requests;
  for (const auto& start : load.starts) {
    auto request = load.workstation ? hooks_.describe(start) : std::nullopt;
    if (request)
      requests.push_back(std::move(*request));
    else
      answers.push_back(not_delivered(start.key, load.workstation
                                                     ? "the job's description is lost"
                                                     : "the machine is not connected"));
  }
  crash_point("dispatch");
  if (!requests.empty()) {
    auto replies = load.workstation->run(requests);
    answers.insert(answers.end(), replies.begin(), replies.end());
  }
  crash_point("dispatched");
  hooks_.answered(std::move(answers));
}

}  // namespace sublet::server
