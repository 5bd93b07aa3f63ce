#include "scheduling/matching/group_lines.h"

#include <cppunit/extensions/HelperMacros.h>
#include <malloc.h>
#include <rapidcheck.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace sublet::scheduling {
namespace {

bool any(const UserBound&) { return true; }

// Lines with few different keys and bounds, in the sequence and in a sorted vector beside it.
class Lines {
 public:
  void add(uint32_t bits) {
    auto line = std::make_unique<UserLine>();
    line->number = ++last_number_ % 200;  // several have one number, of different batches
    line->batch_id = last_number_;
    change(*line, bits);
    sequence_.add(*line);
    lines_.push_back(std::move(line));
  }
  void take(uint32_t bits) {
    if (lines_.empty()) return;
    const size_t i = bits % lines_.size();
    sequence_.take(*lines_[i]);
    lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void replace(uint32_t bits) {
    if (lines_.empty()) return;
    UserLine& line = *lines_[bits % lines_.size()];
    sequence_.take(line);
    change(line, bits);
    sequence_.add(line);
  }
  // The i-th in order goes to where this key is, which is another line's or none's.
  void move(size_t i, double key) {
    sort();
    sequence_.take(*lines_[i]);
    lines_[i]->key = {key, 0, 0};
    sequence_.add(*lines_[i]);
  }
  size_t size() const { return lines_.size(); }
  void add_with(double key, const UserBound& bound) {
    auto line = std::make_unique<UserLine>();
    line->number = ++last_number_;
    line->key = {key, 0, 0};
    line->of_jobs = bound;
    line->licensed = bound.licensed;
    sequence_.add(*line);
    lines_.push_back(std::move(line));
  }
  void take_at(size_t i) {
    sort();
    sequence_.take(*lines_[i]);
    lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void refresh(uint32_t bits) {
    if (lines_.empty()) return;
    UserLine& line = *lines_[bits % lines_.size()];
    const UserKey key = line.key;
    change(line, bits);
    line.key = key;
    sequence_.refresh(line);
  }
  void check(uint32_t bits) {
    sort();
    RC_ASSERT(sequence_.empty() == lines_.empty());
    std::vector<const UserLine*> expected, walked;
    for (const auto& line : lines_) expected.push_back(line.get());
    sequence_.walk(any, [&](const UserLine& line) {
      walked.push_back(&line);
      return true;
    });
    RC_ASSERT(walked == expected);
    if (lines_.empty()) return;
    UserBound all = lines_.front()->of_jobs;
    for (const auto& line : lines_) all = join(all, line->of_jobs);
    RC_ASSERT(sequence_.bound() == all);
    const Amounts room = {1 + bits % 4, bits / 4 % 4, 8};
    const auto may = [&](const UserBound& bound) { return bound.least.within(room); };
    std::erase_if(expected, [&](const UserLine* line) { return !may(line->of_jobs); });
    walked.clear();
    const size_t most = 1 + bits / 16 % 64;
    sequence_.walk(may, [&](const UserLine& line) {
      walked.push_back(&line);
      return walked.size() < most;
    });
    expected.resize(std::min(expected.size(), most));
    RC_ASSERT(walked == expected);
  }

 private:
  static UserKey key_from(uint32_t bits) {
    return {static_cast<double>(bits % 8), 0, bits / 8 % 3};
  }
  static void change(UserLine& line, uint32_t bits) {
    line.key = key_from(bits);
    line.licensed = bits % 64 == 5;
    line.of_jobs = {{1 + bits / 32 % 4, bits / 128 % 4, bits / 512 % 9},
                    static_cast<Micros>(bits / 4096),
                    line.licensed};
  }
  void sort() {
    std::sort(lines_.begin(), lines_.end(),
              [](const auto& a, const auto& b) { return comes_before(*a, *b); });
  }

  uint64_t last_number_ = 0;
  std::vector<std::unique_ptr<UserLine>> lines_;
  GroupLines sequence_;
};

class GroupLinesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(GroupLinesTest);
  CPPUNIT_TEST(like_a_sorted_vector);
  CPPUNIT_TEST(the_only_line_moves);
  CPPUNIT_TEST(who_alone_has_a_bound_moves);
  CPPUNIT_TEST(the_first_goes_to_the_end_again_and_again);
  CPPUNIT_TEST(memory_does_not_grow);
  CPPUNIT_TEST_SUITE_END();

 public:
  void like_a_sorted_vector() {
    CPPUNIT_ASSERT(rc::check("the lines of a group stand as in a sorted vector", [] {
      const uint32_t begin = *rc::gen::inRange<uint32_t>(0, 400);
      const auto choices = *rc::gen::container<std::vector<uint32_t>>(
          *rc::gen::inRange<size_t>(0, 300), rc::gen::arbitrary<uint32_t>());
      Lines lines;
      for (uint32_t i = 0; i < begin; ++i) lines.add(i * 2654435761u);
      for (const uint32_t choice : choices) {
        const uint32_t bits = choice / 16;
        switch (choice % 16) {
          case 0:
          case 1:
          case 2:
          case 3:
            lines.add(bits);
            break;
          case 4:
          case 5:
          case 6:
            lines.refresh(bits);
            break;
          case 7:
          case 8:
          case 9:
            lines.replace(bits);
            break;
          default:
            lines.take(bits);
        }
        lines.check(bits);
      }
    }));
  }

  void the_only_line_moves() {
    Lines lines;
    lines.add_with(5, {{2, 3, 4}, 7, true});
    for (const double key : {5.0, 6.0, 1.0}) {
      lines.move(0, key);
      lines.check(0);
    }
    lines.take_at(0);
    lines.check(0);
  }

  // The bound of all lines and those of the chunks stay right, wherever it goes.
  void who_alone_has_a_bound_moves() {
    constexpr UserBound kUsual = {{2, 2, 2}, 100, false};
    constexpr UserBound kSingle[] = {{{1, 2, 2}, 100, false},
                                     {{2, 1, 2}, 100, false},
                                     {{2, 2, 1}, 100, false},
                                     {{2, 2, 2}, 1, false},
                                     {{2, 2, 2}, 100, true}};
    for (const UserBound& single : kSingle) {
      Lines lines;
      for (int i = 0; i < 150; ++i) lines.add_with(i, i == 0 ? single : kUsual);
      size_t at = 0;
      for (const double key : {20.5, 20.5, 149.5, 75.5, -1.0, 32.5}) {
        lines.move(at, key);
        lines.check(0x5);
        at = key < 0 ? 0 : static_cast<size_t>(key);
      }
    }
  }

  void the_first_goes_to_the_end_again_and_again() {
    for (const size_t count : {2u, 20u, 33u, 100u}) {
      Lines lines;
      for (size_t i = 0; i < count; ++i)
        lines.add_with(static_cast<double>(i), {{1 + i % 4, i % 3, 1}, 5, false});
      double last = static_cast<double>(count), first = -1;
      for (int i = 0; i < 1000; ++i) {
        lines.move(0, last++);
        if (i % 3 == 0) lines.move(count - 1, first--);
        if (i % 5 == 0) lines.move(count / 2, last - 1.5 - static_cast<double>(count) / 2);
        if (i % 50 == 0) lines.check(static_cast<uint32_t>(i));
      }
      lines.check(0xff);
    }
  }

  // Lines that come at the end and go at the front leave no free places behind.
  void memory_does_not_grow() {
    Lines lines;
    double last = 0;
    const auto many_come_and_go = [&] {
      while (lines.size() < 34) lines.add_with(last++, {});
      while (lines.size() > 2) lines.take_at(0);
    };
    many_come_and_go();
    const auto used = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
    const size_t before = used();
    for (int i = 0; i < 1000; ++i) many_come_and_go();
    CPPUNIT_ASSERT(used() < before + 100'000);
    lines.check(0);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(GroupLinesTest);

}  // namespace
}  // namespace sublet::scheduling
