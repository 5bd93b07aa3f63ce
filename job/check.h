// The checks of a description, used by both the submitter and the server. Pure functions;
// each throws a JobError that names the field.
#ifndef SUBLET_JOB_CHECK_H_
#define SUBLET_JOB_CHECK_H_

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "job/description.h"

namespace sublet {

// An error in a description. code: stable (docs/errors.md); what(): what is wrong;
// advice: what to do; subject: the job, or its field.
class JobError : public std::runtime_error {
 public:
  enum class Kind { kInvalid, kLimitExceeded };
  JobError(Kind kind, std::string code, const std::string& message, std::string advice,
           std::string subject)
      : std::runtime_error(message),
        kind(kind),
        code(std::move(code)),
        advice(std::move(advice)),
        subject(std::move(subject)) {}

  Kind kind;
  std::string code;
  std::string advice;
  std::string subject;
};

inline constexpr size_t kNameLimit = 1024;        // octets of a job's name
inline constexpr size_t kJobBytes = 1024 * 1024;  // of all strings of one description
inline constexpr size_t kStringsPerJob = 4096;    // arguments, variables, files: each
inline constexpr int64_t kMaxSaveDeadlineMs = 600'000;
inline constexpr uint32_t kMaxRetries = 1000;

// The octets of all its strings, which kJobBytes limits.
size_t octets_of(const JobDescription& job);

// Checks everything except whether the inputs were sent. `subject` is the prefix of the
// message, e.g. "job 3 of the append".
void check_description(const JobDescription& job, const std::string& subject);
// Checks that all inputs have a file.
void check_inputs_sent(const JobDescription& job, const std::string& subject);
// Checks an array: its count, its axes, and that no value makes an output name leave the
// job's folder. Sets `count` if there are axes.
void check_axes(SpecRange& range, const std::string& subject);

// Throws "field.invalid".
[[noreturn]] void invalid(const std::string& subject, const std::string& what,
                          const std::string& advice);
// Throws kLimitExceeded.
[[noreturn]] void over_limit(const char* code, const std::string& subject, const std::string& what,
                             const std::string& advice);

// The error in an output's name, or "".
std::string wrong_with_output(const std::string& name);
// Brings the hours of a job (rules/hours.h) into their one form. What is wrong with them; "":
// nothing.
std::string settle_hours(std::string& hours);
// Whether a file name stays inside the folder it is relative to: not absolute, no "..",
// no empty or "." component, no NUL, at most 4,096 octets and 64 components.
bool is_inside(std::string_view name);

}  // namespace sublet

#endif  // SUBLET_JOB_CHECK_H_
