#include "transport/orb.h"

// clang-format off
#include <omniORB4/omniInterceptors.h>
#include <omniORB4/omniORB.h>
#include <omniORB4/BiDirPolicy.h>
#include <omniORB4/minorCode.h>
#include <omniORB4/omniObjRef.h>
#include <giopRope.h>
#include <giopBiDir.h>
#include <giopServer.h>
// clang-format on

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "base/text.h"
#include "transport/guard/guarded_transport.h"
#include "transport/orb_code_sets.h"
#include "transport/orb_network.h"
#include "transport/orb_offers.h"

extern char** environ;

namespace sublet {
namespace {

std::atomic<bool> g_started{false};

// Used instead of a socket path if the server is reached over TLS.
constexpr char kOverTls[] = "tls";

// The caller of the current upcall. Set before each upcall; between upcalls the
// ORB's threads run nothing that could see an old value.
struct Caller {
  std::optional<Peer> peer;
  std::string address;
};
thread_local Caller t_caller;

CORBA::Boolean receive_request(omni::omniInterceptors::serverReceiveRequest_T::info_T& call) {
  const Peer* peer = guard_peer(call.peerdetails());
  t_caller.peer = peer == nullptr ? std::nullopt : std::optional(*peer);
  t_caller.address = call.peeraddress();
  if (!guard_call_is_new(call.peerdetails())) {
    throw CORBA::OBJECT_NOT_EXIST(0, CORBA::COMPLETED_NO);
  }
  select_code_set(call);
  return true;
}

// A peer can provoke log lines of the ORB, so they are rate-limited like the guard's.
void log_line(const char* text) {
  std::string_view line(text);
  while (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  if (!line.empty()) guard_report(std::string(line));
}

// The ORB reads a variable ORBname for each of its options; the environment must not
// add end points or weaken rules.
void clear_orb_environment() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view name(*entry, std::strcspn(*entry, "="));
    if (name.starts_with("ORB") || name.starts_with("OMNIORB")) names.emplace_back(name);
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

using Options = std::vector<std::pair<std::string, std::string>>;

// All relevant options are set, even to the ORB's default.
Options to_options(const OrbSettings& s) {
  const bool calls = !s.accept_call_back || s.call_back;
  const char* flag[] = {"0", "1"};
  Options options = {
      {"-ORBconfigFile", "/dev/null"},
      {"-ORBtraceLevel", "0"},
      {"-ORBnativeCharCodeSet", "UTF-8"},
      // A fixed address (corbaloc) does not specify the server's code set: the default
      // would be Latin-1.
      {"-ORBdefaultCharCodeSet", "UTF-8"},
      {"-ORBgiopMaxMsgSize", std::to_string(s.max_message)},
      {"-ORBclientCallTimeOutPeriod", std::to_string(s.client_call_timeout_ms)},
      {"-ORBserverCallTimeOutPeriod", std::to_string(s.server_call_timeout_ms)},
      {"-ORBmaxGIOPConnectionPerServer", "16"},
      // Accepted connections at rest have no thread (pooled_connection.h); a few dialled
      // ones each have one.
      {"-ORBthreadPerConnectionPolicy", flag[s.listen_path.empty()]},
      {"-ORBmaxServerThreadPerConnection", "1"},
      // One for each connection if need be, so that no slow peer keeps others waiting.
      {"-ORBmaxServerThreadPoolSize", std::to_string(s.max_connections + 1000)},
      {"-ORBofferBiDirectionalGIOP", flag[s.call_back]},
      {"-ORBacceptBiDirectionalGIOP", flag[s.accept_call_back]},
      // A process that calls back never opens connections: a call through a reference
      // that leads elsewhere fails.
      {"-ORBclientTransportRule", !calls        ? "* bidir"
                                  : s.call_back ? "* unix,bidir"
                                                : "* unix"},
      {"-ORBserverTransportRule", s.accept_call_back ? "* unix,bidir" : "* unix"},
      // The rules above name no hosts. By default the first call resolves this host's
      // name, which takes seconds if no name server answers.
      {"-ORBresolveNamesForTransportRules", "0"},
  };
  if (!s.listen_path.empty()) {
    options.emplace_back("-ORBendPoint", "giop:unix:" + s.listen_path);
  } else {
    options.emplace_back("-ORBendPoint", "giop:unopened:");
  }
  return options;
}

// Of each connection's thread. With the default of 8 MiB a few hundred idle connections
// could use up the server's address space. Sanitizers need more.
constexpr unsigned long kStackBytes =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    2ul << 20;
#else
    256ul << 10;
#endif

// Of the ORB's table of accepted connections, which it searches under a lock for each request;
// its own choice is 103.
constexpr CORBA::ULong kConnectionBuckets = 8191;

CORBA::ORB_ptr init_orb(const OrbSettings& settings) {
  omni_thread::stacksize(kStackBytes);
  if (!settings.listen_path.empty())
    omni::giopServer::connectionState::hashsize = kConnectionBuckets;
  std::vector<std::string> words = {"sublet"};
  for (const auto& [name, value] : to_options(settings)) {
    words.push_back(name);
    words.push_back(value);
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  return CORBA::ORB_init(argc, argv.data(), "omniORB4");
}

void check(const OrbSettings& settings) {
  if (settings.max_message < 8192) throw OrbError("the message limit must be at least 8192 bytes");
  if (settings.client_call_timeout_ms < 0 || settings.server_call_timeout_ms < 0) {
    throw OrbError("call timeouts cannot be negative");
  }
  if (settings.call_back && !settings.listen_path.empty()) {
    throw OrbError("a process that listens cannot offer its connections for callbacks");
  }
}

GuardSettings to_guard(const OrbSettings& settings, OrbNetwork* network) {
  GuardSettings guard;
  guard.max_message = settings.max_message;
  guard.message_timeout_ms = settings.server_call_timeout_ms;
  guard.may_be_called_back = settings.call_back;
  guard.max_connections = settings.max_connections;
  guard.max_connections_per_uid = settings.max_connections_per_uid;
  guard.admit = settings.admit;
  guard.server_uid = settings.server_uid;
  guard.log = settings.log;
  if (settings.membership)
    guard.dial = [network](int timeout_ms) { return network->dial(timeout_ms); };
  return guard;
}

PortableServer::POA_ptr make_bidir_poa(PortableServer::POA_ptr root,
                                       PortableServer::POAManager_ptr manager) {
  CORBA::PolicyList policies;
  policies.length(3);
  policies[0] = root->create_lifespan_policy(PortableServer::PERSISTENT);
  policies[1] = root->create_id_assignment_policy(PortableServer::USER_ID);
  policies[2] = new BiDirPolicy::BidirectionalPolicy(BiDirPolicy::BOTH);
  return root->create_POA("bidir", manager, policies);
}

template <class Interface>
typename Interface::_ptr_type initial(CORBA::ORB_ptr orb, const char* name) {
  CORBA::Object_var object = orb->resolve_initial_references(name);
  return Interface::_narrow(object);
}

}  // namespace

Orb::Orb(const OrbSettings& settings)
    : network_(settings.network || settings.membership || settings.loopback_port
                   ? std::make_unique<OrbNetwork>(settings)
                   : nullptr),
      over_tls_(settings.membership.has_value()) {
  check(settings);
  if (g_started.exchange(true)) throw OrbError("the ORB was already started in this process");
  clear_orb_environment();
  install_guarded_transport(to_guard(settings, network_.get()));
  omniORB::setLogFunction(log_line);
  try {
    orb_ = init_orb(settings);
    omniORB::getInterceptors()->serverReceiveRequest.add(receive_request);
    if (settings.accept_call_back) limit_offers();
    root_poa_ = initial<PortableServer::POA>(orb_, "RootPOA");
    ins_poa_ = initial<PortableServer::POA>(orb_, "omniINSPOA");
    PortableServer::POAManager_var manager = root_poa_->the_POAManager();
    bidir_poa_ = make_bidir_poa(root_poa_, manager);
    manager->activate();
    PortableServer::POAManager_var ins_manager = ins_poa_->the_POAManager();
    ins_manager->activate();
    omniORB::traceLevel = 1;
  } catch (const CORBA::Exception& exception) {
    if (!CORBA::is_nil(orb_)) orb_->destroy();
    const std::string why = guard_error();
    throw OrbError(why.empty() ? std::string("the ORB did not start: ") + exception._name() : why);
  }
}

Orb::~Orb() { shutdown(); }

void Orb::shutdown() {
  if (CORBA::is_nil(orb_)) return;
  if (network_) network_->close_doors();
  bidir_poa_ = PortableServer::POA::_nil();
  ins_poa_ = PortableServer::POA::_nil();
  root_poa_ = PortableServer::POA::_nil();
  orb_->shutdown(true);
  orb_->destroy();
  orb_ = CORBA::ORB::_nil();
}

CORBA::Object_ptr Orb::resolve(const std::string& path, const std::string& key) const {
  const std::string socket_path = over_tls_ ? kOverTls : path;
  if (socket_path.empty() || socket_path.find_first_of(":,") != std::string::npos)
    throw OrbError("'" + socket_path + "' is not the path of a socket that can be called");
  if (key.empty() || key.find_first_of("%,#") != std::string::npos)
    throw OrbError("'" + key + "' is not the key of an object");
  const std::string address = "corbaloc:omniunix:" + socket_path + ":/" + key;
  try {
    return orb_->string_to_object(address.c_str());
  } catch (const CORBA::SystemException&) {
    throw OrbError("not an address: " + address);
  }
}

CORBA::Object_ptr Orb::at_server(CORBA::Object_ptr object) const {
  if (CORBA::is_nil(object)) return CORBA::Object::_nil();
  if (!over_tls_) return CORBA::Object::_duplicate(object);
  omniObjRef* reference = object->_PR_getobj();
  omniIOR_var ior = reference == nullptr ? nullptr : reference->_getIOR();
  if (reference == nullptr || ior->iopProfiles().length() == 0 ||
      ior->iopProfiles()[0].tag != IOP::TAG_INTERNET_IOP)
    throw OrbError("not a reference of the server");
  _CORBA_Unbounded_Sequence_Octet key;
  IIOP::unmarshalObjectKey(ior->iopProfiles()[0], key);
  const std::string_view octets(reinterpret_cast<const char*>(key.get_buffer()), key.length());
  const std::string address =
      "corbaloc:omniunix:" + std::string(kOverTls) + ":/" + percent_encode(octets);
  try {
    return orb_->string_to_object(address.c_str());
  } catch (const CORBA::SystemException&) {
    throw OrbError("not a reference of the server");
  }
}

std::optional<DialFailure> Orb::dial_failure() const {
  return network_ ? network_->failure() : std::nullopt;
}

std::optional<HostPort> Orb::server_address() const {
  return network_ ? network_->peer() : std::nullopt;
}

void Orb::use(const TlsCredentials& credentials) {
  if (network_) network_->use(credentials);
}

void Orb::open_door() {
  if (network_) network_->open_doors();
}

uint16_t Orb::port() const { return network_ ? network_->port() : 0; }

uint16_t Orb::loopback_port() const { return network_ ? network_->loopback_port() : 0; }

void Orb::cut(uint64_t id) {
  if (network_) network_->cut(id);
}

OrbCounters Orb::counters() {
  const GuardCounters guard = guard_counters();
  return {guard.accepted, guard.refused, guard.dialled, guard.violations, guard.open_now};
}

std::optional<Peer> calling_peer() { return t_caller.peer; }

std::optional<uint32_t> caller_uid() { return t_caller.peer ? t_caller.peer->uid() : std::nullopt; }

bool leads_back_to_caller(CORBA::Object_ptr object) {
  if (CORBA::is_nil(object) || t_caller.address.empty()) return false;
  omniObjRef* reference = object->_PR_getobj();
  if (reference == nullptr) return false;
  omniIOR_var ior = reference->_getIOR();
  // The ORB uses the first such entry of a reference. It adds one itself when it
  // receives a reference; any before that were forged by the sender.
  const omniIOR::IORExtraInfoList& notes = ior->getIORInfo()->extraInfo();
  for (CORBA::ULong i = 0; i < notes.length(); ++i) {
    if (notes[i]->compid != IOP::TAG_OMNIORB_BIDIR) continue;
    const auto* from = static_cast<const omni::BiDirInfo*>(notes[i]);
    return t_caller.address == static_cast<const char*>(from->sendfrom);
  }
  return false;
}

void set_call_timeout(CORBA::Object_ptr object, int ms) {
  omniORB::setClientCallTimeout(object, static_cast<CORBA::ULong>(ms));
}

CallError describe(const CORBA::SystemException& exception) {
  const bool maybe_done = exception.completed() != CORBA::COMPLETED_NO;
  const char* detail = exception.NP_minorString();
  const std::string name = exception._name();
  const std::string text = detail == nullptr ? name : name + ", " + detail;
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is({"TIMEOUT"}) ||
      (name == "TRANSIENT" && exception.minor() == omni::TRANSIENT_CallTimedout)) {
    return {CallFailure::kTimeout, maybe_done, "no answer in time (" + text + ")"};
  }
  if (is({"COMM_FAILURE"}) && maybe_done) {
    return {CallFailure::kUnreachable, true, "the connection was lost (" + text + ")"};
  }
  if (is({"TRANSIENT", "COMM_FAILURE", "REBIND"})) {
    return {CallFailure::kUnreachable, maybe_done, "no server answers there"};
  }
  if (is({"NO_PERMISSION", "NO_RESOURCES", "IMP_LIMIT"})) {
    return {CallFailure::kRefused, maybe_done, "the other side refused (" + text + ")"};
  }
  if (is({"OBJECT_NOT_EXIST", "OBJ_ADAPTER", "INV_OBJREF"})) {
    return {CallFailure::kGone, maybe_done, "no such object there (" + text + ")"};
  }
  if (is({"MARSHAL", "DATA_CONVERSION", "CODESET_INCOMPATIBLE", "BAD_PARAM", "BAD_OPERATION",
          "BAD_TYPECODE", "NO_IMPLEMENT"})) {
    return {CallFailure::kProtocol, maybe_done, "the message was not understood (" + text + ")"};
  }
  return {CallFailure::kInternal, maybe_done, "the other side failed (" + text + ")"};
}

}  // namespace sublet
