// The server over the ORB: fixed keys on its Unix socket, a session, and this
// client's own object for the server to call back. Any thread, each call up to
// the call timeout. The ORB is stopped by close() or with the object.
#ifndef SUBLET_CLIENT_LINK_CORBA_SERVER_H_
#define SUBLET_CLIENT_LINK_CORBA_SERVER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/attempts/order_desk.h"
#include "client/link/server_calls.h"
#include "transport/tls/dial.h"

namespace sublet::client {

// Where the server is, and who.
struct ServerPlace {
  std::string socket;
  // Owns the listening socket (root is accepted too).
  uint32_t uid = 0;
  // Instead of both: a remote server. The certificate is renewed when two
  // thirds of its time are over, and handed to `renewed`, from any thread.
  std::optional<Membership> membership;
  std::function<void(const Membership&)> renewed;
};

class CorbaServer : public ServerCalls {
 public:
  // Makes no connection yet; throws std::runtime_error when the ORB cannot be
  // started. Only the server's calls are obeyed. `desk` answers them and outlives
  // this object. session_ended is called, from any thread, when a call shows
  // that the session no longer exists.
  CorbaServer(const ServerPlace& place, OrderDesk& desk, std::function<void()> session_ended);
  ~CorbaServer() override;
  void close();

  Joined join(const MachineIdentity& identity, const MachineFacts& facts) override;
  void attach() override;
  void report_state(const MachineState& state) override;
  Renewed renew(const MachineState& state, const std::vector<HeldAttempt>& held) override;
  void withdraw() override;
  std::vector<AttemptVerdict> started(const std::vector<AttemptStart>& starts) override;
  std::vector<AttemptVerdict> ended(const std::vector<AttemptEnd>& ends) override;
  Upload open_upload(const RequestId& request, const FilePlace& place, uint64_t size,
                     const Digest& digest) override;
  uint64_t put(uint64_t upload, uint64_t offset, const char* bytes, size_t count) override;
  uint64_t close_upload(uint64_t upload) override;
  RemoteFile stat(const FilePlace& place) override;
  std::string get(const FilePlace& place, uint64_t offset, uint32_t count) override;

 private:
  void attach_to_new_connection();

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_LINK_CORBA_SERVER_H_
