#include "server/store/unpacked_jobs.h"

#include <soci/soci.h>

#include <string>

#include "base/log.h"
#include "server/store/packed.h"
#include "server/store/rows.h"
#include "server/store/tables.h"
#include "server/store/writer.h"

namespace sublet::server {
namespace {

using scheduling::JobRecord;

constexpr size_t kRowsAtOnce = 1000;

TableOf<JobRecord> unpacked_table() {
  TableOf<JobRecord> table = tables::kJobs;
  table.name = kUnpackedJobs;
  table.column_count = table.packed_count = 0;
  for (const Column& column : tables::kJobs.columns())
    if (column.type != Type::kPacked) table.column_list[table.column_count++] = column;
  for (const Column& column : tables::kJobs.packed())
    table.column_list[table.column_count++] = column;
  return table;
}

// Whether each value has its column's type: a text in a column of numbers would be read as 0.
std::string has_types(const Table& table) {
  std::string condition;
  for (const Column& column : table.columns()) {
    const bool text = column.type == Type::kText, real = column.type == Type::kReal;
    condition += (condition.empty() ? "typeof(" : " and typeof(") + std::string(column.name) +
                 (text   ? ") = 'text'"
                  : real ? ") in ('real', 'integer')"
                         : ") = 'integer'");
  }
  return "case when " + condition + " then 1 else 0 end";
}

// The rows that could not be packed. A missing value becomes an empty one, which no number is.
void copy_damaged(soci::session& sql) {
  std::string names, values, packed = std::string("'") + kUnpackable + "'";
  for (const Column& column : tables::kJobs.columns()) {
    const std::string name = column.name;
    names += (names.empty() ? "" : ", ") + name;
    if (column.type != Type::kPacked)
      values += (column.key ? name : "coalesce(" + name + ", '')") + ", ";
  }
  for (const Column& column : tables::kJobs.packed())
    packed += std::string(" || ' ") + column.name + " = ' || quote(" + column.name + ")";
  sql << "insert into jobs (" << names << ") select " << values << packed << " from "
      << kUnpackedJobs << " where id not in (select id from jobs)";
}

// Returns whether each row could be packed.
bool pack_all(soci::session& sql) {
  const TableOf<JobRecord> old = unpacked_table();
  JobRecord job;
  bool typed = false;
  Rows rows(sql);
  rows.into(old, job).into(has_types(old), typed).select(kUnpackedJobs);
  Writer<JobRecord> writer(tables::kJobs);
  size_t packed = 0, damaged = 0;
  const auto leave = [&](const std::string& what) {
    ++damaged;
    log(Severity::error) << "job " << job.id << " is left out: " << what
                         << "; its row is kept as it is";
  };
  rows.each(
      [&] {
        if (!typed) return leave("a value of its row is not of its column's type");
        writer.add(job);
        if (++packed % kRowsAtOnce == 0) writer.flush(sql);
      },
      leave);
  writer.flush(sql);
  return damaged == 0;
}

}  // namespace

void pack_jobs(soci::session& sql) {
  if (!pack_all(sql)) copy_damaged(sql);
  sql << "drop table " << kUnpackedJobs;
}

}  // namespace sublet::server
