// Moves finished jobs, with their attempts, ends, descriptions and batches, from the
// database to files by month (server/store/archive/finished.h), once they are older than the
// setting and nothing needs their rows: no attempt still delivers, and no output, checkpoint or
// input is in the spool.
//
// Rows are on disk in the file before they are deleted from the database, in one transaction. A
// server that crashes in between copies them again; meanwhile the database's rows count.
//
// Threads: one at a time.
#ifndef SUBLET_SERVER_JOBS_HISTORY_H_
#define SUBLET_SERVER_JOBS_HISTORY_H_

#include <set>
#include <string>

#include "server/commit/pipeline.h"
#include "server/store/archive/archive.h"

namespace sublet::server {

class JobHistory {
 public:
  // keep: how long finished jobs stay in the database; 0: for ever.
  JobHistory(Micros keep, Archive& archive, Pipeline& pipeline);

  // Moves a bounded number of jobs; must be called periodically. Jobs whose file cannot be
  // written stay, which is logged once, and the others move. Throws StoreError or Refusal:
  // nothing is lost then, and the next call goes on with the jobs that follow.
  void move_old();

 private:
  // False: the file could not be written; its rows must stay.
  bool copied(const Changes::MovedJobs& finished);

  const Micros keep_;
  Archive& archive_;
  Pipeline& pipeline_;
  JobId after_ = 0;                   // examined in this pass
  Micros next_pass_ = 0;              // not before
  std::set<std::string> complained_;  // months whose file could not be written
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOBS_HISTORY_H_
