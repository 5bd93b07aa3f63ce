// The fast part: tries many keys at a time against one block. All scanners are the same
// code (key_scan_lanes.h) for different processors, with the same results.
#ifndef SUBLET_EXAMPLES_CODE_BREAKING_KEY_SCAN_H_
#define SUBLET_EXAMPLES_CODE_BREAKING_KEY_SCAN_H_

#include <cstdint>

#include "examples/code-breaking/rc5_constants.h"

namespace sublet::code_breaking {

struct KnownBlock {
  Block plain;
  Block cipher;
};

// Finds the first key from `first` to `last` (numbered as in key_range.h, `length` bytes
// each) that encrypts plain to cipher, and stores it in *match. False if there is none.
using ScanFunction = bool(const KnownBlock& block, unsigned length, std::uint64_t first,
                          std::uint64_t last, std::uint64_t* match);

ScanFunction scan_plain;   // any machine
ScanFunction scan_avx2;    // x86-64 only
ScanFunction scan_avx512;  // x86-64 only

struct Scanner {
  const char* name;
  ScanFunction* scan;
};

// The scanners that this machine can run, fastest first, terminated by a null name.
const Scanner* scanners();

}  // namespace sublet::code_breaking

#endif  // SUBLET_EXAMPLES_CODE_BREAKING_KEY_SCAN_H_
