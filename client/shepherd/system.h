// Small things the shepherd asks of the kernel. No C++ library, no allocation.
#ifndef SUBLET_CLIENT_SHEPHERD_SYSTEM_H_
#define SUBLET_CLIENT_SHEPHERD_SYSTEM_H_

#include <stddef.h>
#include <stdint.h>

namespace sublet::shepherd {

// Nanoseconds of CLOCK_BOOTTIME.
int64_t boot_now();

// 36 characters and a zero; "" when the kernel does not say.
struct BootId {
  char text[64];
  BootId();
};

// Reads at most `size` bytes of a file below `folder` that must be a regular
// one. The bytes read, or -1 (errno; EFBIG when there are more).
int64_t read_whole(int folder, const char* name, char* to, size_t size);

// Takes room on the disk for a file of that name that write_atomically() will write
// later, when there may be none left. Without success nothing is lost.
void reserve_room(int folder, const char* name, size_t size);

// The file appears in `folder` with these bytes, whole or not at all; `durably`: it
// also survives a power failure. False with errno.
bool write_atomically(int folder, const char* name, const char* bytes, size_t size, bool durably);

// One write to a file of the kernel's. False with errno.
bool write_kernel_file(const char* folder, const char* name, const char* text);

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_SYSTEM_H_
