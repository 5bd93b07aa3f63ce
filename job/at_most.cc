#include "job/at_most.h"

#include <charconv>
#include <string>

#include "job/check.h"

namespace sublet {

uint64_t read_at_most(const Details& details) {
  uint64_t result = 0;
  for (const auto& [name, value] : details) {
    if (name != kAtMost) continue;
    const char* end = value.data() + value.size();
    const auto [at, error] = std::from_chars(value.data(), end, result);
    if (error != std::errc() || at != end || result == 0 || result > kLargestAtMost)
      throw JobError(JobError::Kind::kInvalid, "field.invalid",
                     "at_most: `" + value.substr(0, 100) + "` is not a number of jobs",
                     "Write a whole number from 1 to 1,000,000.", std::string(kAtMost));
  }
  return result;
}

}  // namespace sublet
