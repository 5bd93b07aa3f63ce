// The optional parts of the interface that this server supports beyond version 1
// (`idl/types.idl`, capabilities), and the refusal of all others.
#ifndef SUBLET_SERVER_SERVANTS_SERVED_H_
#define SUBLET_SERVER_SERVANTS_SERVED_H_

#include <string>
#include <string_view>

#include "types.hh"

namespace sublet::server {

// For PoolInfo and JoinAnswer.
Sublet::v1::Names capabilities();

// These throw Refusal kInvalid "not.served" with the name as the subject.
// `type`: the struct in the IDL. Refuses an unknown name in its `more`.
void require_served(std::string_view type, const Sublet::v1::Details& more);
// A reserved field, "TYPE.NAME": refused if it has a value.
void require_unset(bool has_value, const char* field);
// A reserved operation, "INTERFACE.NAME".
[[noreturn]] void refuse_operation(const char* operation);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SERVANTS_SERVED_H_
