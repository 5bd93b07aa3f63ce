#include "server/commit/changes.h"

#include <type_traits>
#include <variant>

namespace sublet::server {

void Changes::add(const scheduling::Record& record) {
  using namespace scheduling;
  std::visit(
      [this](const auto& r) {
        using T = std::decay_t<decltype(r)>;
        if constexpr (std::is_same_v<T, JobRecord>) jobs[r.id] = r;
        if constexpr (std::is_same_v<T, AttemptRecord>) attempts[r.key] = r;
        if constexpr (std::is_same_v<T, MachineRecord>) machines[r.id] = r;
        if constexpr (std::is_same_v<T, UserRecord>) users[r.name] = r;
        if constexpr (std::is_same_v<T, UseRecord>) uses.push_back(r);
        if constexpr (std::is_same_v<T, ChangeRecord>) changes.push_back(r);
        if constexpr (std::is_same_v<T, BatchRecord>) stops[r.id] = r;
        if constexpr (std::is_same_v<T, PoolRecord>) {
          has_pool = true;
          pool = r;
        }
      },
      record);
}

}  // namespace sublet::server
