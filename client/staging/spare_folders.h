// Folders of attempts that are over, for attempts to come of the same user in the same slot. ext4
// does not use an inode again for five seconds after its removal, and searches for others: creating
// an attempt's folder with its files costs more than a short job. A spare folder is as a new one,
// but that its files are there under other names, to be written over (Files::write_over). With
// root only: without, jobs of several users share an account. Any thread; the mutex protects the
// list only.
#ifndef SUBLET_CLIENT_STAGING_SPARE_FOLDERS_H_
#define SUBLET_CLIENT_STAGING_SPARE_FOLDERS_H_

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "base/files.h"

namespace sublet::client {

class SpareFolders {
 public:
  // At most so many, in `state_folder`. Removes what an earlier client has left.
  SpareFolders(Files& files, const std::string& state_folder, size_t most);

  // Makes the folder of an attempt. Throws FileError.
  void make(const std::string& folder, int64_t uid, const std::string& user);
  // Of an attempt of which no process is left: what its folder takes of the disk (bytes), if
  // nothing is in it but the files that every attempt has, and it is closed to the slot's account.
  // None: it cannot be used again as it is.
  std::optional<uint64_t> untouched(const std::string& folder, int64_t uid) const;
  // Takes it over when the attempt is over, unless more was left in it than the files that every
  // attempt has and a few small ones of the job, which are removed. `is_untouched`: untouched() has
  // found none. False: it is still there and has to be removed.
  bool take(const std::string& folder, int64_t uid, const std::string& user, bool is_untouched);

 private:
  struct Spare {
    int64_t uid;
    std::string user;
    std::string folder;
  };
  std::optional<Spare> find(int64_t uid, const std::string& user);
  // Removes the oldest if there are too many.
  void add(Spare spare);

  Files& files_;
  const std::string folder_;
  const size_t most_;
  std::mutex mutex_;
  std::deque<Spare> spares_;
  uint64_t number_ = 0;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_STAGING_SPARE_FOLDERS_H_
