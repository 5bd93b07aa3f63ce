// Which of the files in which a job saves its state are whole, looked at before its processes are
// killed: afterwards nobody can tell a file that was being written. Allocates nothing, and waits
// for nothing that a job could hold. One thread.
#ifndef SUBLET_CLIENT_SHEPHERD_WHOLE_FILES_H_
#define SUBLET_CLIENT_SHEPHERD_WHOLE_FILES_H_

#include <stddef.h>
#include <stdint.h>

#include "attempt/format.h"

namespace sublet::shepherd {

class WholeFiles {
 public:
  // Names are kept in `names`, as many as fit.
  WholeFiles(char* names, size_t size) : names_(names), size_(size) {}

  // Looks for the order's own_files in its working folder; `folder` is that of the attempt. A file
  // is whole if no process has it open, or mapped, for writing. Ends at the instant `until`
  // (CLOCK_BOOTTIME), and then the rest counts as not whole. The processes of the job are frozen.
  void look(int folder, const sublet_order& order, int64_t until);
  // Nobody is left who could write, and nobody was killed.
  void all_are() { all_ = true; }
  // Writes SUBLET_WHOLE_FILE: "all"; or for each file, ended by a NUL, its size, the seconds and
  // nanoseconds of its last change (ctime), and its name with its folders below the working folder.
  // A process may be frozen a moment after it was told to: who changed the file meanwhile has
  // changed these.
  // An entry without a name at the end: it did not get to all.
  bool write(int folder);

 private:
  struct Name;
  void visit(int folder, const char* pattern, Name& name);
  void find(int folder, const char* pattern, const char* entry, size_t length, Name& name);
  void look_at(int folder, const char* entry, const Name& name);
  bool is_late();

  char* const names_;
  const size_t size_;
  size_t used_ = 0;
  bool all_ = false;
  int64_t until_ = 0;
  bool incomplete_ = false;
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WHOLE_FILES_H_
