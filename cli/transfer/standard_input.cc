#include "cli/transfer/standard_input.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "base/os_error.h"
#include "base/unique_fd.h"
#include "cli/pool/pool.h"

namespace sublet::cli {
namespace {

constexpr size_t kPiece = 1u << 20;
constexpr const char* kAdvice = "write it into a file and give its name: --stdin FILE";

[[noreturn]] void fail(const char* action, const std::string& path) {
  throw PoolError(ErrorKind::invalid, "submit.stdin", OsError(errno, action, path).what(), kAdvice,
                  path);
}

UniqueFd file_without_name() {
  std::error_code error;
  const std::string folder = std::filesystem::temp_directory_path(error).string();
  std::string name = (error ? "/tmp" : folder) + "/sublet-stdin-XXXXXX";
  UniqueFd file(mkostemp(name.data(), O_CLOEXEC));
  if (!file.valid() || unlink(name.c_str()) != 0) fail("create", name);
  return file;
}

void write_all(int fd, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t n = write(fd, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write", "the copy of standard input");
    bytes += n;
    size -= static_cast<size_t>(n);
  }
}

}  // namespace

std::string copy_standard_input(int fd, uint64_t most) {
  UniqueFd copy = file_without_name();
  std::vector<char> piece(kPiece);
  uint64_t sum = 0;
  for (ssize_t n; (n = read(fd, piece.data(), piece.size())) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("read", "standard input");
    sum += static_cast<uint64_t>(n);
    if (sum > most)
      throw PoolError(ErrorKind::limit_exceeded, "submit.stdin",
                      "standard input has more than 1 GiB", kAdvice, "");
    write_all(copy.get(), piece.data(), static_cast<size_t>(n));
  }
  return "/proc/self/fd/" + std::to_string(copy.release());  // stays open
}

}  // namespace sublet::cli
