// What of the contract this server serves beyond what every server of version 1
// does (`idl/types.idl`, capabilities), and the refusal of everything else.
#ifndef SUBLET_SERVER_SERVANTS_SERVED_H_
#define SUBLET_SERVER_SERVANTS_SERVED_H_

#include <string>
#include <string_view>

#include "types.hh"

namespace sublet::server {

// For PoolInfo and JoinAnswer.
Sublet::v1::Names capabilities();

// Each throws Refusal kInvalid "not.served" whose subject is the name.
// `type`: of the struct in the contract. An unknown name in its `more` is refused.
void require_served(std::string_view type, const Sublet::v1::Details& more);
// A reserved field, "TYPE.NAME": refused where it has a value.
void require_unset(bool has_value, const char* field);
// A reserved operation, "INTERFACE.NAME".
[[noreturn]] void refuse_operation(const char* operation);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SERVANTS_SERVED_H_
