#include "scheduling/accounts.h"

#include <algorithm>
#include <set>

#include "scheduling/words.h"

namespace sublet::scheduling {
namespace {

constexpr size_t kLongestUser = 255;

std::string quoted(const std::string& word) { return "'" + word.substr(0, 100) + "'"; }

bool is_account_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  return !name.empty() && name.size() <= kLongestAccountName &&
         std::all_of(name.begin(), name.end(), allowed);
}

void check_user(const std::string& user, const std::string& account) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; };
  const bool possible = user.size() <= kLongestUser && !is_account(user) &&
                        user.find('=') == std::string::npos &&
                        std::none_of(user.begin(), user.end(), is_control);
  if (!possible)
    throw AccountError(quoted(user) + " in account " + account +
                       " is not a valid user name; write NAME=USER USER for each account, with "
                       "commas between accounts");
}

struct Account {
  std::string name;
  std::vector<std::string> users;
};
// "lab-f=jones smith"
Account account_of(std::string_view text) {
  const size_t equals = text.find('=');
  const std::vector<std::string> name = words_of(text.substr(0, equals));
  if (equals == std::string_view::npos || name.size() != 1 || !is_account_name(name.front()))
    throw AccountError(quoted(std::string(text)) +
                       " is not of the form NAME=USER USER, such as lab-f=jones smith; an "
                       "account's name has 1 to 32 letters, digits, '.', '-' and '_'");
  Account account{name.front(), words_of(text.substr(equals + 1))};
  if (account.users.empty())
    throw AccountError("account " + account.name +
                       " has no users; list them after the '=', or remove the account");
  for (const std::string& user : account.users) check_user(user, account.name);
  return account;
}

}  // namespace

Accounts Accounts::parse(std::string_view text) {
  if (text.size() > kLongestAccounts)
    throw AccountError("the list has " + std::to_string(text.size()) + " octets; at most " +
                       std::to_string(kLongestAccounts) + " are allowed");
  Accounts accounts;
  std::set<std::string> names;
  if (words_of(text).empty()) return accounts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const Account account = account_of(text.substr(at, end - at));
    at = end + 1;
    if (!names.insert(account.name).second)
      throw AccountError("account " + account.name +
                         " is listed twice; list all its users after one '='");
    for (const std::string& user : account.users) {
      const auto [first, made] = accounts.of_users_.try_emplace(user, "@" + account.name);
      if (!made)
        throw AccountError("user " + quoted(user) + " is listed in account " +
                           first->second.substr(1) + " and in account " + account.name +
                           "; a user can be in only one account, once");
    }
  }
  return accounts;
}

const std::string& Accounts::of(const std::string& user) const {
  const auto found = of_users_.find(user);
  return found == of_users_.end() ? user : found->second;
}

bool Accounts::has(const std::string& name) const {
  return std::any_of(of_users_.begin(), of_users_.end(),
                     [&](const auto& entry) { return entry.second == name; });
}

std::vector<std::string> Accounts::users_of(const std::string& name) const {
  std::vector<std::string> users;
  for (const auto& [user, account] : of_users_)
    if (account == name) users.push_back(user);
  return users;
}

std::string Accounts::why_uncounted(const std::string& name) const {
  if (const std::string& account = of(name); account != name)
    return "user " + name + " is in account " + account.substr(1) + ", whose shares count: use \"" +
           account + "\" instead";
  if (is_account(name) && !has(name))
    return "there is no account " + name.substr(1) + " in scheduling.accounts";
  return "";
}

std::string Accounts::text() const {
  std::map<std::string, std::string> users;
  for (const auto& [user, account] : of_users_) {
    std::string& list = users[account.substr(1)];
    list += (list.empty() ? "" : " ") + user;
  }
  std::string text;
  for (const auto& [account, list] : users)
    text += (text.empty() ? "" : ",") + account + "=" + list;
  return text;
}

}  // namespace sublet::scheduling
