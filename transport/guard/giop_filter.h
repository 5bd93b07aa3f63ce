// The framing filter between a connection and the ORB: it sees
// every byte that a peer sends and lets only well-framed GIOP pass. Twelve
// hostile bytes kill the packaged ORB (docs/transport.md), so the ORB never
// sees a message header that this filter has not judged.
//
// Standard library only, no ORB, no I/O. One GiopFilter for each connection
// and direction of reading; one thread at a time may feed it. GiopRequests is
// shared by the reading and the writing thread and locks itself.
#ifndef SUBLET_TRANSPORT_GUARD_GIOP_FILTER_H_
#define SUBLET_TRANSPORT_GUARD_GIOP_FILTER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace sublet {

// Why a connection has to be closed. The verdict depends on the bytes alone,
// never on how they were cut into packets.
enum class GiopViolation {
  kNone,
  kMagic,            // not GIOP
  kVersion,          // not 1.0, 1.1 or 1.2
  kFlags,            // bits that this version does not have
  kKind,             // unknown, or not for this side to receive
  kSize,             // impossible for this kind of message
  kTooLarge,         // one message, or the sum of its fragments
  kFragmented,       // a message that must not come in fragments does
  kMisaligned,       // a piece that is not the last ends off the 8-byte grid
  kEmptyFragment,    // a fragment with nothing in it and more to come
  kStrayFragment,    // a fragment of no message begun, or of another one
  kInterrupted,      // another message while one is incomplete
  kUnexpectedReply,  // a reply to nothing that was asked
};

// A few words for the log.
const char* to_text(GiopViolation violation);

// The requests sent on a connection and not yet answered: replies are admitted
// only to these. GIOP 1.2 only; requests of older versions are not recorded.
class GiopRequests {
 public:
  // At most this many are remembered; a request beyond goes unrecorded, so its
  // reply ends the connection.
  static constexpr size_t kMost = 4096;

  // Tells of bytes about to be sent, in order, cut anywhere. They come from our
  // own ORB and are trusted to be GIOP.
  void sent(const uint8_t* data, size_t size);
  // True if a request (locate: a LocateRequest) with this id waits for its
  // reply; it then waits no longer.
  bool take(uint32_t id, bool locate);
  size_t waiting() const;

 private:
  struct Request {
    uint32_t id;
    bool locate;
  };
  static constexpr size_t kHead = 17;  // header, id, response flags of GIOP 1.2

  size_t wanted() const;
  void message_begins();

  mutable std::mutex mutex_;
  std::vector<Request> waiting_;
  std::array<uint8_t, kHead> head_{};
  size_t head_size_ = 0;
  uint64_t skip_ = 0;
};

class GiopFilter {
 public:
  // max_message: bytes of the largest message admitted, header and all
  // fragments together. may_be_called: requests are admitted, not only replies.
  // The requests must outlive the filter.
  GiopFilter(size_t max_message, bool may_be_called, GiopRequests* requests)
      : max_message_(max_message), may_be_called_(may_be_called), requests_(requests) {}

  // The most that the filter ever holds back.
  static constexpr size_t kMostHeld = 16;

  // Judges the next size bytes and writes those that may pass to out; returns
  // how many. Bytes of an incomplete header are held back (held()) and come out
  // with a later call; a CancelRequest, which is only a hint, never does. out
  // needs room for held() + size bytes and may be data - held(), so that one
  // buffer serves. After a violation nothing passes any more.
  size_t feed(const uint8_t* data, size_t size, uint8_t* out);

  GiopViolation violation() const { return violation_; }
  size_t held() const { return held_size_; }
  // Messages and fragments begun so far.
  uint64_t begun() const { return begun_; }
  // Requests begun so far, not counting their later fragments.
  uint64_t requests_begun() const { return requests_begun_; }
  // False while a message has begun and not ended.
  bool at_rest() const { return held_size_ == 0 && body_left_ == 0 && !incomplete_; }

 private:
  static constexpr size_t kHeader = 12;

  size_t wanted() const;
  size_t header_grew(uint8_t* out);
  GiopViolation judge_header() const;
  GiopViolation judge_kind(uint8_t kind, uint32_t size) const;
  GiopViolation judge_fragment(uint32_t size) const;
  GiopViolation judge_id();

  const size_t max_message_;
  const bool may_be_called_;
  GiopRequests* const requests_;

  GiopViolation violation_ = GiopViolation::kNone;
  std::array<uint8_t, kMostHeld> held_{};
  size_t held_size_ = 0;
  uint64_t begun_ = 0;
  uint64_t requests_begun_ = 0;
  uint64_t body_left_ = 0;
  // The message of which fragments are still to come.
  bool incomplete_ = false;
  uint32_t incomplete_id_ = 0;
  uint8_t incomplete_order_ = 0;
  uint64_t incomplete_size_ = 0;
};

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_GUARD_GIOP_FILTER_H_
