// Where a filter made for a secret (call_filter.h) has it. One thread.
#ifndef SUBLET_CLIENT_SHEPHERD_WALLS_SECRET_MARKS_H_
#define SUBLET_CLIENT_SHEPHERD_WALLS_SECRET_MARKS_H_

#include <linux/filter.h>
#include <stdint.h>

#include "client/shepherd/walls/call_filter.h"

namespace sublet::shepherd {

// In its place. Found nowhere else in the filter.
inline constexpr CallSecret kSecretMarks = {{0x5ec2e7015ec2e702, 0x5ec2e7035ec2e704}};

// A filter compares halves.
inline constexpr int kHalves = 4;
constexpr uint32_t half_of(const CallSecret& secret, int i) {
  return static_cast<uint32_t>(secret.words[i / 2] >> (i % 2 * 32));
}

inline void put_secret(sock_filter* rows, unsigned count, const CallSecret& secret) {
  for (unsigned row = 0; row < count; ++row)
    for (int i = 0; i < kHalves; ++i)
      if (rows[row].k == half_of(kSecretMarks, i)) {
        rows[row].k = half_of(secret, i);
        break;
      }
}

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WALLS_SECRET_MARKS_H_
