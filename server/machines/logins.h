// Who is logged in on which workstation, for owners' rules that count while a user is logged in
// anywhere in the pool. Workstations ask for users by name, and answer for those that any of them
// asked for; nobody else's logins are told. Nothing of it is stored, and no decision of the
// scheduler depends on it: it may only keep an owner's machine from being lent (protocol/frame.h,
// SUBLET_OWNER_POOL).
//
// Threads: any.
#ifndef SUBLET_SERVER_MACHINES_LOGINS_H_
#define SUBLET_SERVER_MACHINES_LOGINS_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduling/types.h"

namespace sublet::server {

// What a workstation says with its renewal.
struct LoginsReport {
  std::set<std::string> asked;  // its owner's rules count while these are logged in
  // Of the users that others asked for, those logged in there; none: it is not known yet.
  std::optional<std::set<std::string>> here;
};

struct LoginsAnswer {
  std::vector<std::string> wanted;        // whom it shall look for, at the next renewal
  std::map<std::string, bool> logged_in;  // of those that it asked for, as far as is known
};

class Logins {
 public:
  static constexpr int64_t kKnownForMs = 60'000;
  static constexpr size_t kMostAsked = 64;    // by a workstation
  static constexpr size_t kMostWanted = 256;  // of all; further ones stay unknown
  static constexpr size_t kLongestName = 64;  // SUBLET_POOL_USER_BYTES

  // known_after_ms: so long after somebody asked for a user first, all workstations have answered.
  explicit Logins(int64_t known_after_ms) : known_after_ms_(known_after_ms) {}

  // `now_ms`: of a clock that never runs backwards.
  LoginsAnswer renewed(scheduling::MachineId machine, const LoginsReport& report, int64_t now_ms);

 private:
  struct Said {
    LoginsReport report;
    int64_t at_ms = 0;
  };
  struct User {
    size_t asked = 0;  // by so many machines
    size_t here = 0;   // on so many
    int64_t wanted_since_ms = -1;
  };

  bool is_wanted(const std::string& name) const;
  // Adds a report to the sums, or takes it away again.
  void count(const LoginsReport& report, bool adds, int64_t now_ms);
  void forget_old(int64_t now_ms);

  const int64_t known_after_ms_;
  std::mutex mutex_;
  std::map<scheduling::MachineId, Said> said_;
  std::map<std::string, User> users_;
  size_t wanted_ = 0;     // users that are asked for
  size_t undecided_ = 0;  // machines of which it is not known who is logged in there
  int64_t forgot_at_ms_ = 0;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_MACHINES_LOGINS_H_
