// ContentCalls over an ORB of its own, for a process that does nothing else. One for each process.
#ifndef SUBLET_CLIENT_LINK_CORBA_CONTENTS_H_
#define SUBLET_CLIENT_LINK_CORBA_CONTENTS_H_

#include <memory>

#include "client/link/content_calls.h"

namespace sublet::client {

// Makes no connection yet. Throws std::runtime_error if the ORB cannot be started.
std::unique_ptr<ContentCalls> open_corba_contents(const ContentDoor& door);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_LINK_CORBA_CONTENTS_H_
