// For tests: the code of a refusal.
#ifndef SUBLET_SERVER_REFUSAL_TESTING_H_
#define SUBLET_SERVER_REFUSAL_TESTING_H_

#include <functional>
#include <string>

#include "server/refusal.h"

namespace sublet::server::testing {

// The code of the Refusal that `action` throws; "" if it throws none.
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
