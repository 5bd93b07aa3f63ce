// Files of finished work: FOLDER/jobs-2026-01.db, by the UTC month in which the jobs ended.
// Each is a database with the layout of the pool's own (tables.h), so that the same queries and
// the same migration serve both. In a session of a file, the pool's
// database is attached under the name "live": what is still in it hides the file's copy.
// Includes SOCI, so only the archive's .cc files may include this.
#ifndef SUBLET_SERVER_STORE_ARCHIVE_FINISHED_H_
#define SUBLET_SERVER_STORE_ARCHIVE_FINISHED_H_

#include <soci/soci.h>

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "scheduling/records.h"
#include "server/commit/changes.h"

namespace sublet::server {

// Threads: any.
class FinishedFiles {
 public:
  // Brings files of earlier layouts to the present one. A file that cannot be used is logged
  // and left out.
  FinishedFiles(const std::string& pool, const std::string& folder);
  ~FinishedFiles();

  // Calls f for each file that has jobs of the range, newest month first, with exclusive use of
  // the session. A file that cannot be read is logged, once, and passed over; StoreError if it
  // was the pool's database.
  void each(const scheduling::JobRange& range, const std::function<void(soci::session&)>& f);

  // Copies these rows of the pool's database to the file of that month ("2026-01"). They are on
  // disk when it returns; copying them again changes nothing. Throws soci::soci_error, FileError
  // or StoreError; the file then has all of them or none.
  void write(const std::string& month, const Changes::MovedJobs& moved);
  // Whether there is a file of that month that can be used.
  bool has(const std::string& month);

 private:
  struct File;
  std::string path_of(const std::string& month) const;
  std::shared_ptr<File> file(const std::string& path);
  // Throws soci::soci_error.
  std::unique_ptr<soci::session> open(const std::string& path) const;
  // Passes the file over if it is damaged; throws StoreError if it is not.
  static void blame(File& file, const std::string& what);

  const std::string pool_;
  const std::string folder_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<File>> files_;  // by path
};

// "2026-01" for "jobs-2026-01.db"; empty: this is not the name of such a file.
std::string month_of(const std::string& name);

inline const scheduling::JobRange kAllJobs{0, std::numeric_limits<int64_t>::max()};

// "1, 2, 3"
std::string list_of(const std::vector<uint64_t>& ids);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_ARCHIVE_FINISHED_H_
