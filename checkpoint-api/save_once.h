/* Saves without a start, for the command `sublet checkpoint save`: each run of it is one save
 * in the life of another program, a shell script. No signal is handled, no status page is
 * written, nothing is loaded. */
#ifndef SUBLET_CHECKPOINT_API_SAVE_ONCE_H_
#define SUBLET_CHECKPOINT_API_SAVE_ONCE_H_

#include <stdint.h>

#include "checkpoint-api/sublet_checkpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the sections registered in `c`, which must not be started, as the file NAME of this
 * generation, which must be above those that are there. `folder` is an open folder and stays
 * the caller's. newest_is_whole: the file NAME is there and whole, and becomes NAME.previous;
 * if 0, NAME is replaced, and NAME.previous is kept. Returns 0 with the file's size in *bytes,
 * or errno: ENAMETOOLONG for a name above 240 bytes, ENOMEM, or that of the step that failed;
 * the generations on disk are then unchanged, except that after a failed sync of the folder the
 * new one is in place. */
int sublet_save_once(struct sublet_checkpoint* c, int folder, const char* name, uint64_t generation,
                     int newest_is_whole, uint64_t* bytes);

#ifdef __cplusplus
}
#endif

#endif /* SUBLET_CHECKPOINT_API_SAVE_ONCE_H_ */
