// The GPUs of this machine, by their device files. Any thread.
#ifndef SUBLET_CLIENT_MACHINE_GPUS_H_
#define SUBLET_CLIENT_MACHINE_GPUS_H_

#include <string>
#include <vector>

namespace sublet::client {

inline constexpr char kGpu[] = "gpu";  // the name of the resource

// What programs call each: N of ROOT/dev/nvidiaN, ascending; if there is none, the numbers from 0
// on of ROOT/dev/dri/renderD*. `root`: "" for this machine's own. Empty: none, or the folder cannot
// be read.
std::vector<std::string> find_gpus(const std::string& root);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_GPUS_H_
