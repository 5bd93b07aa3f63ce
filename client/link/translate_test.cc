#include "client/link/translate.h"

#include <cppunit/extensions/HelperMacros.h>

#include <functional>

namespace sublet::client {
namespace {

class ClientTranslateTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ClientTranslateTest);
  CPPUNIT_TEST(an_ordinary_order_is_served);
  CPPUNIT_TEST(what_is_not_served_is_named);
  CPPUNIT_TEST(requirements_too);
  CPPUNIT_TEST(orders_say_only_what_clients_name);
  CPPUNIT_TEST(attempts_say_only_what_servers_name);
  CPPUNIT_TEST(starts_say_only_what_servers_name);
  CPPUNIT_TEST(ends_say_only_what_servers_name);
  CPPUNIT_TEST(what_is_not_known_is_not_told);
  CPPUNIT_TEST_SUITE_END();

  static idl::RunOrder order() {
    idl::RunOrder order{};
    order.key.job = 7;
    order.key.attempt = 1;
    JobDescription job;
    job.program = "true";
    job.programs = {{"linux/x86_64", "true"}};
    job.submit_host = "desk";
    sublet::to_idl(job, order.what);
    return order;
  }

  void an_ordinary_order_is_served() {
    CPPUNIT_ASSERT_EQUAL(std::string(), not_served(order()));
    CPPUNIT_ASSERT_EQUAL(std::string(), from_idl(order()).not_served);
    CPPUNIT_ASSERT(!from_idl(order()).ahead);
    idl::RunOrder ahead = order();
    add_detail(ahead.more, "ahead", "1");
    CPPUNIT_ASSERT_EQUAL(std::string(), from_idl(ahead).not_served);
    CPPUNIT_ASSERT(from_idl(ahead).ahead);
  }

  void what_is_not_served_is_named() {
    struct Row {
      const char* name;
      std::function<void(idl::RunOrder&)> set;
    };
    for (const Row& row : {
             Row{"resources", [](idl::RunOrder& o) { o.reserved.length(1); }},
             Row{"start instant", [](idl::RunOrder& o) { o.start_at = 1; }},
             Row{"`colour`", [](idl::RunOrder& o) { colour(o.more); }},
             Row{"`network`", [](idl::RunOrder& o) { o.what.network = 99; }},
             Row{"`needs.resources.colour`",
                 [](idl::RunOrder& o) {
                   o.what.needs.resources.length(1);
                   colour(o.what.needs.resources[0].more);
                 }},
             Row{"`bounds.colour`", [](idl::RunOrder& o) { colour(o.what.bounds.more); }},
         }) {
      idl::RunOrder wanted = order();
      row.set(wanted);
      const std::string reason = from_idl(wanted).not_served;
      CPPUNIT_ASSERT_MESSAGE(reason + " / " + row.name, reason.find(row.name) != reason.npos);
      CPPUNIT_ASSERT_MESSAGE(reason, reason.find("job 7") != reason.npos);
    }
  }

  void attempts_say_only_what_servers_name() {
    HeldAttempt held;
    held.disk = 7;
    held.waits = true;
    held.at_risk_ms = 0;
    held.message = "half \xff way";
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{0}, to_idl(held, {false, false, false, false}).more.length());
    const idl::AttemptStatus told = to_idl(held, {false, false, true, true});
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{2}, told.more.length());
    CPPUNIT_ASSERT_EQUAL(std::string("at_risk_ms"), std::string(told.more[0].name.in()));
    CPPUNIT_ASSERT_EQUAL(std::string("0"), std::string(told.more[0].value.in()));
    CPPUNIT_ASSERT_EQUAL(std::string("message"), std::string(told.more[1].name.in()));
    CPPUNIT_ASSERT_EQUAL(std::string("half \uFFFD way"), std::string(told.more[1].value.in()));
    held.at_risk_ms = -1;
    held.message = "";
    const idl::AttemptStatus waiting = to_idl(held, {false, true, false, false});
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{1}, waiting.more.length());
    CPPUNIT_ASSERT_EQUAL(std::string("waits"), std::string(waiting.more[0].name.in()));
    CPPUNIT_ASSERT_EQUAL(std::string("1"), std::string(waiting.more[0].value.in()));
    held.waits = false;
    const idl::AttemptStatus status = to_idl(held, {});
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{1}, status.more.length());
    CPPUNIT_ASSERT_EQUAL(std::string("disk"), std::string(status.more[0].name.in()));
    CPPUNIT_ASSERT_EQUAL(std::string("7"), std::string(status.more[0].value.in()));
    held.disk = 0;  // not known
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{0}, to_idl(held, {}).more.length());
  }

  void starts_say_only_what_servers_name() {
    const AttemptStart start = {{7, 1}, 5, 200};
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{0}, to_idl(start, false).more.length());
    const idl::StartReport report = to_idl(start, true);
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{1}, report.more.length());
    CPPUNIT_ASSERT_EQUAL(std::string("ran_ms"), std::string(report.more[0].name.in()));
    CPPUNIT_ASSERT_EQUAL(std::string("200"), std::string(report.more[0].value.in()));
  }

  void ends_say_only_what_servers_name() {
    AttemptEnd end;
    end.memory_short = true;
    end.staging_ms = 7;
    KeptOfEnds kept = {.steps = false, .peaks = false, .memory_short = false, .staging = false};
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{0}, to_idl(end, kept).more.length());
    kept.memory_short = true;
    const idl::EndReport report = to_idl(end, kept);
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{1}, report.more.length());
    CPPUNIT_ASSERT_EQUAL(std::string("memory_short"), std::string(report.more[0].name.in()));
    end.memory_short = false;
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{0}, to_idl(end, kept).more.length());
    kept.staging = true;
    const idl::EndReport staged = to_idl(end, kept);
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{1}, staged.more.length());
    CPPUNIT_ASSERT_EQUAL(std::string("staging"), std::string(staged.more[0].name.in()));
    CPPUNIT_ASSERT_EQUAL(std::string("7"), std::string(staged.more[0].value.in()));
  }

  void what_is_not_known_is_not_told() {
    MachineState state;
    idl::MachineReport report = to_idl(state);
    add_speed(state, report);
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{0}, report.more.length());
    state.speed = 2.5;
    state.load = 0.75;
    report = to_idl(state);
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{0}, report.more.length());
    add_speed(state, report);
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{2}, report.more.length());
    CPPUNIT_ASSERT_EQUAL(std::string("speed"), std::string(report.more[0].name.in()));
    CPPUNIT_ASSERT_EQUAL(std::string("2.5"), std::string(report.more[0].value.in()));
    CPPUNIT_ASSERT_EQUAL(std::string("load"), std::string(report.more[1].name.in()));
    CPPUNIT_ASSERT_EQUAL(std::string("0.75"), std::string(report.more[1].value.in()));
  }

  void requirements_too() {
    idl::Requirements needs{};
    CPPUNIT_ASSERT_EQUAL(std::string(), not_served(needs));
    needs.resources.length(1);
    CPPUNIT_ASSERT_EQUAL(std::string(), not_served(needs));
    needs.resources[0].instances.length(1);
    CPPUNIT_ASSERT(not_served(needs).find("`needs.resources.instances`") != std::string::npos);
  }

  // Another release of the client daemon may not know what it does not name, and would refuse
  // such an order for ever.
  void orders_say_only_what_clients_name() {
    JobDescription job;
    job.programs = {{"linux/x86_64", "true"}};
    job.submit_folder = "/home/ann";
    job.submit_host = "desk";
    job.even_so = true;
    const idl::MachineDescription machine = to_idl(MachineFacts());
    for (const auto& [name, value] : details_of(for_workstation(job))) {
      const auto is_named = [&, &name = name](idl::Names const& names) {
        for (CORBA::ULong i = 0; i < names.length(); ++i) {
          const std::string named = names[i].in();
          const std::string wanted = "JobDescription." + name;
          if (named == wanted || (named.ends_with('@') && wanted.starts_with(named))) return true;
        }
        return false;
      };
      CPPUNIT_ASSERT_MESSAGE(name, is_named(machine.capabilities));
    }
    CPPUNIT_ASSERT_EQUAL(size_t{3}, details_of(for_workstation(job)).size());
  }

  static void colour(idl::Details& more) {
    more.length(1);
    more[0].name = CORBA::string_dup("colour");
    more[0].value = CORBA::string_dup("red");
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(ClientTranslateTest);

}  // namespace
}  // namespace sublet::client
