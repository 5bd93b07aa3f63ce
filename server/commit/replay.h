// Replays the brain's history from its files (server/store/archive/event_files.h): restores a
// brain from the records at the head of a file, applies the events, and compares what they lead
// to with the records at the head of the next file.
//
// Only a server of the same version is sure to decide the same. Any thread.
#ifndef SUBLET_SERVER_COMMIT_REPLAY_H_
#define SUBLET_SERVER_COMMIT_REPLAY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "scheduling/records.h"

namespace sublet::server {

// The newest record of each subject, of those that a brain is restored from.
struct Books {
  scheduling::PoolRecord pool;
  std::optional<scheduling::PolicyRecord> policy;
  std::map<std::string, scheduling::UserRecord> users;
  std::map<scheduling::MachineId, scheduling::MachineRecord> machines;
  std::map<scheduling::MachineId, scheduling::AbsenceRecord> absences;
  std::map<scheduling::JobId, scheduling::JobRecord> jobs;
  std::map<scheduling::AttemptKey, scheduling::AttemptRecord> attempts;
  std::map<scheduling::BatchId, scheduling::BatchRecord> batches;     // with live jobs
  std::map<scheduling::JobId, scheduling::RelationRecord> relations;  // by their first job
  // By program, architecture and speed.
  std::map<std::tuple<uint64_t, std::string, int32_t>, scheduling::ProgramRecord> programs;

  Books() = default;
  explicit Books(const scheduling::Snapshot& snapshot);
  void write(const scheduling::Outcome& outcome);
  // Names one subject of which the other books have another record; "": there is none.
  std::string difference(const Books& other) const;
};

struct Replay {
  uint64_t events = 0;
  scheduling::Micros from = 0;  // the instants of the first and the last event
  scheduling::Micros until = 0;
  Books end;
  std::string stopped;  // why the rest could not be replayed; "": all was
};

// The records at the head of this file. Throws StoreError if they cannot be read, or the file
// is of another layout.
Books books_at_head(const std::string& path);
// Throws StoreError likewise.
Replay replay(const std::string& path);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_COMMIT_REPLAY_H_
