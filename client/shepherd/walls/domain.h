// Keeps a job, whoever it is, from processes that are not of its attempt, by Landlock: it can
// neither trace them nor read their memory. From Linux 6.12 on it can neither signal them nor
// connect to their abstract sockets.
#ifndef SUBLET_CLIENT_SHEPHERD_WALLS_DOMAIN_H_
#define SUBLET_CLIENT_SHEPHERD_WALLS_DOMAIN_H_

namespace sublet::shepherd {

// To be called in the child, after it has given up new privileges. `version`: the kernel's, or an
// older one; see attempt/landlock.h. One that is too old counts as success: the client says at its
// start what is missing. False with errno.
bool enter_domain(int version);

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WALLS_DOMAIN_H_
