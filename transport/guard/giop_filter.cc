#include "transport/guard/giop_filter.h"

#include <algorithm>
#include <cstring>

namespace sublet {
namespace {

enum Kind : uint8_t {
  kRequest = 0,
  kReply = 1,
  kCancelRequest = 2,
  kLocateRequest = 3,
  kLocateReply = 4,
  kCloseConnection = 5,
  kMessageError = 6,
  kFragment = 7,
};

uint32_t read_number(const uint8_t* from, bool little_endian) {
  if (little_endian) {
    return from[0] | from[1] << 8 | from[2] << 16 | static_cast<uint32_t>(from[3]) << 24;
  }
  return from[3] | from[2] << 8 | from[1] << 16 | static_cast<uint32_t>(from[0]) << 24;
}

}  // namespace

const char* to_text(GiopViolation violation) {
  switch (violation) {
    case GiopViolation::kNone:
      return "no violation";
    case GiopViolation::kMagic:
      return "not a GIOP message";
    case GiopViolation::kVersion:
      return "GIOP version not supported";
    case GiopViolation::kFlags:
      return "unknown GIOP flags";
    case GiopViolation::kKind:
      return "message kind not allowed in this direction";
    case GiopViolation::kSize:
      return "impossible message size";
    case GiopViolation::kTooLarge:
      return "message too large";
    case GiopViolation::kFragmented:
      return "message must not be fragmented";
    case GiopViolation::kMisaligned:
      return "fragment not aligned";
    case GiopViolation::kEmptyFragment:
      return "empty fragment";
    case GiopViolation::kStrayFragment:
      return "fragment without its message";
    case GiopViolation::kInterrupted:
      return "message interrupted by another";
    case GiopViolation::kUnexpectedReply:
      return "reply without a request";
  }
  return "unknown violation";
}

size_t GiopRequests::wanted() const {
  if (head_size_ < 12) return 12;
  const bool asks = head_[7] == kRequest || head_[7] == kLocateRequest;
  if (head_[5] != 2 || !asks) return 12;
  return static_cast<size_t>(
      std::min<uint64_t>(kHead, 12 + uint64_t{read_number(&head_[8], head_[6] & 1)}));
}

void GiopRequests::sent(const uint8_t* data, size_t size) {
  while (size > 0) {
    size_t part;
    if (skip_ > 0) {
      part = static_cast<size_t>(std::min<uint64_t>(size, skip_));
      skip_ -= part;
    } else {
      part = std::min(size, wanted() - head_size_);
      std::memcpy(&head_[head_size_], data, part);
      head_size_ += part;
      if (head_size_ >= wanted()) message_begins();
    }
    data += part;
    size -= part;
  }
}

void GiopRequests::message_begins() {
  const bool little_endian = head_[6] & 1;
  skip_ = 12 + uint64_t{read_number(&head_[8], little_endian)} - head_size_;
  const bool locate = head_[7] == kLocateRequest && head_size_ >= 16;
  const bool answered = head_[7] == kRequest && head_size_ == kHead && head_[16] != 0;
  head_size_ = 0;
  if (!locate && !answered) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (waiting_.size() < kMost) waiting_.push_back({read_number(&head_[12], little_endian), locate});
}

bool GiopRequests::take(uint32_t id, bool locate) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Request& request : waiting_) {
    if (request.id != id || request.locate != locate) continue;
    request = waiting_.back();
    waiting_.pop_back();
    return true;
  }
  return false;
}

size_t GiopRequests::waiting() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return waiting_.size();
}

size_t GiopFilter::feed(const uint8_t* data, size_t size, uint8_t* out) {
  size_t passed = 0;
  while (size > 0 && violation_ == GiopViolation::kNone) {
    size_t part;
    if (body_left_ > 0) {
      part = static_cast<size_t>(std::min<uint64_t>(size, body_left_));
      if (out + passed != data) std::memmove(out + passed, data, part);
      passed += part;
      body_left_ -= part;
    } else {
      part = std::min(size, wanted() - held_size_);
      std::memcpy(&held_[held_size_], data, part);
      held_size_ += part;
      passed += header_grew(out + passed);
    }
    data += part;
    size -= part;
  }
  return passed;
}

size_t GiopFilter::wanted() const {
  if (held_size_ < kHeader) return kHeader;
  if (held_[7] == kCancelRequest) return kMostHeld;
  const bool has_id = held_[7] != kCloseConnection && held_[7] != kMessageError;
  return held_[5] == 2 && has_id ? kMostHeld : kHeader;
}

// Checks the bytes held back; once they are a complete valid header, moves it to out
// and returns its size.
size_t GiopFilter::header_grew(uint8_t* out) {
  if (held_size_ == kHeader) violation_ = judge_header();
  if (violation_ != GiopViolation::kNone || held_size_ < wanted()) return 0;
  if (held_[7] == kCancelRequest) {
    held_size_ = 0;
    return 0;
  }
  if (held_size_ == kMostHeld) violation_ = judge_id();
  if (violation_ != GiopViolation::kNone) return 0;

  const size_t header = held_size_;
  const uint32_t size = read_number(&held_[8], held_[6] & 1);
  const bool more = held_[5] > 0 && (held_[6] & 2) != 0;
  incomplete_size_ = held_[7] == kFragment ? incomplete_size_ + size - 4 : kHeader + size;
  incomplete_ = more;
  if (more) {
    incomplete_id_ = read_number(&held_[12], held_[6] & 1);
    incomplete_order_ = held_[6] & 1;
  }
  body_left_ = kHeader + uint64_t{size} - header;
  std::memcpy(out, held_.data(), header);
  held_size_ = 0;
  ++begun_;
  if (held_[7] == kRequest) ++requests_begun_;
  return header;
}

GiopViolation GiopFilter::judge_header() const {
  if (std::memcmp(held_.data(), "GIOP", 4) != 0) return GiopViolation::kMagic;
  if (held_[4] != 1 || held_[5] > 2) return GiopViolation::kVersion;
  if ((held_[6] & ~(held_[5] == 0 ? 1 : 3)) != 0) return GiopViolation::kFlags;
  const uint8_t kind = held_[7];
  const uint32_t size = read_number(&held_[8], held_[6] & 1);
  if (kind == kFragment) return judge_fragment(size);
  if (incomplete_) return GiopViolation::kInterrupted;
  const GiopViolation violation = judge_kind(kind, size);
  if (violation != GiopViolation::kNone) return violation;
  if (kHeader + uint64_t{size} > max_message_) return GiopViolation::kTooLarge;
  const bool more = held_[5] > 0 && (held_[6] & 2) != 0;
  if (!more) return GiopViolation::kNone;
  // GIOP 1.1 fragments have no id, and none of our peers uses 1.1.
  if (held_[5] != 2 || wanted() != kMostHeld || kind == kCancelRequest) {
    return GiopViolation::kFragmented;
  }
  return (kHeader + uint64_t{size}) % 8 == 0 ? GiopViolation::kNone : GiopViolation::kMisaligned;
}

GiopViolation GiopFilter::judge_kind(uint8_t kind, uint32_t size) const {
  const auto need = [](bool good, GiopViolation otherwise) {
    return good ? GiopViolation::kNone : otherwise;
  };
  const bool has_id = size >= 4;
  switch (kind) {
    case kRequest:
    case kLocateRequest:
      if (!may_be_called_) return GiopViolation::kKind;
      return need(has_id, GiopViolation::kSize);
    case kReply:
    case kLocateReply:
      // Requests are sent as 1.2 only (GiopRequests), so replies must be 1.2, too.
      if (held_[5] != 2) return GiopViolation::kUnexpectedReply;
      return need(has_id, GiopViolation::kSize);
    case kCancelRequest:
      if (!may_be_called_) return GiopViolation::kKind;
      return need(size == 4, GiopViolation::kSize);
    case kCloseConnection:
    case kMessageError:
      return need(size == 0, GiopViolation::kSize);
    default:
      return GiopViolation::kKind;
  }
}

GiopViolation GiopFilter::judge_fragment(uint32_t size) const {
  if (!incomplete_ || held_[5] != 2 || (held_[6] & 1) != incomplete_order_) {
    return GiopViolation::kStrayFragment;
  }
  if (size < 4) return GiopViolation::kSize;
  if (incomplete_size_ + size - 4 > max_message_) return GiopViolation::kTooLarge;
  if ((held_[6] & 2) == 0) return GiopViolation::kNone;
  if (size == 4) return GiopViolation::kEmptyFragment;
  return (kHeader + uint64_t{size}) % 8 == 0 ? GiopViolation::kNone : GiopViolation::kMisaligned;
}

GiopViolation GiopFilter::judge_id() {
  const uint32_t id = read_number(&held_[12], held_[6] & 1);
  const uint8_t kind = held_[7];
  if (kind == kFragment && id != incomplete_id_) return GiopViolation::kStrayFragment;
  if ((kind == kReply || kind == kLocateReply) && !requests_->take(id, kind == kLocateReply)) {
    return GiopViolation::kUnexpectedReply;
  }
  return GiopViolation::kNone;
}

}  // namespace sublet
