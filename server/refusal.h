// The exceptions of the public interface, without the ORB's types. Thrown anywhere
// below the servants; guard_call.h converts a Refusal into the CORBA exception of the
// same kind.
#ifndef SUBLET_SERVER_REFUSAL_H_
#define SUBLET_SERVER_REFUSAL_H_

#include <stdexcept>
#include <string>

#include "job/check.h"

namespace sublet::server {

class Refusal : public std::runtime_error {
 public:
  enum class Kind { kInvalid, kNotFound, kNotPermitted, kConflict, kLimitExceeded, kUnavailable };

  // code: stable (docs/errors.md); message: what is wrong; advice: what to do;
  // subject: the thing concerned.
  Refusal(Kind kind, std::string code, std::string message, std::string advice = "",
          std::string subject = "")
      : std::runtime_error(message),
        kind(kind),
        code(std::move(code)),
        message(std::move(message)),
        advice(std::move(advice)),
        subject(std::move(subject)) {}

  Kind kind;
  std::string code;
  std::string message;
  std::string advice;
  std::string subject;
};

// The code of a Refusal (kUnavailable) because an allocation failed.
inline constexpr const char* kOutOfMemory = "server.memory";

// Calls a check of job/, and rethrows its JobError as a Refusal.
template <typename Check>
auto refusing(Check&& check) -> decltype(check()) {
  try {
    return check();
  } catch (const JobError& error) {
    const bool limit = error.kind == JobError::Kind::kLimitExceeded;
    throw Refusal(limit ? Refusal::Kind::kLimitExceeded : Refusal::Kind::kInvalid, error.code,
                  error.what(), error.advice, error.subject);
  }
}

}  // namespace sublet::server

#endif  // SUBLET_SERVER_REFUSAL_H_
