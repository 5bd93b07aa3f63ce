// Where at a machine a sense saw its owner: "pts/3", "event5 Mouse", "X11 :0". Of a fixed size,
// because it is told on the way out of jobs. Pure.
#ifndef SUBLET_PROTOCOL_PLACE_H_
#define SUBLET_PROTOCOL_PLACE_H_

#include <algorithm>
#include <cstring>
#include <string_view>

#include "protocol/frame.h"

namespace sublet::protocol {

class Place {
 public:
  Place() = default;
  // Anything but printable ASCII becomes '?', because a device may call itself anything. The end of
  // a long text is left out.
  explicit Place(std::string_view text) noexcept { append(text); }
  // Of a frame CAUSE.
  explicit Place(const sublet_frame& frame) noexcept {
    const char* bytes = reinterpret_cast<const char*>(frame.arg);
    append({bytes, strnlen(bytes, SUBLET_PLACE_BYTES)});
  }

  void append(std::string_view text) noexcept {
    const auto printable = [](char c) { return c >= ' ' && c <= '~' ? c : '?'; };
    const size_t used = strlen(text_);
    text = text.substr(0, sizeof text_ - 1 - used);
    std::transform(text.begin(), text.end(), text_ + used, printable);
  }
  void put(sublet_frame* frame) const noexcept { memcpy(frame->arg, text_, sizeof text_); }

  bool empty() const noexcept { return *text_ == 0; }
  const char* text() const noexcept { return text_; }
  bool operator==(const Place&) const = default;

 private:
  char text_[SUBLET_PLACE_BYTES] = {};
};

static_assert(sizeof sublet_frame::arg == SUBLET_PLACE_BYTES);

}  // namespace sublet::protocol

#endif  // SUBLET_PROTOCOL_PLACE_H_
