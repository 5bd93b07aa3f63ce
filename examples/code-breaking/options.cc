#include "examples/code-breaking/options.h"

#include <charconv>
#include <stdexcept>
#include <string_view>

namespace sublet::code_breaking {

const char kUsage[] =
    "usage: code-breaking --plaintext HEX --ciphertext HEX [--iv HEX]\n"
    "                     --first-key HEX --last-key HEX [--part I --of N]\n"
    "                     [--packet KEYS] [--found FILE] [--checkpoint FILE]\n"
    "       code-breaking --self-test\n"
    "Tries all keys of a range until one yields a known text's ciphertext (RC5-32/12, CBC).\n"
    "Prints \"found KEY\" and writes FILE, or prints \"not here: N keys tried\"; status 0.\n"
    "  --plaintext HEX    known beginning of the message, whole blocks of 8 bytes\n"
    "  --ciphertext HEX   the message as it was sent, as long or longer\n"
    "  --iv HEX           what the first block was combined with (default zeros)\n"
    "  --first-key HEX    first key, 1 to 8 bytes; its length is that of all keys\n"
    "  --last-key HEX     last key, tried too\n"
    "  --part I --of N    only the I-th of N equal parts of the range; the first is 0\n"
    "  --packet KEYS      keys tried between two safe points (default 16384)\n"
    "  --found FILE       written, with the key, only if it is found (default found)\n"
    "  --checkpoint FILE  where to save outside a pool\n"
    "  --self-test        recover a known key with every method that this machine supports\n";

namespace {

constexpr std::uint64_t kMaxParts = 1'000'000;    // an array's limit
constexpr std::uint64_t kMaxPacket = 16'777'216;  // within 2 s on a slow machine

[[noreturn]] void refuse(std::string_view name, const std::string& what) {
  throw std::invalid_argument(std::string(name) + ": " + what);
}

std::uint64_t parse_number(std::string_view name, std::string_view text, std::uint64_t least,
                           std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    refuse(name, "'" + std::string(text) + "' is not a number from " + std::to_string(least) +
                     " to " + std::to_string(most));
  }
  return value;
}

// The options given, before checking that they are consistent.
struct Given {
  Options options;
  Bytes iv = Bytes(kBlockBytes);
  Bytes first_key, last_key;
  std::uint64_t part = 0, of = 1;
  bool has_part = false, has_of = false;
};

Bytes parse_bytes(std::string_view name, std::string_view digits) {
  Bytes bytes;
  try {
    bytes = from_hex(digits);
  } catch (const std::invalid_argument& error) {
    refuse(name, error.what());
  }
  if (bytes.empty()) refuse(name, "empty");
  return bytes;
}

Bytes parse_key(std::string_view name, std::string_view digits) {
  const Bytes key = parse_bytes(name, digits);
  if (key.size() > kMaxKeyBytes) {
    refuse(name, std::to_string(key.size()) + " bytes; a key has 1 to 8");
  }
  return key;
}

void set_option(Given& given, std::string_view name, std::string_view value) {
  Options& options = given.options;
  if (name == "--plaintext") {
    options.message.plaintext = parse_bytes(name, value);
  } else if (name == "--ciphertext") {
    options.message.ciphertext = parse_bytes(name, value);
  } else if (name == "--iv") {
    given.iv = parse_bytes(name, value);
  } else if (name == "--first-key") {
    given.first_key = parse_key(name, value);
  } else if (name == "--last-key") {
    given.last_key = parse_key(name, value);
  } else if (name == "--part") {
    given.part = parse_number(name, value, 0, kMaxParts - 1);
    given.has_part = true;
  } else if (name == "--of") {
    given.of = parse_number(name, value, 1, kMaxParts);
    given.has_of = true;
  } else if (name == "--packet") {
    options.packet = parse_number(name, value, 1, kMaxPacket);
  } else if (name == "--found") {
    options.found = value;
  } else if (name == "--checkpoint") {
    options.checkpoint = value;
  } else {
    refuse(name, "unknown option");
  }
}

void require_blocks(std::string_view name, const Bytes& bytes) {
  if (bytes.empty()) refuse(name, "required");
  if (bytes.size() % kBlockBytes != 0) {
    refuse(name, std::to_string(bytes.size()) +
                     " bytes; a block has 8, and only whole blocks are allowed");
  }
}

void check_message(const Given& given) {
  const Message& message = given.options.message;
  require_blocks("--plaintext", message.plaintext);
  require_blocks("--ciphertext", message.ciphertext);
  if (message.ciphertext.size() < message.plaintext.size()) {
    refuse("--ciphertext", "shorter than --plaintext");
  }
  if (given.iv.size() != kBlockBytes) {
    refuse("--iv", std::to_string(given.iv.size()) + " bytes; it has to be 8");
  }
}

KeyRange range_of(const Given& given) {
  if (given.first_key.empty()) refuse("--first-key", "required");
  if (given.last_key.empty()) refuse("--last-key", "required");
  if (given.first_key.size() != given.last_key.size()) {
    refuse("--last-key", "not as long as --first-key");
  }
  KeyRange range{key_number(given.first_key), key_number(given.last_key),
                 static_cast<unsigned>(given.first_key.size())};
  if (range.first > range.last) refuse("--last-key", "before --first-key; the range is empty");
  if (given.has_part != given.has_of) {
    refuse(given.has_part ? "--part" : "--of", "--part and --of must be used together");
  }
  try {
    range = range.part(given.part, given.of);
  } catch (const std::invalid_argument& error) {
    refuse("--part", error.what());
  }
  if (range.count() == 0) refuse("--last-key", "2^64 keys are too many for one part; use --of");
  return range;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Given given;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--help") {
      given.options.help = true;
      return given.options;
    }
    if (name == "--self-test") {
      if (argc != 2) refuse(name, "takes no other options");
      given.options.self_test = true;
      return given.options;
    }
    if (i + 1 == argc) refuse(name, "value missing");
    set_option(given, name, argv[i + 1]);
  }
  Options& options = given.options;
  check_message(given);
  options.message.iv = block_at(given.iv, 0);
  options.range = range_of(given);
  if (options.found.empty()) refuse("--found", "empty");
  if (options.found == options.checkpoint) refuse("--found", "the same file as --checkpoint");
  return options;
}

}  // namespace sublet::code_breaking
