#include "client/link/executing_client.h"

#include "base/log.h"
#include "client/attempts/output_text.h"
#include "transport/orb.h"

namespace sublet::client {
namespace {

constexpr CORBA::ULong kMostOrders = 100;

void check_count(CORBA::ULong count, CORBA::ULong most) {
  if (count <= most) return;
  throw idl::LimitExceeded("client.orders",
                           ("At most " + std::to_string(most) + " orders per call.").c_str(),
                           "Send them in several calls.", "");
}

// An exception of ours must not reach the ORB as an unknown one.
[[noreturn]] void unavailable(const std::exception& error) {
  throw idl::Unavailable("client.failed", error.what(), "Try again.", "");
}

}  // namespace

void ExecutingClientServant::check_term(idl::ServerTerm term) {
  if (desk_.accept_term(term)) return;
  log(Severity::warning) << "an order is refused: its server has been replaced by another (term "
                         << term << ")";
  throw idl::Conflict("server.term", "This server has been replaced by another.",
                      "Stop it: the pool is led by a newer one.", "server");
}

void ExecutingClientServant::check_caller() const {
  const auto peer = calling_peer();
  // Either the call arrives over a connection that we opened and whose peer has shown
  // a server's certificate, or over a Unix socket of the server's user.
  if (peer && peer->member && peer->member->role == Role::kServer) return;
  const auto uid = peer ? peer->uid() : std::nullopt;
  if (uid && (*uid == server_uid_ || *uid == 0)) return;
  log(Severity::warning) << "an order from " << (peer ? peer->text() : "an unknown peer")
                         << " is refused: only the server may give orders";
  throw idl::NotPermitted("client.caller", "Only the server may order this.",
                          "Ask the server instead.", "");
}

void ExecutingClientServant::check_session(const idl::SessionKey& session) const {
  if (desk_.is_session(from_octets(session))) return;
  // No session: a server that probes whether the old one is still held must not be
  // led to believe that it is.
  if (!desk_.has_session()) throw CORBA::OBJECT_NOT_EXIST(0, CORBA::COMPLETED_NO);
  throw idl::NotPermitted("client.session", "This is not the session's key.",
                          "The client has registered again; use the new key.", "");
}

idl::RunAnswers* ExecutingClientServant::run(const idl::SessionKey& session, idl::ServerTerm term,
                                             const idl::RunOrders& orders) {
  check_caller();
  check_count(orders.length(), kMostOrders);
  idl::RunAnswers_var out = new idl::RunAnswers;
  out->length(orders.length());
  // Orders of an earlier session are left to the desk, which answers that they are stale.
  if (desk_.is_session(from_octets(session))) check_term(term);
  try {
    std::vector<RunOrder> plain;
    for (CORBA::ULong i = 0; i < orders.length(); ++i) plain.push_back(from_idl(orders[i]));
    auto answers = desk_.run(from_octets(session), std::move(plain));
    for (CORBA::ULong i = 0; i < orders.length(); ++i) out[i] = to_idl(answers[i]);
  } catch (const std::exception& error) {
    unavailable(error);
  }
  return out._retn();
}

idl::RunAnswer* ExecutingClientServant::may_run(const idl::SessionKey& session,
                                                idl::ServerTerm term,
                                                const idl::Requirements& needs) {
  check_caller();
  check_session(session);
  check_term(term);
  const std::string lacking = not_served(needs);
  return new idl::RunAnswer(to_idl(lacking.empty() ? desk_.may_run(sublet::from_idl(needs))
                                                   : RunAnswer{{}, kRunLacks, lacking}));
}

void ExecutingClientServant::vacate(const idl::SessionKey& session, idl::ServerTerm term,
                                    const idl::VacateOrders& orders) {
  check_caller();
  check_session(session);
  check_term(term);
  check_count(orders.length(), 1000);
  std::vector<VacateOrder> plain;
  for (CORBA::ULong i = 0; i < orders.length(); ++i) {
    auto reason = static_cast<uint32_t>(orders[i].reason);
    // An unknown reason still means that the attempt must leave.
    bool known = reason == SUBLET_LEAVE_PREEMPT || reason == SUBLET_LEAVE_REMOVED ||
                 reason == SUBLET_LEAVE_REPLACED || reason == SUBLET_LEAVE_HELD ||
                 reason == SUBLET_LEAVE_ADMINISTRATOR;
    plain.push_back({from_idl(orders[i].key),
                     known ? static_cast<sublet_leave_reason>(reason) : SUBLET_LEAVE_PREEMPT,
                     reason == idl::LEAVE_UNSTARTED});
  }
  desk_.vacate(std::move(plain));
}

idl::Bytes* ExecutingClientServant::read_log(const idl::SessionKey& session, idl::ServerTerm term,
                                             const idl::AttemptKey& key, CORBA::ULong stream,
                                             idl::ByteCount offset, CORBA::ULong limit) {
  check_caller();
  check_session(session);
  check_term(term);
  if ((stream != idl::FILE_STDOUT && stream != idl::FILE_STDERR) || limit < 1 ||
      limit > idl::CHUNK_LIMIT)
    throw idl::Invalid("field.invalid", "Not a stream, or a limit outside 1 to 1 MiB.",
                       "Ask for FILE_STDOUT or FILE_STDERR, in pieces.", "");
  std::optional<std::string> text;
  try {
    text = read_attempt_text(desk_.state_folder(), from_idl(key), static_cast<FileKind>(stream),
                             offset, limit);
  } catch (const std::exception& error) {
    unavailable(error);
  }
  if (!text)
    throw idl::NotFound("attempt.unknown", "This machine does not have that attempt.",
                        "Ask where it is now.", "");
  idl::Bytes_var out = new idl::Bytes;
  to_octets(*text, out.inout());
  return out._retn();
}

idl::Details* ExecutingClientServant::state(const idl::SessionKey& session, idl::ServerTerm term) {
  check_caller();
  check_session(session);
  check_term(term);
  auto pairs = desk_.state();
  idl::Details_var out = new idl::Details;
  out->length(static_cast<CORBA::ULong>(pairs.size()));
  for (size_t i = 0; i < pairs.size(); ++i) {
    out[static_cast<CORBA::ULong>(i)].name = pairs[i].first.c_str();
    out[static_cast<CORBA::ULong>(i)].value = pairs[i].second.c_str();
  }
  return out._retn();
}

}  // namespace sublet::client
