#include "checkpoint-api/save_once.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint-api/internal.h"

int sublet_save_once(struct sublet_checkpoint* c, int folder, const char* name, uint64_t generation,
                     int newest_is_whole, uint64_t* bytes) {
  if (strlen(name) > SUBLET_MAX_FILE_NAME) return ENAMETOOLONG;
  if (c->head == NULL) c->head = calloc(1, sublet_head_bytes(c->section_count));
  if (c->head == NULL) return ENOMEM;
  sublet_name_files(c, name);
  c->folder = folder;
  c->next_generation = generation;
  c->newest_is_whole = newest_is_whole;
  const int error = sublet_save_file(c, bytes);
  c->folder = -1; /* close() would close it */
  return error;
}
