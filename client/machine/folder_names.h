// The names in an open folder, read without the C library's buffer of 32 kB and the calls with
// which it prepares one. One thread.
#ifndef SUBLET_CLIENT_MACHINE_FOLDER_NAMES_H_
#define SUBLET_CLIENT_MACHINE_FOLDER_NAMES_H_

#include <dirent.h>
#include <string.h>

#include <cstddef>

namespace sublet::client {

class FolderNames {
 public:
  // The caller closes it later, and may use it meanwhile for what does not read names.
  explicit FolderNames(int folder) : folder_(folder) {}

  // The next one but "." and "..", valid until the next call; d_type may be DT_UNKNOWN. Null: there
  // is none, or failed().
  const dirent64* next() {
    for (;;) {
      if (at_ >= size_) {
        at_ = 0;
        size_ = getdents64(folder_, entries_, sizeof entries_);
        if (size_ <= 0) return nullptr;
      }
      const auto* entry = reinterpret_cast<const dirent64*>(entries_ + at_);
      at_ += entry->d_reclen;
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) return entry;
    }
  }
  // With errno.
  bool failed() const { return size_ < 0; }

 private:
  const int folder_;
  ssize_t at_ = 0;
  ssize_t size_ = 0;
  alignas(dirent64) char entries_[2048];
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_FOLDER_NAMES_H_
