#include "examples/code-breaking/self_test.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include "examples/code-breaking/search.h"

namespace sublet::code_breaking {
namespace {

constexpr std::uint64_t kKeys = 1 << 22;  // size of the key space searched
constexpr unsigned kLength = 5;
constexpr std::uint64_t kFirst = 0x27d8400000;  // its first key
constexpr std::uint64_t kKey = 0x27d86dd243;    // the key to be recovered

Message make_message() {
  Message message;
  message.iv = {0x12345678, 0x9abcdef0};
  const std::string text = "known text of 16";
  message.plaintext.assign(text.begin(), text.end());
  message.ciphertext = Rc5(key_bytes(kKey, kLength)).encrypt_chained(message.iv, message.plaintext);
  return message;
}

// The result of trying the whole space, packet by packet: keys found, seconds per packet.
struct Trial {
  std::vector<std::uint64_t> found;
  std::vector<double> packet_s;
};

Trial try_all(const Message& message, ScanFunction* scan, std::uint64_t packet) {
  using Clock = std::chrono::steady_clock;
  Trial trial;
  for (std::uint64_t tried = 0; tried < kKeys; tried += packet) {
    const Clock::time_point start = Clock::now();
    const std::uint64_t first = kFirst + tried;
    const std::uint64_t last = kFirst + std::min(tried + packet, kKeys) - 1;
    const auto key = find_key(message, scan, kLength, first, last);
    trial.packet_s.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    if (key) trial.found.push_back(*key);
  }
  return trial;
}

void print_speed(const char* name, std::vector<double> packet_s) {
  double total = 0;
  for (const double seconds : packet_s) total += seconds;
  std::sort(packet_s.begin(), packet_s.end());
  std::printf("%s: key recovered, %.1f million keys/s, a packet p50 %.3f ms, p99 %.3f ms\n", name,
              static_cast<double>(kKeys) / total / 1e6, packet_s[packet_s.size() / 2] * 1e3,
              packet_s[packet_s.size() * 99 / 100] * 1e3);
}

}  // namespace

bool self_test(std::uint64_t packet) {
  const Message message = make_message();
  for (const Scanner* scanner = scanners(); scanner->name != nullptr; ++scanner) {
    const Trial trial = try_all(message, scanner->scan, packet);
    if (trial.found != std::vector<std::uint64_t>{kKey}) {
      std::fprintf(stderr, "code-breaking: self-test: %s found %zu keys instead of the right one\n",
                   scanner->name, trial.found.size());
      return false;
    }
    print_speed(scanner->name, trial.packet_s);
  }
  std::printf("self-test passed\n");
  return true;
}

}  // namespace sublet::code_breaking
