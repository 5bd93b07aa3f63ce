// The accounting list (Mutka, chapter 6): accounts, each shared by several users, such as those of
// one station. What the policies count or order by user (index, usage, shares, guarantee, draws,
// grants, throttle, most_per_user) is counted by account for users who have one. Only the
// administrator sets the list: the host that a job comes from is known only from the caller, so a
// user could claim the index of any station.
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

  // The name under which this user's jobs are counted: his account's, such as "@lab-f", or his own
  // if he has none. The '@' distinguishes accounts from users: no name in a certificate begins with
  // it, and a name of the operating system does only if its administrator created it.
  const std::string& of(const std::string& user) const;
  // Whether there is an account of this name in the books, such as "@lab-f".
  bool has(const std::string& name) const;
  // Who share the account of this name in the books, in order.
  std::vector<std::string> users_of(const std::string& name) const;
  // Why shares given to this name would have no effect; "": they may have one.
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
