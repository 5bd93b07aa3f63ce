/* What a job does when the owner is back: the modes, and when a job may stay.
 *
 * The workstation has a mode, and a job may have one; the stricter of the two holds, so that no
 * job stays where the owner does not allow it, and a job may leave where it could stay. Without the
 * C++ library, because the static shepherd includes it too. */
#ifndef SUBLET_PROTOCOL_LEAVING_H_
#define SUBLET_PROTOCOL_LEAVING_H_

#include "protocol/frame.h"

/* LEAVING_... of idl/types.idl, the same numbers. */
enum sublet_leaving {
  SUBLET_LEAVING_DEFAULT = 0, /* of a job: the workstation's */
  SUBLET_LEAVING_SAVE = 1,    /* saves and leaves */
  SUBLET_LEAVING_SUSPEND = 2, /* frozen at once; goes on if the owner goes soon, else saves and
                                 leaves */
  SUBLET_LEAVING_LINGER = 3,  /* runs on at the idle weight as long as the owner is not slowed
                                 down, else saves and leaves */
  SUBLET_LEAVING_KILL = 4     /* killed at once */
};

/* The larger, the less the owner has to bear. */
constexpr int sublet_leaving_strictness(sublet_leaving leaving) {
  switch (leaving) {
    case SUBLET_LEAVING_LINGER:
      return 1;
    case SUBLET_LEAVING_SUSPEND:
      return 2;
    case SUBLET_LEAVING_SAVE:
      return 3;
    case SUBLET_LEAVING_KILL:
      return 4;
    case SUBLET_LEAVING_DEFAULT:
      break;
  }
  return 0;
}

constexpr sublet_leaving sublet_leaving_stricter(sublet_leaving a, sublet_leaving b) {
  return sublet_leaving_strictness(a) >= sublet_leaving_strictness(b) ? a : b;
}

/* Whether a job that leaves so may stay while the owner is here. */
constexpr bool sublet_can_stay(sublet_leaving leaving) {
  return leaving == SUBLET_LEAVING_SUSPEND || leaving == SUBLET_LEAVING_LINGER;
}

/* Whether jobs that suspend or linger may stay while the owner is here for this reason. Not if
 * the owner, a rule or the administrator said that there shall be no jobs, if the machine is about
 * to sleep, or if nobody knows what the owner does. */
constexpr bool sublet_may_stay(sublet_presence_reason reason) {
  switch (reason) {
    case SUBLET_PRESENCE_CPU:
    case SUBLET_PRESENCE_LOAD:
    case SUBLET_PRESENCE_INPUT:
    case SUBLET_PRESENCE_MEDIA:
    case SUBLET_PRESENCE_SETTLING:
    case SUBLET_PRESENCE_WITHHELD:
    case SUBLET_PRESENCE_SCRIPT:
      return true;
    default:
      return false;
  }
}

/* Whether new jobs may come by what the monitor says. When the owner has only just gone, or a rule
 * allows no more, those that are here go on, and nothing else. */
constexpr bool sublet_jobs_may_come(uint32_t presence, uint32_t reason) {
  return presence == SUBLET_PRESENCE_AWAY && reason != SUBLET_PRESENCE_SETTLING &&
         reason != SUBLET_PRESENCE_WITHHELD;
}

#endif /* SUBLET_PROTOCOL_LEAVING_H_ */
