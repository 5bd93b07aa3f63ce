#include "transport/testing/giop_mutator.h"

#include <algorithm>

namespace sublet::testing {
namespace {

// Bidirectional GIOP: the caller's listening address.
std::string listen_point_context() {
  std::string data("\1\0\0\0", 4);
  data += cdr_number(1) + cdr_number(10) + "127.0.0.1";
  data.append("\0\x09\0", 3);
  std::string context = cdr_number(1) + cdr_number(5) + cdr_number(data.size()) + data;
  context.resize((context.size() + 3) / 4 * 4);
  return context;
}

std::string old_request(uint32_t id) {
  std::string body = cdr_number(0) + cdr_number(id) + std::string("\1\0\0\0", 4) + cdr_number(4) +
                     "Echo" + cdr_text("text") + cdr_number(0) + cdr_text("old");
  return giop(0, body, 0);
}

// In two fragments, the first ending on an 8-byte boundary as required.
std::string fragmented_request(uint32_t id) {
  std::string whole = giop_request(id, "text", cdr_text(std::string(100, 'f')));
  std::string first = whole.substr(0, 64);
  first[6] = 3;
  first.replace(8, 4, cdr_number(64 - 12));
  return first + giop(7, cdr_number(id) + whole.substr(64));
}

}  // namespace

std::string cdr_number(uint32_t value) {
  std::string bytes(4, '\0');
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string cdr_text(std::string_view text) {
  std::string bytes = cdr_number(static_cast<uint32_t>(text.size() + 1)) + std::string(text);
  bytes.push_back('\0');
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}

std::string giop(uint8_t kind, std::string_view body, uint8_t minor, uint8_t flags) {
  std::string message = "GIOP";
  message += {1, static_cast<char>(minor), static_cast<char>(flags), static_cast<char>(kind)};
  return message + cdr_number(static_cast<uint32_t>(body.size())) + std::string(body);
}

std::string giop_request(uint32_t id, std::string_view operation, std::string_view arguments,
                         std::string_view contexts) {
  std::string body = cdr_number(id) + std::string("\3\0\0\0", 4);  // an answer is expected
  body += std::string(4, '\0') + cdr_number(4) + "Echo";           // addressed by object key
  body += cdr_text(operation);
  body += contexts.empty() ? cdr_number(0) : std::string(contexts);
  if (!arguments.empty()) body.resize((12 + body.size() + 7) / 8 * 8 - 12);
  return giop(0, body + std::string(arguments));
}

std::string GiopMutator::good() {
  const uint32_t id = id_++;
  switch (below(10)) {
    case 0:
      return giop_request(id, "text", cdr_text("hello"));
    case 1:
      return giop_request(id, "blob", cdr_number(300) + std::string(300, 'b'));
    case 2:
      return giop_request(id, "list", cdr_number(2) + cdr_text("one") + cdr_text("two"));
    case 3:
      return giop_request(id, "_is_a", cdr_text("IDL:EchoTest/Echo:1.0"));
    case 4:
      return giop_request(id, "text", cdr_text("both ways"), listen_point_context());
    case 5:
      return giop(3, cdr_number(id) + cdr_number(0) + cdr_number(4) + "Echo");
    case 6:
      return old_request(id);
    case 7:
      return fragmented_request(id);
    case 8:
      return giop(1, cdr_number(id) + cdr_number(0) + cdr_number(0));
    default:
      return giop(2, cdr_number(id - 1));
  }
}

void GiopMutator::damage(std::string* message, size_t from) {
  static constexpr uint32_t kNasty[] = {0, 1, 4, 0x7fffffff, 0x80000000, 0xfffffff4, 0xffffffff};
  if (message->size() <= from) return;
  const size_t at = from + below(static_cast<uint32_t>(message->size() - from));
  switch (below(4)) {
    case 0:
      (*message)[at] = static_cast<char>(below(256));
      break;
    case 1:
      (*message)[at] = static_cast<char>((*message)[at] ^ (1 << below(8)));
      break;
    case 2:
      if (message->size() - from >= 4) {
        const size_t place = std::min(at / 4 * 4, message->size() - 4);
        if (place >= from) message->replace(place, 4, cdr_number(kNasty[below(7)]));
      }
      break;
    default:
      if (at > 16) message->erase(at);
  }
}

std::string GiopMutator::any() {
  std::string message = good();
  const uint32_t times = below(4);
  for (uint32_t i = 0; i < times; ++i) damage(&message, 0);
  if (below(20) == 0) message += message;
  return message;
}

std::string GiopMutator::well_framed() {
  std::string message = good();
  while (message[7] == 1) message = good();  // a reply would end the connection
  const uint32_t times = 1 + below(3);
  for (uint32_t i = 0; i < times; ++i) damage(&message, 16);
  if (message[6] == 1) message.replace(8, 4, cdr_number(message.size() - 12));
  return message;
}

}  // namespace sublet::testing
