#include "client/link/corba_server.h"

#include <atomic>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "base/log.h"
#include "client/link/executing_client.h"
#include "client/link/renewal.h"
#include "client/link/spool_chunks.h"
#include "membership.hh"

namespace sublet::client {
namespace {

OrbSettings called_back(OrbSettings settings) {
  settings.call_back = true;
  return settings;
}

bool names(const idl::Names& all, std::string_view name) {
  for (CORBA::ULong i = 0; i < all.length(); ++i)
    if (all[i].in() == name) return true;
  return false;
}

}  // namespace

struct CorbaServer::Parts {
  Parts(const ServerPlace& where, OrderDesk& desk)
      : orders(desk),
        door{where.socket, where.uid, where.membership, ""},
        orb(called_back(orb_settings(door))),
        servant(new ExecutingClientServant(desk, where.uid)) {
    const std::string& socket = where.socket;
    PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId("ExecutingClient");
    orb.bidir_poa()->activate_object_with_id(id, servant.in());
    CORBA::Object_var object = orb.bidir_poa()->id_to_reference(id);
    self = idl::ExecutingClient::_unchecked_narrow(object);
    allocator = find<idl::MachineAllocator>(socket, "MachineAllocator");
    execution = find<idl::ExecutionServer>(socket, "ExecutionServer");
    spool = find<idl::Spool>(socket, "Spool");
    membership = find<idl::Membership>(socket, "Membership");
    renewal = renewal_of(where);
  }

  // Unchecked: asking the object for its type would be a remote call.
  template <typename Interface>
  typename Interface::_ptr_type find(const std::string& socket, const char* key) {
    CORBA::Object_var object = orb.resolve(socket, key);
    return Interface::_unchecked_narrow(object);
  }

  // The current session's key. Throws ServerError if there is none.
  std::string session() {
    std::lock_guard lock(mutex);
    if (!key) throw ServerError(ServerError::Kind::kAway, "", "not registered with the server");
    return *key;
  }

  // term: of the server that opened it.
  void set_session(std::optional<std::string> now, uint64_t term = 0) {
    orders.set_session(now.value_or(""), term);
    std::lock_guard lock(mutex);
    key = std::move(now);
  }

  // A call that carries the session's key.
  template <typename Call>
  void with_session(Call call) {
    std::string mine = session();
    idl::SessionKey octets;
    to_octets(mine, octets);
    try {
      guard([&] { call(octets); });
    } catch (const ServerError& error) {
      if (error.kind() == ServerError::Kind::kSessionOver) forget(mine);
      throw;
    }
  }

  void forget(const std::string& mine) {
    {
      std::lock_guard lock(mutex);
      if (key != mine) return;  // joined again in the meantime
      key.reset();
    }
    orders.set_session("");
    session_ended();
  }

  idl::FilePlace to_place(const FilePlace& place, const idl::SessionKey& session) {
    idl::FilePlace out{};
    sublet::to_idl(place, out);
    out.session = session;
    return out;
  }

  // Makes a call. If the server could not be reached over TLS, the error says why.
  void guard(const std::function<void()>& call) {
    try {
      guard_call(call);
    } catch (const ServerError& error) {
      const auto failure = orb.dial_failure();
      if (error.kind() != ServerError::Kind::kAway || !error.code().empty() || !failure) throw;
      throw ServerError(error.kind(), failure->code, failure->message + "; " + failure->advice);
    }
  }

  std::optional<Renewal> renewal_of(const ServerPlace& where);
  void renew_certificate();

  OrderDesk& orders;
  ContentDoor door;  // with `mutex`; without the session
  std::function<void()> session_ended;
  Orb orb;
  PortableServer::Servant_var<ExecutingClientServant> servant;
  idl::ExecutingClient_var self;
  idl::MachineAllocator_var allocator;
  idl::ExecutionServer_var execution;
  idl::Spool_var spool;
  idl::Membership_var membership;
  std::optional<Renewal> renewal;  // of the certificate; the session's thread
  std::mutex mutex;
  std::optional<std::string> key;
  // What the server of this session serves.
  std::atomic<bool> keeps_steps{false};  // of evictions
  std::atomic<bool> keeps_peaks{false};
  std::atomic<bool> keeps_memory_short{false};
  std::atomic<bool> keeps_network{false};
  std::atomic<bool> keeps_staging{false};
  std::atomic<bool> keeps_ran{false};   // of starts
  std::atomic<bool> keeps_disk{false};  // of attempts that go on
  std::atomic<bool> keeps_waits{false};
  std::atomic<bool> keeps_at_risk{false};
  std::atomic<bool> keeps_message{false};
  std::atomic<bool> serves_logins{false};
  std::atomic<bool> serves_speed{false};
  std::atomic<bool> serves_ahead{false};
  idl::Session_var session_reference;
  std::atomic<uint64_t> dialled_at_attach{0};  // connections opened until the last attach()
};

// New connections use the renewed certificate; open ones are kept.
std::optional<Renewal> CorbaServer::Parts::renewal_of(const ServerPlace& where) {
  if (!where.membership) return std::nullopt;
  Renewal::Hooks hooks;
  hooks.ask = [this](const RequestId& id, const std::string& request) {
    idl::RequestId octets;
    to_octets(id, octets);
    std::string certificate;
    guard([&] {
      CORBA::String_var answer = membership->renew(octets, request.c_str());
      certificate = answer.in();
    });
    return certificate;
  };
  hooks.use = [this](const TlsCredentials& credentials) {
    orb.use(credentials);
    std::lock_guard lock(mutex);
    door.membership->credentials = credentials;
  };
  hooks.keep = where.renewed;
  return Renewal(*where.membership, std::move(hooks));
}

void CorbaServer::Parts::renew_certificate() {
  if (!renewal) return;
  try {
    if (renewal->step(system_clock().boot_ns(), system_clock().utc_us()))
      log(Severity::info) << "this machine's certificate is renewed";
  } catch (const std::exception& error) {
    log(Severity::warning) << "this machine's certificate could not be renewed: " << error.what();
  }
}

CorbaServer::CorbaServer(const ServerPlace& place, OrderDesk& desk,
                         std::function<void()> session_ended)
    : parts_(std::make_unique<Parts>(place, desk)) {
  parts_->session_ended = std::move(session_ended);
}

CorbaServer::~CorbaServer() = default;

void CorbaServer::close() { parts_->orb.shutdown(); }

Joined CorbaServer::join(const MachineIdentity& identity, const MachineFacts& facts) {
  Joined joined;
  parts_->set_session(std::nullopt);  // ends an earlier one
  parts_->guard([&] {
    idl::Bytes secret;
    to_octets(identity.secret, secret);
    idl::JoinAnswer_var answer = parts_->allocator->join(identity.machine, secret, to_idl(facts));
    joined.identity.machine = answer->machine;
    joined.identity.secret = identity.secret;
    joined.server_time_us = answer->server_time;
    joined.lease_ms = answer->lease;
    joined.renew_every_ms = answer->renew_every;
    parts_->keeps_steps = names(answer->capabilities, "EndReport.steps");
    parts_->keeps_peaks = names(answer->capabilities, "EndReport.processes_peak") &&
                          names(answer->capabilities, "EndReport.disk_peak");
    parts_->keeps_memory_short = names(answer->capabilities, "EndReport.memory_short");
    parts_->keeps_network = names(answer->capabilities, "EndReport.network_bytes");
    parts_->keeps_staging = names(answer->capabilities, "EndReport.staging");
    parts_->keeps_ran = names(answer->capabilities, "StartReport.ran_ms");
    parts_->keeps_disk = names(answer->capabilities, "AttemptStatus.disk");
    parts_->keeps_waits = names(answer->capabilities, "AttemptStatus.waits");
    parts_->keeps_at_risk = names(answer->capabilities, "AttemptStatus.at_risk_ms");
    parts_->keeps_message = names(answer->capabilities, "AttemptStatus.message");
    parts_->serves_logins = names(answer->capabilities, "MachineReport.logins_asked");
    parts_->serves_speed = names(answer->capabilities, "MachineReport.speed") &&
                           names(answer->capabilities, "MachineReport.load");
    parts_->serves_ahead = names(answer->capabilities, "MachineReport.ahead");
    if (CORBA::is_nil(answer->session_reference))
      throw ServerError(ServerError::Kind::kAway, "", "the server gave no session");
    {
      std::lock_guard lock(parts_->mutex);
      CORBA::Object_var session = parts_->orb.at_server(answer->session_reference);
      parts_->session_reference = idl::Session::_unchecked_narrow(session);
    }
    parts_->set_session(from_octets(answer->key), answer->term);
  });
  return joined;
}

void CorbaServer::attach() {
  parts_->with_session([&](const idl::SessionKey&) {
    idl::Session_var session;
    {
      std::lock_guard lock(parts_->mutex);
      session = parts_->session_reference;
    }
    session->attach(parts_->self);
  });
  parts_->dialled_at_attach = Orb::counters().dialled;
}

// If we do not answer in time, the server closes the connection over which it calls
// us, without an error here: our next call opens another one, over which the server
// cannot call us until it gets our reference again.
void CorbaServer::attach_to_new_connection() {
  if (Orb::counters().dialled == parts_->dialled_at_attach) return;
  try {
    attach();
  } catch (const ServerError&) {  // retried with the next renewal
  }
}

void CorbaServer::report_state(const MachineState& state) {
  idl::MachineReport report = to_idl(state);
  if (parts_->serves_speed) add_speed(state, report);
  if (parts_->serves_ahead) add_ahead(state, report);
  parts_->with_session(
      [&](const idl::SessionKey& key) { parts_->allocator->report_state(key, report); });
}

Renewed CorbaServer::renew(const MachineState& state, const std::vector<HeldAttempt>& held) {
  Renewed renewed;
  parts_->with_session([&](const idl::SessionKey& key) {
    idl::AttemptStatuses statuses;
    statuses.length(static_cast<CORBA::ULong>(held.size()));
    for (size_t i = 0; i < held.size(); ++i)
      statuses[static_cast<CORBA::ULong>(i)] = to_idl(
          held[i],
          {parts_->keeps_disk, parts_->keeps_waits, parts_->keeps_at_risk, parts_->keeps_message});
    idl::MachineReport report = to_idl(state);
    if (parts_->serves_logins) add_logins(state.logins, report);
    if (parts_->serves_speed) add_speed(state, report);
    if (parts_->serves_ahead) add_ahead(state, report);
    idl::RenewAnswer_var answer = parts_->execution->renew(key, report, statuses);
    if (!parts_->orders.accept_term(answer->term))
      throw ServerError(ServerError::Kind::kAway, "server.term",
                        "the server that answers has been replaced by another");
    renewed.lease_ms = answer->lease;
    renewed.server_time_us = answer->server_time;
    renewed.verdicts = from_idl(answer->of_attempts);
    renewed.logins = logins_from(answer);
  });
  attach_to_new_connection();
  parts_->renew_certificate();
  return renewed;
}

void CorbaServer::withdraw() {
  parts_->with_session([&](const idl::SessionKey& key) { parts_->allocator->withdraw(key); });
  parts_->set_session(std::nullopt);
}

std::string CorbaServer::address() const {
  const auto at = parts_->orb.server_address();
  return at ? to_text(*at) : std::string();
}

std::vector<AttemptVerdict> CorbaServer::started(const std::vector<AttemptStart>& starts) {
  std::vector<AttemptVerdict> verdicts;
  parts_->with_session([&](const idl::SessionKey& key) {
    idl::StartReports reports;
    reports.length(static_cast<CORBA::ULong>(starts.size()));
    for (size_t i = 0; i < starts.size(); ++i)
      reports[static_cast<CORBA::ULong>(i)] = to_idl(starts[i], parts_->keeps_ran);
    idl::Verdicts_var answer = parts_->execution->started(key, reports);
    verdicts = from_idl(answer.in());
  });
  return verdicts;
}

std::vector<AttemptVerdict> CorbaServer::ended(const std::vector<AttemptEnd>& ends) {
  std::vector<AttemptVerdict> verdicts;
  parts_->with_session([&](const idl::SessionKey& key) {
    idl::EndReports reports;
    reports.length(static_cast<CORBA::ULong>(ends.size()));
    for (size_t i = 0; i < ends.size(); ++i)
      reports[static_cast<CORBA::ULong>(i)] =
          to_idl(ends[i], {parts_->keeps_steps, parts_->keeps_peaks, parts_->keeps_memory_short,
                           parts_->keeps_network, parts_->keeps_staging});
    idl::Verdicts_var answer = parts_->execution->ended(key, reports);
    verdicts = from_idl(answer.in());
  });
  return verdicts;
}

Upload CorbaServer::open_upload(const RequestId& request, const FilePlace& place, uint64_t size,
                                const Digest& digest) {
  Upload upload;
  parts_->with_session([&](const idl::SessionKey& key) {
    idl::RequestId id;
    to_octets(request, id);
    idl::Digest sum;
    to_octets(digest, sum);
    idl::Upload_var answer =
        parts_->spool->open_upload(id, parts_->to_place(place, key), size, sum);
    upload = {answer->id, answer->offset};
  });
  return upload;
}

uint64_t CorbaServer::put(uint64_t upload, uint64_t offset, const char* bytes, size_t count) {
  uint64_t now = 0;
  parts_->guard([&] { now = put_chunk(parts_->spool, upload, offset, bytes, count); });
  return now;
}

uint64_t CorbaServer::close_upload(uint64_t upload) {
  uint64_t file = 0;
  parts_->guard([&] { file = parts_->spool->close_upload(upload); });
  return file;
}

ContentDoor CorbaServer::content_door() {
  const std::string session = parts_->session();
  std::lock_guard lock(parts_->mutex);
  ContentDoor door = parts_->door;
  door.session = session;
  return door;
}

RemoteFile CorbaServer::stat(const FilePlace& place) {
  RemoteFile out;
  parts_->with_session([&](const idl::SessionKey& key) {
    idl::FileInfo_var info = parts_->spool->stat(parts_->to_place(place, key));
    out.size = info->size;
    out.generation = info->generation;
    if (info->content_digest.length() != out.digest.size())
      throw ServerError(ServerError::Kind::kAway, "", "the server sent no digest");
    for (CORBA::ULong i = 0; i < info->content_digest.length(); ++i)
      out.digest[i] = info->content_digest[i];
  });
  return out;
}

std::string CorbaServer::get(const FilePlace& place, uint64_t offset, uint32_t count) {
  std::string out;
  parts_->with_session([&](const idl::SessionKey& key) {
    out = get_chunk(parts_->spool, parts_->to_place(place, key), offset, count);
  });
  return out;
}

}  // namespace sublet::client
