#include "cli/pool_client.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/files.h"
#include "base/local_socket.h"
#include "base/orb.h"
#include "cli/idl_translation.h"
#include "cli/members.h"

namespace sublet::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSocketGap = std::chrono::milliseconds(300);
constexpr auto kFirstPause = std::chrono::milliseconds(5);
constexpr auto kPause = std::chrono::milliseconds(100);  // at most, between two tries
constexpr int64_t kHoldMax = 10'000;
constexpr int kCommitFactor = 6;

template <typename E>
PoolError translated(ErrorKind kind, const E& e) {
  return {kind, e.code.in(), e.message.in(), e.advice.in(), e.subject.in()};
}

// What is wrong with the socket itself: the errno of connecting to it, 0 when
// somebody listens.
int socket_errno(const std::string& path) {
  try {
    connect_local(SocketKind::stream, path, true);
    return 0;
  } catch (const OsError& e) {
    return e.code() == EAGAIN ? 0 : e.code();
  }
}

PoolError unreachable(const std::string& path, int code, const std::string& why) {
  std::string start =
      "start sublet-server there, or name another socket with --server or $SUBLET_SERVER";
  switch (code) {
    case ENOENT:
    case ENOTDIR:
      return {ErrorKind::unavailable, "server.down", "no server at " + path + " (no such socket)",
              start, path};
    case ECONNREFUSED:
      return {ErrorKind::unavailable, "server.down", "no server answers at " + path, start, path};
    case EACCES:
    case EPERM:
      return {ErrorKind::not_permitted, "server.no_access",
              "you may not connect to the server at " + path,
              "ask the administrator for access to that folder", path};
    default:
      return {ErrorKind::unavailable, "server.unreachable",
              "the server at " + path + " cannot be reached: " + why,
              "try again; the server's log says more", path};
  }
}

PoolError from_call_error(const std::string& path, const CallError& error) {
  switch (error.kind) {
    case CallFailure::kTimeout:
      return {ErrorKind::unavailable, "server.timeout",
              "the server at " + path + " does not answer in time",
              "see whether it is overloaded or stopped; --timeout gives it longer", path};
    case CallFailure::kRefused:
      return {ErrorKind::not_permitted, "server.refused",
              "the server at " + path + " refuses the call: " + error.text, "ask the administrator",
              path};
    case CallFailure::kGone:
      return {ErrorKind::unavailable, "server.lacks",
              "what answers at " + path + " does not know this operation",
              "see that command and server are of the same version", path};
    case CallFailure::kProtocol:
      return {ErrorKind::invalid, "call.protocol",
              "the server at " + path + " did not understand the call: " + error.text,
              "see that command and server are of the same version", path};
    default:
      return {ErrorKind::unavailable, "server.failed",
              "the server at " + path + " failed in the call: " + error.text,
              "its log says more; try again", path};
  }
}

PoolError marked(PoolError error, bool maybe_done) {
  error.maybe_done = maybe_done;
  return error;
}

// Inside a catch block: the contract's exceptions as ours; the ORB's pass.
[[noreturn]] void rethrow_translated() {
  try {
    throw;
  } catch (const v1::Invalid& e) {
    throw translated(ErrorKind::invalid, e);
  } catch (const v1::NotFound& e) {
    throw translated(ErrorKind::not_found, e);
  } catch (const v1::NotPermitted& e) {
    throw translated(ErrorKind::not_permitted, e);
  } catch (const v1::Conflict& e) {
    throw translated(ErrorKind::conflict, e);
  } catch (const v1::LimitExceeded& e) {
    throw translated(ErrorKind::limit_exceeded, e);
  } catch (const v1::Unavailable& e) {
    throw translated(ErrorKind::unavailable, e);
  }
}

OrbSettings client_settings(const std::string& server, const Patience& patience) {
  OrbSettings settings;
  settings.client_call_timeout_ms = patience.call_timeout_ms;
  settings.membership = membership_at(server);
  return settings;
}

// Why a server elsewhere would not have us, or we would not have it.
PoolError from_dial_failure(const std::string& server, const DialFailure& failure) {
  const bool unreached = failure.code.starts_with("server.");
  return {unreached ? ErrorKind::unavailable : ErrorKind::not_permitted, failure.code,
          failure.message, failure.advice, server};
}

// A passing state of the server, in which the same call may be made again.
bool passes(const PoolError& e) {
  return e.kind == ErrorKind::unavailable &&
         (e.code == "server.stopping" || e.code == "server.starting" || e.code == "server.busy");
}

}  // namespace

struct PoolClient::Remote {
  Remote(const std::string& socket_path, const Patience& p)
      : path(socket_path), patience(p), orb(client_settings(socket_path, p)) {
    scheduler = resolve<v1::JobScheduler>("JobScheduler");
    watcher = resolve<v1::JobScheduler>("JobScheduler");
    committer = resolve<v1::JobScheduler>("JobScheduler");
    leaver = resolve<v1::JobScheduler>("JobScheduler");
    allocator = resolve<v1::MachineAllocator>("MachineAllocator");
    membership = resolve<v1::Membership>("Membership");
    accounting = resolve<v1::Accounting>("Accounting");
    spool = resolve<v1::Spool>("Spool");
    set_call_timeout(watcher, patience.call_timeout_ms + static_cast<int>(kHoldMax));
    // A million jobs take their time, and a repeat would only add to the work.
    set_call_timeout(committer, patience.call_timeout_ms * kCommitFactor);
    set_call_timeout(leaver, 1000);
  }

  template <typename T>
  typename T::_ptr_type resolve(const char* key) {
    CORBA::Object_var object = orb.resolve(path, key);
    return T::_unchecked_narrow(object);
  }

  // One try. Returns what f returns.
  template <typename F>
  auto once(F f) -> decltype(f()) {
    try {
      return f();
    } catch (const CORBA::UserException&) {
      rethrow_translated();
    } catch (const CORBA::SystemException& e) {
      CallError error = describe(e);
      const auto failure = orb.dial_failure();
      if (error.kind == CallFailure::kUnreachable && failure)
        throw marked(from_dial_failure(path, *failure), error.maybe_done);
      if (error.kind == CallFailure::kUnreachable)
        throw marked(unreachable(path, socket_errno(path), error.text), error.maybe_done);
      throw marked(from_call_error(path, error), error.maybe_done);
    }
  }

  // Repeats while that makes sense (see the header).
  template <typename F>
  auto call(F f) -> decltype(f()) {
    const auto start = Clock::now();
    const auto end = start + std::chrono::milliseconds(patience.unreachable_ms);
    auto pause = kFirstPause;
    bool maybe_done = false;
    for (int timeouts = 0;; pause = std::min(2 * pause, kPause)) {
      try {
        return once(f);
      } catch (PoolError& e) {
        e.maybe_done = maybe_done = maybe_done || e.maybe_done;
        bool again = false;
        if (e.code == "server.timeout") again = ++timeouts < patience.tries_after_timeout;
        if (e.code == "server.down" || e.code == "server.unreachable" || passes(e))
          again = Clock::now() + pause < (socket_is_missing() ? start + kSocketGap : end);
        if (!again) throw;
        std::this_thread::sleep_for(pause);
      }
    }
  }

  // It is not about to come back, except for one who waits, and for a moment while a
  // server that was started again puts its own in place.
  bool socket_is_missing() const {
    return patience.unreachable_ms <= Patience{}.unreachable_ms && !path.starts_with(kTlsScheme) &&
           socket_errno(path) == ENOENT;
  }

  std::string path;
  Patience patience;
  Orb orb;
  v1::JobScheduler_var scheduler;
  v1::JobScheduler_var watcher;  // for calls that the server holds
  v1::JobScheduler_var committer;
  v1::JobScheduler_var leaver;  // for the way out
  v1::MachineAllocator_var allocator;
  v1::Membership_var membership;
  v1::Accounting_var accounting;
  v1::Spool_var spool;
};

PoolClient::PoolClient(const std::string& server, const Patience& patience) {
  try {
    remote_ = std::make_unique<Remote>(server, patience);
  } catch (const OrbError& e) {
    throw PoolError(ErrorKind::usage, "server.address", e.what(),
                    "name the server's Unix socket with --server", server);
  }
}

PoolClient::~PoolClient() = default;

void PoolClient::set_unreachable_ms(int ms) { remote_->patience.unreachable_ms = ms; }

uint64_t PoolClient::open_batch(const RequestId& request, const std::string& name,
                                const std::string& submit_host, const StopWhen& stop_when) {
  v1::BatchDescription batch;
  batch.name = to_string(name);
  batch.submit_host = to_string(submit_host);
  batch.more = to_details(stop_when);
  return remote_->call([&] { return remote_->scheduler->open_batch(to_request(request), batch); });
}

void PoolClient::append(uint64_t batch, uint64_t number, const std::vector<JobDescription>& jobs) {
  v1::JobDescriptions all;
  all.length(static_cast<CORBA::ULong>(jobs.size()));
  for (CORBA::ULong i = 0; i < jobs.size(); ++i) all[i] = to_description(jobs[i]);
  remote_->call([&] { remote_->scheduler->append(batch, number, all); });
}

void PoolClient::append_array(uint64_t batch, uint64_t number, const JobDescription& job,
                              uint64_t first, uint64_t count) {
  v1::JobDescription one = to_description(job);
  remote_->call([&] { remote_->scheduler->append_array(batch, number, one, first, count); });
}

void PoolClient::append_sweep(uint64_t batch, uint64_t number, const JobDescription& job,
                              const std::vector<Axis>& axes, uint64_t first_index) {
  v1::JobDescription one = to_description(job);
  v1::Axes all;
  all.length(static_cast<CORBA::ULong>(axes.size()));
  for (CORBA::ULong i = 0; i < axes.size(); ++i) all[i] = to_axis(axes[i]);
  remote_->call([&] { remote_->scheduler->append_sweep(batch, number, one, all, first_index); });
}

IdRange PoolClient::commit_batch(const RequestId& request, uint64_t batch) {
  v1::JobRange r =
      remote_->call([&] { return remote_->committer->commit_batch(to_request(request), batch); });
  return {r.first, r.count};
}

void PoolClient::discard_batch(uint64_t batch) {
  omni_thread::ensure_self self;  // may come from the thread that waits for signals
  remote_->once([&] { remote_->leaver->discard_batch(batch); });
}

uint64_t PoolClient::submit(const RequestId& request, const std::string& submit_host,
                            const JobDescription& job) {
  v1::JobDescription one = to_description(job);
  CORBA::String_var host = to_string(submit_host);
  return remote_->call([&] { return remote_->scheduler->submit(to_request(request), host, one); });
}

Control PoolClient::remove(const RequestId& request, const JobFilter& which) {
  v1::Control c = remote_->call(
      [&] { return remote_->scheduler->remove(to_request(request), to_filter(which)); });
  return {c.changed, c.unchanged};
}

Control PoolClient::hold(const RequestId& request, const JobFilter& which) {
  v1::Control c = remote_->call(
      [&] { return remote_->scheduler->hold(to_request(request), to_filter(which)); });
  return {c.changed, c.unchanged};
}

Control PoolClient::release(const RequestId& request, const JobFilter& which) {
  v1::Control c = remote_->call(
      [&] { return remote_->scheduler->release(to_request(request), to_filter(which)); });
  return {c.changed, c.unchanged};
}

JobPage PoolClient::list(const JobFilter& which, const std::string& cursor, uint32_t limit) {
  v1::JobPage_var page = remote_->call(
      [&] { return remote_->scheduler->list(to_filter(which), to_bytes(cursor), limit); });
  return from_page(page);
}

JobCounts PoolClient::count(const JobFilter& which) {
  return from_counts(remote_->call([&] { return remote_->scheduler->count(to_filter(which)); }));
}

JobDetail PoolClient::show(uint64_t job) {
  v1::JobDetail_var detail = remote_->call([&] { return remote_->scheduler->show(job); });
  return from_detail(detail);
}

LogPart PoolClient::read_log(uint64_t job, uint32_t attempt, uint32_t kind, uint64_t offset,
                             int64_t hold_ms) {
  v1::LogPart_var part = remote_->call(
      [&] { return remote_->watcher->read_log(job, attempt, kind, offset, hold_ms); });
  return from_log(part);
}

ChangePage PoolClient::changes_since(uint64_t since, int64_t hold_ms) {
  v1::ChangePage_var page =
      remote_->call([&] { return remote_->watcher->changes_since(since, hold_ms); });
  return from_changes(page);
}

Details PoolClient::about() {
  v1::Details_var details = remote_->call([&] { return remote_->scheduler->about(); });
  return from_details(details);
}

MachinePage PoolClient::machines(const std::string& cursor, uint32_t limit) {
  v1::MachinePage_var page =
      remote_->call([&] { return remote_->allocator->list(to_bytes(cursor), limit); });
  return from_machines(page);
}

Invitation PoolClient::invite(const RequestId& request, const std::string& name, Role role,
                              int64_t valid_ms) {
  CORBA::String_var text = to_string(name);
  v1::InvitationAnswer_var answer = remote_->call([&] {
    return remote_->membership->invite(to_request(request), text, static_cast<CORBA::ULong>(role),
                                       valid_ms);
  });
  return {answer->token.in(), answer->expires};
}

void PoolClient::revoke(const RequestId& request, const std::string& name) {
  CORBA::String_var text = to_string(name);
  remote_->call([&] { remote_->membership->revoke(to_request(request), text); });
}

MemberPage PoolClient::members(const std::string& cursor, uint32_t limit) {
  v1::MemberPage_var page =
      remote_->call([&] { return remote_->membership->list(to_bytes(cursor), limit); });
  return from_members(page);
}

UsagePage PoolClient::usage(const ReportQuery& query, const std::string& cursor, uint32_t limit) {
  v1::UsagePage_var page = remote_->call(
      [&] { return remote_->accounting->usage(to_query(query), to_bytes(cursor), limit); });
  return from_usage(page);
}

std::vector<Standing> PoolClient::current_standings() {
  v1::Standings_var all = remote_->call([&] { return remote_->accounting->current_standings(); });
  return from_standings(all);
}

Upload PoolClient::open_upload(const RequestId& request, const FilePlace& place, uint64_t size,
                               const std::optional<Digest>& digest) {
  v1::Upload u = remote_->call([&] {
    return remote_->spool->open_upload(to_request(request), to_place(place), size,
                                       digest ? to_digest(*digest) : v1::Digest());
  });
  return {u.id, u.offset};
}

uint64_t PoolClient::put(uint64_t upload, uint64_t offset, const std::string& chunk) {
  // Lent, not copied; the ORB only reads it.
  const auto size = static_cast<CORBA::ULong>(chunk.size());
  const v1::Bytes bytes(size, size,
                        reinterpret_cast<CORBA::Octet*>(const_cast<char*>(chunk.data())), false);
  return remote_->once([&] { return remote_->spool->put(upload, offset, bytes); });
}

uint64_t PoolClient::close_upload(uint64_t upload) {
  return remote_->call([&] { return remote_->spool->close_upload(upload); });
}

void PoolClient::discard_outputs(uint64_t job) {
  remote_->call([&] { remote_->spool->discard_outputs(job); });
}

void PoolClient::doubt(const FilePlace& place) {
  FilePlace suspect = place;
  suspect.suspect = true;
  remote_->call([&] { v1::FileInfo_var info = remote_->spool->stat(to_place(suspect)); });
}

std::string PoolClient::get(const FilePlace& place, uint64_t offset, uint32_t count) {
  omni_thread::ensure_self self;  // asked for on threads of the transfer's own
  v1::Bytes_var bytes =
      remote_->call([&] { return remote_->spool->get(to_place(place), offset, count); });
  return from_bytes(bytes);
}

}  // namespace sublet::cli
