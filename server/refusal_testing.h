// For tests: what was refused.
#ifndef SUBLET_SERVER_REFUSAL_TESTING_H_
#define SUBLET_SERVER_REFUSAL_TESTING_H_

#include <functional>
#include <string>

#include "server/refusal.h"

namespace sublet::server::testing {

// Its code; "" when nothing was refused.
inline std::string code(const std::function<void()>& action) {
  try {
    action();
  } catch (const Refusal& refusal) {
    return refusal.code;
  }
  return "";
}

}  // namespace sublet::server::testing

#endif  // SUBLET_SERVER_REFUSAL_TESTING_H_
