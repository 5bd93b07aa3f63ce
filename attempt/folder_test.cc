#include "attempt/folder.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "base/testing/temporary_folder.h"

using namespace sublet;

namespace {

std::string make_temp_folder() {
  char name[] = "/tmp/sublet-attempt-XXXXXX";
  CPPUNIT_ASSERT(mkdtemp(name) != nullptr);
  return name;
}

rc::Gen<std::string> any_text(int longest) {
  return rc::gen::resize(
      longest, rc::gen::container<std::string>(rc::gen::map(
                   rc::gen::inRange(1, 256), [](int c) { return static_cast<char>(c); })));
}

AttemptOrder some_order() {
  AttemptOrder order;
  order.job = 7;
  order.attempt = 1;
  order.program = "/bin/true";
  order.monitor = "/run/monitor.sock";
  order.boot_id = "boot";
  order.arguments = {"true"};
  return order;
}

class AttemptFolderTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(AttemptFolderTest);
  CPPUNIT_TEST(order_comes_back_as_it_went);
  CPPUNIT_TEST(places_come_back_as_they_went);
  CPPUNIT_TEST(record_comes_back_as_it_went);
  CPPUNIT_TEST(exit_comes_back_as_it_went);
  CPPUNIT_TEST(an_order_says_only_what_matters);
  CPPUNIT_TEST(every_cut_of_an_order_is_refused);
  CPPUNIT_TEST(mutated_orders_never_break_the_parser);
  CPPUNIT_TEST(bad_lines_are_named);
  CPPUNIT_TEST(keys_may_come_in_any_order);
  CPPUNIT_TEST(a_newer_record_is_understood);
  CPPUNIT_TEST(an_order_the_shepherd_would_refuse_is_not_written);
  CPPUNIT_TEST(attempts_are_listed);
  CPPUNIT_TEST(missing_file_is_no_error);
  CPPUNIT_TEST_SUITE_END();

  void order_comes_back_as_it_went() {
    CPPUNIT_ASSERT(rc::check([] {
      AttemptOrder order;
      order.job = *rc::gen::positive<int64_t>();
      order.attempt = *rc::gen::inRange<int64_t>(1, 1ll << 32);
      order.program = *any_text(60);
      order.arguments =
          *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(any_text(20)));
      order.environment = *rc::gen::container<std::vector<std::string>>(any_text(20));
      order.work = *any_text(40);
      order.standard_input = *any_text(40);
      order.uid = *rc::gen::inRange<int64_t>(-1, 0xffffffffll);
      order.umask = *rc::gen::inRange<int64_t>(0, 01000);
      order.limit_memory = *rc::gen::inRange<int64_t>(0, INT64_MAX);
      order.slot_memory = *rc::gen::inRange<int64_t>(0, INT64_MAX);
      order.limit_disk = *rc::gen::inRange<int64_t>(0, INT64_MAX);
      order.walls = *rc::gen::inRange<int64_t>(0, 2);
      order.no_network = *rc::gen::inRange<int64_t>(0, 2);
      order.only_server = *rc::gen::inRange<int64_t>(0, 2);
      order.bandwidth = *rc::gen::inRange<int64_t>(0, INT64_MAX);
      order.monitor = *any_text(100);
      order.server = *any_text(60);
      order.cgroup_cpu = *any_text(30);
      order.cgroup_processes = *any_text(30);
      order.lease_ns = *rc::gen::inRange<int64_t>(0, INT64_MAX);
      order.own_files = *rc::gen::container<std::vector<std::string>>(any_text(20));
      if (order.own_files.size() > SUBLET_MAX_OWN_FILES) order.own_files.resize(3);
      order.save_signal = *rc::gen::inRange<int64_t>(0, 65);
      order.boot_id = *any_text(36);
      std::string error;
      auto back = parse_order(print_order(order), &error);
      RC_ASSERT(back.has_value());
      RC_ASSERT(*back == order);
    }));
  }

  void places_come_back_as_they_went() {
    CPPUNIT_ASSERT(rc::check([] {
      AttemptPlaces places;
      places.hidden = *rc::gen::container<std::vector<std::string>>(any_text(20));
      places.grants = *rc::gen::container<std::vector<std::string>>(any_text(20));
      if (places.hidden.size() > SUBLET_MAX_PLACES) places.hidden.resize(SUBLET_MAX_PLACES);
      if (places.grants.size() > SUBLET_MAX_PLACES) places.grants.resize(SUBLET_MAX_PLACES);
      std::string error;
      auto back = parse_places(print_places(places), &error);
      RC_ASSERT(back.has_value());
      RC_ASSERT(*back == places);
    }));
    std::string error;
    CPPUNIT_ASSERT(!parse_places("sublet-places 1\nhiden /home\nend\n", &error));
    TemporaryFolder folder;
    write_places(system_files(), folder.path(), {{"/home"}, {}});
    const std::vector<std::string> many(SUBLET_MAX_PLACES + 1, "/x");
    for (const AttemptPlaces& bad : {AttemptPlaces{many, {}}, AttemptPlaces{{}, many},
                                     AttemptPlaces{{std::string(70'000, 'x')}, {}}})
      CPPUNIT_ASSERT_THROW(write_places(system_files(), folder.path(), bad), FileError);
  }

  void record_comes_back_as_it_went() {
    CPPUNIT_ASSERT(rc::check([] {
      AttemptRecord record;
      record.job = *rc::gen::positive<int64_t>();
      record.attempt = 3;
      record.boot_id = *any_text(36);
      record.shepherd = {*rc::gen::inRange(1, 4194304), *rc::gen::inRange<uint64_t>(0, INT64_MAX)};
      record.program = {*rc::gen::inRange(1, 4194304), *rc::gen::inRange<uint64_t>(0, INT64_MAX)};
      record.session = record.program.pid;
      record.uid = *rc::gen::inRange<int64_t>(-1, 100000);
      record.cgroup_unified = *any_text(50);
      record.cpu_before_us = *rc::gen::inRange<int64_t>(0, INT64_MAX);
      record.started_ns = *rc::gen::inRange<int64_t>(0, INT64_MAX);
      std::string error;
      auto back = parse_record(print_record(record), &error);
      RC_ASSERT(back.has_value());
      RC_ASSERT(*back == record);
    }));
  }

  void exit_comes_back_as_it_went() {
    CPPUNIT_ASSERT(rc::check([] {
      AttemptExit end;
      end.facts.job = 1;
      end.facts.attempt = 1;
      end.facts.outcome = SUBLET_OUTCOME_FAILED;
      end.facts.code = *rc::gen::inRange(-200, 200);
      end.step = *any_text(20);
      end.facts.cpu_user_us = *rc::gen::arbitrary<int64_t>();
      end.facts.progress_ppm = *rc::gen::inRange(-1, 1000001);
      end.facts.quiesce_ns = *rc::gen::inRange<int64_t>(-1, INT64_MAX);
      std::string text = print_exit(end), error;
      auto back = parse_exit(text, &error);
      RC_ASSERT(back.has_value());
      RC_ASSERT(back->step == end.step);
      RC_ASSERT(print_exit(*back) == text);
    }));
  }

  // Monitors and shepherds of earlier versions refuse an order with keys that they do not know.
  void an_order_says_only_what_matters() {
    AttemptOrder order = some_order();
    order.bandwidth = order.only_server = 0;
    order.server = "";
    order.walls = 1;
    for (const char* key : {"\nbandwidth ", "\nonly_server ", "\nserver ", "\nwalls "})
      CPPUNIT_ASSERT_EQUAL(std::string::npos, print_order(order).find(key));
    order.bandwidth = 1000;
    order.walls = 0;
    const std::string text = print_order(order);
    CPPUNIT_ASSERT(text.find("\nbandwidth 1000\n") != std::string::npos);
    CPPUNIT_ASSERT(text.find("\nwalls 0\n") != std::string::npos);
  }

  void every_cut_of_an_order_is_refused() {
    std::string text = print_order(some_order()), error;
    for (size_t size = 0; size < text.size(); ++size)
      CPPUNIT_ASSERT(!parse_order(text.substr(0, size), &error));
    CPPUNIT_ASSERT(parse_order(text, &error));
    CPPUNIT_ASSERT(!parse_order(text + "end\n", &error));
  }

  void mutated_orders_never_break_the_parser() {
    std::string whole = print_order(some_order());
    CPPUNIT_ASSERT(rc::check([&whole] {
      std::string text = whole;
      int changes = *rc::gen::inRange(1, 6);
      for (int i = 0; i < changes; ++i)
        text[*rc::gen::inRange<size_t>(0, text.size())] =
            static_cast<char>(*rc::gen::inRange(0, 256));
      std::string error;
      auto order = parse_order(text, &error);
      // An accepted order is unchanged after it is written and read again.
      if (order)
        RC_ASSERT(*parse_order(print_order(*order), &error) == *order);
      else
        RC_ASSERT(!error.empty());
    }));
  }

  static void refuse(std::string from, const std::string& to, const std::string& why) {
    std::string text = print_order(some_order()), error;
    text.replace(text.find(from), from.size(), to);
    CPPUNIT_ASSERT(!parse_order(text, &error));
    CPPUNIT_ASSERT_MESSAGE(error + " instead of " + why, error.find(why) != std::string::npos);
  }

  void bad_lines_are_named() {
    refuse("job 7\n", "job 0\n", "out of its range");
    refuse("job 7\n", "job 9223372036854775808\n", "too large");
    refuse("job 7\n", "job 7x\n", "invalid digit");
    refuse("job 7\n", "job 7\njob 7\n", "twice");
    refuse("job 7\n", "", "missing");
    refuse("job 7\n", "job\n", "no value");
    refuse("job 7\n", "job 7\nsurprise 1\n", "line 3: a key is unknown");
    refuse("program /bin/true", "program /bin/%00true", "encoded");
    refuse("program /bin/true", "program /bin/%4", "encoded");
    refuse("program /bin/true", "program /bin/ true", "encoded");
    refuse("sublet-order 1", "sublet-order 2", "title");
  }

  void keys_may_come_in_any_order() {
    AttemptRecord record;
    record.job = record.attempt = record.session = 7;
    record.shepherd.pid = record.program.pid = 5;
    record.cgroup_cpu = "/a";
    std::string text = print_record(record), error;
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line + "\n");
    std::reverse(lines.begin() + 1, lines.end() - 1);
    const auto read =
        parse_record(std::accumulate(lines.begin(), lines.end(), std::string()), &error);
    CPPUNIT_ASSERT_MESSAGE(error, read.has_value());
    CPPUNIT_ASSERT_EQUAL(text, print_record(*read));
  }

  void a_newer_record_is_understood() {
    AttemptRecord record;
    record.job = record.attempt = record.session = 1;
    record.shepherd.pid = record.program.pid = 1;
    std::string text = print_record(record), error;
    text.insert(text.size() - 4, "something_new 5\n");
    CPPUNIT_ASSERT(parse_record(text, &error));
  }

  void an_order_the_shepherd_would_refuse_is_not_written() {
    std::string folder = make_temp_folder(), error;
    AttemptOrder order = some_order();
    order.job = 0;
    CPPUNIT_ASSERT_THROW(write_order(system_files(), folder, order), FileError);
    order = some_order();
    order.arguments.push_back(std::string("a\0b", 3));
    CPPUNIT_ASSERT_THROW(write_order(system_files(), folder, order), FileError);
    order = some_order();
    order.arguments.assign(SUBLET_ORDER_MAX_ARGUMENTS + 1, "x");
    CPPUNIT_ASSERT_THROW(write_order(system_files(), folder, order), FileError);
    order.arguments.assign(2, std::string(SUBLET_ORDER_MAX_BYTES / 2, 'x'));
    CPPUNIT_ASSERT_THROW(write_order(system_files(), folder, order), FileError);
    CPPUNIT_ASSERT(!read_order(system_files(), folder, &error));
    write_order(system_files(), folder, some_order());
    CPPUNIT_ASSERT(read_order(system_files(), folder, &error) == some_order());
    system_files().remove_tree(folder);
  }

  void attempts_are_listed() {
    std::string state = make_temp_folder();
    Files& files = system_files();
    CPPUNIT_ASSERT(list_attempts(files, state).empty());
    for (AttemptName name : {AttemptName{10, 1}, AttemptName{9, 2}, AttemptName{9, 1}})
      make_attempt_folder(files, attempt_folder(state, name), -1, -1);
    files.make_folders(state + "/attempts/09.1");
    files.make_folders(state + "/attempts/9");
    std::vector<std::string> strange;
    auto found = list_attempts(files, state, &strange);
    CPPUNIT_ASSERT((found == std::vector<AttemptName>{{9, 1}, {9, 2}, {10, 1}}));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, strange.size());
    struct stat work;
    CPPUNIT_ASSERT(stat((attempt_folder(state, {9, 1}) + "/work").c_str(), &work) == 0);
    CPPUNIT_ASSERT_EQUAL(0700u, work.st_mode & 07777u);
    files.remove_tree(state);
  }

  void missing_file_is_no_error() {
    std::string folder = make_temp_folder(), error = "old";
    CPPUNIT_ASSERT(!read_exit(system_files(), folder, &error));
    CPPUNIT_ASSERT(error.empty());
    system_files().write_atomic(folder + "/exit", "rubbish");
    CPPUNIT_ASSERT(!read_exit(system_files(), folder, &error));
    CPPUNIT_ASSERT(!error.empty());
    system_files().remove_tree(folder);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(AttemptFolderTest);

}  // namespace
