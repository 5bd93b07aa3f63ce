// A limit for what a caller offers for calls back. For transport/orb.cc.
#ifndef SUBLET_TRANSPORT_ORB_OFFERS_H_
#define SUBLET_TRANSPORT_ORB_OFFERS_H_

namespace sublet {

// Refuses requests whose offer to be called back (BI_DIR service contexts) has more than 256
// octets, and passes over all offers but the first of a connection. The ORB compares each
// address that is offered with all others of the connection, holding the lock that all
// connections need: one message could hold it for minutes. To be called once, after ORB_init.
void limit_offers();

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_ORB_OFFERS_H_
