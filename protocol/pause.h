// An owner's word that no jobs may run at this machine now: how long it holds, also over
// restarts of the monitor and of the machine, and when clocks are set. Pure.
#ifndef SUBLET_PROTOCOL_PAUSE_H_
#define SUBLET_PROTOCOL_PAUSE_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace sublet::protocol {

// The longest pause that can be asked for; a longer one lasts until it is ended.
inline constexpr int64_t kLongestPauseMs = 366ll * 24 * 3600 * 1000;

struct Moment {
  std::string boot;     // the kernel's id of this boot
  int64_t boot_ns = 0;  // CLOCK_BOOTTIME
  int64_t utc_us = 0;   // the wall clock, which may be set
};

struct Pause {
  Moment begun;
  int64_t length_ms = 0;  // 0: until it is ended
  uint32_t by = 0;        // the uid that asked for it; kUnknown: the file was damaged

  static constexpr uint32_t kUnknown = std::numeric_limits<uint32_t>::max();

  static constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();
  // Milliseconds that are left; kEndless; 0: it is over. Within a boot the wall clock does
  // not matter. After another boot it does, but a clock that was set back never makes the
  // pause longer than it was at first.
  int64_t left_ms(const Moment& now) const;
};

// As stored in a file: one line of text.
std::string encode(const Pause& pause);
// nullopt: not such a line.
std::optional<Pause> decode_pause(const std::string& line);

}  // namespace sublet::protocol

#endif  // SUBLET_PROTOCOL_PAUSE_H_
