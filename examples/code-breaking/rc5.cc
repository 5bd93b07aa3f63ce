#include "examples/code-breaking/rc5.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace sublet::code_breaking {
namespace {

// Rotates a word by another word's five low bits.
std::uint32_t rotate_left(std::uint32_t word, std::uint32_t by) {
  return std::rotl(word, static_cast<int>(by % 32));
}

std::uint32_t rotate_right(std::uint32_t word, std::uint32_t by) {
  return std::rotr(word, static_cast<int>(by % 32));
}

std::vector<std::uint32_t> key_words(const Bytes& key) {
  std::vector<std::uint32_t> words((key.size() + 3) / 4);
  for (std::size_t i = 0; i < key.size(); ++i) {
    words[i / 4] |= static_cast<std::uint32_t>(key[i]) << (8 * (i % 4));
  }
  return words;
}

void append_word(Bytes& bytes, std::uint32_t word) {
  for (int shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<std::uint8_t>(word >> shift));
  }
}

void append_block(Bytes& bytes, const Block& block) {
  append_word(bytes, block.a);
  append_word(bytes, block.b);
}

Block combined(const Block& x, const Block& y) { return {x.a ^ y.a, x.b ^ y.b}; }

}  // namespace

Rc5::Rc5(const Bytes& key) {
  if (key.empty() || key.size() > 255) throw std::invalid_argument("a key has 1 to 255 bytes");
  std::uint32_t value = kFirstSubkey;
  for (std::uint32_t& subkey : subkeys_) {
    subkey = value;
    value += kSubkeyStep;
  }
  std::vector<std::uint32_t> words = key_words(key);
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  const std::size_t steps = 3 * std::max<std::size_t>(kSubkeys, words.size());
  for (std::size_t step = 0; step < steps; ++step) {
    std::uint32_t& subkey = subkeys_[step % kSubkeys];
    std::uint32_t& word = words[step % words.size()];
    a = subkey = rotate_left(subkey + a + b, 3);
    b = word = rotate_left(word + a + b, a + b);
  }
}

Block Rc5::encrypt(Block block) const {
  block.a += subkeys_[0];
  block.b += subkeys_[1];
  for (unsigned i = 2; i < kSubkeys; i += 2) {
    block.a = rotate_left(block.a ^ block.b, block.b) + subkeys_[i];
    block.b = rotate_left(block.b ^ block.a, block.a) + subkeys_[i + 1];
  }
  return block;
}

Block Rc5::decrypt(Block block) const {
  for (unsigned i = kSubkeys - 2; i >= 2; i -= 2) {
    block.b = rotate_right(block.b - subkeys_[i + 1], block.a) ^ block.a;
    block.a = rotate_right(block.a - subkeys_[i], block.b) ^ block.b;
  }
  return {block.a - subkeys_[0], block.b - subkeys_[1]};
}

Bytes Rc5::encrypt_chained(const Block& iv, const Bytes& plaintext) const {
  Bytes ciphertext;
  Block before = iv;
  for (std::size_t offset = 0; offset < plaintext.size(); offset += kBlockBytes) {
    before = encrypt(combined(block_at(plaintext, offset), before));
    append_block(ciphertext, before);
  }
  return ciphertext;
}

Bytes Rc5::decrypt_chained(const Block& iv, const Bytes& ciphertext) const {
  Bytes plaintext;
  Block before = iv;
  for (std::size_t offset = 0; offset < ciphertext.size(); offset += kBlockBytes) {
    const Block block = block_at(ciphertext, offset);
    append_block(plaintext, combined(decrypt(block), before));
    before = block;
  }
  return plaintext;
}

Block block_at(const Bytes& bytes, std::size_t offset) {
  std::uint32_t words[2] = {};
  for (std::size_t i = 0; i < kBlockBytes; ++i) {
    words[i / 4] |= static_cast<std::uint32_t>(bytes.at(offset + i)) << (8 * (i % 4));
  }
  return {words[0], words[1]};
}

}  // namespace sublet::code_breaking
