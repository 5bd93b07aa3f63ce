// The process that moves large files for the client (mover.h): sublet-client with the one argument
// kMoverOption, and the client's socket as its standard input. It ends when the client closes the
// socket. Main thread.
#ifndef SUBLET_CLIENT_MOVER_PROCESS_H_
#define SUBLET_CLIENT_MOVER_PROCESS_H_

#include <functional>
#include <memory>

#include "client/link/content_calls.h"

namespace sublet::client {

inline constexpr char kMoverOption[] = "--move-files";

using OpenContents = std::function<std::unique_ptr<ContentCalls>(const ContentDoor&)>;

// Serves the client until it closes the socket. Returns the exit status: 1 if what it says makes no
// sense, as from another version of this program.
int serve_mover(int socket, const OpenContents& open);

// Ends this process when the other side of the socket closes it, whatever it does then.
void end_with(int socket);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MOVER_PROCESS_H_
