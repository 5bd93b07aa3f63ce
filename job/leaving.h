// What a job does when the machine's owner is back, by the words of batch files and settings.
// Any thread.
#ifndef SUBLET_JOB_LEAVING_H_
#define SUBLET_JOB_LEAVING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sublet {

// LEAVING_... of idl/types.idl, the same numbers. protocol/leaving.h says what each means.
enum class Leaving : uint32_t { kDefault = 0, kSave = 1, kSuspend = 2, kLinger = 3, kKill = 4 };

// "leave", "suspend", "linger", "kill"; of kDefault: "".
std::string leaving_name(Leaving leaving);
std::optional<Leaving> leaving_named(std::string_view name);
// All of them, as a setting or a completion wants them.
std::vector<std::string> leaving_names();

}  // namespace sublet

#endif  // SUBLET_JOB_LEAVING_H_
