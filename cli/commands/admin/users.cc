// admin shares and admin quota: what administrators allow users.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/json.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/pool/pool_client.h"

namespace sublet::cli {

namespace {

// In place of a value: the server's settings decide again.
constexpr char kDefault[] = "default";

struct Words {
  std::string user;
  std::string value;
};

std::vector<UserShares> all_shares(PoolClient& pool) {
  std::vector<UserShares> all;
  std::string cursor;
  do {
    SharesPage page = pool.shares(cursor, kPageLimit);
    all.insert(all.end(), page.shares.begin(), page.shares.end());
    cursor = page.next;
  } while (!cursor.empty());
  return all;
}

std::vector<Quota> all_quotas(PoolClient& pool) {
  std::vector<Quota> all;
  std::string cursor;
  do {
    QuotaPage page = pool.quotas(cursor, kPageLimit);
    all.insert(all.end(), page.quotas.begin(), page.quotas.end());
    cursor = page.next;
  } while (!cursor.empty());
  return all;
}

// Only this user's line, if one is given. Throws PoolError if there is none.
template <typename Line>
void keep_user(const std::string& user, std::vector<Line>& lines) {
  if (user.empty()) return;
  std::vector<std::string> known;
  for (const Line& line : lines) known.push_back(line.user);
  std::erase_if(lines, [&](const Line& line) { return line.user != user; });
  if (!lines.empty()) return;
  const std::string near = nearest_word(user, known);
  throw PoolError(ErrorKind::not_found, "user.unknown",
                  "the pool knows nothing of a user '" + escape_for_terminal(user) + "'",
                  near.empty() ? "a user is known from the first job on"
                               : "did you mean '" + escape_for_terminal(near) + "'?",
                  user);
}

// A name may be mistyped, or somebody's who has not submitted anything yet. Accounts are known to
// the server, which has refused any other.
void warn_if_new(const std::string& user, const std::vector<UserShares>& known) {
  if (user.starts_with('@')) return;
  const auto is_user = [&](const UserShares& line) { return line.user == user; };
  if (std::none_of(known.begin(), known.end(), is_user))
    say("nobody called '" + escape_for_terminal(user) + "' has used the pool lately");
}

std::string set_by(bool by_administrator) {
  return by_administrator ? "an administrator" : "the settings";
}

double parse_shares(const std::string& text) {
  double shares = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), shares);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !(shares >= 1e-6 && shares <= 1e6))
    throw PoolError(ErrorKind::usage, "usage.shares",
                    "'" + text + "' is not a number of shares from 0.000001 to 1000000",
                    "write a number such as 3 or 0.5, or `default` for what the settings say",
                    text);
  return shares;
}

uint64_t parse_quota(const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes > 1ull << 50)
    throw PoolError(
        ErrorKind::usage, "usage.quota", "'" + text + "' is not a size of at most 1 PiB",
        "write it as 10GiB or \"500 MiB\", or `default` for what the settings say", text);
  return *bytes;
}

int run_shares(const Words& words, Context& context) {
  PoolClient& pool = context.pool();
  std::vector<UserShares> lines = all_shares(pool);
  if (!words.value.empty()) {
    std::optional<double> shares;
    if (words.value != kDefault) shares = parse_shares(words.value);
    pool.set_shares(random_id(), words.user, shares);
    warn_if_new(words.user, lines);
    lines = all_shares(pool);
    // Nothing more is known of a user without jobs whose shares are the default ones.
    std::erase_if(lines, [&](const UserShares& line) { return line.user != words.user; });
  } else {
    keep_user(words.user, lines);
  }
  JsonWriter json;
  std::vector<Row> rows;
  json.begin_object().key("shares").begin_array();
  for (const UserShares& line : lines) {
    json.begin_object().field("user", line.user).field("shares", line.shares);
    json.field("by_administrator", line.by_administrator).end_object();
    rows.push_back({{line.user, plain_number(line.shares), set_by(line.by_administrator)}});
  }
  json.end_array().end_object();
  print(context.json
            ? json.str() + "\n"
            : list_table({{"USER", false, 6, 9}, {"SHARES", true, 6, 8}, {"SET BY", false, 8, 7}},
                         rows, context.terminal.columns, context.terminal.colour));
  return 0;
}

int run_quota(const Words& words, Context& context) {
  PoolClient& pool = context.pool();
  if (!words.value.empty()) {
    std::optional<uint64_t> bytes;
    if (words.value != kDefault) bytes = parse_quota(words.value);
    const std::vector<UserShares> known = all_shares(pool);
    pool.set_quota(random_id(), words.user, bytes);
    warn_if_new(words.user, known);
  }
  std::vector<Quota> lines = all_quotas(pool);
  if (words.value.empty()) {
    keep_user(words.user, lines);
  } else {
    std::erase_if(lines, [&](const Quota& line) { return line.user != words.user; });
  }
  JsonWriter json;
  std::vector<Row> rows;
  json.begin_object().key("quotas").begin_array();
  for (const Quota& line : lines) {
    json.begin_object().field("user", line.user).field("quota", line.bytes);
    json.field("used", line.used).field("used_by_checkpoints", line.checkpoints);
    json.field("by_administrator", line.by_administrator).end_object();
    rows.push_back({{line.user, format_bytes(line.bytes), format_bytes(line.used),
                     format_bytes(line.checkpoints), set_by(line.by_administrator)}});
  }
  json.end_array().end_object();
  print(context.json ? json.str() + "\n"
                     : list_table({{"USER", false, 6, 9},
                                   {"QUOTA", true, 6, 8},
                                   {"FILES", true, 6, 7},
                                   {"CHECKPOINTS", true, 6, 6},
                                   {"SET BY", false, 8, 5}},
                                  rows, context.terminal.columns, context.terminal.colour));
  return 0;
}

}  // namespace

Command shares_command(Arguments& admin) {
  auto words = std::make_shared<Words>();
  Arguments& a = admin.command("shares", "Show or set users' shares of the pool");
  a.positional("USER", &words->user, "only this user", false);
  a.positional("SHARES", &words->value, "the shares from now on; `default`: as in the settings",
               false);
  return {&a, [words](Context& context) { return run_shares(*words, context); }};
}

Command quota_command(Arguments& admin) {
  auto words = std::make_shared<Words>();
  Arguments& a = admin.command("quota", "Show or set what users may have in the spool");
  a.positional("USER", &words->user, "only this user", false);
  a.positional("SIZE", &words->value,
               "for inputs and outputs, and again for checkpoints (10GiB); `default`: as in the "
               "settings",
               false);
  return {&a, [words](Context& context) { return run_quota(*words, context); }};
}

}  // namespace sublet::cli
