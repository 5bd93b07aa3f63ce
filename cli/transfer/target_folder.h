// A folder of the user's in which files from the server are stored. Nothing is ever written
// outside it: names are checked, and symbolic links in the path are refused (not followed).
// A file is first written under a temporary name, so that it appears complete. One thread;
// an interrupt removes the temporary file.
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
  // Creates the folder and its parents if missing. The path itself may contain symbolic
  // links, because the user gave it. Throws PoolError.
  explicit TargetFolder(const std::string& path);
  // Throws PoolError if this user cannot make files in it.
  void check_writable() const;
  // The same before it exists: throws PoolError if it could not be made, or no files in it, as far
  // as can be seen. Makes nothing.
  static void check_possible(const std::string& path);

  // A file that is being received. Without commit() it is removed.
  class Pending {
   public:
    ~Pending();
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;
    void write(std::string_view bytes);
    // Syncs the file, renames it over an existing file (a symbolic link is replaced, not
    // followed; a folder is an error), and syncs the folder.
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

  // `name` as check_relative_name allows it; its folders are created. Throws PoolError: a
  // name that leaves the folder, a symbolic link in the path, no space.
  std::unique_ptr<Pending> begin(const std::string& name) const;
  // Throws for names that begin() always refuses; for checking all names before the first
  // byte is fetched.
  static void check(const std::string& name);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  UniqueFd fd_;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_TRANSFER_TARGET_FOLDER_H_
