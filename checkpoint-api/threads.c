/* Points of several threads: a barrier that is passed only when something is asked for. The
 * last thread to arrive makes the point for all; the lock orders what the threads wrote
 * before the save that reads it. */
#include <errno.h>

#include "checkpoint-api/internal.h"

/* The inline function of the header, as an ordinary one. */
extern int sublet_checkpoint_thread_point(struct sublet_checkpoint* c);

int sublet_checkpoint_threads(struct sublet_checkpoint* c, unsigned threads) {
  if (threads == 0) return EINVAL;
  pthread_mutex_lock(&c->lock);
  const int busy = c->threads != 0;
  if (!busy) c->threads = threads;
  pthread_mutex_unlock(&c->lock);
  return busy ? EBUSY : 0;
}

int sublet_checkpoint_thread_point_slow(struct sublet_checkpoint* c) {
  pthread_mutex_lock(&c->lock);
  /* After a round that ended with SUBLET_LEAVE the others need not come again. */
  if (!c->leaving) {
    const uint64_t round = c->round;
    ++c->arrived;
    while (c->round == round && c->arrived < c->threads) {
      pthread_cond_wait(&c->round_ended, &c->lock);
    }
    if (c->round == round) {
      c->result = sublet_checkpoint_point_slow(c);
      c->arrived = 0;
      ++c->round;
      pthread_cond_broadcast(&c->round_ended);
    }
  }
  const int result = c->result;
  pthread_mutex_unlock(&c->lock);
  return result;
}

void sublet_checkpoint_thread_done(struct sublet_checkpoint* c) {
  pthread_mutex_lock(&c->lock);
  if (c->threads != 0) --c->threads;
  /* It may be the one for which all others wait. */
  pthread_cond_broadcast(&c->round_ended);
  pthread_mutex_unlock(&c->lock);
}
