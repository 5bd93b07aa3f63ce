// The servants that workstations call: Machine Allocator with its sessions, and
// Execution Server.
#include "base/clock.h"
#include "base/text.h"
#include "protocol/lease.h"
#include "server/machines/corba_workstation.h"
#include "server/servants/guard_call.h"
#include "server/servants/page.h"
#include "server/servants/servants.h"
#include "server/servants/served.h"
#include "server/servants/translate.h"
#include "transport/orb.h"

namespace sublet::server {
namespace {

namespace v1 = Sublet::v1;

// One registration. Its object is in the bidirectional POA, so that the client passed
// to attach() is called back over the same connection.
class SessionServant : public POA_Sublet::v1::Session {
 public:
  SessionServant(const Services& s, const std::string& key) : s_(s), key_(key) {}

  void attach(v1::ExecutingClient_ptr client) override {
    guard_call([&] {
      if (CORBA::is_nil(client))
        throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "the client's reference is missing",
                      "Pass the client's own reference.", "client");
      if (!leads_back_to_caller(client))
        throw Refusal(Refusal::Kind::kNotPermitted, "client.elsewhere",
                      "the reference does not lead back over this connection",
                      "Pass the client's own reference, over its own connection.", "client");
      s_.machines.attach(
          key_, s_.access.caller(),
          make_corba_workstation(client, {key_, s_.term}, s_.lease_ms, s_.call_timeout_ms));
    });
  }

  void ping() override {
    guard_call([&] { s_.sessions.find(key_, s_.access.caller()); });
  }

 private:
  const Services s_;
  const std::string key_;
};

class MachineAllocatorServant : public POA_Sublet::v1::MachineAllocator {
 public:
  explicit MachineAllocatorServant(const Services& s) : s_(s) {}

  v1::JoinAnswer* join(v1::MachineNumber machine, const v1::Bytes& secret,
                       const v1::MachineDescription& description) override {
    return guard_call([&] {
      Joined joined = s_.machines.join(s_.access.workstation(), machine, from_octets(secret),
                                       from_idl(description));
      v1::JoinAnswer_var out = new v1::JoinAnswer();
      out->machine = joined.session.machine;
      to_octets(joined.session.key, out->key);
      out->session_reference = make_session(joined.session.machine, joined.session.key);
      out->lease = s_.lease_ms;
      out->renew_every = protocol::renew_every_ms(s_.lease_ms);
      out->server_time = joined.now;
      to_octets(s_.pool_id, out->pool);
      out->term = s_.term;
      out->capabilities = capabilities();
      return out._retn();
    });
  }

  void report_state(const v1::SessionKey& session, const v1::MachineReport& report) override {
    guard_call(
        [&] { s_.machines.report(from_octets(session), s_.access.caller(), from_idl(report)); });
  }

  void withdraw(const v1::SessionKey& session) override {
    guard_call([&] { s_.machines.withdraw(from_octets(session), s_.access.caller()); });
  }

  v1::MachinePage* list(const v1::Bytes& cursor, CORBA::ULong limit) override {
    return guard_call([&] {
      const Caller caller = s_.access.caller();
      const auto views = s_.questions.ask(
          caller.user, [&] { return s_.machines.list(number_from(cursor), limit); });
      const auto after = [&](size_t last) { return std::to_string(views[last].record.id); };
      v1::MachinePage_var out = new v1::MachinePage();
      out->machines.length(views.size());
      for (size_t i = 0; i < views.size(); ++i) {
        const scheduling::MachineId machine = views[i].record.id;
        to_idl(views[i], s_.sessions.report(machine), caller.administrator, out->machines[i]);
        if (const auto session = s_.sessions.of_machine(machine))
          out->machines[i].description.version = to_utf8(session->version).c_str();
      }
      const std::string next = views.size() == limit ? after(limit - 1) : "";
      to_octets(end_page(out->machines, next, after), out->next);
      return out._retn();
    });
  }

 private:
  // A machine has one session: deactivates the object of the previous one.
  void forget_session_of(MachineId machine) {
    PortableServer::ObjectId id;
    {
      std::lock_guard lock(mutex_);
      auto old = objects_.find(machine);
      if (old == objects_.end()) return;
      to_octets(old->second, id);
      objects_.erase(old);
    }
    try {
      s_.orb.bidir_poa()->deactivate_object(id);
    } catch (const CORBA::Exception&) {
      // Deactivated by another join of the same machine.
    }
  }

  // The object id is the session's key. Knowing the reference is not enough to use it,
  // since the caller's uid must match too.
  v1::Session_ptr make_session(MachineId machine, const std::string& key) {
    PortableServer::POA_ptr poa = s_.orb.bidir_poa();
    PortableServer::ObjectId id;
    to_octets(key, id);
    forget_session_of(machine);
    {
      std::lock_guard lock(mutex_);
      objects_[machine] = key;
    }
    PortableServer::Servant_var<SessionServant> servant(new SessionServant(s_, key));
    poa->activate_object_with_id(id, servant);
    CORBA::Object_var reference = poa->id_to_reference(id);
    return v1::Session::_narrow(reference);
  }

  const Services s_;
  std::mutex mutex_;
  std::map<MachineId, std::string> objects_;  // machine -> its session's key
};

class ExecutionServerServant : public POA_Sublet::v1::ExecutionServer {
 public:
  explicit ExecutionServerServant(const Services& s) : s_(s) {}

  v1::Verdicts* started(const v1::SessionKey& session, const v1::StartReports& reports) override {
    return guard_call([&] {
      check_count(reports.length());
      std::vector<ReportedStart> starts;
      for (CORBA::ULong i = 0; i < reports.length(); ++i) starts.push_back(from_idl(reports[i]));
      v1::Verdicts_var out = new v1::Verdicts;
      to_idl(s_.machines.started(from_octets(session), s_.access.caller(), starts), out.inout());
      return out._retn();
    });
  }

  v1::RenewAnswer* renew(const v1::SessionKey& session, const v1::MachineReport& report,
                         const v1::AttemptStatuses& running) override {
    return guard_call([&] {
      std::vector<ReportedAttempt> attempts;
      for (CORBA::ULong i = 0; i < running.length(); ++i) attempts.push_back(from_idl(running[i]));
      const std::optional<LoginsReport> logins = logins_of(report);
      auto renewal =
          s_.machines.renew(from_octets(session), s_.access.caller(), from_idl(report), attempts);
      v1::RenewAnswer_var out = new v1::RenewAnswer();
      out->term = s_.term;
      out->lease = s_.lease_ms;
      out->server_time = renewal.now;
      to_idl(renewal.verdicts, out->of_attempts);
      if (logins)
        to_idl(s_.logins.renewed(renewal.machine, *logins, system_clock().boot_ns() / 1'000'000),
               out->more);
      return out._retn();
    });
  }

  v1::Verdicts* ended(const v1::SessionKey& session, const v1::EndReports& reports) override {
    return guard_call([&] {
      check_count(reports.length());
      std::vector<ReportedEnd> ends;
      for (CORBA::ULong i = 0; i < reports.length(); ++i) ends.push_back(from_idl(reports[i]));
      v1::Verdicts_var out = new v1::Verdicts;
      to_idl(s_.machines.ended(from_octets(session), s_.access.caller(), ends), out.inout());
      return out._retn();
    });
  }

 private:
  static void check_count(CORBA::ULong reports) {
    if (reports > 100)
      throw Refusal(Refusal::Kind::kLimitExceeded, "report.size", "more than 100 reports in a call",
                    "Split them into several calls.", "reports");
  }

  const Services s_;
};

}  // namespace

PortableServer::Servant make_machine_allocator(const Services& services) {
  return new MachineAllocatorServant(services);
}
PortableServer::Servant make_execution_server(const Services& services) {
  return new ExecutionServerServant(services);
}

}  // namespace sublet::server
