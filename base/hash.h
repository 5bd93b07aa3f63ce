// The digest used for contents, records and secrets: BLAKE2b-256 (RFC 7693), as printed
// by `b2sum -l 256`. On processors without SHA-256 instructions it is almost three times
// as fast as SHA-256, and hashing limits the speed of file transfers
// (docs/performance.md, `transfer`).
#ifndef SUBLET_BASE_HASH_H_
#define SUBLET_BASE_HASH_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace sublet {

using Digest = std::array<uint8_t, 32>;

// Incremental hashing. Not thread-safe.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  void update(const void* bytes, size_t count);
  void update(std::string_view bytes) { update(bytes.data(), bytes.size()); }
  // The digest of everything so far; resets the object.
  Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest digest_of(std::string_view bytes);
// 64 lower-case digits.
std::string hex(const Digest& digest);

}  // namespace sublet

#endif  // SUBLET_BASE_HASH_H_
