#include "scheduling/matching/user_queue.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

#include "scheduling/matching/suitability.h"

namespace sublet::scheduling {
namespace {

// Users with few different keys and lines in three groups, in the queue and in a map beside it.
class Users {
 public:
  Users() {
    for (size_t i = 0; i < 3; ++i) groups_[i].bit = uint64_t{1} << i;
  }

  void add(uint32_t bits) {
    User& user = user_with(bits);
    auto line = std::make_unique<UserLine>();
    line->user = &user;
    line->group = &groups_[bits / 64 % 3];
    line->of_jobs = bound_from(bits / 256);
    line->stands = true;
    queue_.add(*line, user.lines.empty() ? key_from(bits / 8) : UserKey{-1, 0, 0});
    user.lines.push_back(std::move(line));
  }
  void take(uint32_t bits) {
    User& user = user_with(bits);
    if (user.lines.empty()) return;
    const auto line = user.lines.begin() + bits / 64 % static_cast<int>(user.lines.size());
    queue_.take(**line);
    user.lines.erase(line);
  }
  void refresh(uint32_t bits) {
    User& user = user_with(bits);
    if (user.lines.empty()) return;
    UserLine& line = *user.lines[bits / 64 % user.lines.size()];
    line.of_jobs = bound_from(bits / 256);
    queue_.refresh(line);
  }
  void move(uint32_t bits) { queue_.move(user_with(bits), key_from(bits / 64)); }
  void move_all(uint32_t bits) {
    queue_.move_all(users_,
                    [bits](const User& user) { return key_from(user.record.number * bits); });
  }

  // The numbers of the users, at most so many.
  std::vector<uint32_t> walked(const std::optional<UserKey>& from, size_t most) const {
    std::vector<uint32_t> numbers;
    queue_.walk(from, [&](const User& user) {
      numbers.push_back(user.record.number);
      return numbers.size() < most;
    });
    return numbers;
  }

  // The queue finds him who is found by looking at all; and the users that it looks at in vain are
  // those whose other lines, or lines that have gone, are taken for what is sought.
  void check(uint32_t bits) {
    const uint64_t groups = 1 + bits % 7;
    const Amounts room = {1 + bits / 8 % 4, bits / 32 % 4, 8};
    std::optional<UserKey> from;
    if (bits % 2 == 0) from = key_from(bits / 128);
    const auto has_one = [&](const User& user) {
      return std::any_of(user.lines.begin(), user.lines.end(), [&](const auto& line) {
        return (line->group->bit & groups) != 0 && line->of_jobs.least.within(room);
      });
    };
    std::vector<User*> vain;
    const auto may = [&](const UsersBound& bound) {
      return (bound.groups & groups) != 0 && bound.of_jobs.least.within(room);
    };
    const User* found = queue_.first(from, may, [&](User& user) {
      const bool is = may(user.place.own) && has_one(user);
      if (!is) vain.push_back(&user);
      return is;
    });
    RC_ASSERT(found == first(from, has_one));
    for (User* user : vain) {
      queue_.narrow(*user);
      if (!user->lines.empty()) RC_ASSERT(user->place.own == exact(*user));
    }
  }

 private:
  static UserKey key_from(uint32_t bits) {
    return {static_cast<double>(bits % 5), 0, bits / 8 % 3};
  }
  static UserBound bound_from(uint32_t bits) {
    return {{1 + bits % 4, bits / 4 % 4, bits / 16 % 9}, static_cast<Micros>(bits / 256), false};
  }
  User& user_with(uint32_t bits) {
    const uint32_t number = 1 + bits % 40;
    User& user = users_["user" + std::to_string(number)];
    user.record.number = number;
    return user;
  }
  static UsersBound exact(const User& user) {
    UsersBound all = {user.lines[0]->of_jobs, user.lines[0]->group->bit};
    for (const auto& line : user.lines) all = join(all, {line->of_jobs, line->group->bit});
    return all;
  }
  template <typename Is>
  const User* first(const std::optional<UserKey>& from, Is is) const {
    const User* best = nullptr;
    const auto rank = [&](const User& user) {
      return std::tuple(comes_round(from, user.place.key), user.place.key, user.record.number);
    };
    for (const auto& [name, user] : users_)
      if (is(user) && (best == nullptr || rank(user) < rank(*best))) best = &user;
    return best;
  }

  Group groups_[3];
  std::map<std::string, User> users_;
  UserQueue queue_;
};

class UserQueueTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(UserQueueTest);
  CPPUNIT_TEST(like_a_map);
  CPPUNIT_TEST(in_turn);
  CPPUNIT_TEST(what_is_sought_in_either);
  CPPUNIT_TEST_SUITE_END();

 public:
  // Those before the circle first, then those behind a key; each once.
  void in_turn() {
    Users users;
    CPPUNIT_ASSERT(users.walked(std::nullopt, 9).empty());
    for (uint32_t i = 0; i < 5; ++i) users.add(9 * i);  // of the number 9 * i + 1, by the key i
    using Numbers = std::vector<uint32_t>;
    CPPUNIT_ASSERT(users.walked(std::nullopt, 9) == (Numbers{1, 10, 19, 28, 37}));
    CPPUNIT_ASSERT(users.walked(UserKey{2, 9, 0}, 9) == (Numbers{1, 10, 28, 37, 19}));
    CPPUNIT_ASSERT(users.walked(UserKey{2, 9, 0}, 2) == (Numbers{1, 10}));
    CPPUNIT_ASSERT(users.walked(UserKey{2, 9, 0}, 4) == (Numbers{1, 10, 28, 37}));
    CPPUNIT_ASSERT(users.walked(UserKey{0, 9, 0}, 9) == (Numbers{10, 19, 28, 37, 1}));
    CPPUNIT_ASSERT(users.walked(UserKey{9, 0, 0}, 2) == (Numbers{1, 10}));
  }

  // A group in which nothing is sought takes nothing away from what is sought in another.
  void what_is_sought_in_either() {
    const Amounts small = {1, 1, 1}, large = {4, 4, 4};
    Sought all;
    all.include({{}, Among::kUnpromised, large, 100});
    all.include({});
    CPPUNIT_ASSERT(all.may_be(large, 100) && !all.may_be(large, 101));
    CPPUNIT_ASSERT(all.among == Among::kUnpromised && !all.may_be({5, 4, 4}, 100));
    all.include({small, Among::kUnpromised, {}, 100});
    all.include({});
    CPPUNIT_ASSERT(all.may_be(small, 1000) && all.may_be(large, 100) && !all.may_be(large, 101));
    Sought none;
    none.include({});
    CPPUNIT_ASSERT(!none.is_any());
  }

  void like_a_map() {
    CPPUNIT_ASSERT(rc::check("who is first is found among all", [] {
      const auto choices = *rc::gen::container<std::vector<uint32_t>>(
          *rc::gen::inRange<size_t>(0, 300), rc::gen::arbitrary<uint32_t>());
      Users users;
      for (const uint32_t choice : choices) {
        const uint32_t bits = choice / 16;
        switch (choice % 16) {
          case 0:
            users.move_all(bits);
            break;
          case 1:
          case 2:
          case 3:
            users.move(bits);
            break;
          case 4:
          case 5:
            users.refresh(bits);
            break;
          case 6:
          case 7:
          case 8:
          case 9:
            users.take(bits);
            break;
          default:
            users.add(bits);
        }
        users.check(bits);
      }
    }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(UserQueueTest);

}  // namespace
}  // namespace sublet::scheduling
