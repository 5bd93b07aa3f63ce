// SHA-256 of bytes that come piece by piece. One object, one thread.
#ifndef SUBLET_BASE_HASH_H_
#define SUBLET_BASE_HASH_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace sublet {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(const void* bytes, size_t count);
  void update(std::string_view bytes) { update(bytes.data(), bytes.size()); }
  // The digest of everything so far; the object then starts afresh.
  Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest sha256(std::string_view bytes);
// 64 lower-case digits.
std::string hex(const Digest& digest);

}  // namespace sublet

#endif  // SUBLET_BASE_HASH_H_
