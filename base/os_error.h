// What the kernel refused: its errno, what was being done, to what, and what
// the reader can do about it. what() is the whole sentence, fit for a user.
#ifndef SUBLET_BASE_OS_ERROR_H_
#define SUBLET_BASE_OS_ERROR_H_

#include <stdexcept>
#include <string>

namespace sublet {

class OsError : public std::runtime_error {
 public:
  // `doing` reads after "cannot": "write", "listen on". An empty `advice` is
  // replaced by one that fits the errno, where there is one.
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
