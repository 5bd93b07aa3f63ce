// The binary form of events in the store.
#ifndef SUBLET_SCHEDULING_EVENTS_EVENT_CODEC_H_
#define SUBLET_SCHEDULING_EVENTS_EVENT_CODEC_H_

#include <string>
#include <string_view>

#include "scheduling/events/events.h"

namespace sublet::scheduling {

// The kind, which is not encoded, is the event's index in Event.
std::string encode_event(const Event& event);
// Throws Damaged.
Event decode_event(uint32_t kind, std::string_view bytes);

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_EVENTS_EVENT_CODEC_H_
