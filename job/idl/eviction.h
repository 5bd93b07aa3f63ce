// The translation of an eviction's steps between the contract and protocol/eviction.h. Pure;
// any thread.
#ifndef SUBLET_JOB_IDL_EVICTION_H_
#define SUBLET_JOB_IDL_EVICTION_H_

#include "protocol/eviction.h"
#include "types.hh"

namespace sublet {

// Unknown steps are ignored; steps that cannot have been make all of them unknown.
protocol::EvictionSteps from_idl(const Sublet::v1::EvictionSteps& steps);
// Only those that are known.
void to_idl(const protocol::EvictionSteps& steps, Sublet::v1::EvictionSteps& out);

}  // namespace sublet

#endif  // SUBLET_JOB_IDL_EVICTION_H_
