// A small file that is written on a thread of its own, because the monitor's thread must not wait
// for a disk. Changes that come while one is being written are written together afterwards. One
// thread, but for the writing.
#ifndef SUBLET_LOADMON_STORED_TEXT_H_
#define SUBLET_LOADMON_STORED_TEXT_H_

#include <cstdint>
#include <string>
#include <thread>

#include "base/files.h"
#include "base/unique_fd.h"

namespace sublet::loadmon {

class StoredText {
 public:
  // Throws OsError if there are no descriptors left.
  StoredText(std::string path, Files& files);
  ~StoredText();

  const std::string& path() const { return path_; }
  // Readable when a change has been written, or could not be: call note().
  int handle() const { return written_.get(); }
  void note();

  // The file is to have this content; empty: it is to be removed. Returns the number of the change.
  uint64_t change(std::string content);
  // Begins to write the last change; false: it is on its way, or another one is.
  bool begin();
  // The last change that is on disk, or that could not be written: error() says why, else 0.
  uint64_t stored() const { return stored_; }
  int error() const { return error_; }

 private:
  void write(const std::string& content);

  const std::string path_;
  Files& files_;
  UniqueFd written_;  // eventfd
  std::string content_;
  uint64_t changes_ = 0, on_its_way_ = 0, stored_ = 0;
  int error_ = 0;
  std::thread writer_;    // of one change
  int writer_error_ = 0;  // its result, read after it has ended
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_STORED_TEXT_H_
