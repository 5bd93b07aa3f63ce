// Checkpoints of programs that save themselves: the files that the description names
// (job/own_checkpoint.h) are packed into one generation, and put back where the job goes on.
//
// Only whole files are taken. Of an attempt that has ended, the shepherd says which are
// (client/shepherd/whole_files.h). Of one that runs, a file is whole if it has not changed lately,
// nobody has it open for writing, and it is the same after it was copied; if one of those that were
// chosen changes meanwhile, there is no pack. In place of a file that is not whole, its contents
// from the generation before are kept. But of a program that was killed while it saved, as it had
// been asked to, nothing is taken unless all files are whole: some may say what others lack.
//
// Worker threads, the attempt's task at the time.
#ifndef SUBLET_CLIENT_STAGING_OWN_FILES_H_
#define SUBLET_CLIENT_STAGING_OWN_FILES_H_

#include <memory>
#include <string>

#include "client/attempts/work.h"
#include "client/staging/packed_files.h"

namespace sublet::client {

struct PackedNow {
  std::shared_ptr<Pack> pack;  // null: there is nothing, or nothing new
  std::string left_out;        // sentences about files that were not taken; "": none
  bool copied = false;         // they were read: not all were as in the last pack
};
// Packs the files as the generation after work.held_generation. `largest`: bytes of all files; with
// more throws std::runtime_error. Also throws FileError, WorkFolderError.
PackedNow pack_own_files(const AttemptWork& work, bool runs, uint64_t largest, const Turn& turn);

// Puts the files of the fetched checkpoint into the working folder, if it is one of packed files,
// and keeps it as work.packed. False: it is damaged. Throws FileError, WorkFolderError.
bool unpack_own_files(AttemptWork& work, const Turn& turn);

// work.packed has no name and is gone with this process. These give it one in the attempt's folder,
// find it again for the generation work.held_generation, and remove the name. Without the name, as
// on a file system that cannot give it, a client that has begun anew takes no copy that lacks a
// file. What is found may be anything: a damaged one, or that of another
// generation, is removed.
void keep_packed(const AttemptWork& work);
void find_packed(AttemptWork& work, const Turn& turn);
void forget_packed(const AttemptWork& work);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_STAGING_OWN_FILES_H_
