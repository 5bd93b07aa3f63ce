// What a job sees of the machine's files and processes, root or not, in namespaces of its own
// (attempt/namespaces.h): a /tmp, /var/tmp, /dev/shm, /run/lock and message queues that begin
// empty and go with the attempt, a /dev of a few devices and terminals of its own, a /proc of its
// own processes, and System V IPC of its own. It does not see the folders that the client hides,
// except for what the owner grants, nor control groups but its own. Where namespaces are not
// permitted, none of this applies, and only /tmp and /var/tmp are swept at the end if the shepherd
// is root.
#ifndef SUBLET_CLIENT_SHEPHERD_WALLS_PLACES_H_
#define SUBLET_CLIENT_SHEPHERD_WALLS_PLACES_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "attempt/format.h"

namespace sublet::shepherd {

// prepare() is apart from the rest, so that one process can do it for a slot and a user, and start
// job after job. To be used in the attempt's folder, with all capabilities in the new namespaces
// and umask 0.

// The folders that begin empty, but for what leads to other places. That is root's, and stays.
struct FreshPlaces {
  static constexpr int kMost = 6;
  char path[kMost][128];
  int names[kMost];  // in it at the beginning
  int count;
};

class Walls {
 public:
  // In the process that made the namespaces: what does not depend on the job. Null, or the step
  // that failed, with errno.
  const char* prepare(const sublet_order& order);
  // Instead of admit(), for namespaces that serve attempt after attempt: lets all attempts of the
  // client in, each of which is closed to the accounts of the others, and closes what is hidden.
  // False if they cannot serve more than one.
  bool settle(FreshPlaces* fresh);
  // In their first process. False with errno.
  bool cover_proc();
  // Whether control groups are to be hidden: they can be seen, and are not granted.
  bool covers_cgroups() const;
  // In its child, which becomes the job: lets it in with its own folder, and closes what is hidden.
  // The same. The working folder remains the attempt's.
  const char* admit();
  // After that, when it has joined its control groups. The same.
  const char* hide_cgroups(const sublet_order& order);
  // The folder or device handled last, so the one that failed; "": none.
  const char* place() const { return place_; }

 private:
  // What stays visible although it may lie in a folder that is covered.
  struct Kept {
    const char* path;
    int fd;
  };
  static constexpr size_t kMostDevices = 6;
  static constexpr size_t kMostOwn = 3;
  static constexpr size_t kMostKept = SUBLET_MAX_PLACES + kMostOwn + kMostDevices;
  static constexpr size_t kMostCovers = SUBLET_MAX_PLACES + 8;

  void hide_least();
  const char* load();
  bool keep(const char* path) { return keep(path, walk_to(path)); }
  bool keep(const char* path, int fd);
  bool keep_grants();
  bool keep_own();
  static int walk_to(const char* path);
  bool keep_devices();
  bool cover_devices();
  bool cover_shared(const sublet_order& order);
  bool cover_all(const sublet_order& order);
  // For a folder that is to be covered: true if it is there and not granted, with its real path
  // as the newest of the covers. *failed if that cannot be said.
  bool note_cover(const char* path, bool* failed);
  bool cover_with_folder(const char* path, const char* source);
  bool cover_with(const char* type, const char* path, const char* options);
  bool is_granted(const char* path) const;
  bool is_covered(const char* path) const;
  bool is_shown_with_another(size_t kept) const;
  bool show(size_t kept);
  bool show_from(size_t first);
  bool close_cover(size_t cover);
  bool open_temporary_folders();
  bool finish_covers();

  sublet_places places_ = {};
  const char* place_ = "";
  char here_[PATH_MAX] = {};
  char own_[kMostOwn][PATH_MAX];  // of its folder
  Kept kept_[kMostKept] = {};
  size_t kept_count_ = 0;
  char covers_[kMostCovers][PATH_MAX];
  size_t cover_count_ = 0;
  size_t devices_ = 0;  // among the covers: that of /dev, if it is there
  size_t first_fresh_ = 0;
  size_t first_hidden_ = 0;
  char text_[SUBLET_RECORD_MAX_BYTES + 1];
};

// The number of names in a folder, relative to `at`. -1 with errno.
int count_names(int at, const char* path);
// Whether there are just so many in this open folder. Bounded: false of one that takes long to
// read.
bool has_names(int folder, int names);
// In the job's cgroup namespace: hides control groups, but its own if it `shows` them. False with
// errno.
bool cover_cgroups(bool shows);
bool uncover_cgroups();
// Whether the job may look up its limits, as some programs do: with cgroup v2 alone. A mount of
// v1's hierarchies would show all groups.
bool shows_cgroups(const sublet_order& order);

class TemporaryFolders {
 public:
  // Before the job starts: notes when the folders last changed.
  void note();
  // After its end: removes files and empty folders of `uid` directly in /tmp and
  // /var/tmp. Examines at most 4096 entries of each, and none if the folder has not
  // changed since note().
  void sweep(int64_t uid) const;

 private:
  // Modification times; 0 if so recent that the next change might have the same time.
  timespec changed_[2] = {};
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WALLS_PLACES_H_
