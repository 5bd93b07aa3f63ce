#include "cli/pool/pool_client.h"

#include "cli/pool/corba_pool.h"
#include "cli/pool/idl_translation.h"
#include "job/at_most.h"

namespace sublet::cli {

namespace {

constexpr CORBA::ULong kPageItems = v1::PAGE_ITEMS;

std::vector<AttemptInfo> all_attempts(CorbaPool& remote, uint64_t job) {
  std::vector<AttemptInfo> all;
  std::string cursor;
  do {
    v1::AttemptPage_var answer = remote.call(
        [&] { return remote.scheduler->attempts(job, octets_of<v1::Bytes>(cursor), kPageItems); });
    AttemptPage page = from_attempts(answer);
    std::move(page.attempts.begin(), page.attempts.end(), std::back_inserter(all));
    cursor = page.next;
  } while (!cursor.empty());
  return all;
}

std::vector<OutputInfo> all_outputs(CorbaPool& remote, uint64_t job) {
  std::vector<OutputInfo> all;
  std::string cursor;
  do {
    v1::OutputPage_var answer = remote.call(
        [&] { return remote.scheduler->outputs(job, octets_of<v1::Bytes>(cursor), kPageItems); });
    OutputPage page = from_outputs(answer);
    std::move(page.outputs.begin(), page.outputs.end(), std::back_inserter(all));
    cursor = page.next;
  } while (!cursor.empty());
  return all;
}

}  // namespace

PoolClient::PoolClient(const ServerAddress& server, const Patience& patience) {
  try {
    remote_ = std::make_unique<CorbaPool>(server, patience);
  } catch (const OrbError& e) {
    throw PoolError(
        ErrorKind::usage, "server.address", std::string(e.what()) + " (" + server.origin + ")",
        "write --server /PATH/OF/SOCKET, without ':' or ',', or tls://HOST:PORT", server.address);
  }
}

PoolClient::~PoolClient() = default;

void PoolClient::set_unreachable_ms(int ms) { remote_->patience.unreachable_ms = ms; }

uint64_t PoolClient::open_batch(const RequestId& request, const std::string& name,
                                const std::string& submit_host, const StopWhen& stop_when,
                                OnNever on_never, uint64_t at_most) {
  v1::BatchDescription batch{};
  batch.name = to_string(name);
  batch.submit_host = to_string(submit_host);
  Details more = details_of(stop_when);
  if (on_never != OnNever::kHold) more.emplace_back(kNeverSatisfied, on_never_name(on_never));
  if (at_most > 0) more.emplace_back(kAtMost, std::to_string(at_most));
  to_idl(more, batch.more);
  return remote_->call(
      [&] { return remote_->scheduler->open_batch(octets_of<v1::RequestId>(request), batch); });
}

void PoolClient::append(uint64_t batch, uint64_t number, const std::vector<JobDescription>& jobs) {
  v1::JobDescriptions all;
  all.length(static_cast<CORBA::ULong>(jobs.size()));
  for (CORBA::ULong i = 0; i < jobs.size(); ++i) to_idl(jobs[i], all[i]);
  remote_->call([&] { remote_->scheduler->append(batch, number, all); });
}

void PoolClient::append_array(uint64_t batch, uint64_t number, const JobDescription& job,
                              uint64_t first, uint64_t count) {
  v1::JobDescription one;
  to_idl(job, one);
  remote_->call([&] { remote_->scheduler->append_array(batch, number, one, first, count); });
}

void PoolClient::append_sweep(uint64_t batch, uint64_t number, const JobDescription& job,
                              const std::vector<Axis>& axes, uint64_t first_index) {
  v1::JobDescription one;
  to_idl(job, one);
  v1::Axes all;
  to_idl(axes, all);
  remote_->call([&] { remote_->scheduler->append_sweep(batch, number, one, all, first_index); });
}

IdRange PoolClient::commit_batch(const RequestId& request, uint64_t batch) {
  v1::JobRange r = remote_->call(
      [&] { return remote_->committer->commit_batch(octets_of<v1::RequestId>(request), batch); });
  return {r.first, r.count};
}

void PoolClient::discard_batch(uint64_t batch) {
  omni_thread::ensure_self self;  // may be called from the thread that waits for signals
  remote_->once([&] { remote_->leaver->discard_batch(batch); });
}

uint64_t PoolClient::submit(const RequestId& request, const std::string& submit_host,
                            const JobDescription& job) {
  v1::JobDescription one;
  to_idl(job, one);
  CORBA::String_var host = to_string(submit_host);
  return remote_->call(
      [&] { return remote_->scheduler->submit(octets_of<v1::RequestId>(request), host, one); });
}

Control PoolClient::remove(const RequestId& request, const JobFilter& which) {
  v1::Control_var c = remote_->call([&] {
    return remote_->scheduler->remove(octets_of<v1::RequestId>(request), to_filter(which));
  });
  return {c->changed, c->unchanged};
}

Control PoolClient::hold(const RequestId& request, const JobFilter& which) {
  v1::Control_var c = remote_->call([&] {
    return remote_->scheduler->hold(octets_of<v1::RequestId>(request), to_filter(which));
  });
  return {c->changed, c->unchanged};
}

Control PoolClient::release(const RequestId& request, const JobFilter& which) {
  v1::Control_var c = remote_->call([&] {
    return remote_->scheduler->release(octets_of<v1::RequestId>(request), to_filter(which));
  });
  return {c->changed, c->unchanged};
}

Control PoolClient::set_priority(const RequestId& request, const JobFilter& which,
                                 int32_t priority) {
  v1::Control_var c = remote_->call([&] {
    return remote_->scheduler->set_priority(octets_of<v1::RequestId>(request), to_filter(which),
                                            priority);
  });
  return {c->changed, c->unchanged};
}

JobPage PoolClient::list(const JobFilter& which, const std::string& cursor, uint32_t limit) {
  v1::JobPage_var page = remote_->call([&] {
    return remote_->scheduler->list(to_filter(which), octets_of<v1::Bytes>(cursor), limit);
  });
  return from_page(page);
}

JobCounts PoolClient::count(const JobFilter& which) {
  v1::Counts_var counts =
      remote_->call([&] { return remote_->scheduler->count(to_filter(which)); });
  return from_counts(counts);
}

JobDetail PoolClient::show(uint64_t job) {
  v1::JobDetail_var answer = remote_->call([&] { return remote_->scheduler->show(job); });
  JobDetail detail = from_detail(answer);
  if (detail.attempts.size() == v1::SHOWN) detail.attempts = all_attempts(*remote_, job);
  if (detail.outputs.size() == v1::SHOWN) detail.outputs = all_outputs(*remote_, job);
  return detail;
}

LogPart PoolClient::read_log(uint64_t job, uint32_t attempt, FileKind kind, uint64_t offset,
                             int64_t hold_ms) {
  v1::LogPart_var part = remote_->call([&] {
    return remote_->watcher->read_log(job, attempt, static_cast<CORBA::ULong>(kind), offset,
                                      hold_ms);
  });
  return from_log(part);
}

ChangePage PoolClient::changes_since(uint64_t since, int64_t hold_ms) {
  v1::ChangePage_var page =
      remote_->call([&] { return remote_->watcher->changes_since(since, hold_ms); });
  return from_changes(page);
}

PoolInfo PoolClient::about() {
  v1::PoolInfo_var info = remote_->call([&] { return remote_->scheduler->about(); });
  return from_info(info);
}

MachinePage PoolClient::machines(const std::string& cursor, uint32_t limit) {
  v1::MachinePage_var page =
      remote_->call([&] { return remote_->allocator->list(octets_of<v1::Bytes>(cursor), limit); });
  return from_machines(page);
}

Invitation PoolClient::invite(const RequestId& request, const std::string& name, Role role,
                              int64_t valid_ms) {
  CORBA::String_var text = to_string(name);
  v1::InvitationAnswer_var answer = remote_->call([&] {
    return remote_->membership->invite(octets_of<v1::RequestId>(request), text,
                                       static_cast<CORBA::ULong>(role), valid_ms);
  });
  return {answer->token.in(), answer->expires};
}

void PoolClient::revoke(const RequestId& request, const std::string& name) {
  CORBA::String_var text = to_string(name);
  remote_->call([&] { remote_->membership->revoke(octets_of<v1::RequestId>(request), text); });
}

MemberPage PoolClient::members(const std::string& cursor, uint32_t limit) {
  v1::MemberPage_var page =
      remote_->call([&] { return remote_->membership->list(octets_of<v1::Bytes>(cursor), limit); });
  return from_members(page);
}

bool PoolClient::drain(const RequestId& request, uint64_t machine) {
  const auto id = octets_of<v1::RequestId>(request);
  return remote_->call([&] { return remote_->administration->drain(id, machine) != 0; });
}

bool PoolClient::resume(const RequestId& request, uint64_t machine) {
  const auto id = octets_of<v1::RequestId>(request);
  return remote_->call([&] { return remote_->administration->resume(id, machine) != 0; });
}

uint64_t PoolClient::evict(const RequestId& request, uint64_t machine) {
  const auto id = octets_of<v1::RequestId>(request);
  return remote_->call([&] { return uint64_t{remote_->administration->evict(id, machine)}; });
}

void PoolClient::set_shares(const RequestId& request, const std::string& user,
                            std::optional<double> shares) {
  v1::UserShares part{};
  part.user = to_string(user);
  part.shares = shares.value_or(0);
  const auto id = octets_of<v1::RequestId>(request);
  remote_->call([&] { remote_->administration->set_shares(id, part); });
}

void PoolClient::set_quota(const RequestId& request, const std::string& user,
                           std::optional<uint64_t> bytes) {
  v1::Quota bound{};
  bound.user = to_string(user);
  bound.by_administrator = bytes.has_value();
  bound.bytes = bytes.value_or(0);
  const auto id = octets_of<v1::RequestId>(request);
  remote_->call([&] { remote_->administration->set_quota(id, bound); });
}

void PoolClient::set_policies(const RequestId& request, const Details& parameters) {
  v1::Details words;
  to_idl(parameters, words);
  const auto id = octets_of<v1::RequestId>(request);
  remote_->call([&] { remote_->administration->set_policies(id, words); });
}

void PoolClient::give_policies_back(const RequestId& request) {
  const auto id = octets_of<v1::RequestId>(request);
  remote_->call([&] { remote_->administration->give_policies_back(id); });
}

Policies PoolClient::policies_in_force() {
  v1::Policies_var policies =
      remote_->call([&] { return remote_->administration->policies_in_force(); });
  return from_policies(policies);
}

SharesPage PoolClient::shares(const std::string& cursor, uint32_t limit) {
  v1::SharesPage_var page = remote_->call(
      [&] { return remote_->administration->shares(octets_of<v1::Bytes>(cursor), limit); });
  return from_shares(page);
}

QuotaPage PoolClient::quotas(const std::string& cursor, uint32_t limit) {
  v1::QuotaPage_var page = remote_->call(
      [&] { return remote_->administration->quotas(octets_of<v1::Bytes>(cursor), limit); });
  return from_quotas(page);
}

UsagePage PoolClient::usage(const ReportQuery& query, const std::string& cursor, uint32_t limit) {
  v1::UsagePage_var page = remote_->call([&] {
    return remote_->accounting->usage(to_query(query), octets_of<v1::Bytes>(cursor), limit);
  });
  return from_usage(page);
}

std::vector<Standing> PoolClient::current_standings() {
  std::vector<Standing> all;
  std::string cursor;
  do {
    v1::StandingPage_var answer = remote_->call([&] {
      return remote_->accounting->current_standings(octets_of<v1::Bytes>(cursor), kPageItems);
    });
    StandingPage page = from_standings(answer);
    std::move(page.standings.begin(), page.standings.end(), std::back_inserter(all));
    cursor = page.next;
  } while (!cursor.empty());
  return all;
}

Upload PoolClient::open_upload(const RequestId& request, const FilePlace& place, uint64_t size,
                               const std::optional<Digest>& digest) {
  v1::Upload_var u = remote_->call([&] {
    return remote_->spool->open_upload(octets_of<v1::RequestId>(request), to_place(place), size,
                                       digest ? octets_of<v1::Digest>(*digest) : v1::Digest());
  });
  return {u->id, u->offset};
}

uint64_t PoolClient::put(uint64_t upload, uint64_t offset, const std::string& chunk) {
  // Passed without a copy; the ORB only reads it.
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
  omni_thread::ensure_self self;  // called from the transfer's threads
  v1::Bytes_var bytes =
      remote_->call([&] { return remote_->spool->get(to_place(place), offset, count); });
  return from_octets(bytes.in());
}

}  // namespace sublet::cli
