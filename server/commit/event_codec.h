// Events as the store keeps them, so that history can be replayed.
#ifndef SUBLET_SERVER_EVENT_CODEC_H_
#define SUBLET_SERVER_EVENT_CODEC_H_

#include <string>
#include <string_view>

#include "scheduling/events.h"

namespace sublet::server {

// The kind is the event's place in scheduling::Event.
std::string encode(const scheduling::Event& event);
// Throws DamagedRow.
scheduling::Event decode_event(uint32_t kind, std::string_view bytes);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_EVENT_CODEC_H_
