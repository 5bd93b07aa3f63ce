// The servants of time and account: Alarm Sender and Accounting.
#include "accounting.hh"
#include "alarm_sender.hh"
#include "base/clock.h"
#include "base/text.h"
#include "server/guard_call.h"
#include "server/request_key.h"
#include "server/servants.h"
#include "server/translate.h"

namespace sublet::server {
namespace {

namespace v1 = Sublet::v1;

class AlarmSenderServant : public POA_Sublet::v1::AlarmSender {
 public:
  explicit AlarmSenderServant(const Services& s) : s_(s) {}

  v1::Duration period() override { return s_.tick_ms; }

  v1::Instant last_tick() override {
    return guard_call([&] {
      Micros last = 0;
      s_.pipeline.perform([&](Turn& turn) { last = turn.pool().counters().last_tick; });
      return last;
    });
  }

  v1::Instant tick_now(const v1::RequestId& request) override {
    return guard_call([&] {
      const Caller caller = s_.access.caller();
      s_.access.require_administrator(caller, "a tick out of turn");
      const std::string key = request_key(caller.uid, from_octets(request));
      const std::string digest = arguments_digest("tick_now", "");
      Micros at = 0;
      s_.pipeline.perform([&](Turn& turn) {
        if (auto answer = turn.answered(key, digest)) {
          at = std::stoll(*answer);
          return;
        }
        turn.apply(scheduling::Ticked{});
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
  explicit AccountingServant(const Services& s) : s_(s) {}

  v1::UsagePage* usage(const v1::ReportQuery& query, const v1::Bytes& cursor,
                       CORBA::ULong limit) override {
    return guard_call([&] {
      const Caller caller = s_.access.submitter();
      if (limit < 1 || limit > 1000)
        throw Refusal(Refusal::Kind::kInvalid, "limit.range", "a limit outside 1 to 1,000",
                      "Give one inside.", "limit");
      auto rows = s_.archive.usage(translate(query, caller));
      const std::string at = from_octets(cursor);
      const size_t first = at.empty() || at.size() > 9 ? 0 : std::stoul("0" + at);
      v1::UsagePage_var out = new v1::UsagePage;
      const size_t last = std::min<size_t>(rows.size(), first + limit);
      out->lines.length(last > first ? last - first : 0);
      for (size_t i = first; i < last; ++i) fill(rows[i], out->lines[i - first]);
      if (last < rows.size()) to_octets(std::to_string(last), out->next);
      return out._retn();
    });
  }

  v1::Standings* current_standings() override {
    return guard_call([&] {
      auto standings = s_.machines.standings();
      v1::Standings_var out = new v1::Standings;
      out->length(standings.size());
      for (size_t i = 0; i < standings.size(); ++i) {
        const auto& s = standings[i];
        out[i].user = CORBA::string_dup(to_utf8(s.user).c_str());
        out[i].usage = s.usage;
        out[i].charges = s.charges;
        out[i].shares = s.shares;
        out[i].active = s.active;
        out[i].best_priority = s.best_priority;
        out[i].sentence = CORBA::string_dup(sentence(s).c_str());
      }
      return out._retn();
    });
  }

 private:
  UsageQuery translate(const v1::ReportQuery& query, const Caller& caller) {
    UsageQuery out;
    out.since = query.since;
    out.until = query.until ? query.until : system_clock().utc_us() + 1;
    for (CORBA::ULong i = 0; i < query.by.length(); ++i) {
      if (query.by[i] < v1::BY_USER || query.by[i] > v1::BY_WEEK || out.by.size() >= 5)
        throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "an unknown grouping",
                      "Give one of BY_....", "by");
      out.by.push_back(static_cast<uint32_t>(query.by[i]));
    }
    out.user = caller.administrator ? std::string(query.user.in()) : caller.user;
    return out;
  }

  static void fill(const UsageRow& row, v1::UsageLine& line) {
    line.group.length(row.group.size());
    for (size_t i = 0; i < row.group.size(); ++i) {
      line.group[i].name = CORBA::string_dup(row.group[i].first.c_str());
      line.group[i].value = CORBA::string_dup(to_utf8(row.group[i].second).c_str());
    }
    line.jobs_done = row.jobs_done;
    line.attempts = row.attempts;
    line.evictions = row.evictions;
    line.cpu_us = row.used;
    line.kept_us = row.kept;
    line.lost_us = row.lost;
    line.wall_us = row.wall;
    line.charged_us = row.charged;
  }

  static std::string sentence(const scheduling::Standing& s) {
    char text[200];
    snprintf(text, sizeof text,
             "%.1f CPU s of decayed usage at %.3g shares, %llu jobs waiting or running",
             s.usage + s.charges, s.shares, static_cast<unsigned long long>(s.active));
    return text;
  }

  const Services s_;
};

}  // namespace

PortableServer::Servant make_alarm_sender(const Services& services) {
  return new AlarmSenderServant(services);
}
PortableServer::Servant make_accounting(const Services& services) {
  return new AccountingServant(services);
}

}  // namespace sublet::server
