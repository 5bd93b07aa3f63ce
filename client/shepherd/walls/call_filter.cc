#include "client/shepherd/walls/call_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "attempt/call_filters.h"

namespace sublet::shepherd {

// In a source file that make_call_filter.cc makes.
extern const sock_filter kCallFilter[];
extern const unsigned short kCallFilterRows;

namespace {

#if defined(__x86_64__)
constexpr uint32_t kNative = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kNative = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kNative = 0;
#endif

bool install(const sock_filter* rows, unsigned short count) {
  const sock_fprog program = {count, const_cast<sock_filter*>(rows)};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

// Little-endian, as both processors are.
constexpr uint32_t argument(int number, int half) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args) + sizeof(uint64_t) * number + 4 * half);
}

}  // namespace

bool refuse_calls() { return install(kCallFilter, kCallFilterRows) || !kernel_filters_calls(); }

// All differences are gathered before they are looked at: how long it takes says nothing of them.
unsigned short make_filter_with(const CallSecret& secret, sock_filter* rows) {
  constexpr int kCompared = 4, kRowsOfOne = 5;
  constexpr int kRowsOfSecret = kCompared * kRowsOfOne + (kCompared - 1) + 3;
  sock_filter* row = rows;
  const auto add = [&row](int code, uint32_t value, int if_so = 0, int if_not = 0) {
    *row++ = {static_cast<uint16_t>(code), static_cast<uint8_t>(if_so),
              static_cast<uint8_t>(if_not), value};
  };
  if (kNative == 0) return 0;
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  add(BPF_JMP | BPF_JEQ | BPF_K, kNative, 0, kRowsOfSecret + 3);
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  add(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0);
  add(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, kRowsOfSecret);
  add(BPF_LDX | BPF_W | BPF_IMM, 0);
  for (int i = 0; i < kCompared; ++i) {
    add(BPF_STX, 0);
    add(BPF_LD | BPF_W | BPF_ABS, argument(2 + i / 2, i % 2));
    add(BPF_ALU | BPF_XOR | BPF_K, static_cast<uint32_t>(secret.words[i / 2] >> (i % 2 * 32)));
    add(BPF_LDX | BPF_W | BPF_MEM, 0);
    add(BPF_ALU | BPF_OR | BPF_X, 0);
    if (i + 1 < kCompared) add(BPF_MISC | BPF_TAX, 0);
  }
  add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
  add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const auto before = static_cast<unsigned>(row - rows);
  if (before + kCallFilterRows > kMostFilterRows) return 0;
  memcpy(row, kCallFilter, kCallFilterRows * sizeof *row);
  return static_cast<unsigned short>(before + kCallFilterRows);
}

bool refuse_calls_without(const CallSecret& secret) {
  sock_filter rows[kMostFilterRows];
  const unsigned short count = make_filter_with(secret, rows);
  errno = ENOTSUP;
  return count > 0 && install(rows, count);
}

}  // namespace sublet::shepherd
