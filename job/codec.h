// The binary format of descriptions in the server's store and in a workstation's folder:
// numbers of 8 octets, little-endian, texts preceded by their lengths, in the order of the
// struct. The first number is the count of descriptions; its highest octet is the version of
// the format, 0 so far. Later additions are appended at the end, where older rows stop. Pure
// functions.
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
