#include "transport/guard/unopened_endpoint.h"

// The order of these matters to omniORB.
// clang-format off
#include <omniORB4/CORBA.h>
#include <omniORB4/giopEndpoint.h>
#include <omniORB4/omniServer.h>
// clang-format on

#include <condition_variable>
#include <mutex>

namespace sublet {
namespace {

// The end point of a process that does not listen. Without an end point the ORB opens a
// TCP port as soon as an object is activated, even with -ORBendPointNoListen. This one
// is only an address in references by which bidirectional GIOP recognises objects of
// this process; it does not accept connections, and port 9 is the discard service.
class UnopenedEndpoint : public omni::giopEndpoint {
 public:
  UnopenedEndpoint() {
    addresses_.length(1);
    addresses_[0] = "giop:tcp:127.0.0.1:9";
  }
  const char* type() const override { return "giop:unopened"; }
  const char* address() const override { return addresses_[0]; }
  const omni::orbServer::EndpointList* addresses() const override { return &addresses_; }
  CORBA::Boolean publish(const omni::orbServer::PublishSpecs&, CORBA::Boolean, CORBA::Boolean,
                         omni::orbServer::EndpointList& published) override {
    addToIOR(addresses_[0]);
    published.length(published.length() + 1);
    published[published.length() - 1] = addresses_[0];
    return true;
  }
  CORBA::Boolean Bind() override { return true; }
  omni::giopConnection* AcceptAndMonitor(omni::giopConnection::notifyReadable_t, void*) override {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return poked_; });
    return nullptr;
  }
  void Poke() override {
    std::lock_guard<std::mutex> lock(mutex_);
    poked_ = true;
    changed_.notify_all();
  }
  void Shutdown() override { delete this; }

 private:
  omni::orbServer::EndpointList addresses_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool poked_ = false;
};

class UnopenedTransport : public omni::giopTransportImpl {
 public:
  UnopenedTransport() : omni::giopTransportImpl("giop:unopened") {}
  omni::giopEndpoint* toEndpoint(const char*) override { return new UnopenedEndpoint(); }
  omni::giopAddress* toAddress(const char*) override { return nullptr; }
  CORBA::Boolean isValid(const char*) override { return true; }
  CORBA::Boolean addToIOR(const char*, omni::IORPublish*) override { return false; }
  const omnivector<const char*>* getInterfaceAddress() override {
    static const omnivector<const char*> none;
    return &none;
  }
};

}  // namespace

// Never deleted: the ORB keeps it in its list.
void install_unopened_endpoint() { new UnopenedTransport(); }

}  // namespace sublet
