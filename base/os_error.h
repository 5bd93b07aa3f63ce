// A failed system call: its errno, the operation, its subject, and advice for the user.
// what() is the complete sentence, suitable for display.
#ifndef SUBLET_BASE_OS_ERROR_H_
#define SUBLET_BASE_OS_ERROR_H_

#include <stdexcept>
#include <string>

namespace sublet {

class OsError : public std::runtime_error {
 public:
  // `doing` follows "cannot": "write", "listen on". An empty `advice` is replaced by a
  // default for the errno, if there is one.
  OsError(int code, std::string doing, std::string subject, std::string advice = "");

  int code() const { return code_; }  // errno
  const std::string& doing() const { return doing_; }
  const std::string& subject() const { return subject_; }
  const std::string& advice() const { return advice_; }

 private:
  int code_;
  std::string doing_;
  std::string subject_;
  std::string advice_;
};

}  // namespace sublet

#endif  // SUBLET_BASE_OS_ERROR_H_
