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
  static constexpr size_t kMostNames = 320;  // 64 of the rules here and 256 of others

  // The text of SUBLET_OWNER_POOL, of which no more than kMostNames count. False: it is none; then
  // nothing is known.
  bool note(const std::string& text, int64_t now);
  // None: not known.
  std::optional<bool> is_logged_in(const std::string& user, int64_t now) const;
  // Forgets what is a minute old. True: it did.
  bool forget_old(int64_t now);
  // Those whom other machines ask for.
  const std::vector<std::string>& wanted() const { return wanted_; }

 private:
  void forget();

  std::map<std::string, bool> logged_in_;
  std::vector<std::string> wanted_;
  int64_t known_until_ = 0;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_POOL_LOGINS_H_
