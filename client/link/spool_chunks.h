// What the client and its process that moves files have in common: the settings of their ORBs, and
// the calls for chunks of files. Included only by corba_server.cc and corba_contents.cc. Any
// thread.
#ifndef SUBLET_CLIENT_LINK_SPOOL_CHUNKS_H_
#define SUBLET_CLIENT_LINK_SPOOL_CHUNKS_H_

#include <cstdint>
#include <string>

#include "client/link/content_calls.h"
#include "client/link/translate.h"
#include "transport/orb.h"

namespace sublet::client {

// Without calling back.
OrbSettings orb_settings(const ContentDoor& door);

// Not guarded: they throw what the ORB does.
std::string get_chunk(idl::Spool_ptr spool, const idl::FilePlace& place, uint64_t offset,
                      uint32_t count);
uint64_t put_chunk(idl::Spool_ptr spool, uint64_t upload, uint64_t offset, const char* bytes,
                   size_t count);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_LINK_SPOOL_CHUNKS_H_
