#include "client/shepherd/test_rig.h"

#include <cppunit/TestAssert.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "attempt/walls_trial.h"
#include "base/clock.h"
#include "base/local_socket.h"

namespace sublet::shepherd {
namespace {

// Generous: on a busy machine a tenant gets next to no CPU time, by design.
constexpr int64_t kDeadlineNs = 100'000'000'000;

std::string make_base() {
  char name[] = "/tmp/sublet-shepherd-XXXXXX";
  CPPUNIT_ASSERT(mkdtemp(name) != nullptr);
  CPPUNIT_ASSERT(chmod(name, 0755) == 0);  // the slots' accounts must traverse it
  return name;
}

}  // namespace

int64_t boot_now_ns() { return system_clock().boot_ns(); }

bool wait_until(const std::function<bool()>& condition) {
  int64_t end = boot_now_ns() + kDeadlineNs;
  while (!condition()) {
    if (boot_now_ns() > end) return false;
    usleep(2000);
  }
  return true;
}

pid_t child_named(const SlotShepherd& slot, const std::string& name) {
  const std::string task = std::to_string(slot.id().pid);
  std::istringstream children(
      system_files().read_file("/proc/" + task + "/task/" + task + "/children", 4096));
  pid_t pid = 0;
  for (pid_t one; children >> one;) try {
      const std::string comm = "/proc/" + std::to_string(one) + "/comm";
      if (system_files().read_file(comm, 64) == name + "\n") pid = one;
    } catch (const FileError&) {
      continue;  // ended in the meantime
    }
  return pid;
}

bool skip_unless_root(const char* what) {
  if (geteuid() == 0) return false;
  std::cerr << "skipped, needs root: " << what << "\n";
  return true;
}

bool skip_without_walls(const char* what) {
  if (try_walls().possible()) return false;
  std::cerr << "skipped, needs namespaces: " << what << "\n";
  return true;
}

bool skip_without_rooms(const char* what) {
  if (skip_without_walls(what) || skip_unless_root(what)) return true;
  if (Rig().cgroups().can_kill()) return false;
  std::cerr << "skipped, needs control groups of version 2: " << what << "\n";
  return true;
}

FakeMonitor::FakeMonitor(const std::string& path)
    : listener_(listen_local(SocketKind::seqpacket, path, 0600, 64, true)),
      thread_([this] { run(); }) {}

FakeMonitor::~FakeMonitor() { die(); }

void FakeMonitor::die() {
  over_ = true;
  if (thread_.joinable()) thread_.join();
  connections_.clear();
  listener_.reset();
}

void FakeMonitor::send_to(int fd) {
  sublet_frame frame = {};
  frame.magic = SUBLET_FRAME_MAGIC;
  frame.kind = SUBLET_FRAME_PRESENCE;
  frame.state = static_cast<uint32_t>(state_.load());
  frame.reason = SUBLET_PRESENCE_SCRIPT;
  frame.instant = boot_now_ns();
  if (!silent_) send(fd, &frame, sizeof frame, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void FakeMonitor::say(sublet_presence state) {
  std::lock_guard lock(mutex_);
  state_ = state;
  for (UniqueFd& fd : connections_)
    if (fd.valid()) send_to(fd.get());
}

void FakeMonitor::run() {
  // Like the real monitor: after one second without a heartbeat every job leaves.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), -5);
  int64_t next_beat = 0;
  while (!over_) {
    pollfd caller = {listener_.get(), POLLIN, 0};
    poll(&caller, 1, 5);
    std::lock_guard lock(mutex_);
    if (caller.revents) {
      UniqueFd fd = accept_local(listener_.get(), true);
      if (fd.valid()) connections_.push_back(std::move(fd));
      connected_ = static_cast<int>(connections_.size());
    }
    bool beat = boot_now_ns() >= next_beat;
    if (beat) next_beat = boot_now_ns() + SUBLET_MONITOR_BEAT_NS;
    for (UniqueFd& fd : connections_) {
      if (!fd.valid()) continue;
      if (beat) send_to(fd.get());
      sublet_frame frame;
      ssize_t count;
      while ((count = recv(fd.get(), &frame, sizeof frame, MSG_DONTWAIT)) > 0) {
        if (frame.kind == SUBLET_FRAME_ACK) ++acknowledged_;
        if (frame.kind == SUBLET_FRAME_HELLO) send_to(fd.get());
        if (frame.kind == SUBLET_FRAME_HELLO) ++greeted_;
        if (frame.kind == SUBLET_FRAME_ENDED) ++done_;
      }
      if (count != 0) continue;
      fd.reset();
      ++lost_;
    }
  }
}

Rig::Rig()
    : base_(make_base()),
      monitor_(std::make_unique<FakeMonitor>(base_ + "/monitor.sock")),
      cgroups_(
          AttemptCgroups::of_machine("test-" + std::to_string(getpid()), try_walls().possible())) {
  set_places({{}, {base_}});
}

Rig::~Rig() {
  for (Running& one : running_) {
    kill_process(one.process, SIGKILL);
    waitpid(one.process.pid, nullptr, 0);
    std::string error;
    auto tenant = Tenant::open(one.folder, &error);
    if (tenant)
      wait_until([&] {
        tenant->kill();
        return tenant->gone();
      });
  }
  for (const ProcessId& slot : slots_) {
    kill_process(slot, SIGKILL);
    waitpid(slot.pid, nullptr, 0);
  }
  cgroups_.remove_left_over();
  cgroups_.release_controllers();
  system_files().remove_tree(base_);
}

std::string Rig::test_job() const {
  std::string copy = base_ + "/test_job";
  if (!system_files().exists(copy)) {
    std::filesystem::copy_file(SUBLET_TEST_JOB, copy);
    CPPUNIT_ASSERT(chmod(copy.c_str(), 0755) == 0);
  }
  return copy;
}

AttemptOrder Rig::order(const std::vector<std::string>& arguments) {
  AttemptOrder order;
  order.job = next_job_++;
  order.attempt = 1;
  order.program = test_job();
  order.arguments = {"test_job"};
  order.arguments.insert(order.arguments.end(), arguments.begin(), arguments.end());
  order.user = "tester";
  order.monitor = base_ + "/monitor.sock";
  static const bool walls = try_walls().possible();
  order.walls = walls ? 1 : 0;
  order.lease_ns = boot_now_ns() + 600'000'000'000;
  order.boot_id = boot_id();
  // An unused id: all its processes are killed with the job.
  if (geteuid() == 0) order.uid = order.gid = 100'000 + getpid() * 64ll + order.job % 64;
  return order;
}

void Rig::set_places(const AttemptPlaces& places) const {
  write_places(system_files(), base_, places);
}

void Rig::use_cgroups(AttemptOrder* order) const {
  cgroups_.set_folders({static_cast<uint64_t>(order->job), 1}, order);
}

std::string Rig::folder(const AttemptOrder& order) const {
  return attempt_folder(base_, {static_cast<uint64_t>(order.job), 1});
}

AttemptOrder Rig::in_slot(AttemptOrder order) const {
  order.uid = order.gid = 100'000 + getpid() * 64ll;
  use_cgroups(&order);
  return order;
}

AttemptOrder Rig::script(const std::string& text) {
  AttemptOrder order = this->order({});
  order.program = "/bin/sh";
  order.arguments = {"sh", "-c", text};
  order.environment = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin"};
  return in_slot(order);
}

std::string Rig::tell(SlotShepherd& slot, const AttemptOrder& order) {
  const AttemptExit end = run_in(slot, order);
  CPPUNIT_ASSERT_EQUAL(std::string(), end.step);
  return read(folder(order) + "/stdout");
}

std::string Rig::prepare(const AttemptOrder& order) {
  std::string path = folder(order);
  system_files().make_folders(base_ + "/attempts", 0711);
  make_attempt_folder(system_files(), path, order.uid, order.gid);
  write_order(system_files(), path, order);
  return path;
}

std::string Rig::start(const AttemptOrder& order) {
  std::string path = prepare(order);
  running_.push_back({path, start_shepherd(order)});
  return path;
}

SlotShepherd Rig::start_slot() {
  SlotShepherd slot(SUBLET_SHEPHERD, base_);
  slots_.push_back(slot.id());
  return slot;
}

ProcessId Rig::start_shepherd(const AttemptOrder& order) const {
  SlotShepherd slot(SUBLET_SHEPHERD, base_);
  CPPUNIT_ASSERT(slot.run({static_cast<uint64_t>(order.job), 1}).taken);
  return slot.id();
}

AttemptExit Rig::run_in(SlotShepherd& slot, const AttemptOrder& order) {
  const std::string path = prepare(order);
  const auto given = slot.run({static_cast<uint64_t>(order.job), 1});
  CPPUNIT_ASSERT(given.taken);
  CPPUNIT_ASSERT(receive(given.control.get(), SUBLET_FRAME_ENDED).has_value());
  return exit_of(path);
}

int Rig::wait_for(const ProcessId& shepherd) const {
  int status = 0;
  bool ended = wait_until([&] { return waitpid(shepherd.pid, &status, WNOHANG) == shepherd.pid; });
  CPPUNIT_ASSERT_MESSAGE("the shepherd does not end", ended);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int Rig::wait(const std::string& folder) {
  for (size_t i = 0; i < running_.size(); ++i) {
    if (running_[i].folder != folder) continue;
    const int status = wait_for(running_[i].process);
    running_.erase(running_.begin() + static_cast<long>(i));
    return status;
  }
  CPPUNIT_FAIL("no shepherd runs for " + folder);
  return -1;
}

AttemptExit Rig::exit_of(const std::string& folder) const {
  std::string error;
  auto end = read_exit(system_files(), folder, &error);
  CPPUNIT_ASSERT_MESSAGE(error + "\n" + read(folder + "/exit"), end.has_value());
  return *end;
}

AttemptExit Rig::finish(const std::string& folder) {
  CPPUNIT_ASSERT_EQUAL(0, wait(folder));
  return exit_of(folder);
}

bool Rig::job_is_ready(const std::string& folder) const {
  return wait_until([&] { return access((folder + "/work/ready").c_str(), F_OK) == 0; });
}

AttemptRecord Rig::record(const std::string& folder) const {
  std::optional<AttemptRecord> found;
  std::string error;
  bool there =
      wait_until([&] { return (found = read_record(system_files(), folder, &error)).has_value(); });
  CPPUNIT_ASSERT_MESSAGE(error, there);
  return *found;
}

std::string Rig::read(const std::string& path) const {
  return system_files().exists(path) ? system_files().read_file(path, 1 << 20) : "";
}

int Rig::processes_of(const std::string& folder) const {
  std::string wanted = "SUBLET_STATUS=" + folder + "/status";
  int count = 0;
  DIR* proc = opendir("/proc");
  while (dirent* entry = readdir(proc)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    try {
      std::string environment =
          system_files().read_file(std::string("/proc/") + entry->d_name + "/environ", 1 << 20);
      count += environment.find(wanted) != std::string::npos;
    } catch (const FileError&) {
      continue;  // ended in the meantime, or belongs to another user
    }
  }
  closedir(proc);
  return count;
}

sublet_frame Rig::frame(const AttemptOrder& order, sublet_frame_kind kind, uint32_t reason) const {
  sublet_frame frame = {};
  frame.magic = SUBLET_FRAME_MAGIC;
  frame.kind = static_cast<uint16_t>(kind);
  frame.job = static_cast<uint64_t>(order.job);
  frame.attempt = 1;
  frame.sequence = 77;
  frame.reason = reason;
  return frame;
}

UniqueFd Rig::ask(const std::string& folder, const sublet_frame& frame) const {
  UniqueFd socket;
  bool connected = wait_until([&] {
    try {
      socket = connect_control(folder);
      return true;
    } catch (const OsError&) {
      return false;
    }
  });
  CPPUNIT_ASSERT(connected);
  CPPUNIT_ASSERT(send(socket.get(), &frame, sizeof frame, MSG_NOSIGNAL) == sizeof frame);
  return socket;
}

std::optional<sublet_frame> Rig::receive(int socket, sublet_frame_kind kind) const {
  sublet_frame frame;
  bool got = wait_until([&] {
    return recv(socket, &frame, sizeof frame, MSG_DONTWAIT) == sizeof frame && frame.kind == kind;
  });
  return got ? std::optional(frame) : std::nullopt;
}

}  // namespace sublet::shepherd
