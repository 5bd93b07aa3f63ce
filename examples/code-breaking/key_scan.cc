#include "examples/code-breaking/key_scan.h"

namespace sublet::code_breaking {

const Scanner* scanners() {
  static constexpr Scanner kAll[] = {
#ifdef __x86_64__
      {"avx512", &scan_avx512},
      {"avx2", &scan_avx2},
#endif
      {"plain", &scan_plain},
      {nullptr, nullptr}};
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return kAll;
  if (__builtin_cpu_supports("avx2")) return kAll + 1;
  return kAll + 2;
#else
  return kAll;
#endif
}

}  // namespace sublet::code_breaking
