#include "client/shepherd/walls/room.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "attempt/call_filters.h"
#include "attempt/namespaces.h"
#include "client/shepherd/system.h"
#include "client/shepherd/walls/init.h"
#include "client/shepherd/walls/places.h"

namespace sublet::shepherd {
namespace {

// Answers of the first process.
constexpr char kReady = 'r';
constexpr char kClean = 'c';
constexpr char kDirty = 'd';

constexpr int kNone = -1;
constexpr int kUnknown = -2;

// The folder in which the namespace's POSIX message queues are seen, whether or not the machine has
// a place for it. kNone: the kernel has none of them.
int open_queues() {
  const int type = fsopen("mqueue", FSOPEN_CLOEXEC);
  if (type < 0) return errno == ENODEV ? kNone : kUnknown;
  const bool made = fsconfig(type, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0;
  const int folder = made ? fsmount(type, FSMOUNT_CLOEXEC, 0) : kUnknown;
  close(type);
  return folder < 0 ? kUnknown : folder;
}

// Of System V, in the namespace of this process.
bool has_ipc_objects() {
  struct shm_info segments = {};
  struct seminfo semaphores = {};
  struct msginfo queues = {};
  union {
    struct seminfo* about;
  } argument = {&semaphores};
  if (shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&segments)) < 0 ||
      semctl(0, 0, SEM_INFO, argument) < 0 ||
      msgctl(0, MSG_INFO, reinterpret_cast<msqid_ds*>(&queues)) < 0)
    return errno != ENOSYS;
  return segments.used_ids > 0 || semaphores.semusz > 0 || queues.msgpool > 0;
}

}  // namespace

Room::Room(int first_descriptor)
    : first_(first_descriptor), filters_calls_(kernel_filters_calls()) {}

bool Room::reserve() const {
  for (int i = 0; i < kDescriptors; ++i)
    if (!shepherd::reserve(first_ + i)) return false;
  return place(open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC), first_ + kOwnProcesses) &&
         place(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), first_ + kOwnMounts);
}

void Room::look() {
  if (init_ > 0 && waitpid(init_, nullptr, WNOHANG) != 0) forget();
  server_.look();
}

// Whether it has said all that it was asked.
bool Room::is_silent() const {
  char answer;
  return recv(first_ + kReport, &answer, 1, MSG_DONTWAIT) < 0;
}

// That of the attempt in whose folder this process is.
bool Room::find_attempts(struct stat* folder) { return stat("..", folder) == 0; }

bool Room::fits(const sublet_order& order) {
  look();
  struct stat attempts;
  // Somebody may have put another folder in its place.
  if (!find_attempts(&attempts) || attempts.st_dev != attempts_.st_dev ||
      attempts.st_ino != attempts_.st_ino)
    return false;
  return init_ > 0 && is_silent() && strcmp(user_, order.user) == 0 && uid_ == order.uid &&
         gid_ == order.gid && memory_ == sublet_memory_limit(&order);
}

void Room::note_terms(const sublet_order& order) {
  strcpy(user_, order.user);
  uid_ = order.uid;
  gid_ = order.gid;
  memory_ = sublet_memory_limit(&order);
}

// A network of its own may remember connections. Without a control group the CPU time of processes
// whose parents have ended is known only when the first process ends.
bool Room::prepare(const sublet_order& order, const char* kept, bool may_share) {
  constexpr int kMostFailures = 3;
  used_ = clean_ = served_ = false;
  question_ = Question::kNone;
  const bool wanted = may_share && failures_ < kMostFailures && geteuid() == 0 && order.walls &&
                      !order.no_network && *order.user && *order.cgroup_unified;
  if (wanted && fits(order)) {
    used_ = was_used_ = rename(kept, SUBLET_PRIVATE_FOLDER) == 0;
    if (used_) return true;
  }
  // The end of an attempt in namespaces of its own is seen by that no child is left.
  remove(kept);
  // Of a shepherd that was killed before the program began.
  remove(SUBLET_PRIVATE_FOLDER);
  if (!wanted) return false;
  used_ = make(order);
  failures_ = used_ ? 0 : failures_ + 1;
  if (!used_) remove(SUBLET_PRIVATE_FOLDER);
  return used_;
}

bool Room::make(const sublet_order& order) {
  if (!find_attempts(&attempts_)) return false;
  memset(&notes_, 0, sizeof notes_);
  was_used_ = false;
  server_failures_ = 0;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  init_ = start(order, ends[0], ends[1]);
  close(ends[1]);
  char answer = 0;
  const bool ready = init_ > 0 && read(ends[0], &answer, 1) == 1 && answer == kReady;
  if (!place(ends[0], first_ + kReport) || !ready || !open_namespaces() || !can_be_entered())
    return false;
  note_terms(order);
  can_look_ = open_places();
  return true;
}

void Room::be_starter(const sublet_order& order, int report, int told) {
  Walls walls;
  pid_t init = -1;
  if (enter_new_namespaces(false)) {
    umask(0);
    const bool prepared = !walls.prepare(order) && walls.settle(&notes_.fresh);
    notes_.covers_cgroups = walls.covers_cgroups();
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (prepared) init = fork_sibling();
    if (init == 0) be_first(report, walls);
  }
  _exit(write(told, &init, sizeof init) == sizeof init ? 0 : 1);
}

// Only the children of whoever makes a namespace of processes are in it; see Launch. 0: it failed.
pid_t Room::start(const sublet_order& order, int ours, int report) {
  int told[2];
  if (pipe2(told, O_CLOEXEC) != 0) return 0;
  const pid_t starter = ::fork();
  if (starter == 0) {
    close(ours);
    be_starter(order, report, told[1]);
  }
  close(told[1]);
  pid_t init = 0;
  if (starter < 0 || read(told[0], &init, sizeof init) != sizeof init || init < 0) init = 0;
  close(told[0]);
  while (starter > 0 && waitpid(starter, nullptr, 0) < 0 && errno == EINTR) {
  }
  return init;
}

bool Room::open_namespaces() const {
  const struct {
    const char* name;
    int number;
  } all[] = {{"pid", kProcesses}, {"mnt", kMounts}, {"ipc", kMessages}};
  for (const auto& one : all) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", static_cast<int>(init_), one.name);
    if (!place(open(path, O_RDONLY | O_CLOEXEC), first_ + one.number)) return false;
  }
  return true;
}

// Those that begin empty, so that this process can look into them.
bool Room::open_places() {
  const bool can_return =
      place(open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC), first_ + kOwnMessages);
  if (!can_return || setns(first_ + kMessages, CLONE_NEWIPC) != 0) return false;
  const int queues = open_queues();
  if (setns(first_ + kOwnMessages, CLONE_NEWIPC) != 0) _exit(1);
  has_queues_ = queues != kNone;
  if (queues == kUnknown) return false;
  if (has_queues_) {
    const int opened = openat(queues, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(queues);
    if (!place(opened, first_ + kQueues)) return false;
  }
  return in_its_mounts([this] {
    for (int i = 0; i < notes_.fresh.count; ++i)
      if (!place(open(notes_.fresh.path[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                 first_ + kFresh + i))
        return false;
    return true;
  });
}

// Making it takes fewer privileges, and a container may forbid some of the calls.
bool Room::can_be_entered() {
  if (!note_folder()) return false;
  const pid_t visitor = ::fork();
  if (visitor == 0) _exit(enter() ? 1 : 0);
  int status = -1;
  while (visitor > 0 && waitpid(visitor, &status, 0) < 0 && errno == EINTR) {
  }
  return visitor > 0 && status == 0;
}

bool Room::note_folder() { return getcwd(notes_.folder, PATH_MAX) != nullptr; }

// False with errno: it cannot be entered, or the work failed.
template <typename Work>
bool Room::in_its_mounts(Work work) const {
  const int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  const bool entered = root >= 0 && folder >= 0 && setns(first_ + kMounts, CLONE_NEWNS) == 0;
  const bool done = entered && work();
  const int error = errno;
  if (entered && !go_back(root, folder)) _exit(1);
  for (const int opened : {root, folder})
    if (opened >= 0) close(opened);
  errno = error;
  return done;
}

// This process is to be outside, where it was. Who enters mounts is at their root.
bool Room::go_back(int root, int folder) const {
  return setns(first_ + kOwnMounts, CLONE_NEWNS) == 0 && fchdir(root) == 0 && chroot(".") == 0 &&
         fchdir(folder) == 0;
}

// The children cannot mount anything. Without a list of them the server, a child of the shepherd,
// would be taken for a process of the job.
bool Room::can_be_served(const sublet_order& order, const Cgroups& cgroups) const {
  constexpr int kMostFailures = 3;
  return was_used_ && cgroups.can_list_processes() &&
         are_cgroups_hidden(order, cgroups.are_new()) && server_failures_ < kMostFailures &&
         filters_calls_;
}

pid_t Room::fork(const sublet_order& order, Cgroups& cgroups, const Beginning& beginning) {
  served_ = can_be_served(order, cgroups);
  if (served_ && !server_.runs()) {
    served_ = server_.start(beginning.prepare, this);
    if (!served_) ++server_failures_;
  }
  if (served_) {
    const pid_t child = server_.fork(cgroups, beginning.run, beginning.argument);
    server_failures_ = child > 0 ? 0 : server_failures_ + 1;
    if (child > 0) return child;
    served_ = false;
  }
  return fork_directly(cgroups, beginning);
}

pid_t Room::fork_directly(Cgroups& cgroups, const Beginning& beginning) const {
  if (setns(first_ + kProcesses, CLONE_NEWPID) != 0) return -1;
  const pid_t child = cgroups.fork();
  if (child == 0) beginning.run(beginning.argument);
  const int error = errno;
  // Helpers of this process are to be outside.
  if (setns(first_ + kOwnProcesses, CLONE_NEWPID) != 0) _exit(1);
  errno = error;
  return child;
}

bool Room::enter_for_all() const {
  return setns(first_ + kMounts, CLONE_NEWNS) == 0 &&
         setns(first_ + kMessages, CLONE_NEWIPC) == 0 &&
         setns(first_ + kProcesses, CLONE_NEWPID) == 0;
}

const char* Room::enter() const {
  const bool entered = served_ || (setns(first_ + kMounts, CLONE_NEWNS) == 0 &&
                                   setns(first_ + kMessages, CLONE_NEWIPC) == 0);
  if (!entered) return "namespaces";
  return chdir(notes_.folder) == 0 ? nullptr : "walls";
}

// Where its own is shown, a cover is of the group for which it was made.
bool Room::are_cgroups_hidden(const sublet_order& order, bool new_ones) const {
  const bool made = notes_.cover == Cover::kMade;
  return !notes_.covers_cgroups || (made && !(shows_cgroups(order) && new_ones));
}

const char* Room::hide_cgroups(const sublet_order& order, bool new_ones) {
  // Not once for all by the server: it would then create its children in a cgroup while it is
  // itself outside its cgroup namespace, which the kernel refuses where cgroup v2 is mounted with
  // nsdelegate.
  const uint64_t(&secret)[2] = server_.secret().words;
  const bool is_in_view = served_ ? syscall(SYS_unshare, static_cast<long>(CLONE_NEWCGROUP), 0L,
                                            secret[0], secret[1]) == 0
                                  : unshare(CLONE_NEWCGROUP) == 0;
  if (!is_in_view) return "walls";
  if (are_cgroups_hidden(order, new_ones)) return nullptr;
  const bool made = notes_.cover == Cover::kMade;
  notes_.cover = Cover::kHalf;
  if ((made && !uncover_cgroups()) || !cover_cgroups(shows_cgroups(order))) return "walls";
  notes_.cover = Cover::kMade;
  return nullptr;
}

// In the first process.
bool Room::is_clean(int queues) const {
  const FreshPlaces& fresh = notes_.fresh;
  if (notes_.cover == Cover::kHalf) return false;
  for (int i = 0; i < fresh.count; ++i)
    if (count_names(AT_FDCWD, fresh.path[i]) != fresh.names[i]) return false;
  if (queues != kNone && (queues == kUnknown || count_names(queues, ".") != 0)) return false;
  return !has_ipc_objects();
}

bool Room::has_messages() const {
  if (setns(first_ + kMessages, CLONE_NEWIPC) != 0) return true;
  const bool has = has_ipc_objects();
  if (setns(first_ + kOwnMessages, CLONE_NEWIPC) != 0) _exit(1);
  return has;
}

bool Room::is_left_clean() {
  if (!can_look_ || init_ <= 0 || question_ != Question::kNone || notes_.cover == Cover::kHalf)
    return false;
  const FreshPlaces& fresh = notes_.fresh;
  for (int i = 0; i < fresh.count; ++i)
    if (!has_names(first_ + kFresh + i, fresh.names[i])) return false;
  if ((has_queues_ && !has_names(first_ + kQueues, 0)) || has_messages()) return false;
  question_ = Question::kAnswered;
  clean_ = true;
  return true;
}

void Room::be_first(int report, Walls& walls) {
  const bool covered = walls.cover_proc();
  become_first(report, &walls, sizeof walls);
  const int queues = open_queues();
  if (!covered || !say(report, kReady)) _exit(1);
  for (;;) {
    wait_until_alone();
    if (!say(report, is_clean(queues) ? kClean : kDirty)) _exit(1);
  }
}

void Room::ask() {
  if (question_ != Question::kNone || init_ <= 0) return;
  if (kill(init_, kDismissed) == 0) question_ = Question::kAsked;
}

bool Room::is_empty() {
  char answer = 0;
  const ssize_t count = recv(first_ + kReport, &answer, 1, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  question_ = Question::kAnswered;  // or it is ending, and is soon waited for
  clean_ = count == 1 && answer == kClean;
  return count == 1;
}

// What lies in its memory is freed when nobody holds the namespaces any more.
void Room::forget() {
  server_.end();
  init_ = 0;
  can_look_ = false;
  for (const int held : {kReport, kProcesses, kMounts, kMessages, kQueues})
    shepherd::reserve(first_ + held);
  for (int i = 0; i < FreshPlaces::kMost; ++i) shepherd::reserve(first_ + kFresh + i);
}

void Room::lose() {
  forget();
  question_ = Question::kAnswered;
}

void Room::leave(const char* kept) {
  const bool stays = used_ && clean_ && init_ > 0 && rename(SUBLET_PRIVATE_FOLDER, kept) == 0;
  if (used_ && !stays) end_first();
  used_ = false;
}

void Room::end_first() {
  server_.end();
  if (init_ <= 0) return;
  kill(init_, SIGKILL);
  // It waits for all processes of its namespace, of which some may be children of this one.
  pid_t ended;
  do ended = wait4(-1, nullptr, 0, nullptr);
  while (ended != init_ && (ended > 0 || errno == EINTR));
  forget();
}

void Room::remove(const char* kept) {
  end_first();
  constexpr int kMostOpen = 8;
  const auto remove_one = [](const char* path, const struct stat*, int kind, struct FTW*) {
    // One who holds such a folder open may have made a file in it.
    if (kind == FTW_DP)
      rmdir(path);
    else
      unlink(path);
    return 0;
  };
  nftw(kept, remove_one, kMostOpen, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

}  // namespace sublet::shepherd
