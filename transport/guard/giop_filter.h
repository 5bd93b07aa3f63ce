// The framing filter between a connection and the ORB: it examines all data that a
// peer sends and passes only well-framed GIOP. Twelve malicious bytes can crash the
// packaged ORB (docs/transport.md), so the ORB must not see a message header that this
// filter has not checked.
//
// Standard library only, no ORB, no I/O. One GiopFilter per connection; one thread at a
// time may feed it. GiopRequests is shared by the reading and the writing thread and
// is thread-safe.
#ifndef SUBLET_TRANSPORT_GUARD_GIOP_FILTER_H_
#define SUBLET_TRANSPORT_GUARD_GIOP_FILTER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace sublet {

// Why a connection must be closed. The verdict depends only on the bytes, not on how
// they were split into packets.
enum class GiopViolation {
  kNone,
  kMagic,            // not GIOP
  kVersion,          // not 1.0, 1.1 or 1.2
  kFlags,            // bits that are not defined in this version
  kKind,             // unknown, or not allowed in this direction
  kSize,             // impossible for this kind of message
  kTooLarge,         // one message, or the sum of its fragments
  kFragmented,       // a message of a kind that must not be fragmented
  kMisaligned,       // a fragment other than the last does not end on an 8-byte boundary
  kEmptyFragment,    // an empty fragment that is not the last
  kStrayFragment,    // a fragment that does not belong to the incomplete message
  kInterrupted,      // another message while one is incomplete
  kUnexpectedReply,  // a reply without a request
};

// A few words for the log.
const char* to_text(GiopViolation violation);

// The requests sent on a connection and not yet answered: only replies to these are
// accepted. GIOP 1.2 only; requests of older versions are not recorded.
class GiopRequests {
 public:
  // At most this many are remembered; a request beyond goes unrecorded, so its
  // reply ends the connection.
  static constexpr size_t kMost = 4096;

  // Records bytes about to be sent, in order, in parts of any size. They come from
  // our own ORB and are trusted to be GIOP.
  void sent(const uint8_t* data, size_t size);
  // Removes the request (locate: the LocateRequest) with this id; false if there is
  // none.
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
  // max_message: bytes of the largest message accepted, header and all
  // fragments together. may_be_called: requests are accepted, not only replies.
  // The requests must outlive the filter.
  GiopFilter(size_t max_message, bool may_be_called, GiopRequests* requests)
      : max_message_(max_message), may_be_called_(may_be_called), requests_(requests) {}

  // The most that the filter ever holds back.
  static constexpr size_t kMostHeld = 16;

  // Checks the next size bytes and writes those that may pass to out; returns their
  // number. Bytes of an incomplete header are held back (held()) and are written by a
  // later call; a CancelRequest, which is only a hint, is dropped. out needs room for
  // held() + size bytes and may be data - held(), to use a single buffer. After a
  // violation nothing is passed.
  size_t feed(const uint8_t* data, size_t size, uint8_t* out);

  GiopViolation violation() const { return violation_; }
  size_t held() const { return held_size_; }
  // Messages and fragments begun so far.
  uint64_t begun() const { return begun_; }
  // Requests begun so far, not counting their later fragments.
  uint64_t requests_begun() const { return requests_begun_; }
  // False while a message is incomplete.
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
  // The message for which more fragments are expected.
  bool incomplete_ = false;
  uint32_t incomplete_id_ = 0;
  uint8_t incomplete_order_ = 0;
  uint64_t incomplete_size_ = 0;
};

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_GUARD_GIOP_FILTER_H_
