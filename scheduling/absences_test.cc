#include "scheduling/absences.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <cmath>

namespace sublet::scheduling {
namespace {

using rules::LocalTime;

constexpr Micros kMinute = 60'000'000, kHour = 60 * kMinute;

Micros expected(const Absences& absences, const LocalTime& began, Micros away_for) {
  return expected_more(absences.similar_to(began), away_for);
}

class AbsencesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(AbsencesTest);
  CPPUNIT_TEST(nothing_known);
  CPPUNIT_TEST(many_of_one_length);
  CPPUNIT_TEST(the_more_similar_the_more_they_count);
  CPPUNIT_TEST(one_alone_misleads_little);
  CPPUNIT_TEST(bounded_and_ageing);
  CPPUNIT_TEST(text_and_back);
  CPPUNIT_TEST(damaged_texts);
  CPPUNIT_TEST_SUITE_END();

 public:
  // Who has been away for long stays away for as long again.
  void nothing_known() {
    const Absences none;
    CPPUNIT_ASSERT_EQUAL(10 * kMinute, expected(none, {}, 0));
    CPPUNIT_ASSERT_EQUAL(3 * kHour, expected(none, {}, 3 * kHour));
    CPPUNIT_ASSERT_EQUAL(24 * kHour, expected(none, {}, 1000 * kHour));
    CPPUNIT_ASSERT_EQUAL(10 * kMinute, expected(none, {}, -kHour));
  }

  // 16 to 31 minutes: 24 on average, 20 still after 4; of those that last longer than 28
  // minutes, 2.
  void many_of_one_length() {
    Absences absences;
    for (int i = 0; i < 60; ++i) absences.add({1, 10, 7}, (16 + i % 16) * kMinute);
    const auto minutes = [&](Micros away_for) {
      return static_cast<double>(expected(absences, {1, 10, 30}, away_for)) / kMinute;
    };
    CPPUNIT_ASSERT_DOUBLES_EQUAL(24, minutes(0), 0.1);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(20, minutes(4 * kMinute), 0.1);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(2, minutes(28 * kMinute), 1.5);
    // Longer than all before: as if nothing were known.
    CPPUNIT_ASSERT_DOUBLES_EQUAL(40, minutes(40 * kMinute), 0);
  }

  void the_more_similar_the_more_they_count() {
    Absences absences;
    for (int i = 0; i < 20; ++i) {
      absences.add({0, 9, 0}, 10 * kMinute);  // Monday
      absences.add({2, 9, 0}, 100 * kMinute);
      absences.add({5, 9, 0}, 1000 * kMinute);  // Saturday
    }
    const Micros monday = expected(absences, {0, 9, 0}, 0);
    const Micros tuesday = expected(absences, {1, 9, 0}, 0);
    const Micros wednesday = expected(absences, {2, 9, 0}, 0);
    const Micros sunday = expected(absences, {6, 9, 0}, 0);
    const Micros another_hour = expected(absences, {0, 12, 0}, 0);
    CPPUNIT_ASSERT(monday < tuesday && tuesday < wednesday && wednesday < sunday);
    CPPUNIT_ASSERT(tuesday < another_hour && another_hour < sunday);
  }

  void one_alone_misleads_little() {
    Absences absences;
    for (int i = 0; i < 50; ++i) absences.add({3, 14, 0}, 10 * kMinute);
    const Micros before = expected(absences, {4, 20, 0}, 0);
    absences.add({4, 20, 0}, 20 * kHour);
    CPPUNIT_ASSERT(expected(absences, {4, 20, 0}, 0) < before + 12 * kHour);
    CPPUNIT_ASSERT(expected(absences, {4, 20, 0}, 0) > before + 2 * kHour);
  }

  void bounded_and_ageing() {
    Absences absences;
    for (int i = 0; i < 500; ++i) absences.add({0, 9, 0}, 10 * kMinute);
    const uint64_t count = absences.similar_to({}).count;
    CPPUNIT_ASSERT(count >= 32 && count < 64);
    for (int i = 0; i < 100; ++i) absences.add({0, 9, 0}, 100 * kMinute);
    CPPUNIT_ASSERT(expected(absences, {0, 9, 0}, 0) > 60 * kMinute);
    CPPUNIT_ASSERT(rc::check([](const std::vector<uint32_t>& numbers) {
      Absences all;
      for (const uint32_t n : numbers)
        for (uint32_t i = 0; i < 40; ++i)
          all.add({(n + i) % 7, n / 7 % 24, 0}, (Micros{1} << (n / 168 + i) % 16) * kMinute);
      RC_ASSERT(all.similar_to({}).count <= 1000u);
      RC_ASSERT(numbers.empty() == all.empty());
      RC_ASSERT(all.text().size() <= 5000u);
      RC_ASSERT(Absences::parse(all.text()) == all);
    }));
  }

  void text_and_back() {
    Absences absences;
    CPPUNIT_ASSERT_EQUAL(std::string(), absences.text());
    absences.add({0, 0, 0}, 0);
    absences.add({6, 23, 0}, 20'000 * kMinute);
    absences.add({6, 23, 0}, 8'192 * kMinute);
    CPPUNIT_ASSERT_EQUAL(std::string("1 3on6"), absences.text());
    CPPUNIT_ASSERT(Absences::parse("1 3on6") == absences);
    CPPUNIT_ASSERT(Absences::parse("")->empty());
  }

  void damaged_texts() {
    for (const char* text :
         {"x y", "-1", "1 1", "2 1", " 1", "1 ", "1  2", "zzzzzzzzzzz", "3on5z", "0", "qp", "1,2"})
      CPPUNIT_ASSERT_MESSAGE(text, !Absences::parse(text));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(AbsencesTest);
}  // namespace
}  // namespace sublet::scheduling
