#include "loadmon/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/unique_fd.h"

namespace sublet::loadmon {
namespace {
// A file of a process fits into one page, except for a very long list of children.
constexpr size_t kLongest = 1 << 20;
}  // namespace

std::string read_proc(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char part[4096];
  ssize_t got;
  while (fd.valid() && text.size() < kLongest && (got = read(fd.get(), part, sizeof part)) > 0)
    text.append(part, static_cast<size_t>(got));
  return text;
}

void append_children(pid_t pid, std::vector<pid_t>* children) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(tasks.c_str()), closedir);
  if (!folder) return;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    const std::string list = read_proc(tasks + "/" + entry->d_name + "/children");
    for (const char* at = list.c_str(); *at != 0;) {
      char* end;
      const long child = strtol(at, &end, 10);
      if (end == at) break;
      children->push_back(static_cast<pid_t>(child));
      at = end + strspn(end, " \n");
    }
  }
}

}  // namespace sublet::loadmon
