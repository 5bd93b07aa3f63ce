#include "base/hash.h"

#include <openssl/evp.h>

#include <new>

#include "base/text.h"

namespace sublet {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
  // These fail only for lack of memory (SHA-256 is always built in).
  void start() {
    if (context == nullptr || EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1) {
      throw std::bad_alloc();
    }
  }
};

Sha256::Sha256() : state_(std::make_unique<State>()) { state_->start(); }
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(const void* bytes, size_t count) {
  if (EVP_DigestUpdate(state_->context, bytes, count) != 1) throw std::bad_alloc();
}

Digest Sha256::finish() {
  Digest digest;
  if (EVP_DigestFinal_ex(state_->context, digest.data(), nullptr) != 1) throw std::bad_alloc();
  state_->start();
  return digest;
}

Digest sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string hex(const Digest& digest) {
  return hex_encode({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

}  // namespace sublet
