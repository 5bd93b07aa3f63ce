// Produces malformed GIOP from valid messages, for the tests of the filter and of
// servers behind it. Deterministic for a given seed.
#ifndef SUBLET_TRANSPORT_TESTING_GIOP_MUTATOR_H_
#define SUBLET_TRANSPORT_TESTING_GIOP_MUTATOR_H_

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace sublet::testing {

// GIOP by hand, little-endian. Kinds: 0 Request, 1 Reply, 2 CancelRequest, 3
// LocateRequest, 4 LocateReply, 5 CloseConnection, 6 MessageError, 7 Fragment.
// Flags: 1 little-endian, 2 more fragments follow.
std::string giop(uint8_t kind, std::string_view body, uint8_t minor = 2, uint8_t flags = 1);
// A request to the object "Echo". Arguments start on the 8-byte grid.
std::string giop_request(uint32_t id, std::string_view operation, std::string_view arguments,
                         std::string_view contexts = {});
std::string cdr_number(uint32_t value);
std::string cdr_text(std::string_view text);

class GiopMutator {
 public:
  explicit GiopMutator(uint32_t seed) : random_(seed) {}

  // One message: valid, or damaged anywhere.
  std::string any();
  // Damaged only after its header: the filter passes most of these, so they test the
  // ORB's own parser.
  std::string well_framed();
  uint32_t below(uint32_t limit) { return random_() % limit; }

 private:
  std::string good();
  void damage(std::string* message, size_t from);

  std::mt19937 random_;
  uint32_t id_ = 1;
};

}  // namespace sublet::testing

#endif  // SUBLET_TRANSPORT_TESTING_GIOP_MUTATOR_H_
