#include "server/commit/changes.h"

#include <type_traits>
#include <variant>

namespace sublet::server {

namespace {

template <typename Rows>
requires requires(const Rows& rows) { rows.empty(); }
bool nothing(const Rows& rows) { return rows.empty(); }
template <typename Number>
requires std::is_integral_v<Number>
bool nothing(Number limit) { return limit == 0; }
bool nothing(const Changes::ForgottenHistory& h) {
  return h.uses_until == 0 && h.spent_before == 0;
}
bool nothing(const Changes::MovedJobs& moved) { return moved.jobs.empty(); }
bool nothing(const std::optional<scheduling::PolicyRecord>& policy) { return !policy; }
// Counts only with has_pool.
bool nothing(const scheduling::PoolRecord&) { return true; }

template <typename... Members>
bool all_nothing(const Members&... members) {
  return (nothing(members) && ...);
}

}  // namespace

// Does not compile unless it names every member.
bool Changes::empty() const {
  const auto& [a, b, c, absences, d, e, f, g, relations, programs, with_pool, record, policy, h, i,
               j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, quotas_a, quotas_b, before_a,
               before_b, before_c, history, moved, feeds, drafts, entered] = *this;
  return !with_pool &&
         all_nothing(a, b, c, absences, d, e, f, g, relations, programs, record, policy, h, i, j, k,
                     l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, quotas_a, quotas_b, before_a,
                     before_b, before_c, history, moved, feeds, drafts, entered);
}

void Changes::add(const scheduling::Record& record) {
  using namespace scheduling;
  std::visit(
      [this](const auto& r) {
        using T = std::decay_t<decltype(r)>;
        if constexpr (std::is_same_v<T, JobRecord>) jobs[r.id] = r;
        if constexpr (std::is_same_v<T, AttemptRecord>) attempts[r.key] = r;
        if constexpr (std::is_same_v<T, MachineRecord>) machines[r.id] = r;
        if constexpr (std::is_same_v<T, AbsenceRecord>) absences[r.machine] = r;
        if constexpr (std::is_same_v<T, UserRecord>) users[r.name] = r;
        if constexpr (std::is_same_v<T, UseRecord>) uses.push_back(r);
        if constexpr (std::is_same_v<T, ChangeRecord>) changes.push_back(r);
        if constexpr (std::is_same_v<T, BatchRecord>) stops[r.id] = r;
        if constexpr (std::is_same_v<T, PolicyRecord>) policy = r;
        if constexpr (std::is_same_v<T, RelationRecord>) relations[r.jobs.first] = r;
        if constexpr (std::is_same_v<T, ProgramRecord>)
          programs[{r.program, r.architecture, r.speed}] = r;
        if constexpr (std::is_same_v<T, PoolRecord>) {
          has_pool = true;
          pool = r;
        }
      },
      record);
}

}  // namespace sublet::server
