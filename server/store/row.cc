#include "server/store/row.h"

#include <cstdlib>
#include <typeinfo>

#include "protocol/codec.h"

namespace sublet::server {

using scheduling::AttemptRecord;
using scheduling::JobRecord;
using scheduling::MachineRecord;

long long integer(const soci::row& row, size_t i) {
  switch (row.get_properties(i).get_data_type()) {
    case soci::dt_integer:
      return row.get<int>(i);
    case soci::dt_unsigned_long_long:
      return static_cast<long long>(row.get<unsigned long long>(i));
    case soci::dt_double:
      return static_cast<long long>(row.get<double>(i));
    case soci::dt_string: {  // an expression's type: SQLite declares none for it
      const std::string text = row.get<std::string>(i);
      char* end = nullptr;
      const long long value = strtoll(text.c_str(), &end, 10);
      if (text.empty() || *end != '\0') throw std::bad_cast();
      return value;
    }
    default:
      return row.get<long long>(i);
  }
}
double real(const soci::row& row, size_t i) {
  return row.get_properties(i).get_data_type() == soci::dt_double
             ? row.get<double>(i)
             : static_cast<double>(integer(row, i));
}
uint64_t number_of(soci::session& sql, const std::string& query) {
  long long value = 0;
  soci::indicator indicator = soci::i_null;
  sql << query, soci::into(value, indicator);
  return indicator == soci::i_ok ? value : 0;
}

namespace {
using Cells = std::vector<JobRows::Cell>;
using server::integer;
using server::real;
std::string text(const soci::row& row, size_t i) { return row.get<std::string>(i); }
long long integer(const Cells& cells, size_t i) { return cells[i].integer; }
double real(const Cells& cells, size_t i) { return cells[i].real; }
const std::string& text(const Cells& cells, size_t i) { return cells[i].text; }

// A state that no version of ours writes: the row is damaged.
template <typename Row>
long long state_in(const Row& row, size_t i, long long last) {
  const long long value = integer(row, i);
  if (value < 1 || value > last) throw protocol::Damaged("state " + std::to_string(value));
  return value;
}

template <typename Row>
JobRecord job_of(const Row& r) {
  JobRecord j;
  j.id = integer(r, 0);
  j.batch = integer(r, 1);
  j.index = integer(r, 2);
  j.user = text(r, 3);
  j.submit_host = text(r, 4);
  j.state = static_cast<scheduling::JobState>(state_in(r, 5, 7));
  j.attempts = integer(r, 6);
  j.needs.os = text(r, 7);
  j.needs.architecture = text(r, 8);
  j.needs.cores = integer(r, 9);
  j.needs.memory = integer(r, 10);
  j.needs.disk = integer(r, 11);
  j.priority = integer(r, 12);
  j.retries_left = integer(r, 13);
  j.evictions = integer(r, 14);
  j.share_priority = real(r, 15);
  j.share_priority_at = integer(r, 16);
  j.generation = integer(r, 17);
  j.checkpoint_bytes = integer(r, 18);
  j.submitted = integer(r, 19);
  j.changed = integer(r, 20);
  j.cpu_kept = integer(r, 21);
  j.cpu_lost = integer(r, 22);
  j.reason = text(r, 23);
  j.refusals = integer(r, 24);
  j.not_before = integer(r, 25);
  j.count = integer(r, 26);
  j.share_priority_step = real(r, 27);
  j.needs.platforms = text(r, 28);
  return j;
}
}  // namespace

JobRecord job_from(const soci::row& r) { return job_of(r); }

JobRows::JobRows(soci::session& session, const std::string& query)
    : cells_(kJobColumns.size()), statement_(session) {
  for (size_t i = 0; i < cells_.size(); ++i) {
    Cell& cell = cells_[i];
    if (kJobColumns[i] == 'i') statement_.exchange(soci::into(cell.integer, cell.state));
    if (kJobColumns[i] == 'r') statement_.exchange(soci::into(cell.real, cell.state));
    if (kJobColumns[i] == 't') statement_.exchange(soci::into(cell.text, cell.state));
  }
  statement_.alloc();
  statement_.prepare(query);
  statement_.define_and_bind();
  statement_.execute();
}

bool JobRows::next(JobRecord* job) {
  if (!statement_.fetch()) return false;
  for (const Cell& cell : cells_)
    if (cell.state == soci::i_null) throw protocol::Damaged("an empty column");
  *job = job_of(cells_);
  return true;
}

AttemptRecord attempt_from(const soci::row& r) {
  AttemptRecord a;
  a.key = {static_cast<JobId>(integer(r, 0)), static_cast<uint32_t>(integer(r, 1))};
  a.machine = integer(r, 2);
  a.state = static_cast<scheduling::AttemptState>(state_in(r, 3, 5));
  a.ended = static_cast<scheduling::EndReason>(integer(r, 4));
  a.reason = r.get<std::string>(5);
  a.decided = integer(r, 6);
  a.started = integer(r, 7);
  a.finished = integer(r, 8);
  a.resumed_generation = integer(r, 9);
  a.generation = integer(r, 10);
  a.cpu = integer(r, 11);
  a.cpu_lost = integer(r, 12);
  a.leaving_since = integer(r, 13);
  a.ready = integer(r, 14);
  return a;
}

scheduling::UseRecord use_from(const soci::row& r) {
  scheduling::UseRecord u;
  u.key = {static_cast<JobId>(integer(r, 0)), static_cast<uint32_t>(integer(r, 1))};
  u.user = r.get<std::string>(2);
  u.machine = integer(r, 3);
  u.batch = integer(r, 4);
  u.ended = static_cast<scheduling::EndReason>(integer(r, 5));
  u.finished = integer(r, 6);
  u.wall = integer(r, 7);
  u.used = integer(r, 8);
  u.kept = integer(r, 9);
  u.lost = integer(r, 10);
  u.charged = integer(r, 11);
  u.started = integer(r, 12);
  u.waited = integer(r, 13);
  return u;
}

MachineRecord machine_from(const soci::row& r) {
  MachineRecord m;
  m.id = integer(r, 0);
  m.name = r.get<std::string>(1);
  m.os = r.get<std::string>(2);
  m.architecture = r.get<std::string>(3);
  m.cores = integer(r, 4);
  m.slots = integer(r, 5);
  m.memory = integer(r, 6);
  m.disk = integer(r, 7);
  m.state = static_cast<scheduling::MachineState>(state_in(r, 8, 4));
  m.state_since = integer(r, 9);
  return m;
}

BatchRow batch_from(const soci::row& r) {
  BatchRow b;
  b.id = integer(r, 0);
  b.uid = integer(r, 1);
  b.user = r.get<std::string>(2);
  b.name = r.get<std::string>(3);
  b.submit_host = r.get<std::string>(4);
  b.committed = integer(r, 5) != 0;
  b.touched = integer(r, 6);
  b.first_job = integer(r, 7);
  b.count = integer(r, 8);
  b.stop_when = {static_cast<uint64_t>(integer(r, 9)), static_cast<uint64_t>(integer(r, 10)),
                 r.get<std::string>(11)};
  return b;
}

scheduling::BatchRecord stop_from(const soci::row& r) {
  scheduling::BatchRecord b;
  b.id = integer(r, 0);
  b.stop_when = {static_cast<uint64_t>(integer(r, 1)), static_cast<uint64_t>(integer(r, 2)),
                 r.get<std::string>(3)};
  b.done = integer(r, 4);
  b.failed = integer(r, 5);
  b.stopped_by = integer(r, 6);
  return b;
}

FileRow file_from(const soci::row& r) {
  FileRow f;
  f.id = integer(r, 0);
  f.kind = static_cast<FileKind>(integer(r, 1));
  f.batch = integer(r, 2);
  f.job = integer(r, 3);
  f.attempt = integer(r, 4);
  f.generation = integer(r, 5);
  f.name = r.get<std::string>(6);
  f.size = integer(r, 7);
  f.digest = r.get<std::string>(8);
  f.in_row = integer(r, 9) != 0;
  f.body = r.get<std::string>(10);
  f.counts = integer(r, 11) != 0;
  f.user = r.get<std::string>(12);
  f.content = integer(r, 13);
  f.identity = r.get<std::string>(14);
  f.damaged = integer(r, 15) != 0;
  return f;
}

}  // namespace sublet::server
