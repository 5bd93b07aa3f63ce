// Helpers of this folder's tests: temporary folders, reading and writing files, and child
// processes, waited for with a deadline.
#ifndef SUBLET_CHECKPOINT_API_TESTING_H_
#define SUBLET_CHECKPOINT_API_TESTING_H_

#include <cppunit/TestAssert.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

namespace sublet::testing {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "sublet-test-XXXXXX").string();
    CPPUNIT_ASSERT(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
  out.close();
  CPPUNIT_ASSERT(out);
}

inline bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// Polls `condition` until it holds or 60 s have passed.
inline bool wait_for(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    poll(nullptr, 0, 1);
  }
  return true;
}

// The wait status of `pid`; -1 (and the child is killed) if it did not end in time.
inline int end_of(pid_t pid) {
  int status = -1;
  if (wait_for([&] { return waitpid(pid, &status, WNOHANG) == pid; })) return status;
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  return -1;
}

// Runs `body` in a child process; its exit status is the body's result.
inline pid_t start_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  CPPUNIT_ASSERT(pid >= 0);
  if (pid == 0) {
    int result = 99;
    try {
      result = body();
    } catch (...) {
    }
    _exit(result);
  }
  return pid;
}

// Discards stderr during its lifetime: messages of the API are expected.
class QuietStderr {
 public:
  QuietStderr() : saved_(dup(2)) {
    if (freopen("/dev/null", "w", stderr) == nullptr) abort();
  }
  ~QuietStderr() {
    dup2(saved_, 2);
    close(saved_);
  }

 private:
  int saved_;
};

}  // namespace sublet::testing

#endif  // SUBLET_CHECKPOINT_API_TESTING_H_
