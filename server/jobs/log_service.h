// Reads what a job writes to its standard streams: while it runs, from its machine
// (LogDesk), afterwards from the spool. Checks the caller's permission first.
//
// Threads: any.
#ifndef SUBLET_SERVER_JOBS_LOG_SERVICE_H_
#define SUBLET_SERVER_JOBS_LOG_SERVICE_H_

#include <string>

#include "server/access.h"
#include "server/jobs/log_desk.h"
#include "server/spool/spool.h"
#include "server/store/archive/archive.h"

namespace sublet::server {

// idl/job_scheduler.idl, read_log and LogPart.
struct LogQuery {
  JobId job = 0;
  uint32_t attempt = 0;
  FileKind stream = FileKind::kStdout;
  uint64_t offset = 0;
  int64_t hold_ms = 0;
};
struct LogPiece {
  uint32_t attempt = 0;
  std::string machine;  // its name; empty before the attempt is made
  std::string text;
  bool ended = false;
  bool cut = false;   // the stream exceeded its limit; known when it has ended
  bool busy = false;  // too many calls are waiting: nothing was read
};

class LogService {
 public:
  LogService(Archive& archive, Spool& spool, Access& access, LogDesk& desk);

  // Throws Refusal: kNotFound, kNotPermitted, kInvalid, or kUnavailable if the
  // machine does not answer.
  LogPiece read(const Caller& caller, const LogQuery& query);

 private:
  // Where the output of an attempt is.
  struct Source {
    uint32_t attempt = 0;
    enum class Where { kNowhereYet, kMachine, kSpool, kNowhere } where = Where::kNowhereYet;
    MachineId machine = 0;
    std::string machine_name;
    bool cut = false;
  };

  Source find(const Caller& caller, const LogQuery& query);
  static Source source_of(const AttemptRow& row, bool newest, FileKind stream);
  LogPiece read_spool(const LogQuery& query, const Source& source);

  Archive& archive_;
  Spool& spool_;
  Access& access_;
  LogDesk& desk_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOBS_LOG_SERVICE_H_
