// Jobs, their attempts and descriptions.
#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <thread>

#include "base/log.h"
#include "base/text.h"
#include "job/codec.h"
#include "server/store/archive/archive.h"
#include "server/store/archive/connections.h"
#include "server/store/archive/finished.h"
#include "server/store/job_counts.h"
#include "server/store/live.h"
#include "server/store/rows.h"
#include "server/store/tables.h"

namespace sublet::server {
namespace {

using scheduling::JobRange;

// If only jobs of a certain name are wanted: records read for a page, and descriptions of one.
constexpr uint32_t kRecordsRead = 1'000;
constexpr uint32_t kNamesRead = 10'000;

// Sorted, without overlaps, and limited to valid ids of the database.
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

// Rows that cover a job of this range: those that begin in it, and the one before
// if it is an array that extends into it.
std::string overlaps(const JobRange& range) {
  const std::string first = std::to_string(range.first);
  return "(jobs.id >= coalesce((select max(id) from jobs where id <= " + first + "), 0)" +
         " and jobs.id <= " + std::to_string(range.first + range.count - 1) +
         " and jobs.id + jobs.count > " + first + ")";
}

// The condition of a JobQuery without its ids. Numbers are written into the text,
// since they cannot inject SQL; the user's name is bound as :user.
std::string where(const JobQuery& query) {
  std::string text = "1 = 1";
  // If ids are named, they are the better way to its rows: in order, a page at a time.
  if (query.batch)
    text += (query.ids.empty() ? " and jobs.batch = " : " and +jobs.batch = ") +
            std::to_string(query.batch);
  if (!query.states.empty()) {
    std::string list;
    for (uint32_t s : query.states) list += (list.empty() ? "" : ", ") + std::to_string(s);
    text += " and jobs.state in (" + list + ")";
  }
  if (query.unfinished_only) text += " and jobs.state not in (5, 6, 7)";  // index jobs_live
  // Index jobs_batch, whose states are searched one by one.
  if (query.unfinished_only && query.batch) text += " and jobs.state in (1, 2, 3, 4, 8, 9)";
  if (query.stopped != JobQuery::Stopped::kAny)
    text += std::string(" and ") + (query.stopped == JobQuery::Stopped::kOnly ? "" : "not ") +
            "(jobs.state = 7 and exists (select 1 from stops where stops.batch = jobs.batch and "
            "stops.stopped_by > 0))";
  if (query.since) text += " and jobs.changed >= " + std::to_string(query.since);
  text += " and (:user = '' or jobs.user_name = :user)";
  return text;
}

const char* descending(const JobQuery& query) { return query.newest_first ? " desc" : ""; }

// What of the range follows the cursor `after`.
JobRange rest_of(const JobRange& range, JobId after, bool newest_first) {
  const JobId end = range.first + range.count;
  if (after == 0) return range;
  if (newest_first) return {range.first, std::min(end, std::max(after, range.first)) - range.first};
  const JobId first = std::max(range.first, after + 1);
  return {first, std::max(end, first) - first};
}

// The name in the description that covers a job; `id`: a column or a number.
std::string name_of(const std::string& id) {
  return "coalesce((select name from specs where first_job <= " + id +
         " order by first_job desc limit 1), '')";
}
constexpr const char* kMachineOfJob =
    "coalesce((select machine from attempts where attempts.job = jobs.id and attempts.attempt = "
    "jobs.attempts), 0)";

// The part of a record inside the range, which must overlap it.
scheduling::JobRecord part_of(const scheduling::JobRecord& record, const JobRange& range) {
  if (record.count == 1) return record;
  const JobId first = std::max(record.id, range.first);
  scheduling::JobRecord part = scheduling::one_of(record, first - record.id);
  part.count = std::min(record.id + record.count, range.first + range.count) - first;
  part.share_priority_step = record.share_priority_step;
  return part;
}

// Sorted, also if the query has none: then all.
std::vector<JobRange> ranges_of(const JobQuery& query) {
  return tidy(query.ids.empty() ? std::vector<JobRange>{kAllJobs} : query.ids);
}

// Whether the query can select final jobs, which may be in files.
bool may_be_final(const JobQuery& query) {
  const auto final = [](uint32_t state) { return state >= 5 && state <= 7; };
  return !query.unfinished_only &&
         (query.states.empty() || std::any_of(query.states.begin(), query.states.end(), final));
}

// In a file: its copy counts only when the pool's database no longer has the job.
constexpr const char* kMoved = " and not exists (select 1 from live.jobs l where l.id = jobs.id)";

// The cursor behind the jobs of the range that the row covers; for a damaged row, some job
// of the range.
JobId cursor_behind(const scheduling::JobRecord& row, const JobRange& range, bool newest_first) {
  const JobId last = row.count > 0 && !newest_first ? row.id + row.count - 1 : row.id;
  return std::clamp(last, range.first, range.first + range.count - 1);
}

// Appends the jobs of this range until `limit` rows have been read; sets page.next if
// that limit was reached.
void add_runs(soci::session& sql, const JobQuery& query, const std::string& condition,
              const JobRange& range, uint32_t limit, JobPage& page) {
  const size_t room = limit - page.rows.size();
  size_t read = 0;
  JobId last = 0;
  JobRow row;
  Rows rows(sql);
  rows.into(tables::kJobs, row.job, "jobs");
  rows.into(name_of("jobs.id"), row.name).into(kMachineOfJob, row.machine);
  rows.with("user", query.user);
  rows.select("jobs where " + overlaps(range) + " and " + condition + " order by jobs.id" +
              descending(query) + " limit " + std::to_string(room));
  const auto count = [&] {
    ++read;
    last = cursor_behind(row.job, range, query.newest_first);
  };
  rows.each(
      [&] {
        count();
        const JobId begin = row.job.id;
        row.job = part_of(row.job, range);
        if (row.job.id != begin)
          sql << "select " << name_of(std::to_string(row.job.id)), soci::into(row.name);
        page.rows.push_back(std::move(row));
      },
      [&](const std::string& what) {
        count();
        log(Severity::error) << what;
      });
  if (read == room) page.next = last;
}

// The page of one database; `condition`: of the query, for this database.
JobPage runs_in(soci::session& sql, const JobQuery& query, const std::string& condition,
                JobId after, uint32_t limit) {
  std::vector<JobRange> ranges = ranges_of(query);
  if (query.newest_first) std::reverse(ranges.begin(), ranges.end());
  JobPage page;
  for (const JobRange& range : ranges) {
    const JobRange rest = rest_of(range, after, query.newest_first);
    if (rest.count > 0) add_runs(sql, query, condition, rest, limit, page);
    if (page.next != 0) break;
  }
  return page;
}

// One page of two databases' pages after the same cursor. It ends where the first of them ends,
// so that what the other one has not read yet is not passed over. A job that was moved
// between the two queries is in both.
JobPage merged(const JobQuery& query, JobPage a, JobPage b, uint32_t limit) {
  const auto before = [&](JobId x, JobId y) { return query.newest_first ? x > y : x < y; };
  const auto cursor = [&](const JobRow& row) {
    return query.newest_first ? row.job.id : row.job.id + row.job.count - 1;
  };
  JobPage page = std::move(a);
  if (page.next == 0 || (b.next != 0 && before(b.next, page.next))) page.next = b.next;
  std::move(b.rows.begin(), b.rows.end(), std::back_inserter(page.rows));
  std::stable_sort(page.rows.begin(), page.rows.end(),
                   [&](const JobRow& x, const JobRow& y) { return before(x.job.id, y.job.id); });
  const auto same = [](const JobRow& x, const JobRow& y) { return x.job.id == y.job.id; };
  page.rows.erase(std::unique(page.rows.begin(), page.rows.end(), same), page.rows.end());
  if (page.next != 0)
    std::erase_if(page.rows, [&](const JobRow& row) { return before(page.next, cursor(row)); });
  if (page.rows.size() > limit) {
    page.rows.resize(limit);
    page.next = cursor(page.rows.back());
  }
  return page;
}

}  // namespace

// The pool's database is read before the files: a job is in a file before it leaves the database,
// so that none is missed.
JobPage Archive::runs(const JobQuery& query, JobId after, uint32_t limit) {
  const std::string condition = where(query);
  JobPage page = connections_->with(
      [&](soci::session& sql) { return runs_in(sql, query, condition, after, limit); });
  if (!may_be_final(query)) return page;
  const std::vector<JobRange> ranges = ranges_of(query);
  if (ranges.empty()) return page;
  const JobId first = ranges.front().first, end = ranges.back().first + ranges.back().count;
  const JobRange rest = rest_of({first, end - first}, after, query.newest_first);
  if (rest.count == 0) return page;
  finished_->each(rest, [&](soci::session& sql) {
    JobPage moved = runs_in(sql, query, condition + kMoved, after, limit);
    page = merged(query, std::move(page), std::move(moved), limit);
  });
  return page;
}

namespace {

// Splits a run where its description changes, in the order of the query, and keeps the parts
// whose name is wanted.
class Splitter {
 public:
  Splitter(const JobQuery& query, const JobRow& run, JobPage& page)
      : query_(query), page_(page), rest_(run) {}

  // The description that begins at this job.
  void boundary(JobId first, const std::string& name) {
    const JobId begin = rest_.job.id, end = begin + rest_.job.count;
    if (query_.newest_first) {
      keep(name, {first, end - first});
      rest_.job = part_of(rest_.job, {begin, first - begin});
    } else {
      keep(rest_.name, {begin, first - begin});
      rest_.job = part_of(rest_.job, {first, end - first});
      rest_.name = name;
    }
  }
  void finish() { keep(rest_.name, {rest_.job.id, rest_.job.count}); }
  // The cursor behind the parts so far.
  JobId reached() const {
    return query_.newest_first ? rest_.job.id + rest_.job.count : rest_.job.id - 1;
  }

 private:
  void keep(const std::string& name, const JobRange& range) {
    if (!query_.name.empty() && fnmatch(query_.name.c_str(), name.c_str(), 0) != 0) return;
    page_.rows.push_back(rest_);
    page_.rows.back().name = name;
    page_.rows.back().job = part_of(rest_.job, range);
  }

  const JobQuery& query_;
  JobPage& page_;
  JobRow rest_;
};

}  // namespace

// Appends the run, split where the description changes, up to `limit` rows in all. Returns
// the cursor behind what was looked at, 0: the whole run.
JobId Archive::add_described(const JobQuery& query, const JobRow& run, uint32_t limit,
                             JobPage& page) {
  const JobId end = run.job.id + run.job.count;
  const uint64_t room = query.name.empty() ? limit - page.rows.size() : kNamesRead;
  uint64_t read = 0;
  Splitter splitter(query, run, page);
  if (run.job.count > 1) {
    std::map<JobId, std::string> names;
    const auto read_names = [&](soci::session& sql) {
      JobId first = 0;
      std::string name;
      Rows rows(sql);
      rows.into("first_job", first).into("name", name);
      rows.select("specs where first_job > " + std::to_string(run.job.id) + " and first_job < " +
                  std::to_string(end) + " order by first_job" + descending(query) + " limit " +
                  std::to_string(room));
      rows.each([&] { names[first] = name; });
    };
    connections_->with(read_names);
    if (scheduling::is_final(run.job.state))
      finished_->each({run.job.id, run.job.count}, read_names);
    const auto split = [&](const auto& one) {
      if (read == room) return;
      ++read;
      if (page.rows.size() < limit) splitter.boundary(one.first, one.second);
    };
    if (query.newest_first)
      std::for_each(names.rbegin(), names.rend(), split);
    else
      std::for_each(names.begin(), names.end(), split);
  }
  if (page.rows.size() == limit || read == room) return splitter.reached();
  splitter.finish();
  return 0;
}

JobPage Archive::described_runs(const JobQuery& query, JobId after, uint32_t limit) {
  // Few of many records may have the name.
  const JobPage all = runs(query, after, query.name.empty() ? limit : kRecordsRead);
  JobPage page;
  page.next = all.next;
  JobId reached = after;
  for (const JobRow& run : all.rows) {
    if (page.rows.size() == limit) {
      page.next = reached;
      break;
    }
    const JobId stopped = add_described(query, run, limit, page);
    if (stopped != 0) {
      page.next = stopped;
      break;
    }
    reached = query.newest_first ? run.job.id : run.job.id + run.job.count - 1;
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
      page.rows.back().job =
          scheduling::one_of(run.job, query.newest_first ? run.job.count - 1 - k : k);
    }
  }
  page.next = all.next;
  return page;
}

void Archive::while_moving(const std::function<void()>& f) {
  struct Move {
    explicit Move(std::atomic<uint64_t>& moves) : moves(moves) { ++moves; }
    ~Move() { ++moves; }
    std::atomic<uint64_t>& moves;
  };
  const Move move(moves_);
  f();
}

std::vector<std::pair<uint32_t, uint64_t>> Archive::count(const JobQuery& query) {
  if (const auto kept = kept_count(query)) return {kept->begin(), kept->end()};
  // A move is one commit. Rather a count that may be wrong than none.
  constexpr int kTries = 100;
  for (int i = 1;; ++i) {
    const uint64_t before = moves_;
    auto counts = count_once(query);
    if ((before % 2 == 0 && moves_ == before) || i == kTries) return counts;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// nullopt: the numbers of what the query selects are not kept, or cannot be read.
std::optional<std::map<uint32_t, uint64_t>> Archive::kept_count(const JobQuery& query) {
  if (!query.ids.empty() || query.stopped != JobQuery::Stopped::kAny || query.since != 0)
    return std::nullopt;
  const auto rows = connections_->with([&](soci::session& sql) {
    try {
      return kept_counts(sql, query.batch, query.user);
    } catch (const soci::soci_error& e) {
      if (!sqlite::is_damage(e)) throw;
      return std::optional<std::vector<JobCountRow>>();
    }
  });
  if (!rows) return std::nullopt;
  std::map<uint32_t, uint64_t> counts;
  for (const JobCountRow& row : *rows) {
    const auto state = static_cast<uint32_t>(row.state);
    const bool asked = query.states.empty() || std::ranges::count(query.states, state) > 0;
    const bool excluded = query.unfinished_only && scheduling::is_final(row.state);
    const bool present = row.month.empty() || finished_->has(row.month);
    if (row.jobs > 0 && asked && !excluded && present)
      counts[state] += static_cast<uint64_t>(row.jobs);
  }
  return counts;
}

// The database and the files one after the other: what leaves the one meanwhile counts twice.
std::vector<std::pair<uint32_t, uint64_t>> Archive::count_once(const JobQuery& query) {
  std::map<uint32_t, uint64_t> counts;
  std::vector<JobRange> ranges = query.ids;
  if (ranges.empty()) ranges = {{0, std::numeric_limits<int64_t>::max()}};
  for (const JobRange& range : tidy(ranges)) {
    const std::string first = std::to_string(range.first);
    const std::string end = std::to_string(range.first + range.count);
    const std::string inside =
        "case when jobs.id + jobs.count < " + end + " then jobs.id + jobs.count else " + end +
        " end - case when jobs.id > " + first + " then jobs.id else " + first + " end";
    const auto add = [&](soci::session& sql, const std::string& condition) {
      uint32_t state = 0;
      uint64_t count = 0;
      Rows rows(sql);
      rows.into("jobs.state", state).into("sum(" + inside + ")", count).with("user", query.user);
      rows.select("jobs where " + overlaps(range) + " and " + condition + " group by jobs.state");
      rows.each([&] { counts[state] += count; });
    };
    connections_->with([&](soci::session& sql) { add(sql, where(query)); });
    if (may_be_final(query))
      finished_->each(range, [&](soci::session& sql) { add(sql, where(query) + kMoved); });
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

std::vector<AttemptRow> Archive::attempts(JobId id, uint32_t after, uint32_t limit) {
  std::vector<AttemptRow> result;
  const auto read = [&](soci::session& sql) {
    AttemptRow row;
    Rows rows(sql);
    rows.into(tables::kAttempts, row.attempt, "a")
        .into("coalesce(m.name, 'gone')", row.machine_name);
    rows.into_joined(tables::kEnds, row.end, "e");
    rows.select(
        "attempts a left join machines m on m.id = a.machine left join ends e on e.job = "
        "a.job and e.attempt = a.attempt where a.job = " +
        std::to_string(id) + " and a.attempt > " + std::to_string(after) +
        " order by a.attempt limit " + std::to_string(limit));
    rows.each([&] {
      row.end.key = row.attempt.key;
      result.push_back(row);
    });
  };
  connections_->with(read);
  if (result.empty())
    finished_->each({id, 1}, [&](soci::session& sql) {
      if (result.empty()) read(sql);
    });
  return result;
}

std::optional<JobDescription> Archive::spec(JobId id) {
  const auto place = spec_place(id);
  if (!place) return std::nullopt;
  return spec_at(*place->range, place->offset);
}

std::optional<JobDescription> Archive::spec_with_files(JobId id) {
  auto spec = this->spec(id);
  if (!spec) return std::nullopt;
  for (InputFile& input : spec->inputs) {
    if (!input.source.is_set()) continue;
    const auto found = output(input.source.job, FileKind::kOutput, input.source.name);
    if (found) input.file = found->id;
  }
  return spec;
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

// Null if the job has no description.
std::shared_ptr<const SpecRange> Archive::spec_range(JobId id, uint64_t* first_job) {
  auto range = arrays_.find(id, first_job);
  if (!range) range = single_jobs_.find(id, first_job);
  if (!range) range = read_spec(id, first_job);
  if (!range || id - *first_job >= range->count) return nullptr;
  return range;
}

namespace {

// Null if this is not exactly one description.
std::shared_ptr<const SpecRange> range_in(const std::string& body) {
  auto ranges = decode_specs(body);
  if (ranges.size() != 1) return nullptr;
  return std::make_shared<const SpecRange>(std::move(ranges[0]));
}

}  // namespace

// Null if there is no description for that job or an earlier one.
std::shared_ptr<const SpecRange> Archive::read_spec(JobId id, uint64_t* first_job) {
  std::string body;
  const bool found = connections_->with(
      [&](Connection& connection) { return connection.read_spec(id, first_job, &body); });
  auto range = found ? range_in(body) : nullptr;
  if (!range || id - *first_job >= range->count)
    finished_->each({id, 1}, [&](soci::session& sql) {
      const auto row =
          row_of(sql, tables::kSpecs,
                 "where first_job <= " + std::to_string(id) + " order by first_job desc limit 1");
      if (!row || id - row->first_job >= row->count) return;
      range = range_in(row->body);
      *first_job = row->first_job;
    });
  if (!range) return nullptr;
  (range->is_array ? arrays_ : single_jobs_).keep(*first_job, range);
  return range;
}

namespace {

std::vector<uint64_t> numbers(soci::session& sql, const std::string& column,
                              const std::string& rest) {
  std::vector<uint64_t> result;
  uint64_t number = 0;
  Rows rows(sql);
  rows.into(column, number).select(rest);
  rows.each([&] { result.push_back(number); });
  return result;
}

}  // namespace

Changes::MovedJobs Archive::finished_jobs(JobId& after, Micros before, uint32_t examined) {
  return connections_->with([&](soci::session& sql) {
    Changes::MovedJobs found;
    uint32_t read = 0;
    JobId id = 0;
    Micros changed = 0;
    bool leaves = false;
    const std::string leaves_if = std::string("case when ") + kMayLeave + " and jobs.changed < " +
                                  std::to_string(before) + " then 1 else 0 end";
    Rows rows(sql);
    rows.into("jobs.id", id).into("jobs.changed", changed).into(leaves_if, leaves);
    rows.select("jobs where jobs.id > " + std::to_string(after) + " order by jobs.id limit " +
                std::to_string(examined));
    bool other_month = false;
    const auto examine = [&] {
      const std::string month = format_instant(changed).substr(0, 7);
      other_month = other_month || (leaves && !found.month.empty() && month != found.month);
      if (other_month) return;
      ++read;
      after = id;
      if (!leaves) return;
      found.month = month;
      found.jobs.push_back(id);
    };
    rows.each(examine, [&](const std::string& what) {
      log(Severity::error) << what;
      leaves = false;
      examine();
    });
    if (!other_month && read < examined) after = 0;
    const std::string list = list_of(found.jobs);
    found.batches = numbers(sql, "distinct batch", "jobs where id in (" + list + ")");
    found.specs = numbers(
        sql, "distinct s.first_job",
        "jobs j join specs s on s.first_job >= coalesce((select max(b.first_job) from specs b "
        "where b.first_job <= j.id), 0) and s.first_job < j.id + j.count where j.id in (" +
            list + ")");
    return found;
  });
}

void Archive::copy_to_file(const Changes::MovedJobs& finished) {
  try {
    finished_->write(finished.month, finished);
  } catch (const soci::soci_error& e) {
    throw StoreError("the history file of " + finished.month +
                     " could not be written: " + e.get_error_message());
  }
}

}  // namespace sublet::server
