// Owning pointers to OpenSSL's objects, for this folder only.
#ifndef SUBLET_TRANSPORT_TLS_OBJECTS_H_
#define SUBLET_TRANSPORT_TLS_OBJECTS_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "transport/tls/authority.h"

namespace sublet {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Freed<X509_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, Freed<X509_REQ_free>>;
using BioPtr = std::unique_ptr<BIO, Freed<BIO_free>>;
using SslContextPtr = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, Freed<SSL_free>>;

// Throws TlsError with OpenSSL's error message.
[[noreturn]] void fail_tls(const std::string& what);
void need(bool done, const char* what);

BioPtr reader_of(const std::string& text);
CertificatePtr certificate_from(const std::string& pem);
KeyPtr key_from(const std::string& pem);
CertificateFacts facts_of(X509* certificate);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_TLS_OBJECTS_H_
