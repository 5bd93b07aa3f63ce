// The command's own standard input as an input file of a job (`submit --stdin -`).
#ifndef SUBLET_CLI_TRANSFER_STANDARD_INPUT_H_
#define SUBLET_CLI_TRANSFER_STANDARD_INPUT_H_

#include <cstdint>
#include <string>

namespace sublet::cli {

inline constexpr uint64_t kStandardInputMax = 1u << 30;

// Copies all that can be read from `fd` into a file without a name, which exists until this
// process ends. Returns a path by which this process can open it. Throws PoolError
// "submit.stdin".
std::string copy_standard_input(int fd, uint64_t most = kStandardInputMax);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_TRANSFER_STANDARD_INPUT_H_
