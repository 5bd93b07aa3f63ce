// What a job writes to its standard streams: while it runs from the machine that
// runs it (LogDesk), afterwards from the spool. Whose it is is asked first.
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
  bool cut = false;   // the stream grew over its bound; known when it has ended
  bool busy = false;  // too many wait: nobody was asked
};

class LogService {
 public:
  LogService(Archive& archive, Spool& spool, Access& access, LogDesk& desk);

  // Throws Refusal: NotFound, NotPermitted, Invalid, or Unavailable when the
  // machine does not answer.
  LogPiece read(const Caller& caller, const LogQuery& query);

 private:
  // Where the text of an attempt is.
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
