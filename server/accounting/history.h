// Moves old uses of machines, and the CPU time the server used then, from the
// database to files, by UTC day, once a day is older than the setting:
// FOLDER/uses-2025-11-20-JOB.ATTEMPT.jsonl, each with at most 20,000 uses and named
// after the first one (0.0: none). docs/command.md describes the format.
//
// A file is on disk before its rows are deleted, in one transaction. A server that
// crashes in between writes the same file again, with the same name, so nothing is
// lost or duplicated. A row that cannot be read is logged and deleted with its day.
//
// Threads: one at a time.
#ifndef SUBLET_SERVER_ACCOUNTING_HISTORY_H_
#define SUBLET_SERVER_ACCOUNTING_HISTORY_H_

#include <string>

#include "base/files.h"
#include "server/commit/pipeline.h"
#include "server/store/archive/archive.h"

namespace sublet::server {

class UsageHistory {
 public:
  // folder: created when needed. keep: how long rows stay in the database; 0: for ever.
  UsageHistory(const std::string& folder, Micros keep, Files& files, Archive& archive,
               Pipeline& pipeline);

  // Writes at most a few files; must be called periodically. Throws FileError,
  // StoreError or Refusal; nothing is lost then, and the next call continues.
  void write_old();

 private:
  bool write_one(Micros before);

  const std::string folder_;
  const Micros keep_;
  Files& files_;
  Archive& archive_;
  Pipeline& pipeline_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_ACCOUNTING_HISTORY_H_
