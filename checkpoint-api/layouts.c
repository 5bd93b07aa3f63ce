/* What a program declares about its older layouts: which sections they had. */
#include <errno.h>
#include <string.h>

#include "checkpoint-api/internal.h"

int sublet_section_in(const struct sublet_section* section, uint32_t layout) {
  return section->first_layout <= layout && layout <= section->last_layout;
}

void sublet_forget_former(struct sublet_checkpoint* c) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < c->section_count; ++i) {
    if (sublet_section_in(&c->sections[i], c->layout)) c->sections[kept++] = c->sections[i];
  }
  c->section_count = kept;
}

int sublet_checkpoint_oldest(struct sublet_checkpoint* c, uint32_t layout) {
  if (c->started) return EBUSY;
  if (layout > c->layout) return EINVAL;
  c->oldest_layout = layout;
  return 0;
}

/* Of the present layout. */
static struct sublet_section* present(struct sublet_checkpoint* c, const char* name) {
  for (uint32_t i = 0; i < c->section_count; ++i) {
    struct sublet_section* section = &c->sections[i];
    if (section->last_layout >= c->layout && strcmp(section->entry.name, name) == 0) return section;
  }
  return NULL;
}

int sublet_checkpoint_since(struct sublet_checkpoint* c, const char* name, uint32_t layout) {
  struct sublet_section* section = present(c, name);
  if (c->started) return EBUSY;
  if (section == NULL) return ENOENT;
  if (layout > c->layout || layout < section->first_layout) return EINVAL;
  section->first_layout = layout;
  return 0;
}

int sublet_checkpoint_until(struct sublet_checkpoint* c, const char* name, uint32_t layout) {
  struct sublet_section* section = present(c, name);
  if (c->started) return EBUSY;
  if (section == NULL) return ENOENT;
  if (layout >= c->layout || layout < section->first_layout) return EINVAL;
  section->last_layout = layout;
  return 0;
}

uint32_t sublet_checkpoint_resumed_layout(const struct sublet_checkpoint* c) {
  return c->resumed_layout;
}
