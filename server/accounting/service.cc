#include "server/accounting/service.h"

#include <algorithm>

#include "base/text.h"
#include "server/page_limit.h"
#include "server/refusal.h"

namespace sublet::server {
namespace {

constexpr Micros kDay = 86'400ll * 1'000'000;

bool is_time(GroupBy by) { return by == GroupBy::kDay || by == GroupBy::kWeek; }

void check(const UsageQuery& query) {
  for (size_t i = 0; i < query.by.size(); ++i) {
    const GroupBy by = query.by[i];
    const bool known = by >= GroupBy::kUser && by <= GroupBy::kJob;
    if (!known || std::find(query.by.begin(), query.by.begin() + i, by) != query.by.begin() + i)
      throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "an unknown or repeated grouping",
                    "Use each BY_... at most once.", "by");
  }
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() <= 18 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

// Makes the query continue where the previous page ended; false: the cursor is invalid.
bool read_cursor(const std::string& cursor, UsageQuery* query) {
  std::vector<std::string> words;
  for (size_t from = 0; from <= cursor.size();) {
    const size_t colon = std::min(cursor.find(':', from), cursor.size());
    const auto word = percent_decode(std::string_view(cursor).substr(from, colon - from));
    if (!word) return false;
    words.push_back(*word);
    from = colon + 1;
  }
  if (words.size() != query->by.size() + 1 || !is_number(words[0])) return false;
  for (size_t i = 0; i < query->by.size(); ++i)
    if (is_numbered(query->by[i]) && !group_number(query->by[i], words[i + 1])) return false;
  query->until = std::stoll(words[0]);
  query->after.assign(words.begin() + 1, words.end());
  return true;
}

// Adds to each account the CPU time of its users.
void add_accounts(std::map<std::string, Micros>& cpu, const scheduling::Accounts& accounts) {
  std::map<std::string, Micros> more;
  for (const auto& [user, used] : cpu)
    if (const std::string& account = accounts.of(user); account != user) more[account] += used;
  for (const auto& [account, used] : more) cpu[account] += used;
}

}  // namespace

std::string cursor_after(Micros until, const UsageRow& row) {
  std::string text = std::to_string(until);
  for (const auto& [name, value] : row.group) text += ":" + percent_encode(value);
  return text;
}

// The brain's time, which may be ahead of the clock. All uses committed earlier ended at
// or before it.
Micros UsageService::now() {
  Micros now = 0;
  pipeline_.perform([&](Turn& turn) { now = turn.now(); });
  return now;
}

UsageLines UsageService::report(const Caller& caller, UsageQuery query, const std::string& cursor,
                                uint32_t limit) {
  check_limit(limit);
  check(query);
  if (!query.user.empty() && query.user != caller.user)
    access_.require_administrator(caller, "the usage of " + query.user);
  if (!caller.administrator) query.user = caller.user;
  // The server's CPU time cannot be divided among users, machines, batches or jobs.
  query.with_server = query.user.empty() && std::all_of(query.by.begin(), query.by.end(), is_time);
  if (!cursor.empty() && !read_cursor(cursor, &query))
    throw Refusal(Refusal::Kind::kInvalid, "cursor.bad", "this cursor is not from this server",
                  "Start with an empty cursor.", "cursor");
  if (cursor.empty()) {
    const Micros end = now() + 1;
    query.until = query.until > 0 ? std::min(query.until, end) : end;
  }
  query.limit = limit + 1;
  UsageLines lines;
  lines.until = query.until;
  lines.rows = archive_.usage(query);
  if (lines.rows.size() > limit) {
    lines.rows.pop_back();
    lines.next = cursor_after(query.until, lines.rows.back());
  }
  return lines;
}

// std::nullopt if the sum takes too long; the standings do not depend on it.
std::optional<std::map<std::string, Micros>> UsageService::cpu_of_the_day(const Caller& caller,
                                                                          Micros now) {
  UsageQuery day;
  day.until = now + 1;
  day.since = day.until - kDay;
  day.by = {GroupBy::kUser};
  if (!caller.administrator) day.user = caller.user;
  std::map<std::string, Micros> cpu;
  try {
    for (const UsageRow& row : archive_.usage(day)) cpu[row.group[0].second] = row.used;
  } catch (const Refusal& refusal) {
    const bool no_time = refusal.kind == Refusal::Kind::kLimitExceeded ||
                         refusal.kind == Refusal::Kind::kUnavailable;
    if (!no_time) throw;
    return std::nullopt;
  }
  return cpu;
}

StandingLines UsageService::standings(const Caller& caller, const std::string& after,
                                      uint32_t limit) {
  check_limit(limit);
  std::vector<scheduling::Standing> all;
  scheduling::Accounts accounts;
  Micros now = 0;
  pipeline_.perform([&](Turn& turn) {
    now = turn.now();
    all = turn.pool().standings(now);
    accounts = turn.pool().accounts();
  });
  auto cpu = cpu_of_the_day(caller, now);
  if (cpu) add_accounts(*cpu, accounts);
  double shares = 0;
  for (const auto& s : all) shares += s.shares;
  StandingLines page;
  auto s =
      std::upper_bound(all.begin(), all.end(), after,
                       [](const std::string& name, const auto& one) { return name < one.user; });
  for (; s != all.end() && page.standings.size() < limit; ++s) {
    std::optional<Micros> cpu_day;
    if (cpu && access_.owns(caller, s->user)) cpu_day = (*cpu)[s->user];
    page.standings.push_back(
        {*s, cpu_day, user_order_text(*s, shares, cpu_day), accounts.users_of(s->user)});
  }
  if (s != all.end()) page.next = page.standings.back().standing.user;
  return page;
}

}  // namespace sublet::server
