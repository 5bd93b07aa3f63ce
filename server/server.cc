#include "server/server.h"

#include <ace/Event_Handler.h>
#include <ace/Reactor.h>
#include <ace/Select_Reactor.h>
#include <ace/Sig_Handler.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/options/default_places.h"
#include "base/text.h"
#include "protocol/lease.h"
#include "server/access.h"
#include "server/administration.h"
#include "server/commit/crash_point.h"
#include "server/commit/event_history.h"
#include "server/commit/pipeline.h"
#include "server/housekeeper.h"
#include "server/jobs/log_desk.h"
#include "server/jobs/log_service.h"
#include "server/jobs/service.h"
#include "server/machines/dispatcher.h"
#include "server/machines/service.h"
#include "server/machines/sessions.h"
#include "server/members/authority.h"
#include "server/members/members.h"
#include "server/question_gate.h"
#include "server/refusal.h"
#include "server/servants/servants.h"
#include "server/spool/disk_guard.h"
#include "server/spool/orphans.h"
#include "server/spool/service.h"
#include "server/spool/spool.h"
#include "server/store/archive/archive.h"
#include "server/store/pool_id.h"
#include "server/store/sql_store.h"
#include "transport/orb.h"

namespace sublet::server {
namespace {

// There is no failover yet, so the term never changes.
constexpr uint64_t kOnlyTerm = 1;

// The parts, in the order of their construction; each uses only those above it.
class Server : public ACE_Event_Handler {
 public:
  Server(const ServerSettings& settings, VitalSigns* signs);
  ~Server() override;
  int run();

  int handle_signal(int signal, siginfo_t*, ucontext_t*) override;

 private:
  Pipeline::Listener listener();
  Dispatcher::Hooks hooks();
  QuestionGate::Settings questions();
  std::optional<RunRequest> describe(const scheduling::StartAttempt& start);
  void answered(std::vector<scheduling::OrderAnswered> answers);
  OrbSettings orb_settings();
  OrbSettings::Network network();
  void activate();

  const ServerSettings settings_;
  const std::optional<Authority> authority_;
  VitalSigns* const signs_;
  Access access_;
  DiskGuard disk_;
  SqlStore store_;
  const std::string pool_id_;
  Archive archive_;
  EventFiles event_files_;
  EventHistory events_;
  QuestionGate questions_;
  Sessions sessions_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<JobService> jobs_;
  std::unique_ptr<Pipeline> pipeline_;
  Spool spool_;
  Logins logins_;
  MachineService machines_;
  SpoolService files_;
  LogDesk log_desk_;
  LogService logs_;
  Members members_;
  AdministrationService administration_;
  Housekeeper housekeeper_;
  std::atomic<bool> open_{false};
  std::unique_ptr<Orb> orb_;
  ACE_Select_Reactor select_reactor_;
  ACE_Reactor reactor_;
};

// Sets the address in join tokens: server.address, or server.listen, with the host's
// name instead of a wildcard address.
MemberSettings member_settings(const ServerSettings& settings) {
  MemberSettings members;
  members.certificate_us = settings.certificate_valid_us;
  if (!settings.listen) return members;
  members.address = settings.address ? settings.address : settings.listen;
  if (members.address->host == "0.0.0.0" || members.address->host == "::") {
    char name[256] = "localhost";
    gethostname(name, sizeof name - 1);
    members.address->host = name;
  }
  return members;
}

std::string database(const ServerSettings& settings) { return settings.state_folder + "/pool.db"; }
std::string spool_folder(const ServerSettings& settings) {
  return settings.state_folder + "/spool";
}

// A request for job output may have to wait for one order to a workstation that does not
// answer.
LogDeskSettings log_desk_settings(const ServerSettings& settings) {
  LogDeskSettings desk;
  desk.answer_within = std::chrono::milliseconds(2 * settings.call_timeout_ms + 1000);
  return desk;
}

Server::Server(const ServerSettings& settings, VitalSigns* signs)
    : settings_(settings),
      authority_(settings.listen ? read_authority(settings.state_folder) : std::nullopt),
      signs_(signs),
      access_(settings.administrators),
      disk_(settings.state_folder, settings.reserve),
      store_(database(settings)),
      pool_id_(pool_id(database(settings))),
      archive_(database(settings)),
      event_files_(database(settings), settings.state_folder + "/history", system_files()),
      events_({.keep = settings.keep_events, .most_bytes = settings.events_size}, event_files_,
              system_clock().utc_us()),
      questions_(questions()),
      dispatcher_(std::make_unique<Dispatcher>(hooks(), settings.dispatcher_threads)),
      pipeline_(
          std::make_unique<Pipeline>(PipelineSettings{settings.policies, settings.shares,
                                                      settings.queue_limit, settings.group_limit},
                                     store_, system_clock(), listener())),
      spool_({spool_folder(settings), settings.largest_file}, archive_, system_clock()),
      logins_(settings.policies.lease / 1000 +
              protocol::renew_every_ms(settings.policies.lease / 1000)),
      machines_(*pipeline_, archive_, sessions_, access_, *dispatcher_),
      files_(spool_, *pipeline_, archive_, sessions_, access_, [this] { disk_.check(); },
             {settings.quota, settings.quotas, settings.keep_outputs}),
      log_desk_(log_desk_settings(settings),
                [this](auto machine, const auto& request, auto answered) {
                  dispatcher_->read_log(machine, request, std::move(answered));
                }),
      logs_(archive_, spool_, access_, log_desk_),
      members_(member_settings(settings), authority_, *pipeline_, archive_, system_clock()),
      administration_(*pipeline_, archive_, access_,
                      {settings.shares, settings.policies.default_shares}, settings.policies,
                      {settings.quota, settings.quotas, settings.keep_outputs}),
      housekeeper_({.keep_changes = settings.keep_changes,
                    .keep_uses = settings.keep_uses,
                    .keep_jobs = settings.keep_jobs,
                    .history_folder = settings.state_folder + "/history"},
                   *pipeline_, archive_, files_, disk_, sessions_, events_),
      reactor_(&select_reactor_) {
  for (const auto& sentence : pipeline_->damage()) log(Severity::error) << sentence;
  JobSettings jobs;
  jobs.check_room = [this](const std::string& user, uint64_t bytes) {
    files_.check_room(user, bytes);
  };
  jobs_ = std::make_unique<JobService>(
      *pipeline_, archive_, sessions_, access_, questions_, [this] { disk_.check(); }, jobs);
  pipeline_->start();
  pipeline_->perform([this](Turn&) { archive_.serve_apart(); });
  orb_ = std::make_unique<Orb>(orb_settings());
  activate();
}

// Stops the callers first, then the parts they wait for.
Server::~Server() {
  signs_->serving = false;
  housekeeper_.stop();
  jobs_->stop();
  log_desk_.stop();
  questions_.stop();
  pipeline_->stop();
  dispatcher_->stop();
  orb_.reset();
}

Pipeline::Listener Server::listener() {
  Pipeline::Listener l;
  l.decided = [this](const auto& decisions) { dispatcher_->decided(decisions); };
  l.grown = [this](uint64_t last, const std::set<std::string>& users) {
    if (jobs_) jobs_->grown(last, users);
  };
  // Called by the committer itself: another thread could not tell that it hangs.
  l.beat = [this] {
    signs_->beats.fetch_add(1, std::memory_order_relaxed);
    if (pipeline_) signs_->performed = pipeline_->performed();
  };
  l.failed = [this](const std::string& why) { disk_.give_up_reserve(why); };
  l.short_of_memory = [] {
    log(Severity::error) << "there was not enough memory: what needed it was refused";
  };
  return l;
}

Dispatcher::Hooks Server::hooks() {
  Dispatcher::Hooks h;
  h.describe = [this](const auto& start) { return describe(start); };
  h.answered = [this](auto answers) { answered(std::move(answers)); };
  return h;
}

QuestionGate::Settings Server::questions() {
  QuestionGate::Settings gate{settings_.questions, settings_.questions_waiting};
  gate.begin = [this] { archive_.serve_apart(); };
  gate.run = [this](const std::function<void()>& question) {
    archive_.within(std::chrono::microseconds(settings_.question_time_us), question);
  };
  return gate;
}

std::optional<RunRequest> Server::describe(const scheduling::StartAttempt& start) {
  try {
    auto spec = archive_.spec_with_files(start.key.job);
    if (!spec) return std::nullopt;
    return RunRequest{start.key,
                      start.user,
                      for_workstation(std::move(*spec)),
                      start.generation,
                      start.checkpoint_bytes,
                      start.decided,
                      start.ahead};
  } catch (const std::exception& e) {
    log(Severity::error) << "cannot read the description of job " << start.key.job << ": "
                         << e.what();
    return std::nullopt;
  }
}

void Server::answered(std::vector<scheduling::OrderAnswered> answers) {
  // The jobs of the others wait for another machine.
  const bool all_accepted = std::ranges::all_of(answers, [](const auto& one) {
    return one.answer == scheduling::OrderAnswered::Answer::kAccepted;
  });
  const auto apply = [answers = std::move(answers)](Turn& turn) {
    for (const auto& answer : answers) turn.apply(answer);
  };
  try {
    if (all_accepted)
      pipeline_->post_with_next(apply);
    else
      pipeline_->post(apply);
  } catch (const Refusal& refusal) {
    // Stopping or overloaded: the lease decides, as after any lost reply.
    log(Severity::warning) << "a workstation's answer to an order was lost: " << refusal.message;
  }
}

OrbSettings Server::orb_settings() {
  OrbSettings orb;
  orb.listen_path = settings_.socket;
  orb.accept_call_back = true;
  orb.client_call_timeout_ms = settings_.call_timeout_ms;
  orb.max_connections = settings_.max_connections;
  orb.max_connections_per_uid = settings_.max_connections_per_uid;
  // The ORB listens before its servants exist: a client that connected in between would
  // get OBJECT_NOT_EXIST instead of trying again.
  orb.admit = [this](uint32_t) { return open_.load(); };
  orb.log = [](std::string_view line) { log(Severity::warning) << line; };
  if (settings_.listen) orb.network = network();
  orb.loopback_port = settings_.loopback_port;
  return orb;
}

OrbSettings::Network Server::network() {
  if (!authority_)
    throw std::runtime_error(
        "server.listen is set, but this pool has no authority: run "
        "'sublet-server init' first");
  if (authority_->pool != settings_.pool_name)
    throw std::runtime_error("the authority in " + settings_.state_folder +
                             "/authority is for the "
                             "pool '" +
                             authority_->pool + "', but pool.name is '" + settings_.pool_name +
                             "'");
  OrbSettings::Network network;
  network.door.at = *settings_.listen;
  network.door.credentials = authority_->server;
  network.door.patience_ms = settings_.handshake_ms;
  network.door.strangers = settings_.max_strangers;
  network.door.strangers_of_host = settings_.max_strangers_of_host;
  network.admit = [this](const MemberName& who, const std::string& serial) {
    return members_.admit(who, serial);
  };
  network.join = [this](const JoinRequest& request) { return members_.join(request); };
  return network;
}

void Server::activate() {
  members_.cut_off_by([this, &orb = *orb_](uint64_t member) {
    orb.cut(Peer::kFirstMember + member);
    machines_.expel(Peer::kFirstMember + member);
  });
  const Services services{access_,
                          *pipeline_,
                          archive_,
                          sessions_,
                          logins_,
                          *jobs_,
                          machines_,
                          files_,
                          logs_,
                          members_,
                          administration_,
                          questions_,
                          *orb_,
                          settings_.policies.lease / 1000,
                          settings_.policies.tick / 1000,
                          settings_.call_timeout_ms,
                          settings_.pool_name,
                          pool_id_,
                          kOnlyTerm,
                          system_clock().utc_us()};
  const std::pair<const char*, PortableServer::Servant> servants[] = {
      {"JobScheduler", make_job_scheduler(services)},
      {"ExecutionServer", make_execution_server(services)},
      {"MachineAllocator", make_machine_allocator(services)},
      {"AlarmSender", make_alarm_sender(services)},
      {"Spool", make_spool(services)},
      {"Accounting", make_accounting(services)},
      {"Membership", make_membership(services)},
      {"Administration", make_administration(services)},
  };
  for (const auto& [name, servant] : servants) {
    PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId(name);
    orb_->ins_poa()->activate_object_with_id(id, servant);
    servant->_remove_ref();  // the POA holds it now
  }
  open_ = true;
  orb_->open_door();
}

int Server::handle_signal(int, siginfo_t*, ucontext_t*) {
  reactor_.end_reactor_event_loop();
  return 0;
}

// Commands and clients look only where root's server or the service listens.
std::string how_to_find(const std::string& socket) {
  if (socket == kMachinesServer) return "";
  const std::string path = quote_for_shell(std::filesystem::absolute(socket).string());
  return ", which is not the default: write `sublet --server " + path +
         "` (or set SUBLET_SERVER) and `sublet-client --server " + path + "`";
}

int Server::run() {
  ACE_Sig_Set stop;
  stop.sig_add(SIGTERM);
  stop.sig_add(SIGINT);
  reactor_.register_handler(stop, this);
  housekeeper_.start();
  signs_->serving = true;
  log(Severity::info) << "serving at " << settings_.socket << how_to_find(settings_.socket);
  if (settings_.listen)
    log(Severity::info) << "remote members connect by TLS to " << to_text(*settings_.listen);
  reactor_.run_reactor_event_loop();
  log(Severity::info) << "stopping";
  return 0;
}

}  // namespace

int serve(const ServerSettings& settings, VitalSigns* signs) {
  if (signs->life == 1) set_crash_point(settings.crash_at);
  system_files().make_folders(settings.state_folder);
  require_database(system_files(), database(settings), spool_folder(settings));
  Server server(settings, signs);
  return server.run();
}

}  // namespace sublet::server
