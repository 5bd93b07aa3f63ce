#include "scheduling/events/event_codec.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include "protocol/codec.h"

namespace sublet::scheduling {
namespace {

class EventCodecTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(EventCodecTest);
  CPPUNIT_TEST(every_field_survives);
  CPPUNIT_TEST(every_kind_survives);
  CPPUNIT_TEST(older_parameters_are_read);
  CPPUNIT_TEST(accounts_are_last);
  CPPUNIT_TEST(who_waits_is_last);
  CPPUNIT_TEST(staging_is_last);
  CPPUNIT_TEST(damage_is_noticed_and_never_fatal);
  CPPUNIT_TEST_SUITE_END();

  static std::string again(const Event& event) {
    return encode_event(decode_event(static_cast<uint32_t>(event.index()), encode_event(event)));
  }

  void every_field_survives() {
    Submitted event{7, "ann", "desk", {}};
    event.jobs.push_back(
        {{"linux", "x86_64", 2, 3, 4, "linux/x86_64", "cores > 1", "cores"}, -5, 6});
    event.stop_when = {1, 2, "key.txt"};
    event.jobs[0].after = {{{3, 4}, After::kEnded}, {{9, 1}, After::kStarted}};
    event.on_never = OnNever::kRemove;
    event.at_most = 11;
    event.jobs[0].needs.hours = "sat, sun";
    event.jobs[0].earliest = 12;
    event.jobs[0].program = 12;
    const Event decoded = decode_event(Event(event).index(), encode_event(event));
    const auto& got = std::get<Submitted>(decoded);
    CPPUNIT_ASSERT_EQUAL(BatchId{7}, got.batch);
    CPPUNIT_ASSERT_EQUAL(std::string("ann"), got.user);
    CPPUNIT_ASSERT_EQUAL(std::string("desk"), got.submit_host);
    CPPUNIT_ASSERT(got.jobs.at(0).needs == event.jobs[0].needs);
    CPPUNIT_ASSERT_EQUAL(-5, got.jobs[0].priority);
    CPPUNIT_ASSERT_EQUAL(6u, got.jobs[0].retries);
    CPPUNIT_ASSERT(got.stop_when == event.stop_when);
    CPPUNIT_ASSERT(got.jobs[0].after == event.jobs[0].after);
    CPPUNIT_ASSERT(got.on_never == OnNever::kRemove);
    CPPUNIT_ASSERT_EQUAL(Micros{12}, got.jobs[0].earliest);
    CPPUNIT_ASSERT_EQUAL(uint64_t{11}, got.at_most);
    CPPUNIT_ASSERT_EQUAL(uint64_t{12}, got.jobs[0].program);
    // As it was stored before jobs had programs.
    const std::string bytes = encode_event(event);
    const Event older = decode_event(Event(event).index(), bytes.substr(0, bytes.size() - 8));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, std::get<Submitted>(older).jobs.at(0).program);
    CPPUNIT_ASSERT_EQUAL(uint64_t{11}, std::get<Submitted>(older).at_most);
  }

  void every_kind_survives() {
    CPPUNIT_ASSERT(rc::check([](uint64_t a, uint32_t b, int64_t c, const std::string& text,
                                bool flag) {
      const std::vector<JobRange> ids = {JobRange(a, b), JobRange(b, a), a};
      const std::vector<JobState> states(b % 3, JobState::kHeld);
      const AttemptKey key{a, b};
      Parameters parameters;
      parameters.job_policy = parameters.licences = parameters.accounts = text;
      parameters.tick = parameters.lease = c;
      if (flag) parameters.ahead_wait = c;
      if (b % 5 == 0) parameters.ahead_return = c;
      const Event events[] = {
          Submitted{a,
                    text,
                    text,
                    {{{text, text, b, a, a, text, text, text, text, text},
                      int32_t(b),
                      b,
                      a,
                      {{{a, b}, After(b % 5)}, {}},
                      c,
                      flag ? a : 0}},
                    {a, b, text},
                    OnNever(b % 3),
                    a,
                    {a % 2, b, a}},
          BatchOpened{text},
          MachineJoined{a, text, text, text, b, b, a, a, text},
          MachineReported{a, flag, a, a, double(b), double(c), flag, b % 4},
          MachineWithdrew{a},
          Renewed{a,
                  flag,
                  {{key, AttemptState::kLeaving, b, a, a % 3, b % 3 == 1}},
                  MachineReported{a, flag, a, a, 0, b % 2 ? 1.5 : 0, b % 3 == 0, b % 5},
                  b % 3 > 0},
          OrderAnswered{key, OrderAnswered::Answer::kUnknown, text, flag},
          AttemptStarted{key, a, b % 2 * c},
          CheckpointStored{key, a, a, a},
          AttemptEnded{key, a, EndReason::kOwner, text, c, c, c, text, flag, a, {a, b}, c},
          JobsRemoved{ids, states, text},
          JobsHeld{ids, states, text, text},
          JobsReleased{ids, states},
          SharesSet{text, 0.25, SharesSet::By(b % 3)},
          Ticked{int32_t(b)},
          TimePassed{},
          flag ? ServerStarted{} : ServerStarted{parameters, int32_t(b)},
          CheckpointDamaged{key, a, a, a, a},
          MachineDrained{a, flag},
          MachineEvicted{a},
          Anchored{parameters,
                   {{a, flag, !flag, a, a, c, c, b, c, a, flag, 0.25, c, b % 2, b % 2 * b,
                     b % 2 * c, b % 3},
                    {}},
                   {{a, c}},
                   {{a, c, b, a, a, 0, 0, b % 3 == 1, b % 3 * c, b % 3 > 0, b % 3, b % 2 * c}, {}},
                   {text, "desk"},
                   std::vector<Anchored::Licensed>(b % 3, {a, b}),
                   std::vector<std::string>(b % 2, text)},
          PrioritySet{ids, int32_t(b), states},
          PolicySet{{.job_policy = text, .half_life = c, .drift = flag}, text},
          BatchReserved{a, a, {a, b, text}, a},
          RelationsBegun{
              {a, b},
              flag,
              a,
              b % 2,
              std::vector<LostDependence>(b % 2, {{{a, b}, After(b % 3)}, a, JobState(b % 7)})}};
      static_assert(std::size(events) == std::variant_size_v<Event>);
      for (const auto& event : events) RC_ASSERT(again(event) == encode_event(event));
    }));
  }

  // Events stored before the parameters had `floor` and `cost_cpu`, when what is now called
  // fair-share-1998 was the only policy; before `throttle`; before `candidates`, and `away_since`
  // of machines; before `wide_wait`, `victim_policy`, and `promised` of machines; before
  // `licences`; before attempts had `memory_offered`; before they had `memory_used`; before
  // machines rested; before attempts had `disk_used`; before local time, and `owner_seen` of
  // machines; and before machines had `load` and `granted`.
  void older_parameters_are_read() {
    constexpr size_t kLimits = 8 + 8 + 1, kRests = 2 * 8 + kLimits, kLicences = kRests + 8 + 7,
                     kPromises = kLicences + 8 + 8 + 4, kPromised = 8, kLast = kPromises + 8,
                     kThrottle = 8 + 8, kLater = kThrottle + 8 + 1, kOffer = 8, kUse = 8, kAway = 8,
                     kOffset = 8, kSeen = 1, kLoad = 8 + 8;
    Parameters p;
    p.floor = 0.5;
    p.cost_cpu = true;
    p.throttle = 7;
    p.candidates = 5;
    p.wide_wait = 9;
    p.licences = "ansys=3";
    p.rest_least = 7;
    p.most_per_user = 3;
    p.most_per_machine = "2";
    const auto of = [](const Event& event, size_t less) {
      const std::string bytes = encode_event(event);
      return decode_event(static_cast<uint32_t>(event.index()),
                          std::string_view(bytes).substr(0, bytes.size() - less));
    };
    const Event started = ServerStarted{p, -3600};
    CPPUNIT_ASSERT(*std::get<ServerStarted>(of(started, 0)).parameters == p);
    CPPUNIT_ASSERT_EQUAL(-3600, std::get<ServerStarted>(of(started, 0)).utc_offset);
    CPPUNIT_ASSERT(*std::get<ServerStarted>(of(started, kOffset)).parameters == p);
    CPPUNIT_ASSERT_EQUAL(0, std::get<ServerStarted>(of(started, kOffset)).utc_offset);
    const MachineReported full{1, false, 2, 3, 4, 5, true};
    CPPUNIT_ASSERT(std::get<MachineReported>(of(full, 0)).owner_away);
    CPPUNIT_ASSERT(!std::get<MachineReported>(of(full, 1)).owner_away);
    CPPUNIT_ASSERT_EQUAL(5.0, std::get<MachineReported>(of(full, 1)).load);
    CPPUNIT_ASSERT_EQUAL(7200, std::get<Ticked>(of(Ticked{7200}, 0)).utc_offset);
    CPPUNIT_ASSERT_EQUAL(0, std::get<Ticked>(of(Ticked{7200}, kOffset)).utc_offset);
    Parameters without_limits = p;
    without_limits.most_per_user = 0;
    without_limits.most_per_machine = "";
    Parameters without_rests = without_limits;
    without_rests.rest_least = Parameters().rest_least;
    CPPUNIT_ASSERT(*std::get<ServerStarted>(of(started, kOffset + kRests)).parameters ==
                   without_rests);
    Parameters as_before = without_rests;
    as_before.licences.clear();
    CPPUNIT_ASSERT(*std::get<ServerStarted>(of(started, kOffset + kLicences)).parameters ==
                   as_before);
    as_before.wide_wait = Parameters().wide_wait;
    CPPUNIT_ASSERT(*std::get<ServerStarted>(of(started, kOffset + kPromises)).parameters ==
                   as_before);
    as_before.candidates = 64;
    CPPUNIT_ASSERT(*std::get<ServerStarted>(of(started, kOffset + kLast)).parameters == as_before);
    Parameters unthrottled = as_before;
    unthrottled.throttle = 0;
    CPPUNIT_ASSERT(*std::get<ServerStarted>(of(started, kOffset + kLast + kThrottle)).parameters ==
                   unthrottled);
    Parameters old;
    old.job_policy = "fair-share-1998";
    CPPUNIT_ASSERT(*std::get<ServerStarted>(of(started, kOffset + kLast + kLater)).parameters ==
                   old);
    const Event set = PolicySet{p, "root"};
    CPPUNIT_ASSERT(std::get<PolicySet>(of(set, 0)).choice == p);
    CPPUNIT_ASSERT(std::get<PolicySet>(of(set, kLimits)).choice == without_limits);
    CPPUNIT_ASSERT(std::get<PolicySet>(of(set, kLast - (kRests - kLimits))).choice == as_before);
    for (const size_t attempts : {0, 3}) {
      Anchored anchor{p,
                      {{.machine = 1,
                        .away = true,
                        .away_since = 7,
                        .promised = 6,
                        .owner_seen = true,
                        .load = 0.5,
                        .granted = 8}},
                      {},
                      {},
                      {}};
      for (size_t i = 0; i < attempts; ++i) anchor.attempts.push_back({i, 1, 2, 3, 4, 5, 6});
      const size_t last = kLoad + kSeen + kPromised + kLast + attempts * kUse;
      const size_t use = last + kAway + attempts * kUse;
      const Anchored whole = std::get<Anchored>(of(anchor, 0));
      CPPUNIT_ASSERT(whole.parameters == p);
      CPPUNIT_ASSERT(whole.machines.back().owner_seen);
      CPPUNIT_ASSERT(!std::get<Anchored>(of(anchor, kLoad + kSeen)).machines.back().owner_seen);
      CPPUNIT_ASSERT_EQUAL(Micros{7}, whole.machines.back().away_since);
      CPPUNIT_ASSERT_EQUAL(JobId{6}, whole.machines.back().promised);
      CPPUNIT_ASSERT_EQUAL(0.5, whole.machines.back().load);
      CPPUNIT_ASSERT_EQUAL(Micros{8}, whole.machines.back().granted);
      const Anchored without_load = std::get<Anchored>(of(anchor, kLoad));
      CPPUNIT_ASSERT(without_load.parameters == p);
      CPPUNIT_ASSERT(without_load.machines.back().owner_seen);
      CPPUNIT_ASSERT_EQUAL(0.0, without_load.machines.back().load);
      const Anchored without_disk = std::get<Anchored>(of(anchor, kLoad + kSeen + attempts * kUse));
      CPPUNIT_ASSERT(without_disk.parameters == p);
      const Anchored without_away = std::get<Anchored>(of(anchor, last + kAway));
      CPPUNIT_ASSERT(without_away.parameters == as_before);
      CPPUNIT_ASSERT_EQUAL(Micros{0}, without_away.machines.back().away_since);
      CPPUNIT_ASSERT(std::get<Anchored>(of(anchor, use)).parameters == as_before);
      const Anchored with_offers = std::get<Anchored>(of(anchor, use + kLater));
      CPPUNIT_ASSERT(with_offers.parameters == old);
      const Anchored without = std::get<Anchored>(of(anchor, use + kLater + attempts * kOffer));
      CPPUNIT_ASSERT(without.parameters == old);
      CPPUNIT_ASSERT_EQUAL(attempts, without.attempts.size());
      anchor.licensed = {{7, 8}};
      CPPUNIT_ASSERT_EQUAL(MachineId{8}, std::get<Anchored>(of(anchor, 0)).licensed.at(0).machine);
      CPPUNIT_ASSERT(std::get<Anchored>(of(anchor, 3 * 8)).licensed.empty());
      if (attempts == 0) continue;
      CPPUNIT_ASSERT_EQUAL(uint64_t{5}, whole.attempts.back().memory_used);
      CPPUNIT_ASSERT_EQUAL(uint64_t{6}, whole.attempts.back().disk_used);
      CPPUNIT_ASSERT_EQUAL(uint64_t{0}, without_disk.attempts.back().disk_used);
      CPPUNIT_ASSERT_EQUAL(uint64_t{5}, without_disk.attempts.back().memory_used);
      CPPUNIT_ASSERT_EQUAL(uint64_t{0}, with_offers.attempts.back().memory_used);
      CPPUNIT_ASSERT_EQUAL(uint64_t{4}, with_offers.attempts.back().memory_offered);
      CPPUNIT_ASSERT_EQUAL(uint64_t{0}, without.attempts.back().memory_offered);
    }
  }

  // So that events without them are as they were before there were any.
  void accounts_are_last() {
    Parameters p;
    const size_t started = encode_event(ServerStarted{p}).size();
    const size_t anchored = encode_event(Anchored{p, {}, {}, {}, {}, {}}).size();
    p.accounts = "lab=ann";
    const size_t text = 8 + p.accounts.size();
    const std::string with = encode_event(ServerStarted{p, 60});
    CPPUNIT_ASSERT_EQUAL(started + text, with.size());
    const Event again = decode_event(Event(ServerStarted()).index(), with);
    CPPUNIT_ASSERT(*std::get<ServerStarted>(again).parameters == p);
    const Event anchor = Anchored{p, {}, {}, {}, {}, {}};
    const size_t no_licensed = 8;
    CPPUNIT_ASSERT_EQUAL(anchored + no_licensed + text, encode_event(anchor).size());
    const Event anchor_again = decode_event(anchor.index(), encode_event(anchor));
    CPPUNIT_ASSERT(std::get<Anchored>(anchor_again).parameters == p);
    CPPUNIT_ASSERT(std::get<Anchored>(anchor_again).licensed.empty());
  }

  void who_waits_is_last() {
    Renewed event{1, false, {{{2, 3}}, {{4, 5}}}, MachineReported{1}};
    const size_t before = encode_event(event).size();
    event.attempts[1].waits = true;
    CPPUNIT_ASSERT_EQUAL(before, encode_event(event).size());
    event.says_waits = true;
    const Event again = decode_event(Event(event).index(), encode_event(event));
    CPPUNIT_ASSERT(std::get<Renewed>(again).says_waits);
    CPPUNIT_ASSERT(!std::get<Renewed>(again).attempts.at(0).waits);
    CPPUNIT_ASSERT(std::get<Renewed>(again).attempts.at(1).waits);
    event.attempts.clear();
    CPPUNIT_ASSERT_LESS(before, encode_event(event).size());
  }

  void staging_is_last() {
    AttemptEnded event{{1, 2}, 3, EndReason::kDone, ""};
    event.started = true;
    const size_t before = encode_event(event).size();
    event.staging = 7;
    const std::string bytes = encode_event(event);
    CPPUNIT_ASSERT_LESS(bytes.size(), before);
    CPPUNIT_ASSERT_EQUAL(Micros{7},
                         std::get<AttemptEnded>(decode_event(Event(event).index(), bytes)).staging);
    const Event older = decode_event(Event(event).index(), bytes.substr(0, bytes.size() - 8));
    CPPUNIT_ASSERT_EQUAL(Micros{0}, std::get<AttemptEnded>(older).staging);
    CPPUNIT_ASSERT(std::get<AttemptEnded>(older).started);
  }

  void damage_is_noticed_and_never_fatal() {
    const std::string good = encode_event(Submitted{7, "ann", "desk", {{}, {}}});
    const size_t older = good.size() - 2 * 8;  // without the tail
    for (size_t cut = 0; cut < good.size(); ++cut)
      if (cut != older)
        CPPUNIT_ASSERT_THROW(decode_event(0, good.substr(0, cut)), protocol::Damaged);
    CPPUNIT_ASSERT_THROW(decode_event(999, good), protocol::Damaged);
    CPPUNIT_ASSERT(rc::check([](uint8_t kind, const std::string& bytes) {
      try {
        decode_event(kind % std::variant_size_v<Event>, bytes);
      } catch (const protocol::Damaged&) {
      }
    }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(EventCodecTest);

}  // namespace
}  // namespace sublet::scheduling
