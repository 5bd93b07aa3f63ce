// The servants of Alarm Sender and Accounting.
#include <algorithm>

#include "accounting.hh"
#include "alarm_sender.hh"
#include "base/text.h"
#include "server/accounting/service.h"
#include "server/request_key.h"
#include "server/servants/guard_call.h"
#include "server/servants/page.h"
#include "server/servants/servants.h"
#include "server/servants/served.h"
#include "server/servants/translate.h"

namespace sublet::server {
namespace {

namespace v1 = Sublet::v1;

class AlarmSenderServant : public POA_Sublet::v1::AlarmSender {
 public:
  explicit AlarmSenderServant(const Services& s) : s_(s) {}

  v1::Duration period() override {
    return guard_call([&] {
      s_.access.caller();
      return s_.tick_ms;
    });
  }

  v1::Instant last_tick() override {
    return guard_call([&] {
      s_.access.caller();
      Micros last = 0;
      s_.pipeline.perform([&](Turn& turn) { last = turn.pool().counters().last_tick; });
      return last;
    });
  }

  v1::Instant tick_now(const v1::RequestId& request) override {
    return guard_call([&] {
      const Caller caller = s_.access.caller();
      s_.access.require_administrator(caller, "an unexpected tick");
      const std::string key = request_key(caller.uid, from_octets(request));
      const std::string digest = arguments_digest("tick_now", "");
      Micros at = 0;
      s_.pipeline.perform([&](Turn& turn) {
        if (auto answer = turn.answered(key, digest)) {
          at = std::stoll(*answer);
          return;
        }
        turn.tick();
        at = turn.now();
        turn.remember(key, digest, std::to_string(at));
      });
      return at;
    });
  }

 private:
  const Services s_;
};

class AccountingServant : public POA_Sublet::v1::Accounting {
 public:
  explicit AccountingServant(const Services& s)
      : access_(s.access), questions_(s.questions), usage_(s.pipeline, s.archive, s.access) {}

  v1::UsagePage* usage(const v1::ReportQuery& query, const v1::Bytes& cursor,
                       CORBA::ULong limit) override {
    return guard_call([&] {
      const Caller caller = access_.submitter();
      const UsageQuery asked = from_idl(query);
      const UsageLines lines = questions_.ask(
          caller.user, [&] { return usage_.report(caller, asked, from_octets(cursor), limit); });
      v1::UsagePage_var out = new v1::UsagePage();
      out->lines.length(lines.rows.size());
      for (size_t i = 0; i < lines.rows.size(); ++i) to_idl(lines.rows[i], out->lines[i]);
      const auto after = [&](size_t last) { return cursor_after(lines.until, lines.rows[last]); };
      to_octets(end_page(out->lines, lines.next, after), out->next);
      return out._retn();
    });
  }

  v1::StandingPage* current_standings(const v1::Bytes& cursor, CORBA::ULong limit) override {
    return guard_call([&] {
      const Caller caller = access_.submitter();
      const StandingLines page = questions_.ask(
          caller.user, [&] { return usage_.standings(caller, from_octets(cursor), limit); });
      v1::StandingPage_var out = new v1::StandingPage();
      out->users.length(page.standings.size());
      for (size_t i = 0; i < page.standings.size(); ++i) to_idl(page.standings[i], out->users[i]);
      const auto after = [&](size_t last) { return page.standings[last].standing.user; };
      to_octets(end_page(out->users, page.next, after), out->next);
      return out._retn();
    });
  }

 private:
  static UsageQuery from_idl(const v1::ReportQuery& query) {
    constexpr CORBA::ULong kGroups = 6;
    require_served("ReportQuery", query.more);
    for (CORBA::ULong i = 0; i < query.by.length(); ++i)
      require_unset(query.by[i] == v1::BY_ACCOUNT, "BY_ACCOUNT");
    if (query.by.length() > kGroups)
      throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "too many groupings",
                    "Use each BY_... at most once.", "by");
    UsageQuery out;
    out.since = query.since;
    out.until = query.until;
    for (CORBA::ULong i = 0; i < query.by.length(); ++i) {
      // Truncation must not turn an invalid grouping into a valid one.
      const CORBA::ULongLong by = std::min<CORBA::ULongLong>(query.by[i], UINT32_MAX);
      out.by.push_back(static_cast<GroupBy>(by));
    }
    out.user = query.user.in();
    for (CORBA::ULong i = 0; i < query.more.length(); ++i)
      out.with_steps = out.with_steps || query.more[i].name.in() == std::string_view("steps");
    return out;
  }

  static void to_idl(const UsageRow& row, v1::UsageLine& line) {
    line = v1::UsageLine{};
    for (const auto& [name, value] : row.group) add_detail(line.group, name, value);
    line.jobs_done = row.jobs_done;
    line.attempts = row.attempts;
    line.evictions = row.evictions;
    line.cpu_us = row.used;
    line.kept_us = row.kept;
    line.lost_us = row.lost;
    line.wall_us = row.wall;
    line.charged_us = row.charged;
    add_detail(line.more, "waited_us", std::to_string(row.waited));
    if (row.server_cpu) add_detail(line.more, "local_us", std::to_string(*row.server_cpu));
    for (const StepSpread& spread : row.steps) {
      std::string numbers = std::to_string(spread.count);
      for (const int64_t us : {spread.p50, spread.p95, spread.p99, spread.most})
        numbers += " " + std::to_string(us);
      add_detail(line.more, "step." + std::to_string(spread.step), numbers);
    }
  }

  static void to_idl(const UserStanding& s, v1::Standing& out) {
    out = v1::Standing{};
    out.user = CORBA::string_dup(to_utf8(s.standing.user).c_str());
    out.usage = s.standing.usage;
    out.charges = s.standing.charges;
    out.shares = s.standing.shares;
    out.active = s.standing.active;
    out.best_priority = s.standing.best_priority;
    out.reason = CORBA::string_dup(to_utf8(s.reason).c_str());
    add_detail(out.more, "waiting", std::to_string(s.standing.queued));
    add_detail(out.more, "place", std::to_string(s.standing.place));
    std::string users;
    for (const std::string& user : s.users) users += (users.empty() ? "" : " ") + user;
    if (!users.empty()) add_detail(out.more, "users", to_utf8(users));
    if (s.cpu_day) add_detail(out.more, "cpu_day_us", std::to_string(*s.cpu_day));
  }

  Access& access_;
  QuestionGate& questions_;
  UsageService usage_;
};

}  // namespace

PortableServer::Servant make_alarm_sender(const Services& services) {
  return new AlarmSenderServant(services);
}
PortableServer::Servant make_accounting(const Services& services) {
  return new AccountingServant(services);
}

}  // namespace sublet::server
