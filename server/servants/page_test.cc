// Pages are limited in octets, whatever their items contain, but have at least one item.
#include "server/servants/page.h"

#include <cppunit/TestFixture.h>
#include <cppunit/extensions/HelperMacros.h>

#include "server/refusal_testing.h"
#include "server/servants/translate.h"

namespace sublet::server {
namespace {

namespace v1 = Sublet::v1;

v1::JobSummaries jobs(CORBA::ULong count, size_t name_octets) {
  v1::JobSummaries all;
  all.length(count);
  for (CORBA::ULong i = 0; i < count; ++i) {
    all[i] = v1::JobSummary{};
    all[i].name = CORBA::string_dup(std::string(name_octets, 'n').c_str());
  }
  return all;
}

std::string after(CORBA::ULong last) { return "after " + std::to_string(last); }

class PageTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PageTest);
  CPPUNIT_TEST(what_fits_stays);
  CPPUNIT_TEST(four_long_names);
  CPPUNIT_TEST(one_that_is_too_large);
  CPPUNIT_TEST(names_of_old_books_are_cut);
  CPPUNIT_TEST(cursors);
  CPPUNIT_TEST_SUITE_END();

 public:
  void what_fits_stays() {
    v1::JobSummaries page = jobs(1000, 100);
    CPPUNIT_ASSERT_EQUAL(std::string("next"), end_page(page, "next", after));
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{1000}, page.length());
    v1::JobSummaries none = jobs(0, 0);
    CPPUNIT_ASSERT_EQUAL(std::string(), end_page(none, "", after));
  }

  void four_long_names() {
    v1::JobSummaries page = jobs(4, 400'000);
    CPPUNIT_ASSERT_EQUAL(std::string("after 1"), end_page(page, "", after));
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{2}, page.length());
  }

  void one_that_is_too_large() {
    v1::JobSummaries page = jobs(4, 2'000'000);
    CPPUNIT_ASSERT_EQUAL(std::string("after 0"), end_page(page, "", after));
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{1}, page.length());
  }

  void names_of_old_books_are_cut() {
    JobRow row;
    row.name = std::string(900'000, 'n');
    v1::JobSummary summary;
    to_idl(row, "curly", -1, summary);
    CPPUNIT_ASSERT_EQUAL(size_t{v1::NAME_LIMIT}, std::string(summary.name.in()).size());
  }

  void cursors() {
    const auto number = [](const std::string& text) {
      v1::Bytes cursor;
      to_octets(text, cursor);
      return number_from(cursor);
    };
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, number(""));
    CPPUNIT_ASSERT_EQUAL(uint64_t{17}, number("17"));
    for (const char* bad : {"x", "-1", "1 ", "99999999999999999999"})
      CPPUNIT_ASSERT_EQUAL(std::string("cursor.bad"), testing::code([&] { number(bad); }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(PageTest);

}  // namespace
}  // namespace sublet::server
