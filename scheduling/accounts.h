// The accounting list (Mutka, chapter 6): accounts, each shared by several users, such as those of
// one station. What the policies count and order by user (index, usage, shares, guarantee, draws,
// grants, throttle, most_per_user) they count for the account of whoever has one. The list is the
// administrator's, because the host that a job comes from is known by the caller's word only: a
// user could give himself the index of any station.
//
// Immutable values. Any thread.
#ifndef SUBLET_SCHEDULING_ACCOUNTS_H_
#define SUBLET_SCHEDULING_ACCOUNTS_H_

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sublet::scheduling {

constexpr size_t kLongestAccounts = 65'536;  // octets of the text
constexpr size_t kLongestAccountName = 32;   // octets, without the '@'

// what(): what is wrong with a text of accounts, and what is allowed.
class AccountError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Accounts {
 public:
  Accounts() = default;  // nobody has one
  // "lab-f=jones smith, lab-g=ann": NAME=USER USER, separated by commas. Throws AccountError.
  static Accounts parse(std::string_view text);

  // Whom jobs of this user count for: "@lab-f", his account's name in the books; without an
  // account the user himself. The '@' tells it from users' names: no name in a certificate begins
  // so, and one of the operating system only if its administrator has made it.
  const std::string& of(const std::string& user) const;
  // Whether there is an account of this name in the books, such as "@lab-f".
  bool has(const std::string& name) const;
  // Who share the account of this name in the books, in order.
  std::vector<std::string> users_of(const std::string& name) const;
  // Why nothing is counted for anybody of this name, so that shares given to him would have no
  // effect; "": something may be.
  std::string why_uncounted(const std::string& name) const;
  // Equal lists have equal texts: accounts and their users are sorted. parse() gives the same.
  std::string text() const;

 private:
  std::map<std::string, std::string> of_users_;  // "jones" -> "@lab-f"
};

// Of a name in the books: whether it is an account's.
inline bool is_account(std::string_view name) { return name.starts_with('@'); }

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_ACCOUNTS_H_
