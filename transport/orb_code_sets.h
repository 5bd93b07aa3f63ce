// The code set of a call's strings if the caller did not negotiate one. CORBA prescribes
// Latin-1 for it (CORBA 3.0, 13.10.2), but ORBs that send no code sets usually
// send UTF-8.
#ifndef SUBLET_TRANSPORT_ORB_CODE_SETS_H_
#define SUBLET_TRANSPORT_ORB_CODE_SETS_H_

// clang-format off
#include <omniORB4/CORBA.h>
#include <omniORB4/omniInterceptors.h>
// clang-format on

namespace sublet {

// For a caller that negotiated no code set: its strings are taken as UTF-8 if they are valid
// UTF-8, else as Latin-1; answers are in UTF-8. Other callers keep what they negotiated. To be
// called for each request before its parameters are read, by the connection's thread.
void select_code_set(omni::omniInterceptors::serverReceiveRequest_T::info_T& call);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_ORB_CODE_SETS_H_
