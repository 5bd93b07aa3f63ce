#include "rules/named_amounts.h"

#include <cppunit/extensions/HelperMacros.h>

namespace sublet::rules {
namespace {

class NamedAmountsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(NamedAmountsTest);
  CPPUNIT_TEST(one_form);
  CPPUNIT_TEST(wrong_ones);
  CPPUNIT_TEST(arithmetic);
  CPPUNIT_TEST_SUITE_END();

 public:
  void one_form() {
    const auto form = [](const char* text) { return NamedAmounts::parse(text).text(); };
    CPPUNIT_ASSERT_EQUAL(std::string("ansys=3 gpu=2"), form("gpu=2, ansys=3"));
    CPPUNIT_ASSERT_EQUAL(std::string("ansys=3 gpu=2"), form(" gpu=2\tansys=3 ,"));
    CPPUNIT_ASSERT_EQUAL(std::string("gpu=0"), form("gpu=0"));
    CPPUNIT_ASSERT_EQUAL(std::string("a-b_9=1000000"), form("a-b_9=1000000"));
    CPPUNIT_ASSERT(NamedAmounts::parse("").empty() && NamedAmounts::parse(" , ").empty());
    bool damaged = false;
    CPPUNIT_ASSERT(NamedAmounts::stored("gpu", &damaged).empty() && damaged);
  }

  void wrong_ones() {
    std::string many;
    for (int i = 0; i < 33; ++i) many += "n" + std::to_string(i) + "=1 ";
    const std::pair<std::string, std::string> kWrong[] = {
        {"gpu", "'gpu' is not of the form NAME=AMOUNT"},
        {"gpu=", "is not of the form"},
        {"gpu=-1", "is not of the form"},
        {"gpu=1.5", "whole numbers"},
        {"gpu = 1", "is not of the form"},
        {"gpu=99999999999999999999", "is not of the form"},
        {"gpu=1000001", "at most 1000000"},
        {"GPU=1", "'GPU' is not a name"},
        {"=1", "'' is not a name"},
        {"9a=1", "is not a name"},
        {std::string(33, 'a') + "=1", "at most 32 of"},
        {"gpu=1 gpu=2", "'gpu' is there twice"},
        {"cores=2", "'cores' is not a named amount"},
        {many, "more than 32 names"}};
    for (const auto& [text, said] : kWrong) {
      try {
        NamedAmounts::parse(text);
        CPPUNIT_FAIL("accepted: " + text);
      } catch (const AmountError& e) {
        CPPUNIT_ASSERT_MESSAGE(e.what(), std::string(e.what()).find(said) != std::string::npos);
      }
    }
  }

  void arithmetic() {
    NamedAmounts a = NamedAmounts::parse("gpu=2 x=1");
    const NamedAmounts b = NamedAmounts::parse("gpu=3 y=4");
    CPPUNIT_ASSERT_EQUAL(std::string("gpu=3 x=1 y=4"), most(a, b).text());
    a.add(b);
    CPPUNIT_ASSERT_EQUAL(std::string("gpu=5 x=1 y=4"), a.text());
    a.take(NamedAmounts::parse("gpu=1 x=1 y=9 z=1"));
    CPPUNIT_ASSERT_EQUAL(std::string("gpu=4"), a.text());
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, a.of("x"));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(NamedAmountsTest);
}  // namespace
}  // namespace sublet::rules
