#include "loadmon/visitor.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/local_socket.h"
#include "base/process.h"

namespace sublet::loadmon {
namespace {

constexpr int kMostAncestors = 64;

std::optional<pid_t> parent_of(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(stat, line)) return std::nullopt;
  const size_t name_end = line.rfind(')');
  char state = 0;
  int parent = 0, group = -1;
  const char* rest = name_end == std::string::npos ? "" : line.c_str() + name_end + 1;
  // Of a process that ends in this moment the kernel says that its parent is 0, its group -1.
  if (sscanf(rest, " %c %d %d", &state, &parent, &group) != 3 || group < 0) return std::nullopt;
  return parent;
}

}  // namespace

Visitor visitor_at(int socket) {
  const PeerCredentials peer = peer_credentials(socket);
  return {.pid = peer.pid, .started = process_start_time(peer.pid), .uid = peer.uid};
}

bool may_belong_to_job(const Visitor& visitor, const JobsHere& here) {
  const std::vector<pid_t> jobs = here.processes();
  if (visitor.uid != 0 && visitor.uid != geteuid()) {
    for (const pid_t pid : jobs) {
      struct stat about;
      const bool known = stat(("/proc/" + std::to_string(pid)).c_str(), &about) == 0;
      if (known && about.st_uid == visitor.uid) return true;
    }
  }
  std::set<pid_t> roots(jobs.begin(), jobs.end());
  for (const pid_t pid : here.daemons()) roots.insert(pid);
  // A shepherd is a subreaper: what its job leaves behind remains its descendant. Who has
  // already ended, or has no pid in this namespace (0), cannot be judged.
  const pid_t pid = visitor.pid;
  if (pid <= 0 || !visitor.started || process_start_time(pid) != visitor.started) return true;
  return may_descend(pid, roots, parent_of);
}

bool is_client(const Visitor& visitor, const JobsHere& here) {
  const std::vector<pid_t> jobs = here.processes(), daemons = here.daemons();
  return (visitor.uid == 0 || visitor.uid == geteuid()) && visitor.started &&
         std::find(daemons.begin(), daemons.end(), visitor.pid) != daemons.end() &&
         process_start_time(visitor.pid) == visitor.started &&
         !may_descend(visitor.pid, {jobs.begin(), jobs.end()}, parent_of);
}

bool is_process_of_job(pid_t pid, const JobsHere& here) {
  if (!parent_of(pid)) return false;
  const std::vector<pid_t> jobs = here.processes(), daemons = here.daemons();
  std::set<pid_t> roots(jobs.begin(), jobs.end());
  roots.insert(daemons.begin(), daemons.end());
  return may_descend(pid, roots, parent_of);
}

bool may_descend(pid_t pid, const std::set<pid_t>& from, const ParentOf& parent_of) {
  for (int n = 0; n < kMostAncestors; ++n) {
    if (from.contains(pid)) return true;
    if (pid == 1) return false;
    const std::optional<pid_t> parent = parent_of(pid);
    if (!parent) return true;
    if (*parent == 0) return false;
    pid = *parent;
  }
  return true;
}

}  // namespace sublet::loadmon
