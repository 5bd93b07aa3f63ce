// The only way into a job's working folder, which a hostile job may have filled
// with anything: names are checked, every component is opened without following
// symbolic links, and only regular files that belong to the job's own account
// are read. Any thread; the caller is the folder's only user of the moment.
#ifndef SUBLET_CLIENT_STAGING_WORK_FOLDER_H_
#define SUBLET_CLIENT_STAGING_WORK_FOLDER_H_

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "job/output_name.h"

namespace sublet::client {

class WorkFolderError : public std::runtime_error {
 public:
  WorkFolderError(int code, const std::string& text) : std::runtime_error(text), code_(code) {}
  int code() const { return code_; }  // errno; EINVAL for a name that may not be

 private:
  int code_;
};

// The components of a relative name. Throws WorkFolderError (EINVAL) on an
// empty or absolute name, on "." and "..", NUL, more than 64 components or
// 4,095 bytes.
std::vector<std::string> split_name(const std::string& name);

// A new file for writing at `folder`/`name`, with the folders above it; an old
// one there is replaced. All that is made belongs to uid (-1: the caller).
UniqueFd create_inside(const std::string& folder, const std::string& name, bool executable,
                       int64_t uid);

struct OpenedFile {
  UniqueFd fd;
  uint64_t size = 0;
};
// An existing regular file for reading. ENOENT: there is none; ELOOP, ENOTDIR:
// a symbolic link is in the way; EINVAL: no regular file, or another account's.
OpenedFile open_inside(const std::string& folder, const std::string& name, int64_t uid);

// What may still be found and examined; find_inside takes from it. With the
// defaults the names of an attempt fit in one message.
struct FindBounds {
  uint64_t files = 4096;
  uint64_t name_bytes = 256 * 1024;
  uint64_t looked_at = 1'000'000;  // entries of folders
};
struct FoundFiles {
  std::vector<std::string> names;  // relative to the folder, in the order of their bytes
  // Symbolic links, pipes, devices, sockets and other accounts' files: left out.
  uint64_t others = 0;
  std::string other;  // one of them
};
// The regular files of the job's own account that belong to the output, a folder
// or a pattern; of none there is no error. `tick` is called every 256 entries and
// may throw. E2BIG: a bound is reached; ENAMETOOLONG: a name is too long or deep.
FoundFiles find_inside(const std::string& folder, const OutputName& output, int64_t uid,
                       FindBounds& left, const std::function<void()>& tick);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_STAGING_WORK_FOLDER_H_
