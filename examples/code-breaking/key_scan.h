// The fast part: many keys at a time against one block. Each scanner is the same code
// (key_scan_lanes.h) for another kind of processor; all find the same.
#ifndef SUBLET_EXAMPLES_CODE_BREAKING_KEY_SCAN_H_
#define SUBLET_EXAMPLES_CODE_BREAKING_KEY_SCAN_H_

#include <cstdint>

#include "examples/code-breaking/rc5_constants.h"

namespace sublet::code_breaking {

struct KnownBlock {
  Block plain;
  Block cipher;
};

// The first key from `first` to `last` (numbered as in key_range.h, `length` bytes each)
// that encrypts plain to cipher, in *match; or false.
using ScanFunction = bool(const KnownBlock& block, unsigned length, std::uint64_t first,
                          std::uint64_t last, std::uint64_t* match);

ScanFunction scan_plain;   // any machine
ScanFunction scan_avx2;    // x86-64 only
ScanFunction scan_avx512;  // x86-64 only

struct Scanner {
  const char* name;
  ScanFunction* scan;
};

// Those that this machine can run, ended by a null name; the fastest comes first.
const Scanner* scanners();

}  // namespace sublet::code_breaking

#endif  // SUBLET_EXAMPLES_CODE_BREAKING_KEY_SCAN_H_
