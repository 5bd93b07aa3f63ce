#include "examples/code-breaking/search.h"

#include <algorithm>
#include <stdexcept>

namespace sublet::code_breaking {
namespace {

constexpr std::uint32_t kLayout = 1;        // increase it when a variable's meaning changes
constexpr std::uint32_t kSavePeriodS = 60;  // limits the work lost when killed; saves are cheap

// FNV-1a, 64 bits, of a sequence of numbers and texts.
class Hash {
 public:
  void add(std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8)
      add_byte(static_cast<std::uint8_t>(number >> shift));
  }
  void add(const Bytes& bytes) {
    add(bytes.size());
    for (const std::uint8_t byte : bytes) add_byte(byte);
  }
  std::uint64_t value() const { return value_; }

 private:
  void add_byte(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3u; }
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

std::uint64_t identity_of(const Message& message, const KeyRange& range) {
  Hash hash;
  hash.add(message.iv.a);
  hash.add(message.iv.b);
  hash.add(message.plaintext);
  hash.add(message.ciphertext);
  hash.add(range.first);
  hash.add(range.last);
  hash.add(range.length);
  return hash.value();
}

bool fits(const Message& message, const Bytes& key) {
  const Bytes made = Rc5(key).encrypt_chained(message.iv, message.plaintext);
  return std::equal(made.begin(), made.end(), message.ciphertext.begin());
}

}  // namespace

std::optional<std::uint64_t> find_key(const Message& message, ScanFunction* scan, unsigned length,
                                      std::uint64_t first, std::uint64_t last) {
  const Block plain = block_at(message.plaintext, 0);
  const KnownBlock block{{plain.a ^ message.iv.a, plain.b ^ message.iv.b},
                         block_at(message.ciphertext, 0)};
  std::uint64_t match = 0;
  while (scan(block, length, first, last, &match)) {
    if (fits(message, key_bytes(match, length))) return match;
    if (match == last) break;
    first = match + 1;
  }
  return std::nullopt;
}

Search::Search(const Message& message, const KeyRange& range, std::uint64_t packet)
    : message_(message),
      range_(range),
      packet_(packet),
      identity_(identity_of(message, range)),
      checkpoint_("code-breaking", kLayout) {
  checkpoint_.variable("identity", identity_);
  checkpoint_.variable("keys tried", tried_);
}

void Search::start(const std::string& path) {
  sublet_checkpoint_options options{};
  if (!path.empty()) options.path = path.c_str();
  options.period_s = kSavePeriodS;
  if (!checkpoint_.start(options)) return;
  if (identity_ != identity_of(message_, range_) || tried_ > range_.count()) {
    throw std::runtime_error("the checkpoint is for another message, range of keys or part");
  }
}

std::optional<std::uint64_t> Search::run() {
  ScanFunction* const scan = scanners()->scan;
  const std::uint64_t keys = range_.count();
  while (tried_ < keys) {
    const std::uint64_t first = range_.first + tried_;
    const std::uint64_t packet = std::min(packet_, keys - tried_);
    const auto match = find_key(message_, scan, range_.length, first, first + packet - 1);
    tried_ += match ? *match - first + 1 : packet;
    if (match) return match;
    checkpoint_.progress(tried_, keys);
    checkpoint_.point();
  }
  return std::nullopt;
}

}  // namespace sublet::code_breaking
