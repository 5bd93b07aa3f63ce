// What the checks of descriptions share (job_spec.cc, array_check.cc).
#ifndef SUBLET_SERVER_SPEC_CHECK_H_
#define SUBLET_SERVER_SPEC_CHECK_H_

#include <cstddef>
#include <string>

namespace sublet::server {

inline constexpr size_t kMaxSpecBytes = 1024 * 1024;  // of all strings of one description

// Throws Refusal "field.invalid".
[[noreturn]] void invalid(const std::string& subject, const std::string& what,
                          const std::string& advice);

// What is wrong with an output's name, or "".
std::string wrong_with_output(const std::string& name);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SPEC_CHECK_H_
