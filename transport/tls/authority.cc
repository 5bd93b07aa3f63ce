#include "transport/tls/authority.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>

#include "base/random.h"
#include "base/text.h"
#include "transport/tls/objects.h"

namespace sublet {

namespace {

constexpr int kMostPem = 16384;
constexpr int kSerialBytes = 16;

using NamesPtr = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, Freed<BN_free>>;

// OpenSSL must never prompt for a password on a terminal.
int no_password(char*, int, int, void*) { return 0; }

std::string text_of(const BioPtr& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

BioPtr new_text() {
  BioPtr bio(BIO_new(BIO_s_mem()));
  need(bio != nullptr, "memory");
  return bio;
}

std::string to_pem(EVP_PKEY* key) {
  const BioPtr bio = new_text();
  need(PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1,
       "write a key");
  return text_of(bio);
}

std::string to_pem(X509* certificate) {
  const BioPtr bio = new_text();
  need(PEM_write_bio_X509(bio.get(), certificate) == 1, "write a certificate");
  return text_of(bio);
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  need(extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1,
       "add an extension");
}

void set_serial(X509* certificate) {
  std::string bytes = random_bytes(kSerialBytes);
  bytes[0] = static_cast<char>(bytes[0] & 0x7f);  // positive
  const NumberPtr number(
      BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes.data()), kSerialBytes, nullptr));
  need(number != nullptr &&
           BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr,
       "set a serial number");
}

void set_time(ASN1_TIME* time, int64_t us) {
  need(ASN1_TIME_set(time, static_cast<time_t>(us / 1'000'000)) != nullptr, "set a date");
}

int64_t time_of(const ASN1_TIME* time) {
  struct tm parts {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) throw TlsError("a certificate's date is unreadable");
  return static_cast<int64_t>(timegm(&parts)) * 1'000'000;
}

CertificatePtr new_certificate(EVP_PKEY* key, const std::string& common_name,
                               const Validity& validity) {
  CertificatePtr certificate(X509_new());
  need(certificate != nullptr && X509_set_version(certificate.get(), 2) == 1, "memory");
  set_serial(certificate.get());
  set_time(X509_getm_notBefore(certificate.get()), validity.from);
  set_time(X509_getm_notAfter(certificate.get()), validity.until);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  need(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                  reinterpret_cast<const unsigned char*>(common_name.c_str()), -1,
                                  -1, 0) == 1 &&
           X509_set_pubkey(certificate.get(), key) == 1,
       "set the subject and key of a certificate");
  return certificate;
}

bool is_p256(EVP_PKEY* key) {
  char group[32] = {};
  size_t size = 0;
  return key != nullptr && EVP_PKEY_is_a(key, "EC") == 1 &&
         EVP_PKEY_get_group_name(key, group, sizeof group, &size) == 1 &&
         std::string_view(group, size) == "prime256v1";
}

RequestPtr request_from(const std::string& pem) {
  const BioPtr bio = reader_of(pem);
  RequestPtr request(PEM_read_bio_X509_REQ(bio.get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  if (request == nullptr) throw TlsError("this is not a certificate request");
  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  if (!is_p256(key)) throw TlsError("the key of the request is not EC P-256");
  if (X509_REQ_verify(request.get(), key) != 1) {
    ERR_clear_error();
    throw TlsError("the request is not signed by its own key");
  }
  return request;
}

// The member's URI; none if there is no such name or more than one name of any kind.
std::optional<MemberName> member_of(X509* certificate) {
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (names == nullptr || sk_GENERAL_NAME_num(names.get()) != 1) return std::nullopt;
  const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), 0);
  if (name->type != GEN_URI) return std::nullopt;
  const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
  return member_from_uri({reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                          static_cast<size_t>(ASN1_STRING_length(uri))});
}

}  // namespace

void fail_tls(const std::string& what) {
  char reason[256] = "";
  const unsigned long error = ERR_peek_last_error();
  if (error != 0) ERR_error_string_n(error, reason, sizeof reason);
  ERR_clear_error();
  throw TlsError("TLS: cannot " + what + (*reason != '\0' ? std::string(": ") + reason : ""));
}

void need(bool done, const char* what) {
  if (!done) fail_tls(what);
}

BioPtr reader_of(const std::string& text) {
  if (text.size() > kMostPem) throw TlsError("a PEM text of more than 16 KiB");
  BioPtr bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  need(bio != nullptr, "memory");
  return bio;
}

CertificatePtr certificate_from(const std::string& pem) {
  const BioPtr bio = reader_of(pem);
  CertificatePtr certificate(PEM_read_bio_X509(bio.get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  if (certificate == nullptr) throw TlsError("this is not a certificate");
  return certificate;
}

KeyPtr key_from(const std::string& pem) {
  const BioPtr bio = reader_of(pem);
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  if (key == nullptr) throw TlsError("this is not a private key");
  return key;
}

CertificateFacts facts_of(X509* certificate) {
  CertificateFacts facts;
  facts.member = member_of(certificate);
  const ASN1_INTEGER* serial = X509_get0_serialNumber(certificate);
  facts.serial = hex_encode({reinterpret_cast<const char*>(ASN1_STRING_get0_data(serial)),
                             static_cast<size_t>(ASN1_STRING_length(serial))});
  facts.validity = {time_of(X509_get0_notBefore(certificate)),
                    time_of(X509_get0_notAfter(certificate))};
  unsigned size = 0;
  need(X509_digest(certificate, EVP_sha256(), facts.fingerprint.data(), &size) == 1,
       "compute a fingerprint");
  return facts;
}

std::string make_key() {
  const KeyPtr key(EVP_EC_gen("P-256"));
  need(key != nullptr, "make a key");
  return to_pem(key.get());
}

CertificateAndKey make_authority(const std::string& pool, const Validity& validity) {
  if (!is_member_word(pool))
    throw TlsError(
        "a pool on the network needs a name of at most 64 letters, digits, '.', '-' and '_': set "
        "pool.name");
  CertificateAndKey made;
  made.key = make_key();
  const KeyPtr key = key_from(made.key);
  // For people; a common name has at most 64 characters (RFC 5280, ub-common-name).
  const std::string name = ("Sublet pool " + pool).substr(0, 64);
  const CertificatePtr certificate = new_certificate(key.get(), name, validity);
  X509* own = certificate.get();
  need(X509_set_issuer_name(own, X509_get_subject_name(own)) == 1, "set the issuer");
  add_extension(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(own, own, NID_key_usage, "critical,keyCertSign");
  add_extension(own, own, NID_subject_key_identifier, "hash");
  need(X509_sign(own, key.get(), EVP_sha256()) > 0, "sign a certificate");
  made.certificate = to_pem(own);
  return made;
}

std::string make_request(const std::string& key_pem) {
  const KeyPtr key = key_from(key_pem);
  const RequestPtr request(X509_REQ_new());
  need(request != nullptr && X509_REQ_set_version(request.get(), 0) == 1 &&
           X509_REQ_set_pubkey(request.get(), key.get()) == 1 &&
           X509_REQ_sign(request.get(), key.get(), EVP_sha256()) > 0,
       "make a request");
  const BioPtr bio = new_text();
  need(PEM_write_bio_X509_REQ(bio.get(), request.get()) == 1, "write a request");
  return text_of(bio);
}

Digest key_of_request(const std::string& pem) {
  const RequestPtr request = request_from(pem);
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(X509_REQ_get0_pubkey(request.get()), &der);
  need(size > 0, "write a public key");
  const Digest digest = digest_of({reinterpret_cast<const char*>(der), static_cast<size_t>(size)});
  OPENSSL_free(der);
  return digest;
}

std::string issue_certificate(const CertificateAndKey& authority, const std::string& request_pem,
                              const MemberName& member, const Validity& validity) {
  const RequestPtr request = request_from(request_pem);
  const CertificatePtr issuer = certificate_from(authority.certificate);
  const KeyPtr key = key_from(authority.key);
  const CertificatePtr certificate =
      new_certificate(X509_REQ_get0_pubkey(request.get()), member.name, validity);
  X509* own = certificate.get();
  need(X509_set_issuer_name(own, X509_get_subject_name(issuer.get())) == 1, "set the issuer");
  add_extension(own, issuer.get(), NID_basic_constraints, "critical,CA:FALSE");
  add_extension(own, issuer.get(), NID_key_usage, "critical,digitalSignature");
  add_extension(own, issuer.get(), NID_ext_key_usage,
                member.role == Role::kServer ? "serverAuth" : "clientAuth");
  add_extension(own, issuer.get(), NID_authority_key_identifier, "keyid");
  add_extension(own, issuer.get(), NID_subject_alt_name, "URI:" + to_uri(member));
  need(X509_sign(own, key.get(), EVP_sha256()) > 0, "sign a certificate");
  return to_pem(own);
}

CertificateFacts read_certificate(const std::string& pem) {
  return facts_of(certificate_from(pem).get());
}

bool equal_in_constant_time(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace sublet
