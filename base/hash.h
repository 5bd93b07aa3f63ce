// The digest by which contents, records and secrets are known: BLAKE2b-256 (RFC
// 7693), as `b2sum -l 256` prints it. On processors without instructions for
// SHA-256 it is almost three times as fast as that, and files are moved no faster
// than they are hashed (docs/performance.md, `transfer`).
#ifndef SUBLET_BASE_HASH_H_
#define SUBLET_BASE_HASH_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace sublet {

using Digest = std::array<uint8_t, 32>;

// Takes bytes piece by piece. One object, one thread.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  void update(const void* bytes, size_t count);
  void update(std::string_view bytes) { update(bytes.data(), bytes.size()); }
  // The digest of everything so far; the object then starts afresh.
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
