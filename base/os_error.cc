#include "base/os_error.h"

#include <cerrno>
#include <system_error>
#include <utility>

namespace sublet {
namespace {

std::string default_advice(int code) {
  switch (code) {
    case ENOSPC:
    case EDQUOT:
      return "free some space";
    case EACCES:
    case EPERM:
      return "check its owner and permissions";
    case EROFS:
      return "the file system is mounted read-only";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files";
    case EIO:
      return "check the disk and the kernel's log";
    default:
      return "";
  }
}

std::string sentence(int code, const std::string& doing, const std::string& subject,
                     const std::string& advice) {
  const std::string start = "cannot " + doing + " " + subject + ": ";
  // Who holds it says more than that it is held.
  if (code == EBUSY && !advice.empty()) return start + advice;
  const std::string error = start + std::generic_category().message(code);
  return advice.empty() ? error : error + " (" + advice + ")";
}

}  // namespace

OsError::OsError(int code, std::string doing, std::string subject, std::string advice)
    : std::runtime_error(
          sentence(code, doing, subject, advice.empty() ? default_advice(code) : advice)),
      code_(code),
      doing_(std::move(doing)),
      subject_(std::move(subject)),
      advice_(advice.empty() ? default_advice(code) : std::move(advice)) {}

}  // namespace sublet
