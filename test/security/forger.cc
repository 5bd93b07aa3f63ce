// A hostile local process: makes real calls through the real ORB to the server's socket,
// with the secrets that a test has stolen for it, and prints the outcome of each.
//
//   usage: forger SOCKET NAME=VALUE...   the stolen values:
//     session=HEX  the key of a genuine client's registration
//     client=HEX   the object key of that client's Executing Client
//     holder=HEX   the object key of its session on the server
//     secret=HEX, machine=N    authenticate its machine
//     job=N, attempt=N, generation=N    the attempt that runs there
//
// stdin has one order per line, stdout one answer per line. Answers: "obeyed",
// "refused EXCEPTION [CODE]" (from the peer) or "lost EXCEPTION" (from the ORB: the
// connection ended). Orders: the names in Forger::make() and the functions it calls, and
//   KEY:OPERATION      run, may_run, vacate or state of the object with the stolen key
//                      KEY (client, holder), or of a servant of the server's (fixed)
//   join-as NAME       joins its own machine, if permitted; after that `attach` uses
//                      this machine's session, otherwise the stolen one
//   attach REFERENCE   attaches a reference given as text
//   attach-noted PLACE attaches its own, with a note that it is reached through PLACE
//   attach-own         attaches its own
//   knock NAME         makes the server ping the holder of the machine joined as NAME:
//                      "obeyed" if the ping arrived here, "nobody" if the server reached
//                      no holder; the machine is then joined again
#include <omniORB4/CORBA.h>
// clang-format off
#include <orbParameters.h>
// clang-format on

#include <chrono>
#include <condition_variable>
#include <iostream>
#include <map>
#include <mutex>
#include <string>

#include "administration.hh"
#include "alarm_sender.hh"
#include "base/random.h"
#include "execution_server.hh"
#include "job_scheduler.hh"
#include "machine_allocator.hh"
#include "spool.hh"
#include "transport/orb.h"

namespace sublet {
namespace {

namespace v1 = Sublet::v1;
using Loot = std::map<std::string, std::string>;

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::string to_hex(const std::string& bytes, const char* before = "") {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += before;
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

template <typename Octets>
Octets octets(const std::string& bytes) {
  Octets out;
  out.length(static_cast<CORBA::ULong>(bytes.size()));
  for (CORBA::ULong i = 0; i < out.length(); ++i) out[i] = static_cast<CORBA::Octet>(bytes[i]);
  return out;
}

// The stringified reference with one more profile: a note as the ORB adds it, that the
// object is reached over the connection from there.
std::string with_note(const std::string& reference, const std::string& from) {
  auto number = [](size_t value) {
    std::string out(4, '\0');
    for (int i = 0; i < 4; ++i) out[i] = static_cast<char>(value >> (8 * i));
    return out;
  };
  std::string bytes = from_hex(reference.substr(4));
  const size_t name_size = static_cast<uint8_t>(bytes[4]);
  ++bytes[(8 + name_size + 3) / 4 * 4];  // number of profiles
  bytes.resize((bytes.size() + 3) / 4 * 4);
  const std::string note = number(1) + number(from.size() + 1) + from + '\0';
  const std::string profile =
      number(1) + number(1) + number(0x41545401) + number(note.size()) + note;
  return "IOR:" + to_hex(bytes + number(1) + number(profile.size()) + profile);
}

// The largest value: no order is refused because of its term.
constexpr v1::ServerTerm kTerm = UINT64_MAX;

// The object that the server calls if it accepts this machine.
class Mine : public POA_Sublet::v1::ExecutingClient {
  [[noreturn]] static void no() {
    throw v1::NotPermitted("forger.no", "This machine takes no orders.", "", "");
  }

 public:
  // Waits briefly for the server's next call; returns whether it arrived.
  bool asked() {
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, std::chrono::milliseconds(20), [&] { return asked_ > 0; });
    asked_ = 0;
    return came;
  }

  v1::RunAnswers* run(const v1::SessionKey&, v1::ServerTerm, const v1::RunOrders&) override {
    no();
  }
  v1::Bytes* read_log(const v1::SessionKey&, v1::ServerTerm, const v1::AttemptKey&, CORBA::ULong,
                      v1::ByteCount, CORBA::ULong) override {
    no();
  }
  v1::RunAnswer* may_run(const v1::SessionKey&, v1::ServerTerm, const v1::Requirements&) override {
    no();
  }
  void vacate(const v1::SessionKey&, v1::ServerTerm, const v1::VacateOrders&) override { no(); }
  v1::Details* state(const v1::SessionKey&, v1::ServerTerm) override {
    std::lock_guard lock(mutex_);
    ++asked_;
    changed_.notify_all();
    return new v1::Details;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int asked_ = 0;
};

OrbSettings orb_settings() {
  OrbSettings settings;
  settings.call_back = true;
  settings.client_call_timeout_ms = 20'000;
  return settings;
}

class Forger {
 public:
  Forger(const std::string& socket, Loot loot)
      : socket_(socket), loot_(std::move(loot)), orb_(orb_settings()), mine_(new Mine) {
    // Otherwise the ORB first asks whether the object exists, and does not make the call
    // itself.
    omni::orbParameters::verifyObjectExistsAndType = false;
    PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId("ExecutingClient");
    orb_.bidir_poa()->activate_object_with_id(id, mine_.in());
    own_ = orb_.bidir_poa()->id_to_reference(id);
    session_ = octets<v1::SessionKey>(from_hex(loot_["session"]));
    holder_ = stolen<v1::Session>("holder");
  }

  std::string obey(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    const std::string what = space == std::string::npos ? "" : line.substr(space + 1);
    try {
      return make(name, what) ? "obeyed" : "what is " + line + "?";
    } catch (const v1::Invalid& e) {
      return said(e);
    } catch (const v1::NotFound& e) {
      return said(e);
    } catch (const v1::NotPermitted& e) {
      return said(e);
    } catch (const v1::Conflict& e) {
      return said(e);
    } catch (const v1::LimitExceeded& e) {
      return said(e);
    } catch (const v1::Unavailable& e) {
      return said(e);
    } catch (const CORBA::SystemException& e) {
      const CallFailure kind = describe(e).kind;
      const bool lost = kind == CallFailure::kUnreachable || kind == CallFailure::kTimeout;
      return std::string(lost ? "lost " : "refused ") + e._name();
    } catch (const std::exception& e) {
      return e.what();
    }
  }

 private:
  template <typename E>
  static std::string said(const E& e) {
    return std::string("refused ") + e._name() + " " + e.code.in();
  }

  uint64_t number(const char* name) const {
    auto found = loot_.find(name);
    return found == loot_.end() ? 0 : std::stoull(found->second);
  }

  // The object with this stolen key, at the server's address.
  template <typename Interface>
  typename Interface::_ptr_type stolen(const char* name) {
    const std::string address =
        "corbaloc:omniunix:" + socket_ + ":/" + to_hex(from_hex(loot_[name]), "%");
    CORBA::Object_var object = orb_.orb()->string_to_object(address.c_str());
    return Interface::_unchecked_narrow(object);
  }

  template <typename Interface>
  typename Interface::_ptr_type find(const char* key) {
    CORBA::Object_var object = orb_.resolve(socket_, key);
    return Interface::_unchecked_narrow(object);
  }

  v1::AttemptKey attempt() const {
    return {number("job"), static_cast<CORBA::ULong>(number("attempt"))};
  }

  v1::FilePlace place(CORBA::ULong kind) {
    v1::FilePlace place{};
    place.kind = kind;
    place.batch = 0;
    place.session = session_;
    place.job = attempt().job;
    place.attempt = attempt().attempt;
    place.file = 0;
    place.generation = number("generation");
    return place;
  }

  v1::MachineDescription machine(const std::string& name) {
    v1::MachineDescription out{};
    out.name = name.c_str();
    out.os = "linux";
    out.architecture = "x86_64";
    out.cores = out.slots = 1;
    out.memory = out.disk = 1 << 30;
    out.version = "";
    return out;
  }

  v1::MachineReport report() {
    v1::MachineReport out{};
    out.away = false;
    out.reason = 0;
    out.owner_cpu = 0;
    out.input_idle = 0;
    out.slots_free = 0;
    out.memory_free = out.disk_free = 0;
    return out;
  }

  v1::EndReport end() {
    v1::EndReport out{};
    out.key = attempt();
    out.ended = v1::END_DONE;
    out.reason = "";
    out.exit_status = out.signal = 0;
    out.started = out.finished = out.wall = out.cpu_us = out.cpu_saved_us = 0;
    out.memory_peak = out.generation = out.checkpoint_bytes = out.resumed_generation = 0;
    out.resumed_ppm = out.progress_ppm = 0;
    out.quiesce_us = 0;
    out.stdout_cut = out.stderr_cut = false;
    return out;
  }

  v1::RunOrders orders() {
    v1::RunOrders out;
    out.length(1);
    v1::RunOrder& order = out[0];
    order = v1::RunOrder{};
    order.key = {attempt().job + 1000, 1};
    order.user = "root";
    order.what.name = "forged";
    order.what.program = octets<v1::Bytes>("/bin/true");
    order.what.needs.os = order.what.needs.architecture = "";
    order.what.needs.cores = 0;
    order.what.needs.memory = order.what.needs.disk = 0;
    order.what.bounds.cpu = order.what.bounds.wall = 0;
    order.what.bounds.memory = order.what.bounds.output_text = order.what.bounds.output_file = 0;
    order.what.bounds.processes = 0;
    order.what.priority = 0;
    order.what.retries = 0;
    order.what.save_deadline = 0;
    order.checkpoint_generation = order.checkpoint_bytes = 0;
    order.lease = 30'000;
    order.decided = 0;
    return out;
  }

  v1::VacateOrders leave() {
    v1::VacateOrders out;
    out.length(1);
    out[0].key = attempt();
    out[0].reason = v1::LEAVE_REMOVED;
    return out;
  }

  v1::JobFilter job() {
    v1::JobFilter out{};
    out.ids.length(1);
    out.ids[0] = {attempt().job, 1};
    out.batch = 0;
    out.user = "";
    out.unfinished_only = false;
    return out;
  }

  v1::RequestId request() { return octets<v1::RequestId>(random_bytes(16)); }

  // Sends an order as if this were the server.
  bool order(const std::string& name, v1::ExecutingClient_ptr to) {
    if (name == "run") {
      v1::RunAnswers_var answers = to->run(session_, kTerm, orders());
      return true;
    }
    if (name == "may_run") {
      v1::RunAnswer_var answer = to->may_run(session_, kTerm, orders()[0].what.needs);
      return true;
    }
    if (name == "vacate") return to->vacate(session_, kTerm, leave()), true;
    if (name == "state") {
      v1::Details_var state = to->state(session_, kTerm);
      return true;
    }
    return false;
  }

  bool make(const std::string& name, const std::string& what) {
    const size_t colon = name.find(':');
    if (colon != std::string::npos) {
      const std::string key = name.substr(0, colon);
      v1::ExecutingClient_var to = key == "fixed" ? find<v1::ExecutingClient>("MachineAllocator")
                                                  : stolen<v1::ExecutingClient>(key.c_str());
      return order(name.substr(colon + 1), to);
    }
    if (name == "ping") return holder_->ping(), true;
    if (name == "attach") {
      CORBA::Object_var object = orb_.orb()->string_to_object(what.c_str());
      return attach(object);
    }
    if (name == "attach-noted") {
      CORBA::String_var plain = orb_.orb()->object_to_string(own_);
      CORBA::Object_var object = orb_.orb()->string_to_object(with_note(plain.in(), what).c_str());
      return attach(object);
    }
    if (name == "attach-own") return attach(own_);
    if (name == "attach-nil") return attach(CORBA::Object::_nil());
    return as_machine(name, what) || as_attempt(name) || as_user(name) || as_administrator(name);
  }

  bool attach(CORBA::Object_ptr object) {
    v1::ExecutingClient_var client = v1::ExecutingClient::_unchecked_narrow(object);
    holder_->attach(client);
    return true;
  }

  void enter(v1::JoinAnswer_var answer) {
    loot_["machine"] = std::to_string(answer->machine);
    holder_ = v1::Session::_duplicate(answer->session_reference);
    session_ = answer->key;
  }

  bool as_machine(const std::string& name, const std::string& what) {
    v1::MachineAllocator_var allocator = find<v1::MachineAllocator>("MachineAllocator");
    if (name == "join-as") {
      const std::string secret = random_bytes(32);
      enter(allocator->join(0, octets<v1::Bytes>(secret), machine(what)));
      loot_["secret"] = to_hex(secret);
    } else if (name == "knock") {
      // There is a conflict while the holder is alive or has not yet been pinged.
      for (;;) {
        try {
          enter(allocator->join(number("machine"), octets<v1::Bytes>(from_hex(loot_["secret"])),
                                machine(what)));
          throw std::runtime_error("nobody");
        } catch (const v1::Conflict&) {
          if (mine_->asked()) break;
        }
      }
    } else if (name == "join-guessing") {
      v1::JoinAnswer_var answer =
          allocator->join(number("machine"), octets<v1::Bytes>(random_bytes(32)), machine("curly"));
    } else if (name == "join-stealing") {
      v1::JoinAnswer_var answer = allocator->join(
          number("machine"), octets<v1::Bytes>(from_hex(loot_["secret"])), machine("curly"));
    } else if (name == "report_state") {
      allocator->report_state(session_, report());
    } else if (name == "withdraw") {
      allocator->withdraw(session_);
    } else {
      return false;
    }
    return true;
  }

  bool as_attempt(const std::string& name) {
    v1::ExecutionServer_var server = find<v1::ExecutionServer>("ExecutionServer");
    v1::Spool_var spool = find<v1::Spool>("Spool");
    if (name == "started") {
      v1::StartReports reports;
      reports.length(1);
      reports[0] = v1::StartReport{};
      reports[0].key = attempt();
      v1::Verdicts_var verdicts = server->started(session_, reports);
    } else if (name == "renew-nothing") {
      v1::RenewAnswer_var answer = server->renew(session_, report(), v1::AttemptStatuses());
    } else if (name == "ended") {
      v1::EndReports reports;
      reports.length(1);
      reports[0] = end();
      v1::Verdicts_var verdicts = server->ended(session_, reports);
    } else if (name == "put-checkpoint") {
      v1::Upload_var upload = spool->open_upload(request(), place(v1::FILE_CHECKPOINT), 1,
                                                 octets<v1::Digest>(std::string(32, 'x')));
    } else if (name == "stat-checkpoint") {
      v1::FileInfo_var info = spool->stat(place(v1::FILE_CHECKPOINT));
    } else if (name == "get-checkpoint") {
      v1::Bytes_var bytes = spool->get(place(v1::FILE_CHECKPOINT), 0, 100);
    } else {
      return false;
    }
    return true;
  }

  bool as_user(const std::string& name) {
    v1::JobScheduler_var scheduler = find<v1::JobScheduler>("JobScheduler");
    if (name == "remove") {
      v1::Control_var answer = scheduler->remove(request(), job());
    } else if (name == "hold") {
      v1::Control_var answer = scheduler->hold(request(), job());
    } else if (name == "show") {
      v1::JobDetail_var detail = scheduler->show(attempt().job);
    } else if (name == "tick") {
      find<v1::AlarmSender>("AlarmSender")->tick_now(request());
    } else {
      return false;
    }
    return true;
  }

  bool as_administrator(const std::string& name) {
    v1::Administration_var pool = find<v1::Administration>("Administration");
    const v1::MachineNumber one = number("machine");
    if (name == "drain") return pool->drain(request(), one), true;
    if (name == "resume") return pool->resume(request(), one), true;
    if (name == "evict") return pool->evict(request(), one), true;
    if (name == "set-shares") return pool->set_shares(request(), v1::UserShares{}), true;
    if (name == "set-quota") return pool->set_quota(request(), v1::Quota{}), true;
    if (name == "set-policies") return pool->set_policies(request(), v1::Details{}), true;
    if (name == "give-policies-back") return pool->give_policies_back(request()), true;
    if (name == "shares") return v1::SharesPage_var(pool->shares({}, 1)), true;
    if (name == "quotas") return v1::QuotaPage_var(pool->quotas({}, 1)), true;
    if (name == "reclaim") return pool->reclaim(request(), one, 0), true;
    if (name == "lend") return pool->lend(request(), one), true;
    if (name == "evictions") return v1::EvictionPage_var(pool->evictions(one, {}, 1)), true;
    return false;
  }

  const std::string socket_;
  Loot loot_;
  Orb orb_;
  PortableServer::Servant_var<Mine> mine_;
  CORBA::Object_var own_;
  v1::SessionKey session_;
  v1::Session_var holder_;
};

int run(int argc, char** argv) {
  Loot loot;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    loot[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  Forger forger(argv[1], loot);
  for (std::string line; std::getline(std::cin, line);) std::cout << forger.obey(line) << std::endl;
  return 0;
}

}  // namespace
}  // namespace sublet

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: forger SOCKET NAME=VALUE...\n";
    return 2;
  }
  try {
    return sublet::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "forger: " << error.what() << "\n";
    return 1;
  }
}
