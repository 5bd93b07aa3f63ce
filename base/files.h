// Everything durable goes through here. Files does the real thing; each of its
// system calls first asks before(), which a test overrides to make the disk
// full or the machine lose power there (base/testing/faulty_files.h). One Files may be
// used from any thread; nothing guards two writers of one file but FolderLock.
#ifndef SUBLET_BASE_FILES_H_
#define SUBLET_BASE_FILES_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/os_error.h"
#include "base/unique_fd.h"

namespace sublet {

class FileError : public OsError {
 public:
  using OsError::OsError;
  const std::string& path() const { return subject(); }
};

enum class FileStep { open, read, write, sync, rename, sync_folder, make_folder, remove, list };

struct FolderEntry {
  std::string name;
  bool is_folder = false;
  uint64_t size = 0;  // bytes; 0 for folders
};

// Every function throws FileError when it fails.
class Files {
 public:
  // What a change is still there after, once the call has returned. A loss of power
  // also ends every process: what only tells of processes need not outlive it.
  enum class Outlives { kProcess, kPower };

  virtual ~Files() = default;

  // The whole file. Longer than max_bytes: FileError with EFBIG.
  virtual std::string read_file(const std::string& path, uint64_t max_bytes) const;
  // The file appears whole or not at all (after a loss of power it may also be
  // empty, if it need not outlive that). On failure the old file is untouched and no other is left;
  // only when the last step fails, the sync of the folder, the new one is in
  // place without that promise.
  virtual void write_atomic(const std::string& path, std::string_view bytes, mode_t mode = 0600,
                            Outlives outlives = Outlives::kPower);
  // Adds to the end (creating the file with `mode`) and syncs. A failed append
  // is cut off again.
  virtual void append(const std::string& path, std::string_view bytes, mode_t mode = 0600);
  // Renames over whatever is at `to` and syncs both folders.
  virtual void move(const std::string& from, const std::string& to);
  // Removes one file; false when there was none.
  virtual bool remove_file(const std::string& path);
  // The folder and those above it that are missing; each new one gets `mode`.
  virtual void make_folders(const std::string& path, mode_t mode = 0700,
                            Outlives outlives = Outlives::kPower);
  // Removes a file or a whole folder, following no symbolic link. Nothing
  // there: nothing done.
  virtual void remove_tree(const std::string& path);
  // Sorted by name, without "." and "..".
  virtual std::vector<FolderEntry> list(const std::string& path) const;
  virtual bool exists(const std::string& path) const;
  // What an ordinary user may still write on that file system.
  virtual uint64_t free_bytes(const std::string& path) const;
  virtual void sync_folder(const std::string& path);
  // Removes what a crash in the middle of write_atomic left in that folder
  // (its temporary names). For the folder's only user, at the start.
  void remove_leftovers(const std::string& folder);

 protected:
  // Asked before each system call. 0: continue; else the call fails with that errno.
  virtual int before(FileStep step, const std::string& path) const;
  // Told after each system call that changed the disk. `from` is the old name
  // in a rename.
  virtual void after(FileStep step, const std::string& path, const std::string& from = "");

 private:
  void ask(FileStep step, const char* doing, const std::string& path) const;
  UniqueFd open(const std::string& path, int flags, mode_t mode) const;
  void write_all(int fd, const std::string& path, std::string_view bytes);
  void sync(int fd, const std::string& path);
  void rename(const std::string& from, const std::string& to);
  void remove_quietly(const std::string& path);
  struct Removal;
  void empty_folder(Removal& removal, int folder, const std::string& path, int depth);
  void remove_entry(Removal& removal, int folder, const std::string& path, const char* name,
                    int depth);
};

Files& system_files();

// One process per folder: holds `folder`/lock until destroyed. A second holder
// gets a FileError (EBUSY) that names the pid of the first. A process
// that dies lets go.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);

 private:
  UniqueFd fd_;
};

// "a/b/c" -> "a/b", "c" -> ".", "/c" -> "/".
std::string folder_of(const std::string& path);

}  // namespace sublet

#endif  // SUBLET_BASE_FILES_H_
