// The filter of system calls, a tree, against the same rules one by one.
#include "client/shepherd/walls/call_filter.h"

#include <cppunit/extensions/HelperMacros.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace sublet::shepherd {

extern const sock_filter kCallFilter[];
extern const unsigned short kCallFilterRows;
extern const sock_filter kPlainCallFilter[];
extern const unsigned short kPlainCallFilterRows;

namespace {

class CallFilterTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(CallFilterTest);
  CPPUNIT_TEST(answers_as_the_rules_one_by_one);
  CPPUNIT_TEST(refuses_and_allows_what_it_should);
  CPPUNIT_TEST(with_a_secret_it_permits_two_calls_more);
  CPPUNIT_TEST(a_secret_is_not_told_by_the_time_it_takes);
  CPPUNIT_TEST(takes_few_steps);
  CPPUNIT_TEST_SUITE_END();

  struct Verdict {
    uint32_t answer;
    int steps;
  };

  // As the kernel runs it, with the instructions that these filters have.
  static Verdict run(const sock_filter* rows, unsigned short count, const seccomp_data& call) {
    uint32_t number = 0, other = 0, memory = 0;
    int steps = 0;
    for (size_t at = 0; at < count; ++at, ++steps) {
      const sock_filter& row = rows[at];
      const auto jump = [&](bool condition) { at += condition ? row.jt : row.jf; };
      switch (row.code) {
        case BPF_LD | BPF_W | BPF_ABS:
          CPPUNIT_ASSERT(row.k + sizeof number <= sizeof call);
          memcpy(&number, reinterpret_cast<const char*>(&call) + row.k, sizeof number);
          break;
        case BPF_ALU | BPF_AND | BPF_K:
          number &= row.k;
          break;
        case BPF_ALU | BPF_XOR | BPF_K:
          number ^= row.k;
          break;
        case BPF_ALU | BPF_OR | BPF_X:
          number |= other;
          break;
        case BPF_LDX | BPF_W | BPF_IMM:
          other = row.k;
          break;
        case BPF_STX:
          CPPUNIT_ASSERT_EQUAL(0u, row.k);
          memory = other;
          break;
        case BPF_LDX | BPF_W | BPF_MEM:
          CPPUNIT_ASSERT_EQUAL(0u, row.k);
          other = memory;
          break;
        case BPF_MISC | BPF_TAX:
          other = number;
          break;
        case BPF_JMP | BPF_JA:
          at += row.k;
          break;
        case BPF_JMP | BPF_JEQ | BPF_K:
          jump(number == row.k);
          break;
        case BPF_JMP | BPF_JGT | BPF_K:
          jump(number > row.k);
          break;
        case BPF_JMP | BPF_JGE | BPF_K:
          jump(number >= row.k);
          break;
        case BPF_RET | BPF_K:
          return {row.k, steps + 1};
        default:
          CPPUNIT_FAIL("instruction " + std::to_string(row.code));
      }
    }
    CPPUNIT_FAIL("no answer");
    return {};
  }
  static uint32_t answer(const seccomp_data& call) {
    return run(kCallFilter, kCallFilterRows, call).answer;
  }
  static void compare(const seccomp_data& call) {
    const uint32_t expected = run(kPlainCallFilter, kPlainCallFilterRows, call).answer;
    if (answer(call) == expected) return;
    CPPUNIT_FAIL("call " + std::to_string(call.nr) + " of " + std::to_string(call.arch));
  }

  // Architectures that a rule names, and others.
  static std::vector<uint32_t> architectures() {
    return {AUDIT_ARCH_X86_64, AUDIT_ARCH_I386, AUDIT_ARCH_AARCH64, AUDIT_ARCH_ARM, 0, 0xffffffff};
  }
  // More than any architecture has, those of x32, and the last ones.
  static std::vector<uint32_t> numbers() {
    std::vector<uint32_t> out;
    for (uint32_t first : {0u, 0x40000000u, 0x7fffff00u, 0xffffff00u})
      for (uint32_t i = 0; i < (first == 0xffffff00u ? 0x100u : 2000u); ++i)
        out.push_back(first + i);
    return out;
  }
  // What a rule may look for, in each half of an argument, and other numbers.
  static std::vector<uint64_t> arguments() {
    std::set<uint64_t> out = {0,       ~uint64_t{0}, 3,      5,
                              TIOCSTI, 0x541C,       0x541D, SIGCHLD | CLONE_NEWNS};
    for (int bit = 0; bit < 64; ++bit) out.insert(uint64_t{1} << bit);
    for (const uint64_t low : {uint64_t{RLIMIT_CORE}, uint64_t{TIOCSTI}, uint64_t{CLONE_PARENT}})
      for (const uint64_t high : {1, 4, 0x40000000}) out.insert(low | high << 32);
    return {out.begin(), out.end()};
  }

  void answers_as_the_rules_one_by_one() {
    const std::vector<uint64_t> values = arguments();
    std::mt19937_64 random(1);
    const auto any = [&] { return values[random() % values.size()]; };
    for (const uint32_t architecture : architectures())
      for (const uint32_t number : numbers()) {
        seccomp_data call = {static_cast<int>(number), architecture, 0, {}};
        compare(call);
        for (size_t i = 0; i < 4; ++i)
          for (const uint64_t value : number < 500 ? values : std::vector<uint64_t>{1}) {
            call.args[i] = value;
            compare(call);
            call.args[i] = 0;
          }
        for (int i = 0; i < (number < 500 ? 100 : 2); ++i) {
          for (auto& argument : call.args) argument = any();
          compare(call);
        }
      }
  }

  static uint32_t refusal(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }

  void refuses_and_allows_what_it_should() {
#ifdef __x86_64__
    const auto native = [](long number, uint64_t first = 0, uint64_t second = 0) {
      return answer({static_cast<int>(number), AUDIT_ARCH_X86_64, 0, {first, second}});
    };
    for (const long number : {SYS_keyctl, SYS_mount, SYS_setns, SYS_bpf, SYS_io_uring_setup})
      CPPUNIT_ASSERT_EQUAL(refusal(EPERM), native(number));
    for (const long number : {SYS_read, SYS_execve, SYS_unshare, SYS_clone, SYS_ioctl, SYS_prctl})
      CPPUNIT_ASSERT_EQUAL(SECCOMP_RET_ALLOW, native(number));
    CPPUNIT_ASSERT_EQUAL(refusal(ENOSYS), native(SYS_clone3));
    CPPUNIT_ASSERT_EQUAL(refusal(ENOSYS), native(0x40000000 | SYS_read));
    CPPUNIT_ASSERT_EQUAL(refusal(EPERM), native(SYS_clone, CLONE_NEWUSER | SIGCHLD));
    CPPUNIT_ASSERT_EQUAL(refusal(EPERM), native(SYS_ioctl, 0, TIOCSTI));
    CPPUNIT_ASSERT_EQUAL(refusal(0), native(SYS_setrlimit, RLIMIT_CORE));
    constexpr int kMountOf32Bits = 21;
    CPPUNIT_ASSERT_EQUAL(refusal(EPERM), answer({kMountOf32Bits, AUDIT_ARCH_I386, 0, {}}));
    CPPUNIT_ASSERT_EQUAL(refusal(ENOSYS), answer({SYS_read, AUDIT_ARCH_AARCH64, 0, {}}));
#endif
  }

  static constexpr CallSecret kSecret = {{0x0123456789abcdef, 0xfedcba9876543210}};
  static std::vector<sock_filter> filter_with_secret() {
    std::vector<sock_filter> rows(kMostFilterRows);
    rows.resize(make_filter_with(kSecret, rows.data()));
    return rows;
  }
  static Verdict with_secret(const std::vector<sock_filter>& rows, const seccomp_data& call) {
    return run(rows.data(), static_cast<unsigned short>(rows.size()), call);
  }

  // But for who knows the secret, all is the same.
  void with_a_secret_it_permits_two_calls_more() {
#ifdef __x86_64__
    const std::vector<sock_filter> rows = filter_with_secret();
    const std::vector<uint64_t> values = arguments();
    std::mt19937_64 random(1);
    for (const uint32_t architecture : architectures())
      for (const uint32_t number : numbers())
        for (int i = 0; i < (number < 500 ? 300 : 3); ++i) {
          seccomp_data call = {static_cast<int>(number), architecture, 0, {}};
          for (auto& argument : call.args) argument = values[random() % values.size()];
          CPPUNIT_ASSERT_EQUAL(answer(call), with_secret(rows, call).answer);
          // Who knows it may do no other call.
          call.args[2] = kSecret.words[0];
          call.args[3] = kSecret.words[1];
          const bool native = architecture == AUDIT_ARCH_X86_64;
          if (native && (number == SYS_clone3 || number == SYS_unshare))
            CPPUNIT_ASSERT_EQUAL(SECCOMP_RET_ALLOW, with_secret(rows, call).answer);
          else
            CPPUNIT_ASSERT_EQUAL(answer(call), with_secret(rows, call).answer);
        }
#endif
  }

  void a_secret_is_not_told_by_the_time_it_takes() {
#ifdef __x86_64__
    const std::vector<sock_filter> rows = filter_with_secret();
    const auto try_it = [&](uint64_t first, uint64_t second) {
      return with_secret(rows, {SYS_clone3, AUDIT_ARCH_X86_64, 0, {1, 88, first, second, 0, 0}});
    };
    const Verdict wrong = try_it(0, 0);
    CPPUNIT_ASSERT_EQUAL(refusal(ENOSYS), wrong.answer);
    const auto& words = kSecret.words;
    std::vector<std::pair<uint64_t, uint64_t>> tries = {
        {words[0], 0}, {0, words[1]}, {words[1], words[0]}};
    for (int bit = 0; bit < 64; ++bit) {
      tries.emplace_back(words[0] ^ uint64_t{1} << bit, words[1]);
      tries.emplace_back(words[0], words[1] ^ uint64_t{1} << bit);
    }
    for (const auto& [first, second] : tries) {
      CPPUNIT_ASSERT_EQUAL(wrong.answer, try_it(first, second).answer);
      CPPUNIT_ASSERT_EQUAL(wrong.steps, try_it(first, second).steps);
    }
#endif
  }

  // The kernel does so for each of about 450 numbers of each of its architectures.
  void takes_few_steps() {
#ifdef __x86_64__
    int tree = 0, plain = 0;
    for (const uint32_t architecture : {uint32_t{AUDIT_ARCH_X86_64}, uint32_t{AUDIT_ARCH_I386}})
      for (int number = 0; number < 450; ++number) {
        const seccomp_data call = {number, architecture, 0, {}};
        tree += run(kCallFilter, kCallFilterRows, call).steps;
        plain += run(kPlainCallFilter, kPlainCallFilterRows, call).steps;
      }
    CPPUNIT_ASSERT(tree * 2 < plain);
#endif
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(CallFilterTest);

}  // namespace
}  // namespace sublet::shepherd
