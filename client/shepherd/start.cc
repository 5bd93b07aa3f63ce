// The shepherd's first phase: from the order to a child that waits for go().
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/real_time.h"
#include "client/shepherd/shepherd.h"
#include "client/shepherd/slot.h"

namespace sublet::shepherd {
namespace {

constexpr int kLockTries = 20;
constexpr long kLockPauseNs = 2'000'000;
// More than an exit record has.
constexpr size_t kExitBytes = 4096;

// The lock is held for the shepherd's lifetime. attempt_locked() in attempt/folder.h
// takes it for a moment, hence the retries.
bool lock(int fd) {
  for (int i = 0; i < kLockTries; ++i) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    struct timespec pause = {0, kLockPauseNs};
    nanosleep(&pause, nullptr);
  }
  errno = EWOULDBLOCK;
  return false;
}

// The kernel tells a start in ticks of 10 ms of the same clock. What it was if it lies between
// these instants; -1: it may be one of two.
int64_t ticks_between(int64_t from, int64_t to) {
  constexpr int64_t kTickNs = 10'000'000, kRoundingNs = 1000;
  const int64_t first = (from - kRoundingNs) / kTickNs;
  return first == (to + kRoundingNs) / kTickNs && sysconf(_SC_CLK_TCK) == 100 ? first : -1;
}

}  // namespace

const char* Shepherd::load_order(const sublet_frame& asked) {
  folder_ = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0 || !getcwd(text_, SUBLET_PATH_MAX_BYTES + 1)) return "cannot open the folder";
  // A second shepherd for this folder fails here. The folder is locked and not the order,
  // because the order may be replaced.
  if (!lock(folder_)) return "cannot lock the folder";
  char* const order = text_ + strlen(text_) + 1;
  int64_t size = read_whole(folder_, SUBLET_ORDER_FILE, order, SUBLET_ORDER_MAX_BYTES);
  if (size < 0) return "cannot read the order";
  text_used_ = static_cast<size_t>(order - text_ + size) + 1;
  unsigned line = 0;
  const char* wrong =
      sublet_format_parse(&sublet_order_format, order, static_cast<size_t>(size), &order_, &line);
  errno = EINVAL;
  if (wrong) return wrong;
  const bool asked_for = static_cast<uint64_t>(order_.job) == asked.job &&
                         static_cast<uint64_t>(order_.attempt) == asked.attempt;
  return asked_for ? nullptr : "it is that of another attempt";
}

bool Shepherd::add_environment() {
  static constexpr const char* kNames[][2] = {
      {"SUBLET_CHECKPOINT_DIR=", "/" SUBLET_CHECKPOINT_FOLDER},
      {"SUBLET_STATUS=", "/" SUBLET_STATUS_FILE}};
  for (const auto& [variable, name] : kNames) {
    if (strlen(variable) + strlen(text_) + strlen(name) >= kNameBytes) {
      errno = ENAMETOOLONG;
      return false;
    }
    char* const text = text_ + text_used_;
    char* const end = stpcpy(stpcpy(stpcpy(text, variable), text_), name);
    order_.environment[order_.environment_count++] = text;
    text_used_ = static_cast<size_t>(end - text_) + 1;
  }
  order_.environment[order_.environment_count] = nullptr;
  return true;
}

// Nothing but zeros. In a folder that is used again it usually is: most programs do not write it.
bool Shepherd::clear_status_page(int64_t size) {
  static_assert(sizeof out_ >= SUBLET_STATUS_BYTES);
  const bool is_whole = size == SUBLET_STATUS_BYTES &&
                        pread(status_, out_, SUBLET_STATUS_BYTES, 0) == SUBLET_STATUS_BYTES;
  // Each byte is the one before it.
  if (is_whole && out_[0] == 0 && memcmp(out_, out_ + 1, SUBLET_STATUS_BYTES - 1) == 0) return true;
  return ftruncate(status_, 0) == 0 && ftruncate(status_, SUBLET_STATUS_BYTES) == 0;
}

const char* Shepherd::make_status_page() {
  status_ = openat(folder_, SUBLET_STATUS_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  struct stat about;
  if (status_ < 0 || fstat(status_, &about) != 0 || !clear_status_page(about.st_size))
    return "status page";
  if (order_.uid < 0) return nullptr;
  const auto uid = static_cast<uid_t>(order_.uid);
  const auto gid = static_cast<gid_t>(order_.gid);
  const bool is_its = about.st_uid == uid && about.st_gid == gid;
  return is_its || fchown(status_, uid, gid) == 0 ? nullptr : "status page";
}

// Before the first process of the job: only sockets made from then on count. False with errno: it
// could do what it may not.
bool Shepherd::watch_traffic() {
  Cgroups& cgroups = slot_.cgroups();
  if (order_.no_network || !cgroups.are_new()) return true;
  return cgroups.watch_traffic(order_) || (order_.bandwidth == 0 && !order_.only_server);
}

// To the job's account alone. Until now the job before, which may have the same, could not enter
// it; nor can the jobs of other slots.
bool Shepherd::open_folder() {
  struct stat about;
  if (fstat(folder_, &about) != 0) return false;
  was_closed_ = (about.st_mode & 07) == 0;  // or opened by a shepherd that was killed
  if (order_.uid < 0) return true;          // the same account
  errno = EINVAL;
  if (order_.gid < 0) return false;
  const auto gid = static_cast<gid_t>(order_.gid);
  return (about.st_gid == gid || fchown(folder_, static_cast<uid_t>(-1), gid) == 0) &&
         fchmod(folder_, 0710) == 0;
}

const char* Shepherd::prepare() {
  if (strcmp(order_.boot_id, slot_.boot_id().text) != 0) {
    errno = ESTALE;  // its lease is a time of another boot
    return "boot_id";
  }
  // An eviction must not wait for the owner's busy programs. The attempt before may have lost it.
  constexpr int kRealTime = SCHED_RR | SCHED_RESET_ON_FORK;
  if (sched_getscheduler(0) != kRealTime) become_real_time(0);
  if (!open_folder()) return "account";
  if (!add_environment()) return "environment";
  if (!slot_.listen()) return "control";
  if (const char* failed = make_status_page()) return failed;
  if (!output_.open(folder_, order_.stdout_limit, order_.stderr_limit)) return "output";
  Cgroups& cgroups = slot_.cgroups();
  if (const char* failed = cgroups.prepare(&order_)) return failed;
  const BoundFiles bounds = cgroups.bound_files();
  if (const char* failed = bounds_.set(order_, cgroups.are_new(), &bounds)) return failed;
  if (!watch_traffic()) return "traffic";
  exit_file_ = reserve_room(folder_, SUBLET_EXIT_FILE, kExitBytes);
  if (slot_.proc() < 0) return "proc";
  processes_.use(slot_.proc(), cgroups.processes_files());
  const WeightFiles weight = cgroups.weight_files();
  return weight_.open(order_, processes_, &weight);
}

const char* Shepherd::write_record() {
  sublet_record record = {};
  record.job = order_.job;
  record.attempt = order_.attempt;
  record.boot_id = slot_.boot_id().text;
  record.shepherd_pid = getpid();
  record.shepherd_start = slot_.start_time();
  record.job_pid = record.session = launch_.pid();
  record.job_start = job_start_ >= 0 ? job_start_ : start_time_of(launch_.pid());
  record.uid = order_.uid == geteuid() ? -1 : order_.uid;
  record.cgroup_unified = order_.cgroup_unified;
  record.cgroup_cpu = order_.cgroup_cpu;
  record.cgroup_memory = order_.cgroup_memory;
  record.cpu_before_us = processes_.cpu_before_us();
  record.started_ns = boot_now();
  size_t size = sublet_format_print(&sublet_record_format, &record, out_, sizeof out_);
  errno = EFBIG;
  return size <= sizeof out_ && write_atomically(folder_, SUBLET_RECORD_FILE, out_, size)
             ? nullptr
             : "record";
}

const char* Shepherd::start_process() {
  sublet_frame hello = new_frame(SUBLET_FRAME_HELLO);
  hello.arg[0] = getpid();
  if (!slot_.meet_monitor(order_.monitor, hello)) return "monitor";
  if (!order_.walls) temporary_folders_.note();
  // A client of an older version closes no folder: its jobs must not see each other's.
  Room* const room =
      slot_.room().prepare(order_, slot_.kept(), was_closed_) ? &slot_.room() : nullptr;
  const int64_t before = boot_now();
  if (const char* failed = launch_.fork(order_, slot_.cgroups(), weight_, room, output_.job_end(0),
                                        output_.job_end(1))) {
    memcpy(failure_.place, launch_.place(), sizeof failure_.place);
    return failed;
  }
  job_start_ = ticks_between(before, boot_now());
  identify();
  return write_record();
}

void Shepherd::identify() {
  AttemptIdentity identity;
  identity.session = launch_.pid();
  identity.shepherd = getpid();
  identity.init = launch_.init();
  if (order_.uid != geteuid()) identity.uid = order_.uid;
  processes_.set(identity);
}

int Shepherd::run(const sublet_frame& asked, int connection) {
  control_.add(connection);
  text_[0] = 0;
  if (Slot::is_taken_back(asked, connection)) return kDone;
  const char* failed = load_order(asked);
  // From now on it cannot be; and what was loaded may be the order of another shepherd.
  const int error = errno;
  if (Slot::is_taken_back(asked, connection)) return kDone;
  if (failed) {
    if (error == ENOENT) return kDone;  // the client has taken it back
    fprintf(stderr, "sublet-shepherd: %s/%s: %s (%s)\n", text_, SUBLET_ORDER_FILE, failed,
            strerror(error));
    return error == EWOULDBLOCK ? kRefused : kBadOrder;
  }
  if (faccessat(folder_, SUBLET_RECORD_FILE, F_OK, 0) == 0 ||
      faccessat(folder_, SUBLET_EXIT_FILE, F_OK, 0) == 0) {
    fprintf(stderr, "sublet-shepherd: %s: this attempt was started before\n", text_);
    return kRefused;
  }
  protocol::ShepherdTerms terms;
  terms.save_deadline_ms = order_.save_deadline_ms;
  terms.cpu_allowance_ms = order_.cpu_allowance_ms;
  terms.lease_ns = order_.lease_ns;
  terms.patience_ms = order_.patience_ms;
  terms.limit_wall_s = order_.limit_wall_s;
  terms.leaving = static_cast<sublet_leaving>(order_.leaving);
  terms.suspend_ms = order_.suspend_ms;
  terms.saves_files = order_.own_file_count > 0;
  machine_ = protocol::ShepherdMachine(terms, boot_now());
  failed = prepare();
  if (failed) return end_before_start(failed, errno);
  failed = start_process();
  if (failed) return end_before_start(failed, errno);
  loop();
  return finish();
}

}  // namespace sublet::shepherd
