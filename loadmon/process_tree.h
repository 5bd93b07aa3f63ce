// Processes and their descendants, from /proc.
#ifndef SUBLET_LOADMON_PROCESS_TREE_H_
#define SUBLET_LOADMON_PROCESS_TREE_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace sublet::loadmon {

// The text of a file of /proc, at most 1 MiB; "" if it does not exist (any more).
std::string read_proc(const std::string& path);
// Appends the children of all threads of a process. The kernel's lists can miss some while
// others end.
void append_children(pid_t pid, std::vector<pid_t>* children);

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_PROCESS_TREE_H_
