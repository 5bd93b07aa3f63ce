// Converts between strings and the types that an IDL compiler generates for octets, strings
// and name-value pairs. Templates, so that only their users need a header of the ORB. Pure
// functions.
#ifndef SUBLET_BASE_OCTETS_H_
#define SUBLET_BASE_OCTETS_H_

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "base/text.h"

namespace sublet {

template <typename Octets>
std::string from_octets(const Octets& octets) {
  if (octets.length() == 0) return {};
  return {reinterpret_cast<const char*>(octets.get_buffer()), octets.length()};
}

template <typename Octets>
void to_octets(const void* bytes, size_t count, Octets& octets) {
  octets.length(static_cast<uint32_t>(count));
  if (count > 0) std::memcpy(octets.get_buffer(), bytes, count);
}
// From a string or an array of octets.
template <typename Bytes, typename Octets>
void to_octets(const Bytes& bytes, Octets& octets) {
  to_octets(bytes.data(), bytes.size(), octets);
}
template <typename Octets, typename Bytes>
Octets octets_of(const Bytes& bytes) {
  Octets octets;
  to_octets(bytes, octets);
  return octets;
}

// Sets a string that is a member of a struct or an element of a sequence. Our strings may
// contain any bytes, but the ORB accepts only UTF-8: invalid bytes become U+FFFD.
template <typename Text>
void set_text(Text&& text, const std::string& value) {
  text = to_utf8(value).c_str();
}

// Appends a pair.
template <typename Details>
void add_detail(Details& details, std::string_view name, const std::string& value) {
  const auto at = details.length();
  details.length(at + 1);
  set_text(details[at].name, std::string(name));
  set_text(details[at].value, value);
}

}  // namespace sublet

#endif  // SUBLET_BASE_OCTETS_H_
