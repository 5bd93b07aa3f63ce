// ServerCalls over the ORB: objects with fixed keys, a session, and this client's own
// object for callbacks from the server. Any thread; each call may take up to the call
// timeout. close() or the destructor stops the ORB.
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

// Address and identity of the server.
struct ServerPlace {
  std::string socket;
  // The account that must own the listening socket (root is accepted, too).
  uint32_t uid = 0;
  // A remote server, instead of both. The certificate is renewed when two thirds of
  // its validity have passed, and passed to `renewed`, on any thread.
  std::optional<Membership> membership;
  std::function<void(const Membership&)> renewed;
};

class CorbaServer : public ServerCalls {
 public:
  // Makes no connection yet; throws std::runtime_error if the ORB cannot be started.
  // Only the server's calls are accepted; `desk` answers them and must outlive this
  // object. session_ended is called, on any thread, when a call shows that the
  // session no longer exists.
  CorbaServer(const ServerPlace& place, OrderDesk& desk, std::function<void()> session_ended);
  ~CorbaServer() override;
  void close();

  Joined join(const MachineIdentity& identity, const MachineFacts& facts) override;
  void attach() override;
  void report_state(const MachineState& state) override;
  Renewed renew(const MachineState& state, const std::vector<HeldAttempt>& held) override;
  void withdraw() override;
  std::string address() const override;
  std::vector<AttemptVerdict> started(const std::vector<AttemptStart>& starts) override;
  std::vector<AttemptVerdict> ended(const std::vector<AttemptEnd>& ends) override;
  Upload open_upload(const RequestId& request, const FilePlace& place, uint64_t size,
                     const Digest& digest) override;
  uint64_t put(uint64_t upload, uint64_t offset, const char* bytes, size_t count) override;
  uint64_t close_upload(uint64_t upload) override;
  ContentDoor content_door() override;
  RemoteFile stat(const FilePlace& place) override;
  std::string get(const FilePlace& place, uint64_t offset, uint32_t count) override;

 private:
  void attach_to_new_connection();

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_LINK_CORBA_SERVER_H_
