// Keeps the monitor able to act beside programs that take all CPU time and all memory. Whatever
// is not permitted is done without, and logged.
#ifndef SUBLET_LOADMON_PROTECTION_H_
#define SUBLET_LOADMON_PROTECTION_H_

namespace sublet::loadmon {

// As many descriptors as are allowed; as root, low priority for the kernel's out-of-memory killer.
// What only the start needed is given back; its own code, and each page that is used from now on,
// stay in memory. The calling thread runs at real-time priority, so that the owner's programs do
// not delay what is done for the owner, or else at nice -5. That ends for good when 200 ms of CPU
// time pass without a wait: a monitor that spins must not be the only one that runs. To be called
// once.
void protect_process();

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_PROTECTION_H_
