// Old uses of machines, and the CPU that the server spent then, leave the database
// for files, one UTC day after the other once it is older than the setting:
// FOLDER/uses-2025-11-20-JOB.ATTEMPT.jsonl, of at most 20,000 uses each, the first
// of which gives the name (0.0: none was left). docs/command.md has the format.
//
// A file is on disk before its rows are deleted, in one transaction. A server that
// dies in between writes the same file again, under the same name: nothing is
// lost, nothing stands in two files. A row that cannot be read is named in the log
// and goes with its day.
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
  // folder: made when it is needed. keep: for so long rows stay; 0: for ever.
  UsageHistory(const std::string& folder, Micros keep, Files& files, Archive& archive,
               Pipeline& pipeline);

  // Some files' worth; call it again from time to time. Throws FileError,
  // StoreError, Refusal: nothing is lost, the next call goes on.
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
