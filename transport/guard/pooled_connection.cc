#include "transport/guard/pooled_connection.h"

// clang-format off
#include <giopStrand.h>
#include <giopStream.h>
#include <GIOP_S.h>
// clang-format on

#include <poll.h>

#include <cstring>

namespace sublet {
namespace {

// How long a thread waits for the next request before it leaves the connection: callers
// that ask again at once do not pay for two thread switches.
constexpr int kLingerMs = 10;
// Threads that do so at a time: beside many callers they would add up.
constexpr int kMostLingering = 16;
std::atomic<int> g_lingering{0};

// A one-way request to an object that does not exist. After a reply to a call back the ORB's
// thread waits for a request, however long that takes; this one brings it back.
constexpr uint8_t kNoRequest[] = {
    'G', 'I', 'O', 'P', 1,   2, 1, 0, 32, 0, 0, 0,  // header: 32 bytes follow
    0,   0,   0,   0,                               // id
    0,   0,   0,   0,                               // no answer is expected
    0,   0,   0,   0,                               // addressed by object key
    1,   0,   0,   0,   '-', 0, 0, 0,               // the key
    1,   0,   0,   0,   0,   0, 0, 0,               // no operation
    0,   0,   0,   0,                               // no contexts
};
static_assert(sizeof kNoRequest == 12 + 32);

}  // namespace

PooledConnection::~PooledConnection() {
  // Accepted while the ORB was stopping, and dropped by the thread that accepts, which ends
  // now and takes what the set's thread calls with it.
  if (!watched_) set_.stop();
  set_.forget(*this);
}

CORBA::Boolean PooledConnection::gatekeeperCheckSpecific(omni::giopStrand* strand) {
  strand_ = strand;
  return Guarded::gatekeeperCheckSpecific(strand);
}

// The ORB calls it with now == 0 when it has taken a request out of its buffers, before the
// upcall. Nobody watches the connection then: the thread comes back in any case.
void PooledConnection::setSelectable(int now, CORBA::Boolean) {
  if (now == 0)
    taken_ = true;
  else
    rest();
}

void PooledConnection::clearSelectable() { set_.forget(*this); }

// Whether the ORB or the guard has data of a request that was not served. That does not
// make the socket readable.
bool PooledConnection::unserved() const {
  const omni::giopStrand* strand = strand_;
  return !guard_.between_messages() || (strand != nullptr && strand->head != nullptr);
}

bool PooledConnection::readable_soon() const {
  pollfd socket{pd_socket, POLLIN, 0};
  const bool may_linger = ++g_lingering <= kMostLingering;
  const bool readable = ::poll(&socket, 1, may_linger ? kLingerMs : 0) != 0;
  --g_lingering;
  return readable;
}

CORBA::Boolean PooledConnection::Peek() {
  // A request that was not taken is still in the stream, because the ORB has failed
  // (guard_call_is_new).
  if (!taken_.exchange(false) || unserved()) return true;
  readable_ = readable_soon();
  return readable_;
}

// Frees what the ORB keeps for the next request; false if it keeps nothing. The caller holds
// the ORB's transport lock.
bool PooledConnection::let_go_of_streams(omni::giopStrand* strand) {
  bool any = false;
  for (omni::giopStreamList* next = strand->servers.next; next != &strand->servers;) {
    auto* const stream = static_cast<omni::GIOP_S*>(next);
    next = next->next;
    if (stream->state() != omni::IOP_S::UnUsed) continue;
    stream->giopStreamList::remove();
    delete stream;
    any = true;
  }
  while (omni::giopStream_Buffer* const spare = strand->spare) {
    strand->spare = spare->next;
    omni::giopStream_Buffer::deleteBuffer(spare);
  }
  return any;
}

void PooledConnection::rest() {
  bool dying = false;
  {
    omni_tracedmutex_lock lock(*omni::omniTransportLock);
    omni::giopStrand* const strand = strand_;
    if (strand != nullptr) {
      const bool any = let_go_of_streams(strand);
      dying = strand->state() == omni::giopStrand::DYING;
      // A call back has failed meanwhile. It could not delete the strand because of the
      // stream that was kept; without that the ORB would never do it.
      if (dying && any) strand->safeDelete();
    }
    resting_ = true;
  }
  watched_ = true;
  if (dying) ::shutdown(pd_socket, SHUT_RDWR);
  const bool at_once = unserved();
  readable_ = !at_once;
  set_.wait(*this, pd_socket, at_once);
}

void PooledConnection::Shutdown() {
  Guarded::Shutdown();
  set_.ended(*this);
}

// The ORB asks for the address, too, when it deletes the strand because a call back has failed.
// It does not close the connection then: without a thread in Recv nobody would notice.
const char* PooledConnection::peeraddress() {
  const omni::giopStrand* strand = strand_;
  if (resting_ && strand != nullptr && strand->state() == omni::giopStrand::DYING)
    ::shutdown(pd_socket, SHUT_RDWR);
  return Guarded::peeraddress();
}

int PooledConnection::receive_raw(uint8_t* buffer, size_t size, const omni_time_t& deadline) {
  resting_ = false;
  if (!readable_.exchange(false) && guard_.between_messages() && guard_.requests() > 0 &&
      size >= sizeof kNoRequest && !readable_soon()) {
    std::memcpy(buffer, kNoRequest, sizeof kNoRequest);
    return sizeof kNoRequest;
  }
  return Guarded::receive_raw(buffer, size, deadline);
}

}  // namespace sublet
