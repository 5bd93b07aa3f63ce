#include "transport/tls/joining.h"

#include <string_view>

namespace sublet {
namespace {

constexpr std::string_view kGreetingMagic = "SBL1";
constexpr std::string_view kJoinMagic = "SBJ1";
constexpr size_t kRequestHead = 4 + kTokenId + kTokenSecret + 2;
constexpr size_t kAnswerHead = 4 + 1 + 2;

std::string two_octets(size_t value) {
  return {static_cast<char>(value >> 8 & 0xff), static_cast<char>(value & 0xff)};
}

size_t from_two_octets(const std::string& bytes, size_t at) {
  return static_cast<size_t>(static_cast<uint8_t>(bytes[at])) << 8 |
         static_cast<uint8_t>(bytes[at + 1]);
}

// For a message with a head whose last two octets are the size of the rest.
std::optional<size_t> size_of(const std::string& begun, size_t head) {
  const size_t known = std::min(begun.size(), kJoinMagic.size());
  if (begun.compare(0, known, kJoinMagic.substr(0, known)) != 0) return std::nullopt;
  if (begun.size() < head) return 0;
  const size_t body = from_two_octets(begun, head - 2);
  if (body > kMostPemSent || begun.size() > head + body) return std::nullopt;
  return head + body;
}

}  // namespace

std::string to_greeting(Exclusion why) {
  return std::string(kGreetingMagic) + static_cast<char>(why);
}

std::optional<Exclusion> from_greeting(const std::string& bytes) {
  if (bytes.size() != kGreeting || !bytes.starts_with(kGreetingMagic)) return std::nullopt;
  return exclusion_from(static_cast<uint8_t>(bytes.back()));
}

std::string to_bytes(const JoinRequest& request) {
  return std::string(kJoinMagic) + request.id + request.secret +
         two_octets(request.request.size()) + request.request;
}

std::string to_bytes(const JoinAnswer& answer) {
  return std::string(kJoinMagic) + static_cast<char>(answer.excluded) +
         two_octets(answer.certificate.size()) + answer.certificate;
}

std::optional<size_t> size_of_request(const std::string& begun) {
  return size_of(begun, kRequestHead);
}

std::optional<size_t> size_of_answer(const std::string& begun) {
  return size_of(begun, kAnswerHead);
}

JoinRequest request_from_bytes(const std::string& bytes) {
  return {bytes.substr(4, kTokenId), bytes.substr(4 + kTokenId, kTokenSecret),
          bytes.substr(kRequestHead)};
}

JoinAnswer answer_from_bytes(const std::string& bytes) {
  return {exclusion_from(static_cast<uint8_t>(bytes[4])), bytes.substr(kAnswerHead)};
}

}  // namespace sublet
