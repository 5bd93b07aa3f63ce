// The first process of a job's namespace: the kernel makes it the parent of processes whose own
// parent has ended, and kills all others when it ends.
#ifndef SUBLET_CLIENT_SHEPHERD_WALLS_INIT_H_
#define SUBLET_CLIENT_SHEPHERD_WALLS_INIT_H_

namespace sublet::shepherd {

// Waits for processes until it is killed, which it is when the shepherd ends. No process of the
// job can signal it, or read its memory. `socket`: closed at the other end if the shepherd has
// ended already. The signals that the shepherd blocks are still blocked.
[[noreturn]] void be_init(int socket);

// Whether the other end of `socket` has been closed.
bool is_deserted(int socket);

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WALLS_INIT_H_
