// The first process of a job's namespace: the kernel makes it the parent of processes whose own
// parent has ended, and kills all others when it ends. No process of the job can end or stop it, or
// read its memory: it must be created so that it cannot be traced (PR_SET_DUMPABLE).
#ifndef SUBLET_CLIENT_SHEPHERD_WALLS_INIT_H_
#define SUBLET_CLIENT_SHEPHERD_WALLS_INIT_H_

#include <signal.h>
#include <stddef.h>

namespace sublet::shepherd {

// From the shepherd: the job is over when no child is left. From the job it means nothing.
constexpr int kDismissed = SIGUSR1;

// Waits for processes until it is dismissed or killed, which it is when the shepherd ends.
// `socket`: closed at the other end if the shepherd has ended already. `unused`: what its parent
// left on the stack; its memory is given back.
[[noreturn]] void be_init(int socket, void* unused, size_t size);

// The parts of it, for one that outlives the job. become_first() keeps `socket` open.
void become_first(int socket, void* unused, size_t size);
// Returns when it was dismissed and no child is left.
void wait_until_alone();
// False if nobody listens.
bool say(int socket, char answer);

// Whether the other end of `socket` has been closed.
bool is_deserted(int socket);

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WALLS_INIT_H_
