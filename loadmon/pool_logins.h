// Who is logged in somewhere in the pool, as the client last heard from the server: for rules that
// count while a user is logged in anywhere. It is forgotten after a minute, so that nothing old
// counts. One thread.
#ifndef SUBLET_LOADMON_POOL_LOGINS_H_
#define SUBLET_LOADMON_POOL_LOGINS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sublet::loadmon {

class PoolLogins {
 public:
  static constexpr int64_t kKnownForNs = 60'000'000'000;
  static constexpr size_t kMostNames = 256;

  // The text of SUBLET_OWNER_POOL. False: it is none; then nothing is known.
  bool note(const std::string& text, int64_t now);
  // None: not known.
  std::optional<bool> is_logged_in(const std::string& user, int64_t now) const;
  // Those whom other machines ask for.
  const std::vector<std::string>& wanted() const { return wanted_; }

 private:
  std::map<std::string, bool> logged_in_;
  std::vector<std::string> wanted_;
  int64_t known_until_ = 0;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_POOL_LOGINS_H_
