#include "client/attempts/work.h"

#include "base/log.h"

namespace sublet::client {
namespace {

// Beyond that it is quicker to sync the whole file system.
constexpr size_t kSyncedOneByOne = 1000;

// Of an attempt that was asked to leave only the checkpoint is needed, and its owner the disk; its
// checkpoint may be files in its working folder.
void sync_end(Files& files, const AttemptWork& work) {
  files.sync_tree(work.folder + "/" SUBLET_CHECKPOINT_FOLDER, kSyncedOneByOne);
  const bool saves_files = work.assignment->job.own_checkpoint.is_set();
  if (work.leave_reason == SUBLET_LEAVE_NONE || saves_files)
    files.sync_tree(work.folder + "/" SUBLET_WORK_FOLDER, kSyncedOneByOne);
  for (const char* name :
       {SUBLET_STDOUT_FILE, SUBLET_STDERR_FILE, SUBLET_WHOLE_FILE, SUBLET_EXIT_FILE}) {
    const std::string path = work.folder + "/" + name;
    if (files.exists(path)) files.sync_file(path);
  }
  write_assignment(files, work.folder, *work.assignment, Files::Outlives::kPower);
  files.write_atomic(work.folder + "/" + kSyncedFile, "", 0600, Files::Outlives::kPower);
}

}  // namespace

void outlive_power(Files& files, AttemptWork& work) {
  // In this order, as do_remove() in the other: who removes or reuses the folder sees that it is
  // being written, or is seen here.
  if (work.outlives_power.exchange(true) || work.over) return;
  try {
    sync_end(files, work);
  } catch (const std::exception& error) {
    if (work.over) return;  // its folder is gone
    work.outlives_power = false;
    log(Severity::error) << work.label() << ": would not survive a power failure: " << error.what();
  }
}

}  // namespace sublet::client
