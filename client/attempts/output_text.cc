#include "client/attempts/output_text.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "client/staging/work_folder.h"

namespace sublet::client {

std::optional<std::string> read_attempt_text(const std::string& state_folder,
                                             const AttemptName& name, FileKind stream,
                                             uint64_t offset, uint32_t limit) {
  const std::string folder = attempt_folder(state_folder, name);
  OpenedFile file;
  try {
    file = open_inside(folder,
                       stream == FileKind::kStdout ? SUBLET_STDOUT_FILE : SUBLET_STDERR_FILE, -1);
  } catch (const WorkFolderError& error) {
    if (error.code() != ENOENT) throw;
    // A stream to which nothing was written has no file.
    if (access(folder.c_str(), F_OK) != 0) return std::nullopt;
    return "";
  }
  if (offset >= file.size) return "";
  std::string text(std::min<uint64_t>(limit, file.size - offset), '\0');
  ssize_t count = pread(file.fd.get(), text.data(), text.size(), static_cast<off_t>(offset));
  if (count < 0) throw FileError(errno, "read", folder);
  text.resize(static_cast<size_t>(count));
  return text;
}

}  // namespace sublet::client
