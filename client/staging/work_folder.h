// All access to a job's working folder, which a hostile job may have filled with
// anything, goes through here: names are checked, every component is opened without
// following symbolic links, and only regular files of the job's own account are read.
// Any thread; the caller must be the folder's only user at the time.
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
  int code() const { return code_; }  // errno; EINVAL for an invalid name

 private:
  int code_;
};

// The components of a relative name. Throws WorkFolderError (EINVAL) for an empty or
// absolute name, a folder's name, "..", NUL, more than 64 components or 4,095 bytes.
std::vector<std::string> split_name(const std::string& name);

// Creates the file `folder`/`name` for writing, with its parent folders; replaces an
// existing file. What it creates belongs to uid (-1: the caller).
UniqueFd create_inside(const std::string& folder, const std::string& name, bool executable,
                       int64_t uid);

struct OpenedFile {
  UniqueFd fd;
  uint64_t size = 0;
};
// Opens a regular file for reading. Throws WorkFolderError: ENOENT: there is none;
// ELOOP, ENOTDIR: its path has a symbolic link; EINVAL: not a regular file, or another
// account's.
OpenedFile open_inside(const std::string& folder, const std::string& name, int64_t uid);

// What may still be found and examined; find_inside() decreases it. With the defaults
// the names of an attempt fit in one message.
struct FindBounds {
  uint64_t files = 4096;
  uint64_t name_bytes = 256 * 1024;
  uint64_t looked_at = 1'000'000;  // entries of folders
};
struct FoundFiles {
  std::vector<std::string> names;  // relative to the folder, sorted by bytes
  // Number of symbolic links, pipes, devices, sockets and other accounts' files skipped.
  uint64_t others = 0;
  std::string other;  // the first of them
};
// Finds the regular files of the job's account that belong to the output, a folder or a
// pattern; finding none is no error. `tick` is called every 256 entries and may throw.
// Throws WorkFolderError: E2BIG: a bound is reached; ENAMETOOLONG: a name is too long or
// too deep.
FoundFiles find_inside(const std::string& folder, const OutputName& output, int64_t uid,
                       FindBounds& left, const std::function<void()>& tick);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_STAGING_WORK_FOLDER_H_
