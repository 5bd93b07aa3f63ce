// The servant that the server calls: checks the caller, translates and delegates to
// the OrderDesk. Called on the ORB's threads; makes no remote call.
#ifndef SUBLET_CLIENT_LINK_EXECUTING_CLIENT_H_
#define SUBLET_CLIENT_LINK_EXECUTING_CLIENT_H_

#include <string>

#include "client/attempts/order_desk.h"
#include "client/link/translate.h"

namespace sublet::client {

class ExecutingClientServant : public POA_Sublet::v1::ExecutingClient {
 public:
  ExecutingClientServant(OrderDesk& desk, uint32_t server_uid)
      : desk_(desk), server_uid_(server_uid) {}

  idl::RunAnswers* run(const idl::SessionKey& session, idl::ServerTerm term,
                       const idl::RunOrders& orders) override;
  idl::RunAnswer* may_run(const idl::SessionKey& session, idl::ServerTerm term,
                          const idl::Requirements& needs) override;
  void vacate(const idl::SessionKey& session, idl::ServerTerm term,
              const idl::VacateOrders& orders) override;
  idl::Bytes* read_log(const idl::SessionKey& session, idl::ServerTerm term,
                       const idl::AttemptKey& key, CORBA::ULong stream, idl::ByteCount offset,
                       CORBA::ULong limit) override;
  idl::Details* state(const idl::SessionKey& session, idl::ServerTerm term) override;

 private:
  // Throws NotPermitted unless the caller is the server.
  void check_caller() const;
  void check_session(const idl::SessionKey& session) const;
  // Throws Conflict "server.term". Call it only after checking the session's key, so
  // that no other caller's term is remembered.
  void check_term(idl::ServerTerm term);

  OrderDesk& desk_;
  const uint32_t server_uid_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_LINK_EXECUTING_CLIENT_H_
