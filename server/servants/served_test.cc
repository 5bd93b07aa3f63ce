// Reserved fields in requests are refused, never ignored. (Job descriptions are tested
// in job/.)
#include "server/servants/served.h"

#include <cppunit/TestFixture.h>
#include <cppunit/extensions/HelperMacros.h>

#include "server/refusal_testing.h"
#include "server/servants/translate.h"

namespace sublet::server {
namespace {

namespace v1 = Sublet::v1;

template <typename Struct>
Struct with_unknown_name() {
  Struct s{};
  s.more.length(1);
  s.more[0].name = CORBA::string_dup("colour");
  s.more[0].value = CORBA::string_dup("blue");
  return s;
}

using server::from_idl;
FilePlace from_idl(const v1::FilePlace& place) { return served_place(place); }

// The subject of the refusal; "": it is served. Fails on any other refusal.
template <typename Struct>
std::string unserved(const Struct& request) {
  try {
    from_idl(request);
  } catch (const Refusal& refusal) {
    CPPUNIT_ASSERT_EQUAL(std::string("not.served"), refusal.code);
    CPPUNIT_ASSERT(refusal.kind == Refusal::Kind::kInvalid);
    return refusal.subject;
  }
  return "";
}

v1::Resource gpu() {
  v1::Resource resource{};
  resource.name = CORBA::string_dup("gpu");
  resource.amount = 1;
  return resource;
}

class ServedTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ServedTest);
  CPPUNIT_TEST(unknown_names);
  CPPUNIT_TEST(reserved_fields);
  CPPUNIT_TEST(states_of_attempts);
  CPPUNIT_TEST(what_a_start_says);
  CPPUNIT_TEST(what_an_end_says_of_memory);
  CPPUNIT_TEST(what_an_end_says_of_staging);
  CPPUNIT_TEST(what_a_report_says_of_speed);
  CPPUNIT_TEST(how_many_orders_are_taken_ahead);
  CPPUNIT_TEST(who_serves_attempts_ahead);
  CPPUNIT_TEST(steps_that_cannot_have_been);
  CPPUNIT_TEST(what_only_lists_serve);
  CPPUNIT_TEST(what_is_served_is_told);
  CPPUNIT_TEST(details_of_jobs_are_told);
  CPPUNIT_TEST_SUITE_END();

 public:
  void unknown_names() {
    const std::string name = "colour";
    CPPUNIT_ASSERT_EQUAL(name, unserved(with_unknown_name<v1::BatchDescription>()));
    CPPUNIT_ASSERT_EQUAL(name, unserved(with_unknown_name<v1::JobFilter>()));
    CPPUNIT_ASSERT_EQUAL(name, unserved(with_unknown_name<v1::MachineDescription>()));
    CPPUNIT_ASSERT_EQUAL(name, unserved(with_unknown_name<v1::MachineReport>()));
    CPPUNIT_ASSERT_EQUAL(name, unserved(with_unknown_name<v1::AttemptStatus>()));
    CPPUNIT_ASSERT_EQUAL(name, unserved(with_unknown_name<v1::StartReport>()));
    CPPUNIT_ASSERT_EQUAL(name, unserved(with_unknown_name<v1::EndReport>()));
    CPPUNIT_ASSERT_EQUAL(name, unserved(with_unknown_name<v1::FilePlace>()));
  }

  // A control operation must not change more jobs than were named.
  void what_only_lists_serve() {
    for (const auto& [name, value] :
         {std::pair{"name", "a*"}, {"since", "1700000000000000"}, {"newest_first", "yes"}}) {
      auto filter = with_unknown_name<v1::JobFilter>();
      filter.more[0].name = CORBA::string_dup(name);
      filter.more[0].value = CORBA::string_dup(value);
      listed(filter);
      CPPUNIT_ASSERT_EQUAL(std::string("filter.list_only"),
                           testing::code([&] { from_idl(filter); }));
    }
    auto filter = with_unknown_name<v1::JobFilter>();
    filter.more[0].name = CORBA::string_dup("since");
    for (const char* value : {"", "-1", "1 d", "99999999999999999999"}) {
      filter.more[0].value = CORBA::string_dup(value);
      CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), testing::code([&] { listed(filter); }));
    }
  }

  void reserved_fields() {
    v1::BatchDescription batch{};
    CPPUNIT_ASSERT_EQUAL(std::string(), unserved(batch));
    batch.from.job = 17;
    CPPUNIT_ASSERT_EQUAL(std::string("BatchDescription.from"), unserved(batch));
    batch.from.job = 0;
    batch.from.pool.length(16);
    CPPUNIT_ASSERT_EQUAL(std::string("BatchDescription.from"), unserved(batch));

    v1::MachineDescription machine{};
    CPPUNIT_ASSERT_EQUAL(std::string(), unserved(machine));
    machine.resources.length(1);
    machine.resources[0] = gpu();
    CPPUNIT_ASSERT_EQUAL(std::string(), unserved(machine));
    machine.resources[0].instances.length(1);
    CPPUNIT_ASSERT_EQUAL(std::string("Resource.instances"), unserved(machine));

    v1::MachineReport report{};
    CPPUNIT_ASSERT_EQUAL(std::string(), unserved(report));
    report.free.length(1);
    report.free[0] = gpu();
    CPPUNIT_ASSERT_EQUAL(std::string("MachineReport.free"), unserved(report));
  }

  void how_many_orders_are_taken_ahead() {
    v1::MachineReport report{};
    CPPUNIT_ASSERT_EQUAL(0u, from_idl(report).ahead);
    add_detail(report.more, "ahead", "64");
    CPPUNIT_ASSERT_EQUAL(64u, from_idl(report).ahead);
    for (const char* odd : {"", "many", "65", "4294967296", "-1", "1.5", " 1"}) {
      set_text(report.more[0].value, odd);
      CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), testing::code([&] { from_idl(report); }));
    }
  }

  void who_serves_attempts_ahead() {
    v1::MachineDescription machine{};
    v1::Names& names = machine.capabilities;
    CPPUNIT_ASSERT(!from_idl(machine).serves_ahead);
    names.length(1);
    for (const char* one : {"RunOrder.ahead", "AttemptStatus.waits"}) {
      names[0] = CORBA::string_dup(one);
      CPPUNIT_ASSERT_MESSAGE(one, !from_idl(machine).serves_ahead);
    }
    names.length(2);
    names[1] = CORBA::string_dup("RunOrder.ahead");
    CPPUNIT_ASSERT(from_idl(machine).serves_ahead);

    v1::AttemptStatus status{};
    status.state = v1::ATTEMPT_STAGING;
    CPPUNIT_ASSERT(!from_idl(status).waits);
    add_detail(status.more, "waits", "1");
    CPPUNIT_ASSERT(from_idl(status).waits);
  }

  void what_a_report_says_of_speed() {
    v1::MachineReport report{};
    CPPUNIT_ASSERT_EQUAL(0.0, from_idl(report).speed);
    CPPUNIT_ASSERT(!logins_of(report));
    add_detail(report.more, "speed", "2.5");
    add_detail(report.more, "load", "0");
    CPPUNIT_ASSERT_EQUAL(2.5, from_idl(report).speed);
    CPPUNIT_ASSERT_EQUAL(0.0, from_idl(report).load);
    CPPUNIT_ASSERT(!logins_of(report));
    set_text(report.more[1].value, "0.25");
    CPPUNIT_ASSERT_EQUAL(0.25, from_idl(report).load);
    for (const CORBA::ULong which : {0, 1}) {
      const std::string good = report.more[which].value.in();
      for (const char* odd : {"", "fast", "1x", " 1", "-1", "nan", "inf", "1e7", "1e999"}) {
        set_text(report.more[which].value, odd);
        CPPUNIT_ASSERT_EQUAL_MESSAGE(odd, std::string("field.invalid"),
                                     testing::code([&] { from_idl(report); }));
      }
      set_text(report.more[which].value, good);
    }
    set_text(report.more[0].value, "0");
    CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), testing::code([&] { from_idl(report); }));
  }

  void what_a_start_says() {
    v1::StartReport start{};
    CPPUNIT_ASSERT_EQUAL(Micros{0}, from_idl(start).ran);
    add_detail(start.more, "ran_ms", "250");
    CPPUNIT_ASSERT_EQUAL(Micros{250'000}, from_idl(start).ran);
    set_text(start.more[0].value, "9223372036854775807");
    CPPUNIT_ASSERT(from_idl(start).ran > 0);
    set_text(start.more[0].value, "-1");
    CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), testing::code([&] { from_idl(start); }));
  }

  void what_an_end_says_of_memory() {
    v1::EndReport end{};
    end.ended = v1::END_DRAINED;
    end.memory_peak = 7;
    CPPUNIT_ASSERT_EQUAL(uint64_t{7}, from_idl(end).event.memory_peak);
    CPPUNIT_ASSERT(!from_idl(end).memory_short);
    add_detail(end.more, "memory_short", "1");
    CPPUNIT_ASSERT(from_idl(end).memory_short);
    end.ended = v1::END_DONE;
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, from_idl(end).event.memory_peak);
  }

  void what_an_end_says_of_staging() {
    v1::EndReport end{};
    end.ended = v1::END_DONE;
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, from_idl(end).event.staging);
    add_detail(end.more, "staging", "250");
    CPPUNIT_ASSERT_EQUAL(int64_t{250'000}, from_idl(end).event.staging);
    set_text(end.more[0].value, std::to_string(INT64_MAX).c_str());
    CPPUNIT_ASSERT_GREATER(INT64_MAX / 1001, from_idl(end).event.staging);
    set_text(end.more[0].value, "-1");
    CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), testing::code([&] { from_idl(end); }));
  }

  // A workstation may say anything; the end of its attempt counts nevertheless.
  void steps_that_cannot_have_been() {
    v1::EndReport end{};
    end.ended = v1::END_OWNER;
    end.quiesce_us = 900;
    end.steps.length(1);
    end.steps[0].step = v1::STEP_TOLD;
    end.steps[0].after_us = 80;
    CPPUNIT_ASSERT((protocol::EvictionSteps{.told = 80, .gone = 900}) == from_idl(end).row.steps);
    for (const int64_t nonsense : {int64_t{901}, int64_t{-2}, INT64_MAX, INT64_MIN}) {
      end.steps[0].after_us = nonsense;
      CPPUNIT_ASSERT(protocol::EvictionSteps{}.told == from_idl(end).row.steps.told);
    }
    end.steps.length(0);
    end.quiesce_us = INT64_MIN;
    CPPUNIT_ASSERT(protocol::EvictionSteps() == from_idl(end).row.steps);
  }

  void states_of_attempts() {
    v1::AttemptStatus status{};
    status.state = v1::ATTEMPT_RUNNING;
    CPPUNIT_ASSERT_EQUAL(std::string(), unserved(status));
    status.state = v1::ATTEMPT_SUSPENDED;
    CPPUNIT_ASSERT_EQUAL(std::string(), unserved(status));
    status.state = v1::ATTEMPT_DELIVERING;
    CPPUNIT_ASSERT_EQUAL(std::string(), unserved(status));
    status.more.length(1);
    status.more[0].name = "disk";
    status.more[0].value = "4096";
    CPPUNIT_ASSERT_EQUAL(uint64_t{4096}, from_idl(status).status.disk);
    status.more[0].value = "-1";
    CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), testing::code([&] { from_idl(status); }));
    status.more.length(0);
    for (const CORBA::ULong none : {v1::ATTEMPT_ORDERED, v1::ATTEMPT_ENDED, CORBA::ULong{8}}) {
      status.state = none;
      CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), testing::code([&] { from_idl(status); }));
    }
  }

  // Every name in the capabilities is accepted; for one that ends in "@", all names
  // that begin with it.
  void what_is_served_is_told() {
    const v1::Names names = capabilities();
    CPPUNIT_ASSERT(names.length() > 0);
    for (CORBA::ULong i = 0; i < names.length(); ++i) {
      const std::string name = names[i].in();
      const size_t dot = name.find('.');
      v1::Details more;
      more.length(1);
      more[0].name = CORBA::string_dup(
          (name.substr(dot + 1) + (name.ends_with('@') ? "linux/aarch64" : "")).c_str());
      require_served(name.substr(0, dot), more);
      more[0].name = CORBA::string_dup((name.substr(dot + 1) + "?").c_str());
      if (!name.ends_with('@'))
        CPPUNIT_ASSERT_EQUAL(std::string("not.served"),
                             testing::code([&] { require_served(name.substr(0, dot), more); }));
    }
  }

  void details_of_jobs_are_told() {
    JobDescription job;
    job.programs = {{"linux/x86_64", "true"}};
    job.submit_folder = "/home/ann";
    job.submit_host = "desk";
    job.even_so = true;
    job.hours = "sat, sun";
    v1::JobDescription sent;
    to_idl(job, sent);
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{5}, sent.more.length());
    require_served("JobDescription", sent.more);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(ServedTest);

}  // namespace
}  // namespace sublet::server
