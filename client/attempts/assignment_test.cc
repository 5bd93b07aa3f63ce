#include "client/attempts/assignment.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include "base/testing/faulty_files.h"
#include "base/testing/temporary_folder.h"

namespace sublet::client {
namespace {

Assignment example() {
  Assignment a;
  a.name = {7, 2};
  a.job.name = "letters\n25 % done";
  a.user = "anna";
  a.job.program = "./train";
  a.job.arguments = {"--epochs", "8", "", "\xff\n"};
  a.job.environment = {"A=b c"};
  a.job.inputs = {{5, "train", true}, {6, "data/letters 1.txt", false}};
  a.job.outputs = {{"weights", true}, {"log file", false}};
  a.job.standard_input = "train";
  a.job.bounds.memory = UINT64_MAX;
  a.job.bounds.wall_ms = 5;
  a.checkpoint_generation = 3;
  a.slot = 1;
  a.uid = 61185;
  a.nonce = {1, 2, 3, 0, 255};
  a.accepted_us = 1'700'000'000'000'000;
  a.gpus = {"0", "12"};
  return a;
}

class AssignmentTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(AssignmentTest);
  CPPUNIT_TEST(reads_back_what_it_wrote);
  CPPUNIT_TEST(any_texts_survive);
  CPPUNIT_TEST(any_damage_is_noticed);
  CPPUNIT_TEST(the_end_survives);
  CPPUNIT_TEST_SUITE_END();

  void reads_back_what_it_wrote() {
    CPPUNIT_ASSERT(example() == parse_assignment(print_assignment(example())));
    TemporaryFolder folder;
    write_assignment(system_files(), folder.path(), example());
    CPPUNIT_ASSERT(example() == read_assignment(system_files(), folder.path()));
  }

  void any_texts_survive() {
    CPPUNIT_ASSERT(rc::check("texts", [] {
      Assignment a = example();
      a.job.program = *rc::gen::arbitrary<std::string>();
      a.job.arguments = *rc::gen::arbitrary<std::vector<std::string>>();
      a.job.environment = *rc::gen::arbitrary<std::vector<std::string>>();
      a.job.inputs[0].name = *rc::gen::arbitrary<std::string>();
      a.job.outputs[0].name = *rc::gen::arbitrary<std::string>();
      RC_ASSERT(a == parse_assignment(print_assignment(a)));
    }));
  }

  void any_damage_is_noticed() {
    std::string whole = print_assignment(example());
    CPPUNIT_ASSERT(rc::check("one byte changed or the end missing", [&] {
      std::string text = whole;
      size_t at = *rc::gen::inRange<size_t>(0, text.size());
      if (*rc::gen::arbitrary<bool>()) {
        text[at] = static_cast<char>(text[at] ^ *rc::gen::inRange(1, 256));
      } else {
        text.resize(at);
      }
      RC_ASSERT_THROWS_AS(parse_assignment(text), RecordError);
    }));
    CPPUNIT_ASSERT_THROW(parse_assignment(print_end({})), RecordError);
  }

  void the_end_survives() {
    TemporaryFolder folder;
    CPPUNIT_ASSERT(!read_end(system_files(), folder.path()));
    EndRecord end{22, "Its shepherd vanished.", 5};
    write_end(system_files(), folder.path(), end);
    CPPUNIT_ASSERT(end == *read_end(system_files(), folder.path()));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(AssignmentTest);

}  // namespace
}  // namespace sublet::client
