// An eviction's steps and how long each took, and the notes of past evictions that an
// Executing Client leaves in its state folder for `sublet owner history`. Pure.
#ifndef SUBLET_PROTOCOL_EVICTION_H_
#define SUBLET_PROTOCOL_EVICTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/attempt.h"

namespace sublet::protocol {

// Each in microseconds after the cause was sensed, by the machine's monotonic clock; -1: it did
// not happen, or is not known. A job that is killed at once is never asked to save, and one that
// is lifted to save is not demoted before.
struct EvictionSteps {
  int64_t told = -1;        // the shepherd got the message
  int64_t demoted = -1;     // from here on the job weighed nothing beside the owner
  int64_t save_asked = -1;  // a handler of the job was sent the request
  int64_t saved = -1;       // its checkpoint was complete
  int64_t gone = -1;        // no process of it was left

  bool operator==(const EvictionSteps&) const = default;
};

// In the order in which they are shown. `number`: STEP_... of idl/types.idl.
struct EvictionStep {
  uint32_t number;
  const char* name;
  int64_t EvictionSteps::*after_us;
};
inline constexpr EvictionStep kEvictionSteps[] = {{2, "told", &EvictionSteps::told},
                                                  {3, "demoted", &EvictionSteps::demoted},
                                                  {4, "save_asked", &EvictionSteps::save_asked},
                                                  {5, "saved", &EvictionSteps::saved},
                                                  {6, "gone", &EvictionSteps::gone}};

// Whether an attempt may have left like that: what is known comes in order, within 30 days.
bool plausible(const EvictionSteps& steps);

// One past eviction.
struct EvictionNote {
  int64_t at_us = 0;  // UTC, when its cause was sensed
  uint64_t job = 0;
  uint32_t attempt = 0;
  EndCode ended = kEndNone;
  uint32_t sensed = 0;  // enum sublet_presence_reason, if it was the load monitor's word
  std::string place;    // where, as of a Place; "": it is not known
  EvictionSteps steps;

  bool operator==(const EvictionNote&) const = default;
};

// The file in the state folder, its first line, and how many of the last ones it names.
inline constexpr const char* kEvictionsFile = "evictions";
inline constexpr std::string_view kEvictionsHead = "sublet-evictions 1";
inline constexpr size_t kNotedEvictions = 1000;

std::string printed(const std::vector<EvictionNote>& notes);  // oldest first
// Lines that cannot be read are passed over, as is a second note of the same attempt. A text of
// another kind: std::nullopt.
std::optional<std::vector<EvictionNote>> notes_in(std::string_view text);

}  // namespace sublet::protocol

#endif  // SUBLET_PROTOCOL_EVICTION_H_
