#include "scheduling/matching/group_lines.h"

#include <cppunit/extensions/HelperMacros.h>
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
  void move(uint32_t bits) {
    if (lines_.empty()) return;
    UserLine& line = *lines_[bits % lines_.size()];
    sequence_.take(line);
    change(line, bits);
    sequence_.add(line);
  }
  void refresh(uint32_t bits) {
    if (lines_.empty()) return;
    UserLine& line = *lines_[bits % lines_.size()];
    const UserKey key = line.key;
    change(line, bits);
    line.key = key;
    sequence_.refresh(line);
  }
  // In their order, or not.
  void rebuild(uint32_t bits) {
    if (bits % 4 == 0 && !lines_.empty())
      std::rotate(lines_.begin(),
                  lines_.begin() + static_cast<std::ptrdiff_t>(bits / 4 % lines_.size()),
                  lines_.end());
    sequence_.clear();
    for (const auto& line : lines_) sequence_.append(*line);
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
    const auto is = [&](const UserLine& line) { return may(line.of_jobs); };
    const UserKey from = {static_cast<double>(bits / 16 % 8), 0, 0};
    RC_ASSERT(sequence_.first(may, is) == first(is));
    RC_ASSERT(sequence_.first_behind(from, may, is) ==
              first([&](const UserLine& line) { return from < line.key && is(line); }));
  }

 private:
  static void change(UserLine& line, uint32_t bits) {
    line.key = {static_cast<double>(bits % 8), 0, bits / 8 % 3};
    line.licensed = bits % 64 == 5;
    line.of_jobs = {{1 + bits / 32 % 4, bits / 128 % 4, bits / 512 % 9},
                    static_cast<Micros>(bits / 4096),
                    line.licensed};
  }
  template <typename Is>
  UserLine* first(Is is) const {
    for (const auto& line : lines_)
      if (is(*line)) return line.get();
    return nullptr;
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
            lines.rebuild(bits);
            break;
          case 5:
          case 6:
            lines.refresh(bits);
            break;
          case 7:
          case 8:
          case 9:
            lines.move(bits);
            break;
          default:
            lines.take(bits);
        }
        lines.check(bits);
      }
    }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(GroupLinesTest);

}  // namespace
}  // namespace sublet::scheduling
