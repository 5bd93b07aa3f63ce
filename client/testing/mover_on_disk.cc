// The process that moves files, for the test of it: its server is a folder, the `socket` of its
// door. What is received is the file of that name in it, and never arrives if that is a pipe; what
// is sent is appended to `sent`.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "client/link/server_calls.h"
#include "client/mover/contents.h"
#include "client/mover/process.h"

namespace {

using namespace sublet;
using namespace sublet::client;

class Disk : public ContentCalls {
 public:
  explicit Disk(const ContentDoor& door) : folder_(door.socket) {}

  std::string get(const FilePlace& place, uint64_t offset, uint32_t count) override {
    if (place.name == "refused")
      throw ServerError(ServerError::Kind::kNotFound, "spool.unknown", "No such file.");
    const UniqueFd file(open((folder_ + "/" + place.name).c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    fstat(file.get(), &info);
    while (S_ISFIFO(info.st_mode)) pause();
    return read_content(file.get(), offset, count);
  }
  uint64_t put(uint64_t, uint64_t offset, const char* bytes, size_t count) override {
    const UniqueFd file(
        open((folder_ + "/sent").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (write(file.get(), bytes, count) != static_cast<ssize_t>(count)) _exit(1);
    return offset + count;
  }

 private:
  const std::string folder_;
};

}  // namespace

int main() {
  end_with(STDIN_FILENO);
  return serve_mover(STDIN_FILENO, [](const ContentDoor& door) -> std::unique_ptr<ContentCalls> {
    return std::make_unique<Disk>(door);
  });
}
