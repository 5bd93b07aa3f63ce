#include "transport/tls/session.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <signal.h>

#include <cstring>
#include <ctime>

#include "transport/tls/objects.h"

namespace sublet {
namespace {

using StorePtr = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using ChainPtr = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;

// In order of preference; in the wire format of ALPN, each preceded by its length.
constexpr char kMemberProtocol[] = "\x08sublet/1";
constexpr char kJoinProtocol[] = "\x0dsublet-join/1";

enum class Side { kServer, kMember, kNewcomer };

Exclusion to_exclusion(int error) {
  switch (error) {
    case X509_V_OK:
      return Exclusion::kNone;
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return Exclusion::kExpired;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return Exclusion::kNotYetValid;
    case X509_V_ERR_INVALID_PURPOSE:
      return Exclusion::kWrongRole;
    default:
      return Exclusion::kWrongAuthority;
  }
}

Exclusion check_chain(X509* certificate, X509* authority, bool of_server) {
  const StorePtr store(X509_STORE_new());
  const ChainPtr chain(X509_STORE_CTX_new());
  if (store == nullptr || chain == nullptr || X509_STORE_add_cert(store.get(), authority) != 1 ||
      X509_STORE_CTX_init(chain.get(), store.get(), certificate, nullptr) != 1)
    return Exclusion::kMalformed;
  X509_STORE_CTX_set_purpose(chain.get(),
                             of_server ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT);
  const bool good = X509_verify_cert(chain.get()) == 1;
  const Exclusion why = to_exclusion(X509_STORE_CTX_get_error(chain.get()));
  ERR_clear_error();
  return good ? Exclusion::kNone : why == Exclusion::kNone ? Exclusion::kMalformed : why;
}

Digest fingerprint_of(X509* certificate) {
  Digest digest{};
  unsigned size = 0;
  need(X509_digest(certificate, EVP_sha256(), digest.data(), &size) == 1, "compute a fingerprint");
  return digest;
}

std::string to_pem(X509* certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  need(bio != nullptr && PEM_write_bio_X509(bio.get(), certificate) == 1, "write a certificate");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace

struct TlsContext::State {
  Side side = Side::kServer;
  SslContextPtr ssl;
  CertificatePtr authority;  // none for a newcomer
  Digest fingerprint{};      // of the authority
  std::string pool;          // "": any, for a newcomer

  void set_up();
  void use(const TlsCredentials& credentials);
  static int judge(X509_STORE_CTX* offered, void* context);
  static int choose(SSL* ssl, const unsigned char** out, unsigned char* size,
                    const unsigned char* in, unsigned in_size, void*);
};

struct TlsSession::State {
  std::shared_ptr<const TlsContext> context;
  UniqueFd socket;
  SslPtr ssl;
  TlsPeer peer;
  Exclusion judged = Exclusion::kNoCertificate;
  bool shaken = false;

  Exclusion judge(X509* certificate, STACK_OF(X509) * sent);
  Step to_step(int result);
};

// Checks the other side's certificate during the handshake.
Exclusion TlsSession::State::judge(X509* certificate, STACK_OF(X509) * sent) {
  const TlsContext::State& us = *context->state_;
  X509* authority = us.authority.get();
  for (int i = 0; authority == nullptr && i < sk_X509_num(sent); ++i)
    if (fingerprint_of(sk_X509_value(sent, i)) == us.fingerprint)
      authority = sk_X509_value(sent, i);
  if (authority == nullptr) return Exclusion::kWrongAuthority;
  const bool of_server = us.side != Side::kServer;
  const Exclusion why = check_chain(certificate, authority, of_server);
  const CertificateFacts facts = facts_of(certificate);
  peer = {facts.member, facts.serial, to_pem(authority)};
  if (why != Exclusion::kNone) return why;
  if (!facts.member) return Exclusion::kMalformed;
  if (!us.pool.empty() && facts.member->pool != us.pool) return Exclusion::kWrongPool;
  if (of_server != (facts.member->role == Role::kServer)) return Exclusion::kWrongRole;
  if (of_server && facts.member->name != kServerName) return Exclusion::kWrongName;
  return Exclusion::kNone;
}

int TlsContext::State::judge(X509_STORE_CTX* offered, void*) {
  auto* ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(offered, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* session = static_cast<TlsSession::State*>(SSL_get_app_data(ssl));
  X509* certificate = X509_STORE_CTX_get0_cert(offered);
  try {
    session->judged = session->judge(certificate, X509_STORE_CTX_get0_untrusted(offered));
  } catch (const std::exception&) {
    session->judged = Exclusion::kMalformed;
  }
  if (session->judged == Exclusion::kNone) return 1;
  X509_STORE_CTX_set_error(offered, X509_V_ERR_APPLICATION_VERIFICATION);
  return session->context->state_->side == Side::kServer ? 1 : 0;
}

int TlsContext::State::choose(SSL*, const unsigned char** out, unsigned char* size,
                              const unsigned char* in, unsigned in_size, void*) {
  unsigned char* chosen = nullptr;
  for (const char* ours : {kMemberProtocol, kJoinProtocol}) {
    if (SSL_select_next_proto(&chosen, size, reinterpret_cast<const unsigned char*>(ours),
                              static_cast<unsigned>(std::strlen(ours)), in,
                              in_size) == OPENSSL_NPN_NEGOTIATED) {
      *out = chosen;
      return SSL_TLSEXT_ERR_OK;
    }
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

void TlsContext::State::set_up() {
  ssl.reset(SSL_CTX_new(side == Side::kServer ? TLS_server_method() : TLS_client_method()));
  need(ssl != nullptr, "start");
  SSL_CTX* c = ssl.get();
  need(SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(c, TLS1_3_VERSION) == 1,
       "set the version");
  // No session resumption: each connection is authenticated again.
  SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_num_tickets(c, 0);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                          SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_max_cert_list(c, 16384);
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(c, judge, nullptr);
  if (side == Side::kServer) SSL_CTX_set_alpn_select_cb(c, choose, nullptr);
}

void TlsContext::State::use(const TlsCredentials& credentials) {
  const CertificatePtr own = certificate_from(credentials.certificate);
  const KeyPtr key = key_from(credentials.key);
  authority = certificate_from(credentials.authority);
  fingerprint = fingerprint_of(authority.get());
  const CertificateFacts facts = facts_of(own.get());
  if (!facts.member) throw TlsError("our own certificate names no member");
  pool = facts.member->pool;
  need(SSL_CTX_use_certificate(ssl.get(), own.get()) == 1 &&
           SSL_CTX_use_PrivateKey(ssl.get(), key.get()) == 1 &&
           SSL_CTX_check_private_key(ssl.get()) == 1,
       "use our certificate and key");
  // A newcomer knows the authority by its fingerprint only.
  if (side == Side::kServer)
    need(SSL_CTX_add1_chain_cert(ssl.get(), authority.get()) == 1, "use our authority");
}

TlsContext::TlsContext(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsContext::~TlsContext() = default;

std::shared_ptr<const TlsContext> TlsContext::of_server(const TlsCredentials& credentials) {
  auto state = std::make_unique<State>();
  state->side = Side::kServer;
  state->set_up();
  state->use(credentials);
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(state)));
}

std::shared_ptr<const TlsContext> TlsContext::of_member(const TlsCredentials& credentials) {
  auto state = std::make_unique<State>();
  state->side = Side::kMember;
  state->set_up();
  state->use(credentials);
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(state)));
}

std::shared_ptr<const TlsContext> TlsContext::of_newcomer(const Digest& authority) {
  auto state = std::make_unique<State>();
  state->side = Side::kNewcomer;
  state->fingerprint = authority;
  state->set_up();
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(state)));
}

TlsSession::TlsSession(std::shared_ptr<const TlsContext> context, UniqueFd socket,
                       TlsPurpose purpose)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.context = std::move(context);
  s.socket = std::move(socket);
  const TlsContext::State& us = *s.context->state_;
  s.ssl.reset(SSL_new(us.ssl.get()));
  need(s.ssl != nullptr && SSL_set_fd(s.ssl.get(), s.socket.get()) == 1, "begin");
  SSL_set_app_data(s.ssl.get(), &s);
  if (us.side == Side::kServer) {
    SSL_set_accept_state(s.ssl.get());
    return;
  }
  SSL_set_connect_state(s.ssl.get());
  const char* protocol = purpose == TlsPurpose::kJoin ? kJoinProtocol : kMemberProtocol;
  need(SSL_set_alpn_protos(s.ssl.get(), reinterpret_cast<const unsigned char*>(protocol),
                           static_cast<unsigned>(std::strlen(protocol))) == 0,
       "set the protocol");
}

TlsSession::~TlsSession() = default;
TlsSession::TlsSession(TlsSession&&) noexcept = default;
TlsSession& TlsSession::operator=(TlsSession&&) noexcept = default;

TlsSession::Step TlsSession::State::to_step(int result) {
  if (result > 0) return Step::kDone;
  const int error = SSL_get_error(ssl.get(), result);
  ERR_clear_error();
  if (error == SSL_ERROR_WANT_READ) return Step::kWantsRead;
  if (error == SSL_ERROR_WANT_WRITE) return Step::kWantsWrite;
  return Step::kOver;
}

TlsSession::Step TlsSession::handshake() {
  ERR_clear_error();
  const Step step = state_->to_step(SSL_do_handshake(state_->ssl.get()));
  if (step == Step::kDone) state_->shaken = true;
  return step;
}

TlsSession::Step TlsSession::read(char* bytes, size_t room, size_t* count) {
  ERR_clear_error();
  return state_->to_step(SSL_read_ex(state_->ssl.get(), bytes, room, count));
}

TlsSession::Step TlsSession::write(const char* bytes, size_t size, size_t* count) {
  ERR_clear_error();
  return state_->to_step(SSL_write_ex(state_->ssl.get(), bytes, size, count));
}

void TlsSession::say_goodbye() {
  if (!state_->shaken) return;
  SSL_shutdown(state_->ssl.get());
  ERR_clear_error();
}

int TlsSession::socket() const { return state_->socket.get(); }

Exclusion TlsSession::excluded() const {
  if (!state_->shaken && state_->judged == Exclusion::kNoCertificate) return Exclusion::kMalformed;
  return state_->judged;
}

TlsPurpose TlsSession::purpose() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(state_->ssl.get(), &name, &size);
  const std::string_view join(kJoinProtocol + 1);
  return std::string_view(reinterpret_cast<const char*>(name), size) == join ? TlsPurpose::kJoin
                                                                             : TlsPurpose::kMember;
}

const TlsPeer& TlsSession::peer() const { return state_->peer; }

Exclusion check_member(const std::string& certificate, const std::string& authority) {
  return check_chain(certificate_from(certificate).get(), certificate_from(authority).get(), false);
}

PipeSignalBlocked::PipeSignalBlocked() {
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  was_blocked_ = sigismember(&before, SIGPIPE) == 1;
}

PipeSignalBlocked::~PipeSignalBlocked() {
  if (was_blocked_) return;
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  const timespec at_once{};
  while (sigtimedwait(&pipe, nullptr, &at_once) > 0) {
  }
  pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
}

}  // namespace sublet
