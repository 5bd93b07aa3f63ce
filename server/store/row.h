// Reading rows, whatever integer type SOCI gave a column. Includes SOCI: for
// store/ and accounting/usage.cc only.
#ifndef SUBLET_SERVER_SQL_ROW_H_
#define SUBLET_SERVER_SQL_ROW_H_

#include <soci/soci.h>

#include <string>
#include <string_view>
#include <vector>

#include "server/commit/changes.h"

namespace sublet::server {

// Throw std::bad_cast when the column holds something else.
long long integer(const soci::row& row, size_t i);
double real(const soci::row& row, size_t i);

// The first column of the first row; 0: there is none.
uint64_t number_of(soci::session& sql, const std::string& query);

// Rows of `select * from` the table of that name, from column 0 on.
scheduling::JobRecord job_from(const soci::row& row);
scheduling::AttemptRecord attempt_from(const soci::row& row);
scheduling::UseRecord use_from(const soci::row& row);
scheduling::MachineRecord machine_from(const soci::row& row);
BatchRow batch_from(const soci::row& row);
scheduling::BatchRecord stop_from(const soci::row& row);
FileRow file_from(const soci::row& row);

// The columns of table jobs: integer, real, text.
inline constexpr std::string_view kJobColumns = "iiittiittiiiiiiriiiiiiitiiirt";

// Many jobs, read into cells that are bound once: a soci::row is asked for each cell's type
// again, which was most of a restart with 100,000 queued. Not shared between threads.
class JobRows {
 public:
  // The query selects all columns of table jobs. Throws soci::soci_error, as next() does.
  JobRows(soci::session& session, const std::string& query);
  // False: that was the last. Throws Damaged for this row only.
  bool next(scheduling::JobRecord* job);

  struct Cell {
    long long integer = 0;
    double real = 0;
    std::string text;
    soci::indicator state = soci::i_ok;
  };

 private:
  std::vector<Cell> cells_;  // the statement keeps their addresses
  soci::statement statement_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SQL_ROW_H_
