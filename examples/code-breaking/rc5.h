// RC5-32/12: blocks of two 32-bit words, 12 rounds, keys of 1 to 255 bytes (R. Rivest,
// "The RC5 Encryption Algorithm", 1994), and its CBC mode (RFC 2040). A simple
// implementation for one key at a time; key_scan.h tries many.
#ifndef SUBLET_EXAMPLES_CODE_BREAKING_RC5_H_
#define SUBLET_EXAMPLES_CODE_BREAKING_RC5_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "examples/code-breaking/hex.h"
#include "examples/code-breaking/rc5_constants.h"

namespace sublet::code_breaking {

class Rc5 {
 public:
  explicit Rc5(const Bytes& key);

  Block encrypt(Block block) const;
  Block decrypt(Block block) const;

  // CBC mode: each block is XORed with the ciphertext before it, the first with `iv`. The
  // text must be whole blocks.
  Bytes encrypt_chained(const Block& iv, const Bytes& plaintext) const;
  Bytes decrypt_chained(const Block& iv, const Bytes& ciphertext) const;

 private:
  std::array<std::uint32_t, kSubkeys> subkeys_;
};

// The 8 bytes from `offset`; each word's least significant byte comes first.
Block block_at(const Bytes& bytes, std::size_t offset);

}  // namespace sublet::code_breaking

#endif  // SUBLET_EXAMPLES_CODE_BREAKING_RC5_H_
