// A folder of the user's into which files from the server are put. Nothing is
// ever written outside it: names are checked, symbolic links on the way are
// refused (not followed), and a file appears whole, under a temporary name
// first. One thread; an interrupt removes the temporary file.
#ifndef SUBLET_CLI_TRANSFER_TARGET_FOLDER_H_
#define SUBLET_CLI_TRANSFER_TARGET_FOLDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/early_writeback.h"
#include "base/unique_fd.h"
#include "cli/interrupts.h"

namespace sublet::cli {

class TargetFolder {
 public:
  // Made, with those above it, if it is not there. The path itself may lead
  // through symbolic links: it is the user's word. PoolError.
  explicit TargetFolder(const std::string& path);

  // A file that is being received. Without commit() nothing stays of it.
  class Pending {
   public:
    ~Pending();
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;
    void write(std::string_view bytes);
    // Synced, then renamed over whatever has its name (a symbolic link there is
    // replaced, not followed; a folder is an error), then the folder is synced.
    void commit();

   private:
    friend class TargetFolder;
    Pending(UniqueFd folder, std::string name, std::string shown);
    UniqueFd folder_;
    std::string name_;       // in folder_
    std::string temporary_;  // in folder_
    std::string shown_;      // for messages
    UniqueFd file_;
    uint64_t size_ = 0;
    EarlyWriteback writeback_;
    std::unique_ptr<WhenInterrupted> guard_;
    bool committed_ = false;
  };

  // `name` as check_relative_name allows it; folders in it are made. PoolError:
  // a name that leaves the folder, a symbolic link on the way, no room.
  std::unique_ptr<Pending> begin(const std::string& name) const;
  // What begin() would refuse whatever is on the disk: for checking all names
  // before the first byte is fetched.
  static void check(const std::string& name);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  UniqueFd fd_;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_TRANSFER_TARGET_FOLDER_H_
