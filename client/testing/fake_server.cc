// A server for the client's tests, over the real ORB: it registers machines, answers
// renewals and reports according to idl/, keeps uploads in memory, and acts only on
// commands. Reads commands as JSON lines from stdin, writes answers and events as JSON
// lines to stdout; exits at the end of stdin.
//
//   {"do":"run", "job":1, "attempt":1, "program":"/bin/true", ...}
//   {"do":"vacate", "job":1, "attempt":1, "reason":4}
//   {"do":"put", "path":"/a/file"}            -> {"file":7}: an input for "run"
//   {"do":"verdict", "job":1, "attempt":1, "value":2}   the verdict sent from now on
//   {"do":"state"}                            calls ExecutingClient::state
// A command may specify a "term" other than this server's, which is 3.
//
// usage: fake-server SOCKET LEASE_MS
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/random.h"
#include "client/link/translate.h"
#include "transport/orb.h"

namespace sublet::client {
namespace {

using nlohmann::json;

constexpr uint64_t kTerm = 3;

std::string hex_of(const std::string& bytes) { return hex(digest_of(bytes)).substr(0, 16); }

struct Machine {
  std::string secret;
  std::string name;
  std::string key;
  int64_t heard_ns = 0;
  idl::ExecutingClient_var client;
};

struct Stored {
  uint64_t id = 0;
  uint64_t size = 0;
  std::string bytes;
  Digest digest = {};
  FilePlace place;
  bool complete = false;
};

// State shared by the servants. One mutex; no calls are made while it is held.
class World {
 public:
  World(Orb& orb, int64_t lease_ms) : orb_(orb), lease_ms_(lease_ms) {}

  void say(const json& line) {
    std::lock_guard lock(out_);
    std::cout << line.dump() << std::endl;
  }

  Orb& orb_;
  const int64_t lease_ms_;
  std::mutex mutex_;
  std::map<uint64_t, Machine> machines_;
  std::map<uint64_t, Stored> files_;
  std::map<std::string, uint64_t> requests_;
  std::map<AttemptName, uint32_t> verdicts_;
  uint64_t next_file_ = static_cast<uint64_t>(system_clock().utc_us());

  // With the mutex held. Throws NotFound like the real server.
  Machine& machine_of(const idl::SessionKey& session) {
    std::string key = from_octets(session);
    for (auto& [number, machine] : machines_) {
      if (machine.key != key || key.empty()) continue;
      machine.heard_ns = system_clock().boot_ns();
      return machine;
    }
    throw idl::NotFound("session.unknown", "No such session.", "Join again.", "");
  }

  uint32_t verdict(const AttemptName& name) {
    auto found = verdicts_.find(name);
    return found == verdicts_.end() ? kVerdictCounts : found->second;
  }

 private:
  std::mutex out_;
};

json name_json(const char* event, const AttemptName& name) {
  return {{"event", event}, {"job", name.job}, {"attempt", name.attempt}};
}

class FakeSession : public POA_Sublet::v1::Session {
 public:
  FakeSession(World& world, uint64_t machine) : world_(world), machine_(machine) {}
  void attach(idl::ExecutingClient_ptr client) override {
    {
      std::lock_guard lock(world_.mutex_);
      world_.machines_[machine_].client = idl::ExecutingClient::_duplicate(client);
    }
    set_call_timeout(client, 10'000);
    world_.say({{"event", "attached"}, {"machine", machine_}});
  }
  void ping() override {}

 private:
  World& world_;
  const uint64_t machine_;
};

class FakeAllocator : public POA_Sublet::v1::MachineAllocator {
 public:
  explicit FakeAllocator(World& world) : world_(world) {}

  idl::JoinAnswer* join(idl::MachineNumber machine, const idl::Bytes& secret,
                        const idl::MachineDescription& description) override {
    uint64_t number = 0;
    idl::JoinAnswer_var answer = new idl::JoinAnswer();
    {
      std::lock_guard lock(world_.mutex_);
      number = admit(machine, from_octets(secret), description.name.in());
      Machine& mine = world_.machines_[number];
      mine.key = random_bytes(16);
      mine.heard_ns = system_clock().boot_ns();
      answer->machine = number;
      to_octets(mine.key, answer->key);
    }
    answer->session_reference = make_session(number);
    answer->lease = world_.lease_ms_;
    answer->renew_every = world_.lease_ms_ / 3;
    answer->server_time = system_clock().utc_us();
    answer->term = kTerm;
    world_.say({{"event", "joined"},
                {"machine", number},
                {"name", description.name.in()},
                {"slots", description.slots},
                {"cores", description.cores},
                {"os", description.os.in()},
                {"architecture", description.architecture.in()}});
    return answer._retn();
  }

  void report_state(const idl::SessionKey& session, const idl::MachineReport& report) override {
    {
      std::lock_guard lock(world_.mutex_);
      world_.machine_of(session);
    }
    world_.say({{"event", "state"}, {"away", bool(report.away)}, {"free", report.slots_free}});
  }

  void withdraw(const idl::SessionKey& session) override {
    {
      std::lock_guard lock(world_.mutex_);
      world_.machine_of(session).key.clear();
    }
    world_.say({{"event", "withdrawn"}});
  }

  idl::MachinePage* list(const idl::Bytes&, CORBA::ULong) override {
    return new idl::MachinePage();
  }

 private:
  // With the mutex held.
  uint64_t admit(uint64_t machine, const std::string& secret, const std::string& name) {
    if (machine == 0) {
      uint64_t number = 1 + world_.machines_.size();
      world_.machines_[number].secret = secret;
      world_.machines_[number].name = name;
      return number;
    }
    // After a restart, the first secret is accepted.
    Machine& known = world_.machines_[machine];
    if (known.secret.empty()) known.secret = secret;
    if (known.secret != secret)
      throw idl::NotPermitted("machine.secret", "Wrong secret.", "Register anew.", "");
    // Unlike the server it cannot ping the holder: a silent one is assumed dead.
    int64_t silent_ms = (system_clock().boot_ns() - known.heard_ns) / 1'000'000;
    if (!known.key.empty() && silent_ms < std::min<int64_t>(world_.lease_ms_ / 2, 3000))
      throw idl::Conflict("machine.live", ("Machine is held by '" + known.name + "' now.").c_str(),
                          "Stop the other client first.", "");
    known.name = name;
    return machine;
  }

  idl::Session_ptr make_session(uint64_t number) {
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    std::string id = "session-" + std::to_string(++sessions_);
    PortableServer::ObjectId_var oid = PortableServer::string_to_ObjectId(id.c_str());
    PortableServer::Servant_var<FakeSession> servant = new FakeSession(world_, number);
    world_.orb_.bidir_poa()->activate_object_with_id(oid, servant.in());
    CORBA::Object_var object = world_.orb_.bidir_poa()->id_to_reference(oid);
    return idl::Session::_narrow(object);
  }

  World& world_;
  uint64_t sessions_ = 0;
};

class FakeExecutionServer : public POA_Sublet::v1::ExecutionServer {
 public:
  explicit FakeExecutionServer(World& world) : world_(world) {}

  idl::Verdicts* started(const idl::SessionKey& session,
                         const idl::StartReports& reports) override {
    idl::Verdicts_var verdicts = new idl::Verdicts;
    verdicts->length(reports.length());
    for (CORBA::ULong i = 0; i < reports.length(); ++i) {
      const AttemptName name = from_idl(reports[i].key);
      {
        std::lock_guard lock(world_.mutex_);
        world_.machine_of(session);
        verdicts[i].value = world_.verdict(name);
      }
      verdicts[i].key = reports[i].key;
      world_.say(name_json("started", name));
    }
    return verdicts._retn();
  }

  idl::RenewAnswer* renew(const idl::SessionKey& session, const idl::MachineReport& report,
                          const idl::AttemptStatuses& running) override {
    idl::RenewAnswer_var answer = new idl::RenewAnswer();
    json line = {{"event", "renewed"}, {"away", bool(report.away)}, {"attempts", json::array()}};
    {
      std::lock_guard lock(world_.mutex_);
      world_.machine_of(session);
      answer->lease = world_.lease_ms_;
      answer->server_time = system_clock().utc_us();
      answer->term = kTerm;
      answer->of_attempts.length(running.length());
      for (CORBA::ULong i = 0; i < running.length(); ++i) {
        AttemptName name = from_idl(running[i].key);
        answer->of_attempts[i].key = running[i].key;
        answer->of_attempts[i].value = world_.verdict(name);
        line["attempts"].push_back({{"job", name.job},
                                    {"attempt", name.attempt},
                                    {"state", running[i].state},
                                    {"generation", running[i].generation},
                                    {"progress_ppm", running[i].progress_ppm}});
      }
    }
    world_.say(line);
    return answer._retn();
  }

  idl::Verdicts* ended(const idl::SessionKey& session, const idl::EndReports& reports) override {
    idl::Verdicts_var verdicts = new idl::Verdicts;
    verdicts->length(reports.length());
    for (CORBA::ULong i = 0; i < reports.length(); ++i) {
      const idl::EndReport& end = reports[i];
      json line = name_json("ended", from_idl(end.key));
      verdicts[i].key = end.key;
      {
        std::lock_guard lock(world_.mutex_);
        world_.machine_of(session);
        uint32_t said = world_.verdict(from_idl(end.key));
        verdicts[i].value = said == kVerdictCounts ? kVerdictKnown : said;
        line["outputs"] = json::array();
        for (CORBA::ULong o = 0; o < end.outputs.length(); ++o) {
          const Stored& file = world_.files_[end.outputs[o]];
          line["outputs"].push_back({{"kind", static_cast<int>(file.place.kind)},
                                     {"name", file.place.name},
                                     {"bytes", file.bytes}});
        }
      }
      line.update({{"ended", end.ended},
                   {"reason", end.reason.in()},
                   {"exit_status", end.exit_status},
                   {"signal", end.signal},
                   {"cpu_us", end.cpu_us},
                   {"cpu_saved_us", end.cpu_saved_us},
                   {"generation", end.generation},
                   {"checkpoint_bytes", end.checkpoint_bytes},
                   {"resumed_generation", end.resumed_generation},
                   {"quiesce_us", end.quiesce_us}});
      world_.say(line);
    }
    return verdicts._retn();
  }

 private:
  World& world_;
};

class FakeSpool : public POA_Sublet::v1::Spool {
 public:
  explicit FakeSpool(World& world) : world_(world) {}

  idl::Upload* open_upload(const idl::RequestId& request, const idl::FilePlace& place,
                           idl::ByteCount size, const idl::Digest& digest) override {
    std::lock_guard lock(world_.mutex_);
    world_.machine_of(place.session);
    uint64_t& id = world_.requests_[from_octets(request)];
    if (id == 0) {
      id = ++world_.next_file_;
      Stored& file = world_.files_[id];
      file.id = id;
      file.size = size;
      std::string sum = from_octets(digest);
      std::copy(sum.begin(), sum.end(), file.digest.begin());
      file.place = sublet::from_idl(place);
    }
    idl::Upload_var upload = new idl::Upload();
    upload->id = id;
    upload->offset = world_.files_[id].bytes.size();
    return upload._retn();
  }

  idl::ByteCount put(idl::UploadId upload, idl::ByteCount offset,
                     const idl::Bytes& chunk) override {
    std::lock_guard lock(world_.mutex_);
    Stored& file = find(upload);
    if (offset != file.bytes.size())
      throw idl::Conflict("upload.offset", "Wrong offset.", "Ask for it.", "");
    file.bytes += from_octets(chunk);
    return file.bytes.size();
  }

  idl::FileId close_upload(idl::UploadId upload) override {
    json line;
    {
      std::lock_guard lock(world_.mutex_);
      Stored& file = find(upload);
      if (file.bytes.size() != file.size || digest_of(file.bytes) != file.digest)
        throw idl::Invalid("spool.digest", "Size or digest is wrong.", "Send it again.", "");
      file.complete = true;
      line = name_json("file", {file.place.job, file.place.attempt});
      line.update({{"kind", static_cast<int>(file.place.kind)},
                   {"generation", file.place.generation},
                   {"size", file.size},
                   {"sum", hex_of(file.bytes)},
                   {"file", file.id}});
    }
    world_.say(line);
    return upload;
  }

  idl::FileInfo* stat(const idl::FilePlace& place) override {
    std::lock_guard lock(world_.mutex_);
    const Stored& file = find(place);
    idl::FileInfo_var info = new idl::FileInfo();
    info->size = file.bytes.size();
    Digest digest = digest_of(file.bytes);
    to_octets(digest, info->content_digest);
    info->generation = file.place.generation;
    return info._retn();
  }

  idl::Bytes* get(const idl::FilePlace& place, idl::ByteCount offset, CORBA::ULong count) override {
    std::lock_guard lock(world_.mutex_);
    std::string part = find(place).bytes.substr(offset, count);
    idl::Bytes_var bytes = new idl::Bytes;
    to_octets(part, bytes.inout());
    return bytes._retn();
  }

  void discard_outputs(idl::JobId) override { throw CORBA::NO_IMPLEMENT(); }

 private:
  Stored& find(uint64_t id) {
    auto found = world_.files_.find(id);
    if (found != world_.files_.end()) return found->second;
    throw idl::NotFound("upload.unknown", "No such upload.", "Open it again.", "");
  }
  const Stored& find(const idl::FilePlace& place) {
    world_.machine_of(place.session);
    if (place.kind == idl::FILE_INPUT) return find(place.file);
    for (auto& [id, file] : world_.files_)
      if (file.complete && file.place.kind == FileKind::kCheckpoint &&
          file.place.job == place.job &&
          (place.generation == 0 || file.place.generation == place.generation))
        return file;
    throw idl::NotFound("spool.checkpoint", "No such checkpoint.", "Start afresh.", "");
  }

  World& world_;
};

JobDescription described(const json& c) {
  using Strings = std::vector<std::string>;
  JobDescription job;
  job.name = c.value("name", "test");
  job.program = c.at("program");
  job.arguments = c.value("arguments", Strings());
  job.environment = c.value("environment", Strings());
  for (const json& input : c.value("inputs", json::array()))
    job.inputs.push_back({input.at("file"), input.at("name"), input.value("executable", false)});
  for (const json& output : c.value("outputs", json::array()))
    job.outputs.push_back({output.at("name"), output.value("required", true)});
  job.needs.os = c.value("os", "");
  job.needs.memory = c.value("memory", 0ull);
  job.needs.disk = c.value("disk", 0ull);
  job.bounds.wall_ms = c.value("wall_ms", 0ll);
  job.bounds.output_file = c.value("output_file", 0ull);
  job.save_deadline_ms = c.value("save_ms", 0ll);
  return job;
}

idl::RunOrder make_order(const json& c, int64_t lease_ms) {
  idl::RunOrder order{};
  order.key = {c.at("job").get<uint64_t>(), c.at("attempt").get<uint32_t>()};
  order.user = c.value("user", "anna").c_str();
  order.checkpoint_generation = c.value("generation", 0ull);
  order.checkpoint_bytes = 0;
  order.lease = lease_ms;
  order.decided = system_clock().utc_us();
  to_idl(described(c), order.what);
  return order;
}

// The client of "machine" (default: machine 1), and its session's key.
idl::ExecutingClient_ptr client_of(World& world, const json& c, idl::SessionKey& key) {
  std::lock_guard lock(world.mutex_);
  uint64_t number = c.value("machine", 1ull);
  Machine& machine = world.machines_.at(number);
  std::string bytes = c.contains("key") ? std::string(16, 'x') : machine.key;
  to_octets(bytes, key);
  return idl::ExecutingClient::_duplicate(machine.client);
}

json call_client(World& world, const json& c) {
  idl::SessionKey key;
  idl::ExecutingClient_var client = client_of(world, c, key);
  std::string what = c.at("do");
  const uint64_t term = c.value("term", kTerm);
  if (what == "run") {
    idl::RunOrders orders;
    orders.length(1);
    orders[0] = make_order(c, world.lease_ms_);
    idl::RunAnswers_var answers = client->run(key, term, orders);
    return {{"answer", answers[0u].answer}, {"reason", answers[0u].reason.in()}};
  }
  if (what == "vacate") {
    idl::VacateOrders orders;
    orders.length(1);
    orders[0].key = {c.at("job").get<uint64_t>(), c.at("attempt").get<uint32_t>()};
    orders[0].reason = c.at("reason").get<uint32_t>();
    client->vacate(key, term, orders);
    return {{"answer", 0}};
  }
  idl::Details_var details = client->state(key, term);
  json state;
  for (CORBA::ULong i = 0; i < details->length(); ++i)
    state[details[i].name.in()] = details[i].value.in();
  return {{"answer", 0}, {"state", state}};
}

json obey(World& world, const json& c) {
  std::string what = c.at("do");
  if (what == "put") {
    std::string bytes = system_files().read_file(c.at("path"), 64 << 20);
    std::lock_guard lock(world.mutex_);
    uint64_t id = ++world.next_file_;
    Stored& file = world.files_[id];
    file.id = id;
    file.size = bytes.size();
    file.bytes = std::move(bytes);
    file.complete = true;
    if (c.contains("job")) {
      file.place.kind = FileKind::kCheckpoint;
      file.place.job = c["job"].get<uint64_t>();
      file.place.generation = c.at("generation").get<uint64_t>();
    }
    return {{"answer", 0}, {"file", id}};
  }
  if (what == "verdict") {
    std::lock_guard lock(world.mutex_);
    AttemptName name{c.at("job").get<uint64_t>(), c.at("attempt").get<uint32_t>()};
    world.verdicts_[name] = c.at("value").get<uint32_t>();
    return {{"answer", 0}};
  }
  return call_client(world, c);
}

json answer(World& world, const std::string& line) {
  try {
    return obey(world, json::parse(line));
  } catch (const idl::NotPermitted& e) {
    return {{"error", "NotPermitted"}, {"code", e.code.in()}, {"text", e.message.in()}};
  } catch (const idl::Conflict& e) {
    return {{"error", "Conflict"}, {"code", e.code.in()}, {"text", e.message.in()}};
  } catch (const CORBA::Exception& e) {
    return {{"error", e._name()}};
  } catch (const std::exception& e) {
    return {{"error", e.what()}};
  }
}

template <typename Servant>
void serve(Orb& orb, const char* key, Servant* servant) {
  PortableServer::Servant_var<Servant> owned = servant;
  PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId(key);
  orb.ins_poa()->activate_object_with_id(id, servant);
}

int run(const std::string& socket, int64_t lease_ms) {
  OrbSettings settings;
  settings.listen_path = socket;
  settings.accept_call_back = true;
  Orb orb(settings);
  World world(orb, lease_ms);
  serve(orb, "MachineAllocator", new FakeAllocator(world));
  serve(orb, "ExecutionServer", new FakeExecutionServer(world));
  serve(orb, "Spool", new FakeSpool(world));
  world.say({{"event", "serving"}});
  for (std::string line; std::getline(std::cin, line);) world.say(answer(world, line));
  orb.shutdown();
  return 0;
}

}  // namespace
}  // namespace sublet::client

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: fake-server SOCKET LEASE_MS\n";
    return 2;
  }
  try {
    return sublet::client::run(argv[1], std::stoll(argv[2]));
  } catch (const std::exception& error) {
    std::cerr << "fake-server: " << error.what() << "\n";
    return 1;
  }
}
