#include "cli/names.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <set>

namespace sublet::cli {
namespace {

class NamesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(NamesTest);
  CPPUNIT_TEST(ids);
  CPPUNIT_TEST(bad_ids);
  CPPUNIT_TEST(ids_survive_writing_and_reading);
  CPPUNIT_TEST(relative_names);
  CPPUNIT_TEST(accepted_names_stay_inside);
  CPPUNIT_TEST(patterns_of_names);
  CPPUNIT_TEST(states);
  CPPUNIT_TEST_SUITE_END();

  using Ranges = std::vector<IdRange>;

  void ids() {
    CPPUNIT_ASSERT(parse_ids({"17"}) == (Ranges{{17, 1}}));
    CPPUNIT_ASSERT(parse_ids({"17-20"}) == (Ranges{{17, 4}}));
    CPPUNIT_ASSERT(parse_ids({"19,17"}) == (Ranges{{17, 1}, {19, 1}}));
    CPPUNIT_ASSERT(parse_ids({"1-3,3-5", "4", "6"}) == (Ranges{{1, 6}}));
    CPPUNIT_ASSERT(parse_ids({"1-9", "3"}) == (Ranges{{1, 9}}));
    CPPUNIT_ASSERT_EQUAL(std::string("1-6,9"), format_ids(parse_ids({"9", "1-6"})));
    CPPUNIT_ASSERT_EQUAL(uint64_t{7}, count_ids(parse_ids({"9", "1-6"})));
    CPPUNIT_ASSERT(contains_id(parse_ids({"1-6,9"}), 6));
    CPPUNIT_ASSERT(!contains_id(parse_ids({"1-6,9"}), 7));
  }

  void bad_ids() {
    for (const char* word : {"", "x", "0", "-1", "3-", "-", "5-3", "1,,2", "1,", "1 2", "+1", "1.5",
                             "99999999999999999999", "18446744073709551615", "1-2-3", "0x10"}) {
      try {
        parse_ids({word});
        CPPUNIT_FAIL(std::string("accepted ") + word);
      } catch (const PoolError& e) {
        CPPUNIT_ASSERT(e.kind == ErrorKind::usage);
      }
    }
  }

  void ids_survive_writing_and_reading() {
    CPPUNIT_ASSERT(rc::check([](const std::set<uint16_t>& wanted) {
      std::vector<std::string> words;
      for (uint16_t id : wanted) words.insert(words.begin(), std::to_string(id + 1));
      std::vector<IdRange> ids = parse_ids(words);
      RC_ASSERT(count_ids(ids) == wanted.size());
      for (uint16_t id : wanted) RC_ASSERT(contains_id(ids, id + uint64_t{1}));
      if (!ids.empty()) RC_ASSERT(parse_ids({format_ids(ids)}) == ids);
    }));
  }

  void relative_names() {
    std::string normal;
    for (const char* name : {"a", "./a", "a/b.c", "..a", "a..", ".hidden", "a b", "-x"})
      CPPUNIT_ASSERT_EQUAL(std::string(), check_relative_name(name, &normal));
    check_relative_name("././a/b", &normal);
    CPPUNIT_ASSERT_EQUAL(std::string("a/b"), normal);
    using namespace std::string_view_literals;
    for (std::string_view name : {""sv, "."sv, ".."sv, "./"sv, "../a"sv, "a/../b"sv, "a/.."sv,
                                  "/etc/passwd"sv, ".//a"sv, "a//b"sv, "a/"sv, "a/./b"sv, "a\0b"sv})
      CPPUNIT_ASSERT(!check_relative_name(name, &normal).empty());
    CPPUNIT_ASSERT(!check_relative_name(std::string(256, 'x'), &normal).empty());
    CPPUNIT_ASSERT(check_relative_name(std::string(255, 'x'), &normal).empty());
    std::string deep;
    while (deep.size() <= 4096) deep += "dir/";
    CPPUNIT_ASSERT(!check_relative_name(deep + "x", &normal).empty());
    CPPUNIT_ASSERT(!check_output_name("stdout", &normal).empty());
    CPPUNIT_ASSERT(!check_output_name("./stderr", &normal).empty());
    CPPUNIT_ASSERT(check_output_name("a/stdout", &normal).empty());
    CPPUNIT_ASSERT(check_output_name("./results/", &normal).empty());
    CPPUNIT_ASSERT_EQUAL(std::string("results/"), normal);
    CPPUNIT_ASSERT(check_output_name("run-*/[a-z]?.png", &normal).empty());
    CPPUNIT_ASSERT(!check_output_name("../*", &normal).empty());
    CPPUNIT_ASSERT(!check_output_name("a[", &normal).empty());
    CPPUNIT_ASSERT(!check_output_name(std::string(256, 'x'), &normal).empty());
  }

  void accepted_names_stay_inside() {
    CPPUNIT_ASSERT(rc::check([] {
      auto name = *rc::gen::container<std::string>(rc::gen::element('/', '.', 'a', '\0'));
      std::string normal;
      if (!check_relative_name(name, &normal).empty()) return;
      RC_ASSERT(normal.front() != '/');
      RC_ASSERT(("/" + normal + "/").find("/../") == std::string::npos);
      RC_ASSERT(("/" + normal + "/").find("//") == std::string::npos);
    }));
  }

  void patterns_of_names() {
    for (const char* pattern : {"", "a*", "a?[bc]", "[]]", "[!]a]", "[^a-c]x]", "\\[bad", "a]",
                                "[a\\]]", "[[]", "[a[b]", "\\\\"})
      CPPUNIT_ASSERT_EQUAL_MESSAGE(pattern, std::string(), check_name_pattern(pattern));
    for (const char* pattern : {"[bad", "[", "[]", "[!]", "a[b]c[", "[a\\]", "[^"})
      CPPUNIT_ASSERT_EQUAL_MESSAGE(pattern, std::string("a [ has no ] after it"),
                                   check_name_pattern(pattern));
    for (const char* pattern : {"\\", "a*\\", "\\\\\\", "[a\\"})
      CPPUNIT_ASSERT_EQUAL_MESSAGE(pattern, std::string("a backslash at the end"),
                                   check_name_pattern(pattern));
  }

  void states() {
    CPPUNIT_ASSERT_EQUAL(std::string("held"), job_state_name(kHeld));
    CPPUNIT_ASSERT_EQUAL(std::string("delivering"), job_state_name(kDelivering));
    CPPUNIT_ASSERT_EQUAL(std::string("suspended"), job_state_name(kSuspended));
    CPPUNIT_ASSERT_EQUAL(std::string("10"), job_state_name(10));
    CPPUNIT_ASSERT_EQUAL(std::string("99"), job_state_name(99));
    CPPUNIT_ASSERT_EQUAL(std::string("0"), machine_state_name(0));
    CPPUNIT_ASSERT_EQUAL(uint32_t{kFailed}, parse_job_state("failed"));
    CPPUNIT_ASSERT_EQUAL(uint32_t{kDelivering}, parse_job_state("delivering"));
    for (const char* word : {"fialed", "", "8"})
      CPPUNIT_ASSERT_THROW(parse_job_state(word), PoolError);
    CPPUNIT_ASSERT_EQUAL(size_t{9}, job_state_names().size());
    CPPUNIT_ASSERT(is_eviction(16) && is_eviction(20) && is_eviction(26) && !is_eviction(22) &&
                   !is_eviction(23) && !is_eviction(2));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(NamesTest);

}  // namespace
}  // namespace sublet::cli
