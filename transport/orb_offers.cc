#include "transport/orb_offers.h"

// clang-format off
#include <omniORB4/CORBA.h>
#include <omniORB4/omniInterceptors.h>
#include <interceptors.h>
#include <giopStream.h>
#include <giopStrand.h>
#include <GIOP_S.h>
// clang-format on

#include <string>

#include "transport/guard/guarded_transport.h"

namespace sublet {
namespace {

using Call = omni::omniInterceptors::serverReceiveRequest_T::info_T;
using Interceptors = omni::omniInterceptorP;

// Several addresses; ours offer one, of 24 octets.
constexpr CORBA::ULong kMostOctets = 256;
// In nobody's range of service contexts.
constexpr CORBA::ULong kPassedOver = 0xffffffff;

CORBA::Boolean check_offer(Call& call) {
  IOP::ServiceContextList& contexts = call.giop_s.service_contexts();
  CORBA::ULongLong octets = 0;
  for (CORBA::ULong i = 0; i < contexts.length(); ++i) {
    IOP::ServiceContext& context = contexts[i];
    if (context.context_id != IOP::BI_DIR_IIOP) continue;
    octets += context.context_data.length();
    if (call.giop_s.strand().isBiDir()) context.context_id = kPassedOver;
  }
  if (octets <= kMostOctets) return true;
  guard_report("request of " + std::string(call.peeridentity()) + " refused: it offers " +
               std::to_string(octets) + " octets of addresses for calls back");
  throw CORBA::IMP_LIMIT(0, CORBA::COMPLETED_NO);
}

}  // namespace

void limit_offers() {
  // add() would put it behind the ORB's own, which reads the offer. The ORB deletes the list.
  Interceptors::serverReceiveRequest = new Interceptors::elmT{reinterpret_cast<void*>(check_offer),
                                                              Interceptors::serverReceiveRequest};
}

}  // namespace sublet
