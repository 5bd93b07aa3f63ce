// Files of the brain's events: FOLDER/events-2026-11-23T08-19-05.123456Z.db, named after the
// instant of the first event. Each is a database with the layout of the pool's own (tables.h):
// the records from which the brain can be restored as of its first event, and the events that
// followed, with the numbers that they had in the pool's database. So each can be replayed by
// itself (server/commit/replay.h), and leads to the records in the next one.
//
// Threads: one at a time; hold() only while nobody commits.
#ifndef SUBLET_SERVER_STORE_ARCHIVE_EVENT_FILES_H_
#define SUBLET_SERVER_STORE_ARCHIVE_EVENT_FILES_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "scheduling/records.h"
#include "server/commit/changes.h"

namespace sublet::server {

struct EventFile {
  std::string path;
  scheduling::Micros begins = 0;  // the instant of its first event
  uint64_t bytes = 0;
};

class EventFiles {
 public:
  // Copied in one call, so that the deletion of their rows, a transaction of the committer's,
  // takes no longer than some milliseconds.
  static constexpr uint32_t kAtOnce = 5'000;
  static constexpr uint64_t kBytesAtOnce = 1 << 20;  // or one event

  // pool: the path of the pool's database. folder: created when needed.
  EventFiles(const std::string& pool, const std::string& folder, Files& files);
  ~EventFiles();

  // Oldest first.
  std::vector<EventFile> list() const;
  std::optional<EventFile> newest() const;

  // Keeps the records as they are in the database now, however it changes, until begin_file()
  // or drop(). `with_last`: the database's newest event is the first one of the new file; else
  // the one that will follow it. Throws StoreError.
  void hold(bool with_last);
  void drop();
  bool holds() const { return held_ != nullptr; }
  // The number of the last event before the records held.
  uint64_t held_after() const;
  // Writes the records held and the first event to a new file, which is on disk when this
  // returns. Throws StoreError, FileError; then there is no new file, and the records are
  // still held. StoreError too if there is no such event.
  void begin_file();

  // The events in the database that are not in the newest file; none if there is no file.
  struct Waiting {
    uint64_t count = 0;
    scheduling::Micros since = 0;  // the instant of the first one
    // False: some are missing between the file and these, or the file cannot be read.
    bool follow = true;
  };
  Waiting waiting() const;
  // Copies the next events up to this number (0: all), at most kAtOnce and kBytesAtOnce, to the
  // newest file; they are on disk when this returns. Copying them again changes nothing. Throws
  // StoreError.
  struct Copied {
    uint64_t last = 0;  // the number of the last event in the file now
    bool more = false;  // there are more to copy
  };
  Copied copy_events(uint64_t up_to);

  // Removes the oldest files: those whose last event is older than this instant (0: none), and
  // as many as exceed `most_bytes` together. The newest one stays. Returns what was removed.
  std::vector<EventFile> remove_old(scheduling::Micros before, uint64_t most_bytes);

 private:
  struct Held;

  std::string path_of(scheduling::Micros begins) const;

  const std::string pool_;
  const std::string folder_;
  Files& files_;
  std::unique_ptr<Held> held_;
};

// Reads one file. Throws StoreError if it is no such file, has damaged records, or is of another
// layout.
class EventFileReader {
 public:
  explicit EventFileReader(const std::string& path);
  ~EventFileReader();

  // The records as of its first event.
  scheduling::Snapshot head();
  // The next event, which is valid until the next call; null after the last one. Throws
  // protocol::Damaged.
  struct Event {
    uint64_t number = 0;
    EventRow row;
  };
  const Event* next();

 private:
  struct Open;

  const std::string path_;
  std::unique_ptr<Open> open_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_ARCHIVE_EVENT_FILES_H_
