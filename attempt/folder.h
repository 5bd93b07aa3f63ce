// The client's side of an attempt's folder, attempts/<job>.<attempt>/ under the
// client's state folder: writes the order, reads record and exit record, lists the
// attempts. The shepherd is the other side (docs/shepherd.md). No shared state: any
// thread, one at a time per folder.
#ifndef SUBLET_ATTEMPT_FOLDER_H_
#define SUBLET_ATTEMPT_FOLDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attempt/format.h"
#include "base/files.h"
#include "base/process.h"
#include "base/unique_fd.h"
#include "protocol/leaving.h"

namespace sublet {

// The members have the same meaning as in sublet_order; strings must not contain NUL bytes.
struct AttemptOrder {
  int64_t job = 0;
  int64_t attempt = 0;
  std::string program;
  std::vector<std::string> arguments;    // argv[0] first; empty: the program's path
  std::vector<std::string> environment;  // NAME=value, the job's complete environment
  std::string work = SUBLET_WORK_FOLDER;
  std::string standard_input;
  std::string user;
  int64_t uid = -1;  // -1: that of the client
  int64_t gid = -1;
  int64_t umask = 077;
  int64_t stdout_limit = 1 << 20;  // bytes
  int64_t stderr_limit = 1 << 20;
  int64_t limit_cpu_s = 0;  // limits: 0: none
  int64_t limit_wall_s = 0;
  int64_t limit_memory = 0;
  int64_t slot_memory = 0;
  int64_t limit_file = 0;
  int64_t limit_disk = 0;
  int64_t limit_processes = 0;
  int64_t limit_open_files = 0;
  int64_t walls = 0;        // 1: build them, or fail
  int64_t no_network = 0;   // 1: only with walls
  int64_t only_server = 0;  // 1: only with a cgroup_unified
  std::string server;
  int64_t bandwidth = 0;       // 0: not bounded; else only with a cgroup_unified
  std::string monitor;         // monitor.sock, at most 107 bytes
  std::string cgroup_unified;  // AttemptCgroups::set_folders (attempt/cgroup.h); empty: none
  std::string cgroup_cpu;
  std::string cgroup_memory;
  std::string cgroup_processes;
  int64_t save_deadline_ms = 2000;
  int64_t cpu_allowance_ms = 50;  // 0: not lifted to save
  int64_t lease_ns = 0;           // CLOCK_BOOTTIME
  int64_t patience_ms = 3600 * 1000;
  int64_t leaving = SUBLET_LEAVING_SAVE;  // enum sublet_leaving
  int64_t suspend_ms = 0;
  std::vector<std::string> own_files;
  int64_t save_signal = 0;
  std::string boot_id;  // boot_id() of base/process.h

  bool operator==(const AttemptOrder&) const = default;
};

// The processes that run an attempt.
struct AttemptRecord {
  int64_t job = 0;
  int64_t attempt = 0;
  std::string boot_id;
  ProcessId shepherd;
  ProcessId program;
  int64_t session = 0;
  int64_t uid = -1;            // the slot's own, -1: none
  std::string cgroup_unified;  // as in sublet_record
  std::string cgroup_cpu;
  std::string cgroup_memory;
  int64_t cpu_before_us = 0;  // of cgroup_unified
  int64_t started_ns = 0;     // CLOCK_BOOTTIME

  bool operator==(const AttemptRecord&) const = default;
};

// What jobs with an account of their own see of the machine; see sublet_places.
struct AttemptPlaces {
  std::vector<std::string> hidden;
  std::vector<std::string> grants;

  bool operator==(const AttemptPlaces&) const = default;
};

// How an attempt ended. The text members of `facts` are empty; use the members here.
struct AttemptExit {
  sublet_exit facts = {};
  std::string step;
  std::string place;
  std::string boot_id;
};

// Parsing never throws because of the contents: an invalid file results in none and one
// sentence in *error.
std::string print_order(const AttemptOrder& order);
std::optional<AttemptOrder> parse_order(std::string text, std::string* error);
std::string print_places(const AttemptPlaces& places);
std::optional<AttemptPlaces> parse_places(std::string text, std::string* error);
std::string print_record(const AttemptRecord& record);
std::optional<AttemptRecord> parse_record(std::string text, std::string* error);
std::string print_exit(const AttemptExit& end);
std::optional<AttemptExit> parse_exit(std::string text, std::string* error);

struct AttemptName {
  uint64_t job = 0;
  uint32_t attempt = 0;
  auto operator<=>(const AttemptName&) const = default;
};

// `state_folder`/attempts/<job>.<attempt>
std::string attempt_folder(const std::string& state_folder, const AttemptName& name);
// The attempts in `state_folder`/attempts, sorted. Other names are ignored, or put in
// *strange if given. No such folder: empty.
std::vector<AttemptName> list_attempts(const Files& files, const std::string& state_folder,
                                       std::vector<std::string>* strange = nullptr);

// Creates the folder (0700: the shepherd opens it when it begins; those above 0711) with work/ and
// checkpoint/ (0700, owned by uid and gid unless these are -1). Throws FileError. It may already
// exist.
void make_attempt_folder(Files& files, const std::string& folder, int64_t uid, int64_t gid);
// Survives this process, but not a power failure. Throws FileError; with EFBIG if the
// order is longer than SUBLET_ORDER_MAX_BYTES, EINVAL if the shepherd would refuse it.
void write_order(Files& files, const std::string& folder, const AttemptOrder& order);
// For all attempts of that client. Throws FileError; with EFBIG if the shepherds could not read it.
void write_places(Files& files, const std::string& state_folder, const AttemptPlaces& places);
// None, with an empty *error, while the file does not exist.
std::optional<AttemptOrder> read_order(const Files& files, const std::string& folder,
                                       std::string* error);
std::optional<AttemptRecord> read_record(const Files& files, const std::string& folder,
                                         std::string* error);
std::optional<AttemptExit> read_exit(const Files& files, const std::string& folder,
                                     std::string* error);

// Starts a program (its path and arguments) that works for an attempt, with the weight that jobs
// have, below a process that ends when it does. SIGTERM to that one kills it. `order` names cgroups
// that are made for it. standard_input: a descriptor, -1: this process's. Throws OsError.
SpawnedProcess start_demoted(const std::string& shepherd_program, const AttemptOrder& order,
                             const std::vector<std::string>& command, int standard_input = -1);
// The same that removes a folder that an attempt has left.
SpawnedProcess start_removal(const std::string& shepherd_program, const std::string& folder,
                             const AttemptOrder& order);
// True while a shepherd of the folder is running, even before it has written its record:
// it holds the folder's lock.
bool attempt_locked(const std::string& folder);
// Removes the order of an attempt that its shepherd was given, and will then pass over. False: it
// has begun with it.
bool take_back_order(const std::string& folder);
// True while the recorded shepherd is running (in this boot).
bool shepherd_alive(const AttemptRecord& record);
// The shepherd's control socket, non-blocking. Throws OsError like connect_local.
UniqueFd connect_control(const std::string& folder);

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_FOLDER_H_
