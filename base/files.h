// All durable data is written through Files. Each of its system calls first calls
// before(), which a test overrides to simulate a full disk or a loss of power
// (base/testing/faulty_files.h). Thread-safe, but two writers of one file must be
// excluded by FolderLock.
#ifndef SUBLET_BASE_FILES_H_
#define SUBLET_BASE_FILES_H_

#include <sys/types.h>

#include <cstdint>
#include <span>
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

enum class FileStep {
  open,
  read,
  write,
  sync,
  rename,
  link,
  sync_folder,
  make_folder,
  remove,
  list
};

struct FolderEntry {
  std::string name;
  bool is_folder = false;
  uint64_t size = 0;  // bytes; 0 for folders
};

// Every function throws FileError when it fails.
class Files {
 public:
  // What a change survives once the call has returned. A loss of power ends all
  // processes, so data that only describes processes need not survive it.
  enum class Outlives { kProcess, kPower };

  virtual ~Files() = default;

  // The whole file. Longer than max_bytes: FileError with EFBIG.
  virtual std::string read_file(const std::string& path, uint64_t max_bytes) const;
  // Replaces the file atomically (with kProcess it may be empty after a loss of
  // power). On failure the old file is unchanged and no temporary file is left, except
  // that if the last step fails, the sync of the folder, the new file is in place but
  // may not survive a loss of power.
  virtual void write_atomic(const std::string& path, std::string_view bytes, mode_t mode = 0600,
                            Outlives outlives = Outlives::kPower);
  // The same, by way of the file spare_name(path), which is written over if it is there. Nobody
  // else may write to that folder.
  void write_over(const std::string& path, std::string_view bytes, Outlives outlives);
  // "folder/.name.new"
  static std::string spare_name(const std::string& path);
  // Appends (creating the file with `mode`) and syncs. After a failed append the file
  // is truncated to its old size.
  virtual void append(const std::string& path, std::string_view bytes, mode_t mode = 0600);
  // For a file that is read in parts. Does not follow a symbolic link.
  UniqueFd open_to_read(const std::string& path) const;
  // Fewer bytes than `into` has at the end of the file.
  size_t read_at(int fd, const std::string& path, uint64_t offset, std::span<char> into) const;
  // Renames, replacing `to` if it exists, and syncs both folders.
  virtual void move(const std::string& from, const std::string& to);
  // Removes one file; false if it did not exist.
  virtual bool remove_file(const std::string& path);
  // Creates the folder and its missing parents, each with `mode`.
  virtual void make_folders(const std::string& path, mode_t mode = 0700,
                            Outlives outlives = Outlives::kPower);
  // Removes a file or a whole folder without following symbolic links. Not an error
  // if it does not exist.
  void remove_tree(const std::string& path) { remove_some(path, UINT64_MAX); }
  // The same, but stops when `most` entries have been removed. False: something may be left.
  virtual bool remove_some(const std::string& path, uint64_t most);
  // Sorted by name, without "." and "..".
  virtual std::vector<FolderEntry> list(const std::string& path) const;
  virtual bool exists(const std::string& path) const;
  // The space available to ordinary users on that file system.
  virtual uint64_t free_bytes(const std::string& path) const;
  virtual void sync_folder(const std::string& path);

  // For a file that is written over a longer time. `path`: its name, for the error.
  UniqueFd create(const std::string& path, mode_t mode = 0600);  // EEXIST if it exists
  void write_at(int fd, const std::string& path, uint64_t offset, std::string_view bytes);
  // Takes space for that many bytes from the beginning; the file is then at least as long.
  void reserve(int fd, const std::string& path, uint64_t bytes);
  // After an error the data may be lost even if a repeat succeeds.
  void sync(int fd, const std::string& path);
  void sync_file(const std::string& path);
  // A folder with all that is in it, without following symbolic links; the whole file system if
  // there are more than `most` entries, or some that cannot be opened. Not an error if it does not
  // exist.
  void sync_tree(const std::string& path, size_t most);
  void rename(const std::string& from, const std::string& to);
  // Gives the file a second name; EEXIST if `to` exists.
  void link(const std::string& from, const std::string& to);
  // Removes temporary files that a crash during write_atomic left in that folder. To be
  // called at start, by the folder's only user.
  void remove_leftovers(const std::string& folder);

 protected:
  // Called before each system call. 0: continue; else the call fails with that errno.
  virtual int before(FileStep step, const std::string& path) const;
  // Called after each system call that changed the disk. `from` is the old name
  // in a rename or link.
  virtual void after(FileStep step, const std::string& path, const std::string& from = "");

 private:
  void ask(FileStep step, const char* doing, const std::string& path) const;
  UniqueFd open(const std::string& path, int flags, mode_t mode) const;
  void write_all(int fd, const std::string& path, std::string_view bytes);
  void write_through(const UniqueFd& fd, const std::string& temporary, const std::string& path,
                     std::string_view bytes, mode_t mode, Outlives outlives);
  void remove_quietly(const std::string& path);
  // False: there are too many, or one cannot be opened.
  bool sync_below(int folder, const std::string& path, size_t* left);
  struct Removal;
  void empty_folder(Removal& removal, int folder, const std::string& path, int depth);
  void remove_entry(Removal& removal, int folder, const std::string& path, const char* name,
                    int depth);
};

Files& system_files();

// One process per folder: holds `folder`/lock until destroyed. A second holder
// gets a FileError (EBUSY) that names the pid of the first. The lock is released when
// the process ends.
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
