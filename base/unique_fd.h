// Owns a file descriptor; closed by the destructor.
#ifndef SUBLET_BASE_UNIQUE_FD_H_
#define SUBLET_BASE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace sublet {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  bool valid() const { return fd_ >= 0; }
  // -1 if there is none.
  int get() const { return fd_; }
  // Passes ownership of the descriptor to the caller.
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace sublet

#endif  // SUBLET_BASE_UNIQUE_FD_H_
