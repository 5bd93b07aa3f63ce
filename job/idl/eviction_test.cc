#include "job/idl/eviction.h"

#include <cppunit/extensions/HelperMacros.h>

namespace sublet {
namespace {

namespace v1 = Sublet::v1;
using protocol::EvictionSteps;

class EvictionTranslationTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(EvictionTranslationTest);
  CPPUNIT_TEST(numbers_are_those_of_the_contract);
  CPPUNIT_TEST(steps_come_back_as_they_went);
  CPPUNIT_TEST(nonsense_is_not_known);
  CPPUNIT_TEST_SUITE_END();

 public:
  void numbers_are_those_of_the_contract() {
    v1::EvictionSteps steps;
    to_idl(EvictionSteps{.told = 1, .demoted = 2, .save_asked = 3, .saved = 4, .gone = 5}, steps);
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{5}, steps.length());
    const CORBA::ULong numbers[] = {v1::STEP_TOLD, v1::STEP_DEMOTED, v1::STEP_SAVE_ASKED,
                                    v1::STEP_SAVED, v1::STEP_GONE};
    for (CORBA::ULong i = 0; i < 5; ++i) {
      CPPUNIT_ASSERT_EQUAL(numbers[i], CORBA::ULong{steps[i].step});
      CPPUNIT_ASSERT_EQUAL(CORBA::LongLong{i + 1}, CORBA::LongLong{steps[i].after_us});
    }
  }

  void steps_come_back_as_they_went() {
    for (const EvictionSteps& steps :
         {EvictionSteps{}, EvictionSteps{.told = 0, .gone = 7},
          EvictionSteps{.told = 1, .demoted = 9, .save_asked = 2, .saved = 8, .gone = 9}}) {
      v1::EvictionSteps there;
      to_idl(steps, there);
      CPPUNIT_ASSERT(steps == from_idl(there));
    }
  }

  void nonsense_is_not_known() {
    v1::EvictionSteps steps;
    steps.length(2);
    steps[0] = {v1::STEP_TOLD, 9, {}};
    steps[1] = {v1::STEP_GONE, 3, {}};
    CPPUNIT_ASSERT(EvictionSteps() == from_idl(steps));
    steps[1].after_us = -5;
    CPPUNIT_ASSERT(EvictionSteps() == from_idl(steps));
    steps[1] = {77, 10, {}};
    CPPUNIT_ASSERT((EvictionSteps{.told = 9} == from_idl(steps)));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(EvictionTranslationTest);

}  // namespace
}  // namespace sublet
