#include "server/archive.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/log.h"
#include "server/archive_connections.h"
#include "server/sql_row.h"

namespace sublet::server {
namespace {

using scheduling::JobRange;

// In order, without overlaps, and no longer than ids in the database can be.
std::vector<JobRange> tidy(std::vector<JobRange> ranges) {
  constexpr JobId kLast = std::numeric_limits<int64_t>::max();
  std::sort(ranges.begin(), ranges.end(),
            [](const JobRange& a, const JobRange& b) { return a.first < b.first; });
  std::vector<JobRange> tidied;
  for (JobRange range : ranges) {
    if (range.count == 0 || range.first >= kLast) continue;
    range.count = std::min(range.count, kLast - range.first);
    if (!tidied.empty() && range.first <= tidied.back().first + tidied.back().count) {
      JobRange& last = tidied.back();
      last.count = std::max(last.first + last.count, range.first + range.count) - last.first;
    } else {
      tidied.push_back(range);
    }
  }
  return tidied;
}

// Rows that stand for a job of this range: those that begin in it, and the one
// before if it is an array that reaches into it.
std::string overlaps(const JobRange& range) {
  const std::string first = std::to_string(range.first);
  return "(jobs.id >= coalesce((select max(id) from jobs where id <= " + first + "), 0)" +
         " and jobs.id <= " + std::to_string(range.first + range.count - 1) +
         " and jobs.id + jobs.count > " + first + ")";
}

// The condition of a JobQuery but for its ids. Numbers are written into the
// text, since they cannot carry SQL; the user's name is bound as :user.
std::string where(const JobQuery& query) {
  std::string text = "1 = 1";
  if (query.batch) text += " and jobs.batch = " + std::to_string(query.batch);
  if (!query.states.empty()) {
    std::string list;
    for (uint32_t s : query.states) list += (list.empty() ? "" : ", ") + std::to_string(s);
    text += " and jobs.state in (" + list + ")";
  }
  if (query.unfinished_only) text += " and jobs.state < 5";
  if (query.stopped != JobQuery::Stopped::kAny)
    text += std::string(" and ") + (query.stopped == JobQuery::Stopped::kOnly ? "" : "not ") +
            "(jobs.state = 7 and exists (select 1 from stops where stops.batch = jobs.batch and "
            "stops.stopped_by > 0))";
  text += " and (:user = '' or jobs.user_name = :user)";
  return text;
}

// Of the description that covers a job; `id`: a column or a number.
std::string name_of(const std::string& id) {
  return "coalesce((select name from specs where first_job <= " + id +
         " order by first_job desc limit 1), '')";
}
constexpr const char* kMachineOfJob =
    "coalesce((select machine from attempts where attempts.job = jobs.id and attempts.attempt = "
    "jobs.attempts), 0)";

JobRow job_row(const soci::row& r) {
  JobRow row;
  row.job = job_from(r);
  row.name = r.get<std::string>(29);
  row.machine = integer(r, 30);
  return row;
}

// What a record stands for inside the range, which it overlaps.
scheduling::JobRecord part_of(const scheduling::JobRecord& record, const JobRange& range) {
  if (record.count == 1) return record;
  const JobId first = std::max(record.id, range.first);
  scheduling::JobRecord part = scheduling::one_of(record, first - record.id);
  part.count = std::min(record.id + record.count, range.first + range.count) - first;
  part.share_priority_step = record.share_priority_step;
  return part;
}

EndRow end_from(const soci::row& r, size_t at) {
  EndRow e;
  e.exit_status = integer(r, at);
  e.signal = integer(r, at + 1);
  e.memory_peak = integer(r, at + 2);
  e.checkpoint_bytes = integer(r, at + 3);
  e.resumed_ppm = integer(r, at + 4);
  e.progress_ppm = integer(r, at + 5);
  e.quiesce_us = integer(r, at + 6);
  e.stdout_cut = integer(r, at + 7) != 0;
  e.stderr_cut = integer(r, at + 8) != 0;
  return e;
}

}  // namespace

Archive::Archive(const std::string& path) {
  try {
    connections_ = std::make_unique<Connections>(path, 2);
    reports_ = std::make_unique<Connections>(path, 1);
  } catch (const soci::soci_error& e) {
    throw StoreError("cannot open the database " + path + ": " + e.get_error_message());
  }
}

Archive::~Archive() = default;

void Archive::serve_apart() { connections_->serve_apart(); }

JobPage Archive::runs(const JobQuery& query, JobId after, uint32_t limit) {
  constexpr JobId kEnd = std::numeric_limits<int64_t>::max();
  std::vector<JobRange> ranges = query.ids;
  if (ranges.empty()) ranges = {{0, kEnd}};
  JobPage page;
  for (JobRange range : tidy(ranges)) {
    const JobId end = range.first + range.count;
    if (end <= after + 1) continue;
    if (range.first <= after) range = {after + 1, end - after - 1};
    add_runs(query, range, limit, page);
    if (page.next != 0) break;
  }
  return page;
}

namespace {

// The last job that the row stands for, inside the range; of a damaged one at
// least the range's first.
JobId last_of(const soci::row& r, const JobRange& range) {
  JobId last = range.first;
  try {
    last = std::max<JobId>(last, integer(r, 0));
    last = std::max<JobId>(last, integer(r, 0) + integer(r, 26) - 1);
  } catch (const std::exception&) {
  }
  return std::min(last, range.first + range.count - 1);
}

}  // namespace

// Appends what lies in this range until `limit` rows were read; then the page has
// a next one.
void Archive::add_runs(const JobQuery& query, const JobRange& range, uint32_t limit,
                       JobPage& page) {
  connections_->with([&](soci::session& sql) {
    const size_t room = limit - page.rows.size();
    size_t read = 0;
    JobId last = 0;
    soci::rowset<soci::row> rows =
        (sql.prepare << "select jobs.*, " << name_of("jobs.id") << ", " << kMachineOfJob
                     << " from jobs where " << overlaps(range) << " and " << where(query)
                     << " order by jobs.id limit " << room,
         soci::use(query.user, "user"));
    for (const auto& r : rows) {
      ++read;
      last = last_of(r, range);
      JobRow row;
      try {
        row = job_row(r);
      } catch (const std::exception& e) {
        log(Severity::error) << "a row of table jobs was left out: " << e.what();
        continue;
      }
      const JobId begin = row.job.id;
      row.job = part_of(row.job, range);
      if (row.job.id != begin)
        sql << "select " << name_of(std::to_string(row.job.id)), soci::into(row.name);
      page.rows.push_back(std::move(row));
    }
    if (read == room) page.next = last;
  });
}

// Appends the run in the pieces that have a description of their own, up to
// `limit` rows in all. False: there is more of it.
bool Archive::add_described(const JobRow& run, uint32_t limit, JobPage& page) {
  const JobId end = run.job.id + run.job.count;
  JobRow rest = run;
  const auto add_until = [&](JobId next) {
    page.rows.push_back(rest);
    page.rows.back().job = part_of(rest.job, {rest.job.id, next - rest.job.id});
    if (next < end) rest.job = part_of(rest.job, {next, end - next});
  };
  if (run.job.count > 1) {
    connections_->with([&](soci::session& sql) {
      soci::rowset<soci::row> rows =
          (sql.prepare << "select first_job, name from specs where first_job > " << run.job.id
                       << " and first_job < " << end << " order by first_job limit "
                       << limit - page.rows.size());
      for (const auto& r : rows) {
        try {
          const JobId next = integer(r, 0);
          std::string name = r.get<std::string>(1);
          add_until(next);
          rest.name = std::move(name);
        } catch (const std::exception& e) {
          log(Severity::error) << "a row of table specs was left out: " << e.what();
        }
      }
    });
  }
  if (page.rows.size() == limit) return false;
  add_until(end);
  return true;
}

JobPage Archive::described_runs(const JobQuery& query, JobId after, uint32_t limit) {
  const JobPage all = runs(query, after, limit);
  JobPage page;
  page.next = all.next;
  for (const JobRow& run : all.rows) {
    if (page.rows.size() < limit && add_described(run, limit, page)) continue;
    page.next = page.rows.back().job.id + page.rows.back().job.count - 1;
    break;
  }
  return page;
}

JobPage Archive::jobs(const JobQuery& query, JobId after, uint32_t limit) {
  const JobPage all = described_runs(query, after, limit);
  JobPage page;
  for (const JobRow& run : all.rows) {
    for (uint64_t k = 0; k < run.job.count; ++k) {
      if (page.rows.size() == limit) {
        page.next = page.rows.back().job.id;
        return page;
      }
      page.rows.push_back(run);
      page.rows.back().job = scheduling::one_of(run.job, k);
    }
  }
  page.next = all.next;
  return page;
}

std::vector<std::pair<uint32_t, uint64_t>> Archive::count(const JobQuery& query) {
  std::map<uint32_t, uint64_t> counts;
  std::vector<JobRange> ranges = query.ids;
  if (ranges.empty()) ranges = {{0, std::numeric_limits<int64_t>::max()}};
  for (const JobRange& range : tidy(ranges)) {
    const std::string inside = "min(jobs.id + jobs.count, " +
                               std::to_string(range.first + range.count) + ") - max(jobs.id, " +
                               std::to_string(range.first) + ")";
    connections_->with([&](soci::session& sql) {
      soci::rowset<soci::row> rows =
          (sql.prepare << "select jobs.state, sum(" << inside << ") from jobs where "
                       << overlaps(range) << " and " << where(query) << " group by jobs.state",
           soci::use(query.user, "user"));
      for (const auto& r : rows) counts[integer(r, 0)] += integer(r, 1);
    });
  }
  return {counts.begin(), counts.end()};
}

std::optional<JobRow> Archive::job(JobId id) {
  JobQuery query;
  query.ids = {{id, 1}};
  auto rows = jobs(query, id - 1, 1).rows;
  if (rows.empty()) return std::nullopt;
  return std::move(rows.front());
}

std::vector<AttemptRow> Archive::attempts(JobId id) {
  return connections_->with([&](soci::session& sql) {
    std::vector<AttemptRow> result;
    soci::rowset<soci::row> rows =
        (sql.prepare << "select a.*, coalesce(m.name, 'gone'), coalesce(e.exit_status, -1), "
                        "coalesce(e.signal, 0), coalesce(e.memory_peak, 0), "
                        "coalesce(e.checkpoint_bytes, 0), coalesce(e.resumed_ppm, -1), "
                        "coalesce(e.progress_ppm, -1), coalesce(e.quiesce_us, -1), "
                        "coalesce(e.stdout_cut, 0), coalesce(e.stderr_cut, 0) from attempts a "
                        "left join machines m on m.id = a.machine left join ends e on e.job = "
                        "a.job and e.attempt = a.attempt where a.job = "
                     << id << " order by a.attempt");
    for (const auto& r : rows) {
      AttemptRow row;
      row.attempt = attempt_from(r);
      row.machine_name = r.get<std::string>(15);
      row.end = end_from(r, 16);
      row.end.key = row.attempt.key;
      result.push_back(row);
    }
    return result;
  });
}

namespace {

// The first column of the first row; 0: there is none.
uint64_t number_of(soci::session& sql, const std::string& query) {
  long long value = 0;
  soci::indicator indicator = soci::i_null;
  sql << query, soci::into(value, indicator);
  return indicator == soci::i_ok ? value : 0;
}

// With `body` (a column or a text), the columns that file_from() reads.
std::string select_files(const char* body) {
  return std::string(
             "select f.id, f.kind, f.batch, f.job, f.attempt, f.generation, f.name, f.size, "
             "f.digest, f.in_row, ") +
         body +
         ", f.counts, f.user_name, f.content, coalesce(c.identity, ''), coalesce(c.damaged, 0) "
         "from files f left join contents c on c.id = f.content ";
}
const std::string kFile = select_files("f.body");
const std::string kFileWithoutBody = select_files("''");

std::vector<FileRow> files_of(soci::session& sql, const std::string& query) {
  std::vector<FileRow> result;
  soci::rowset<soci::row> rows = (sql.prepare << query);
  for (const auto& r : rows) result.push_back(file_from(r));
  return result;
}

std::optional<FileRow> one_file(soci::session& sql, const std::string& condition,
                                const std::string& name = "") {
  soci::rowset<soci::row> rows =
      (sql.prepare << kFile << "where (:name = '' or f.name = :name) and " << condition,
       soci::use(name, "name"));
  for (const auto& r : rows) return file_from(r);
  return std::nullopt;
}
}  // namespace

std::vector<FileRow> Archive::outputs(JobId id) {
  return connections_->with([&](soci::session& sql) {
    return files_of(sql, kFileWithoutBody + "where f.job = " + std::to_string(id) +
                             " and f.job > 0 and f.kind >= 3 and f.counts = 1 and f.attempt = "
                             "(select attempts from jobs where jobs.id = f.job) order by f.id");
  });
}

std::optional<JobSpec> Archive::spec(JobId id) {
  uint64_t first = 0;
  const auto range = spec_range(id, &first);
  if (!range) return std::nullopt;
  return spec_at(*range, id - first);
}

std::optional<SpecPlace> Archive::spec_place(JobId id) {
  uint64_t first = 0;
  const auto range = spec_range(id, &first);
  if (!range) return std::nullopt;
  return SpecPlace{range, id - first};
}

std::string Archive::awaited_output(JobId id) {
  return connections_->with([&](soci::session& sql) {
    std::string output;
    sql << "select stop_output from stops where stopped_by = 0 and batch = (select batch from "
           "jobs where id = "
        << id << ")",
        soci::into(output);
    return sql.got_data() ? output : std::string();
  });
}

// Null when that job has none.
std::shared_ptr<const SpecRange> Archive::spec_range(JobId id, uint64_t* first_job) {
  auto range = specs_.find(id, first_job);
  if (!range) range = read_spec(id, first_job);
  if (!range || id - *first_job >= range->count) return nullptr;
  return range;
}

// Null when there is none for that job or a row before it.
std::shared_ptr<const SpecRange> Archive::read_spec(JobId id, uint64_t* first_job) {
  long long first = 0;
  std::string body;
  const bool found = connections_->with([&](soci::session& sql) {
    sql << "select first_job, body from specs where first_job <= " << id
        << " order by first_job desc limit 1",
        soci::into(first), soci::into(body);
    return sql.got_data();
  });
  if (!found) return nullptr;
  auto ranges = decode_specs(body);
  if (ranges.size() != 1) return nullptr;
  *first_job = static_cast<uint64_t>(first);
  auto range = std::make_shared<const SpecRange>(std::move(ranges[0]));
  if (range->is_array) specs_.keep(*first_job, range);
  return range;
}

std::optional<BatchRow> Archive::batch(BatchId id) {
  return connections_->with([&](soci::session& sql) -> std::optional<BatchRow> {
    soci::rowset<soci::row> rows = (sql.prepare << "select * from batches where id = " << id);
    for (const auto& r : rows) return batch_from(r);
    return std::nullopt;
  });
}

std::optional<PartRow> Archive::part(BatchId id, uint32_t number) {
  return connections_->with([&](soci::session& sql) -> std::optional<PartRow> {
    PartRow part{id, number, 0, ""};
    long long jobs = 0;
    sql << "select jobs, body from parts where batch = " << id << " and number = " << number,
        soci::into(jobs), soci::into(part.body);
    if (!sql.got_data()) return std::nullopt;
    part.jobs = static_cast<uint64_t>(jobs);
    return part;
  });
}

uint64_t Archive::jobs_of_parts(BatchId id) {
  return connections_->with([&](soci::session& sql) {
    return number_of(sql, "select sum(jobs) from parts where batch = " + std::to_string(id));
  });
}

std::vector<PartRow> Archive::parts(BatchId id) {
  return connections_->with([&](soci::session& sql) {
    std::vector<PartRow> result;
    soci::rowset<soci::row> rows = (sql.prepare << "select number, jobs, body from parts where "
                                                   "batch = "
                                                << id << " order by number");
    for (const auto& r : rows) {
      PartRow part;
      part.batch = id;
      part.number = integer(r, 0);
      part.jobs = integer(r, 1);
      part.body = r.get<std::string>(2);
      result.push_back(std::move(part));
    }
    return result;
  });
}

std::vector<BatchRow> Archive::open_batches_before(Micros touched) {
  return connections_->with([&](soci::session& sql) {
    std::vector<BatchRow> result;
    soci::rowset<soci::row> rows =
        (sql.prepare << "select * from batches where committed = 0 and touched < " << touched);
    for (const auto& r : rows) result.push_back(batch_from(r));
    return result;
  });
}

std::optional<FileRow> Archive::file(uint64_t id) {
  return connections_->with(
      [&](soci::session& sql) { return one_file(sql, "f.id = " + std::to_string(id)); });
}

std::vector<FileRow> Archive::checkpoints(JobId job, uint64_t newest) {
  return connections_->with([&](soci::session& sql) {
    return files_of(sql, kFile + "where f.job > 0 and f.job = " + std::to_string(job) +
                             " and f.kind = 2 and f.generation <= " + std::to_string(newest) +
                             " order by f.generation desc, f.id desc limit 10");
  });
}

std::optional<FileRow> Archive::output(JobId job, FileKind kind, const std::string& name) {
  return connections_->with([&](soci::session& sql) {
    return one_file(sql,
                    "f.job > 0 and f.job = " + std::to_string(job) +
                        " and f.counts = 1 and f.attempt = (select attempts from jobs where "
                        "jobs.id = f.job) and f.kind = " +
                        std::to_string(static_cast<uint32_t>(kind)),
                    kind == FileKind::kOutput ? name : "");
  });
}

std::vector<uint64_t> Archive::content_ids() {
  return connections_->with([&](soci::session& sql) {
    std::vector<uint64_t> result;
    soci::rowset<soci::row> rows = (sql.prepare << "select id from contents");
    for (const auto& r : rows) result.push_back(integer(r, 0));
    return result;
  });
}

std::vector<FileRow> Archive::unneeded_files(uint64_t& after, uint32_t examined) {
  return connections_->with([&](soci::session& sql) {
    const std::string from = std::to_string(after);
    // With `examined` or more left, the last of them.
    after = number_of(sql, "select id from files where id > " + from +
                               " order by id limit 1 offset " + std::to_string(examined - 1));
    const std::string to = after ? " and f.id <= " + std::to_string(after) : "";
    return files_of(
        sql,
        kFileWithoutBody + "where f.id > " + from + to +
            " and ((f.kind = 1 and (not exists (select 1 from batches b where "
            "b.id = f.batch) or (exists (select 1 from batches b where b.id = f.batch and "
            "b.committed = "
            "1) and not exists (select 1 from jobs j where j.batch = f.batch and j.state < 5)))) "
            "or "
            "(f.kind = 2 and (not exists (select 1 from jobs j where j.id = f.job and j.state < 5) "
            "or "
            "(select count(*) from files n where n.job = f.job and n.job > 0 and n.kind = 2 and "
            "n.generation > f.generation) >= 2)) or (f.kind >= 3 and exists (select 1 from "
            "attempts a "
            "where a.job = f.job and a.attempt = f.attempt and a.state = 5) and (f.counts = 0 or "
            "f.attempt < (select attempts from jobs j where j.id = f.job))))");
  });
}

bool Archive::content_exists(uint64_t id) {
  return connections_->with([&](soci::session& sql) {
    return number_of(sql, "select count(*) from contents where id = " + std::to_string(id)) > 0;
  });
}

std::optional<ContentRow> Archive::content(const std::string& digest) {
  return connections_->with([&](soci::session& sql) -> std::optional<ContentRow> {
    ContentRow row;
    long long id = 0, size = 0;
    sql << "select id, size, identity from contents where digest = :digest and damaged = 0 order "
           "by id desc limit 1",
        soci::into(id), soci::into(size), soci::into(row.identity), soci::use(digest);
    if (!sql.got_data()) return std::nullopt;
    row.id = static_cast<uint64_t>(id);
    row.size = static_cast<uint64_t>(size);
    row.digest = digest;
    return row;
  });
}

SpoolUse Archive::spool_use(const std::string& user) {
  return connections_->with([&](soci::session& sql) {
    SpoolUse use;
    soci::rowset<soci::row> rows =
        (sql.prepare << "select kind, bytes from spool_use where user_name = :user",
         soci::use(user, "user"));
    for (const auto& r : rows) (integer(r, 0) == 1 ? use.checkpoints : use.files) = integer(r, 1);
    return use;
  });
}

// A file's id is at most the instant of its upload (spool.cc), and its job ended
// after that: only old rows are looked at.
std::vector<FileRow> Archive::outputs_before(Micros ended, uint32_t limit) {
  return connections_->with([&](soci::session& sql) {
    const std::string before = std::to_string(ended);
    return files_of(sql, kFileWithoutBody + "join jobs j on j.id = f.job where f.id < " + before +
                             " and f.kind >= 3 and f.counts = 1 and j.state >= 5 and j.changed < " +
                             before + " order by f.id limit " + std::to_string(limit));
  });
}

Micros Archive::outputs_removed_at(JobId job) {
  return connections_->with([&](soci::session& sql) {
    return static_cast<Micros>(
        number_of(sql, "select at from outputs_removed where job = " + std::to_string(job)));
  });
}

uint64_t Archive::last_file_id() {
  return connections_->with(
      [&](soci::session& sql) { return number_of(sql, "select max(id) from files"); });
}

std::optional<CredentialRow> Archive::credential(MachineId machine) {
  return connections_->with([&](soci::session& sql) -> std::optional<CredentialRow> {
    CredentialRow row;
    long long uid = 0;
    sql << "select secret, uid from credentials where machine = " << machine,
        soci::into(row.secret_digest), soci::into(uid);
    if (!sql.got_data()) return std::nullopt;
    row.machine = machine;
    row.uid = static_cast<uint64_t>(uid);
    return row;
  });
}

namespace {

Role role_at(const soci::row& row, size_t i) {
  const auto role = role_from(static_cast<uint32_t>(integer(row, i)));
  if (!role) throw std::runtime_error("an unknown role");
  return *role;
}

// A table's rows; a damaged one is named and left out.
template <typename Row, typename Read>
std::vector<Row> rows_of(soci::session& sql, const std::string& table, const std::string& order,
                         Read read) {
  std::vector<Row> result;
  soci::rowset<soci::row> rows = (sql.prepare << "select * from " + table + " order by " + order);
  for (const soci::row& row : rows) {
    try {
      result.push_back(read(row));
    } catch (const std::exception& e) {
      log(Severity::error) << "a row of " << table << " was left out: " << e.what();
    }
  }
  return result;
}

}  // namespace

MachineId Archive::machine_of(uint64_t uid) {
  return connections_->with([&](soci::session& sql) -> MachineId {
    return number_of(sql,
                     "select max(machine) from credentials where uid = " + std::to_string(uid));
  });
}

std::vector<MemberRow> Archive::members() {
  return connections_->with([&](soci::session& sql) {
    return rows_of<MemberRow>(sql, "members", "number", [](const soci::row& r) -> MemberRow {
      return {static_cast<uint64_t>(integer(r, 0)),
              role_at(r, 1),
              r.get<std::string>(2),
              r.get<std::string>(3),
              r.get<std::string>(4),
              r.get<std::string>(5),
              integer(r, 6),
              integer(r, 7),
              r.get<std::string>(8),
              integer(r, 9)};
    });
  });
}

std::vector<InvitationRow> Archive::invitations() {
  return connections_->with([&](soci::session& sql) {
    return rows_of<InvitationRow>(
        sql, "invitations", "id", [](const soci::row& r) -> InvitationRow {
          return {r.get<std::string>(0), r.get<std::string>(1), role_at(r, 2),
                  r.get<std::string>(3), r.get<std::string>(4), integer(r, 5),
                  r.get<std::string>(6), integer(r, 7)};
        });
  });
}

MachineId Archive::machine_with(const std::string& secret_digest) {
  return connections_->with([&](soci::session& sql) -> MachineId {
    long long machine = 0;
    sql << "select machine from credentials where secret = :secret", soci::into(machine),
        soci::use(secret_digest);
    return sql.got_data() ? machine : 0;
  });
}

std::vector<scheduling::ChangeRecord> Archive::changes(uint64_t after, const std::string& user,
                                                       uint32_t limit) {
  return connections_->with([&](soci::session& sql) {
    std::vector<scheduling::ChangeRecord> result;
    soci::rowset<soci::row> rows =
        (sql.prepare << "select * from changes where number > " << after
                     << " and (:user = '' or user_name = :user) order by number limit " << limit,
         soci::use(user, "user"));
    for (const auto& r : rows) {
      scheduling::ChangeRecord c;
      c.number = integer(r, 0);
      c.at = integer(r, 1);
      c.job = integer(r, 2);
      c.batch = integer(r, 3);
      c.user = r.get<std::string>(4);
      c.state = static_cast<scheduling::JobState>(integer(r, 5));
      c.attempt = integer(r, 6);
      c.ended = static_cast<scheduling::EndReason>(integer(r, 7));
      c.count = integer(r, 8);
      result.push_back(c);
    }
    return result;
  });
}

uint64_t Archive::last_change() {
  return connections_->with(
      [&](soci::session& sql) { return number_of(sql, "select max(number) from changes"); });
}

uint64_t Archive::first_change() {
  return connections_->with(
      [&](soci::session& sql) { return number_of(sql, "select min(number) from changes"); });
}

}  // namespace sublet::server
