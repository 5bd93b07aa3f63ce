#include "protocol/eviction.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include "protocol/place.h"

namespace sublet::protocol {
namespace {

class EvictionTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(EvictionTest);
  CPPUNIT_TEST(what_may_have_been);
  CPPUNIT_TEST(notes_come_back_as_they_went);
  CPPUNIT_TEST(what_cannot_be_read_is_passed_over);
  CPPUNIT_TEST(the_oldest_are_forgotten);
  CPPUNIT_TEST(any_text_may_be_read);
  CPPUNIT_TEST_SUITE_END();

  static EvictionNote note(uint64_t job) {
    return {.at_us = 5,
            .job = job,
            .attempt = 2,
            .ended = kEndOwner,
            .sensed = 3,
            .place = "event5 AT Translated Set 2 keyb",
            .steps = {}};
  }

 public:
  void what_may_have_been() {
    CPPUNIT_ASSERT(plausible({}));
    CPPUNIT_ASSERT(plausible({.told = 1, .demoted = 5, .save_asked = 3, .saved = 4, .gone = 6}));
    CPPUNIT_ASSERT(plausible({.told = 0, .gone = 0}));
    CPPUNIT_ASSERT(plausible({.saved = 7}));
    CPPUNIT_ASSERT(!plausible({.told = -2}));
    CPPUNIT_ASSERT(!plausible({.told = 2, .demoted = 1}));
    CPPUNIT_ASSERT(!plausible({.told = 2, .gone = 1}));
    CPPUNIT_ASSERT(!plausible({.save_asked = 3, .saved = 2}));
    CPPUNIT_ASSERT(!plausible({.saved = 3, .gone = 2}));
    CPPUNIT_ASSERT(!plausible({.gone = INT64_MAX}));
    CPPUNIT_ASSERT(!plausible({.demoted = INT64_MIN}));
  }

  void notes_come_back_as_they_went() {
    CPPUNIT_ASSERT(rc::check([] {
      EvictionNote one;
      one.at_us = *rc::gen::arbitrary<int64_t>();
      one.job = *rc::gen::arbitrary<uint64_t>();
      one.attempt = *rc::gen::arbitrary<uint32_t>();
      one.sensed = *rc::gen::arbitrary<uint32_t>();
      one.place = Place(*rc::gen::arbitrary<std::string>()).text();
      int64_t after = *rc::gen::inRange<int64_t>(-1, 100);
      for (const EvictionStep& step : kEvictionSteps) {
        one.steps.*step.after_us = after;
        after += *rc::gen::inRange<int64_t>(0, 1'000'000);
      }
      const auto back = notes_in(printed({one}));
      RC_ASSERT(back.has_value());
      RC_ASSERT(back->size() == 1u);
      RC_ASSERT(back->front() == one);
    }));
  }

  void what_cannot_be_read_is_passed_over() {
    const std::string text = printed({note(1), note(2)});
    CPPUNIT_ASSERT_EQUAL(size_t{2}, notes_in(text + "1 2 3\nnonsense\n\n")->size());
    CPPUNIT_ASSERT_EQUAL(size_t{2}, notes_in(text + "5 3 2 16 3 9 8 7 6 5\n")->size());
    CPPUNIT_ASSERT_EQUAL(size_t{2}, notes_in(text + printed({note(2)}))->size());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, notes_in(text.substr(0, text.size() - 40))->size());
    // A place is short and can be printed; older notes have none.
    const std::string plain = "sublet-evictions 1\n5 9 2 16 3 1 2 -1 -1 3";
    CPPUNIT_ASSERT_EQUAL(std::string(), notes_in(plain + "\n")->front().place);
    CPPUNIT_ASSERT_EQUAL(std::string("pts/3"), notes_in(plain + " pts/3\n")->front().place);
    CPPUNIT_ASSERT(notes_in(plain + " \x1b[2J\n")->empty());
    CPPUNIT_ASSERT(notes_in(plain + " " + std::string(32, 'x') + "\n")->empty());
    CPPUNIT_ASSERT(!notes_in("sublet-evictions 2\n"));
    CPPUNIT_ASSERT_EQUAL(size_t{0}, notes_in("")->size());
  }

  void the_oldest_are_forgotten() {
    std::vector<EvictionNote> notes;
    for (uint64_t job = 1; job <= kNotedEvictions + 5; ++job) notes.push_back(note(job));
    const auto kept = notes_in(printed(notes));
    CPPUNIT_ASSERT_EQUAL(kNotedEvictions, kept->size());
    CPPUNIT_ASSERT_EQUAL(uint64_t{6}, kept->front().job);
  }

  void any_text_may_be_read() {
    const std::string whole = printed({note(1), note(2), note(3)});
    CPPUNIT_ASSERT(rc::check([&whole] {
      std::string text = whole;
      for (int i = *rc::gen::inRange(1, 6); i > 0; --i)
        text[*rc::gen::inRange<size_t>(0, text.size())] =
            static_cast<char>(*rc::gen::inRange(0, 256));
      if (const auto notes = notes_in(text))
        for (const EvictionNote& one : *notes) RC_ASSERT(plausible(one.steps));
    }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(EvictionTest);

}  // namespace
}  // namespace sublet::protocol
