// The binary form of descriptions, as the server's store and a workstation's folder keep
// them: numbers of 8 octets, little-endian, texts after their lengths, in the order of the
// struct. The first number counts the descriptions; its highest octet is the form's version,
// 0 so far. What is added later stands behind the rest, where older rows end. Pure functions.
#ifndef SUBLET_JOB_CODEC_H_
#define SUBLET_JOB_CODEC_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "job/description.h"

namespace sublet {

std::string encode(std::span<const SpecRange> specs);
// Throws protocol::Damaged.
std::vector<SpecRange> decode_specs(std::string_view bytes);

}  // namespace sublet

#endif  // SUBLET_JOB_CODEC_H_
