#include "loadmon/facts/machine_reader.h"

#include <pthread.h>

#include <csignal>
#include <utility>

namespace sublet::loadmon {

MachineReader::MachineReader(Read read) : shared_(std::make_shared<Shared>()) {
  std::thread([shared = shared_, read = std::move(read)] { work(shared, read); }).detach();
}

MachineReader::~MachineReader() {
  const std::lock_guard lock(shared_->mutex);
  shared_->stopping = true;
  shared_->changed.notify_all();
}

void MachineReader::work(const std::shared_ptr<Shared>& shared, const Read& read) {
  std::unique_lock lock(shared->mutex);
  while (true) {
    shared->changed.wait(lock, [&] { return shared->asked || shared->stopping; });
    if (shared->stopping) return;
    const int64_t now = shared->now;
    const std::vector<pid_t> jobs = std::move(shared->jobs);
    lock.unlock();
    MachineState state = read(now, jobs);
    lock.lock();
    shared->read = std::move(state);
    shared->asked = false;
  }
}

bool MachineReader::refresh(int64_t now, const std::function<std::vector<pid_t>()>& jobs,
                            std::optional<MachineState>* state) {
  const bool due = asked_at_ == 0 || now - asked_at_ >= kPeriod;
  bool changed = false;
  if (const std::unique_lock lock(shared_->mutex, std::try_to_lock); lock) {
    if (shared_->read) {
      *state = std::move(shared_->read);
      shared_->read.reset();
      read_at_ = (*state)->at;
      changed = true;
    }
    if (due && !shared_->asked) {
      asked_at_ = now;
      shared_->now = now;
      shared_->jobs = jobs();
      shared_->asked = true;
      shared_->changed.notify_all();
    }
  }
  if (*state && now - read_at_ > kBelieved) {
    state->reset();
    changed = true;
  }
  return changed;
}

}  // namespace sublet::loadmon
