// Everything that sublet_checkpoint.hpp can save, saved and restored, and hostile sizes.
#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include "checkpoint-api/file_format.h"
#include "checkpoint-api/sublet_checkpoint.hpp"
#include "checkpoint-api/testing.h"

namespace space {

struct Body {
  std::array<double, 3> place{};
  std::string name;
  bool fixed = false;
  std::vector<float> trace;
  friend bool operator==(const Body& a, const Body& b) {
    return a.place == b.place && a.name == b.name && a.fixed == b.fixed && a.trace == b.trace;
  }
};
auto checkpoint_fields(Body& body) {
  return std::tie(body.place, body.name, body.fixed, body.trace);
}

struct Empty {};
auto checkpoint_fields(Empty&) { return std::tuple<>(); }

}  // namespace space

namespace {
using namespace sublet::testing;
using space::Body;
using Name = std::function<void(sublet::Checkpoint&)>;

void save(const TempFolder& folder, const Name& name) {
  const std::string path = folder / "state";
  sublet::Checkpoint checkpoint("values", 1);
  name(checkpoint);
  checkpoint.start({path.c_str(), SUBLET_CHECKPOINT_NEVER, 0});
  checkpoint.save();
}

void resume(const TempFolder& folder, const Name& name) {
  const std::string path = folder / "state";
  sublet::Checkpoint checkpoint("values", 1);
  name(checkpoint);
  CPPUNIT_ASSERT(checkpoint.start({path.c_str(), SUBLET_CHECKPOINT_NEVER, 0}));
}

// The entry of the file's only section.
sublet_entry only_entry(const TempFolder& folder) {
  const std::string bytes = read_file(folder / "state");
  sublet_entry entry{};
  sublet_entry_decode(reinterpret_cast<const unsigned char*>(bytes.data()) + SUBLET_HEADER_BYTES,
                      &entry);
  return entry;
}

// Saves `from`, restores it into `to`, and expects that they are equal.
template <class T>
void round_trip(T& from, T& to) {
  TempFolder folder;
  save(folder, [&](sublet::Checkpoint& c) { c.variable("value", from); });
  resume(folder, [&](sublet::Checkpoint& c) { c.variable("value", to); });
}

class ValuesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ValuesTest);
  CPPUNIT_TEST(a_vector_has_the_size_that_it_has_when_saved);
  CPPUNIT_TEST(a_vector_is_a_variable_in_the_file);
  CPPUNIT_TEST(strings);
  CPPUNIT_TEST(arrays);
  CPPUNIT_TEST(structs_by_field);
  CPPUNIT_TEST(a_struct_is_written_without_gaps);
  CPPUNIT_TEST(bodies_of_any_kind_round_trip);
  CPPUNIT_TEST(impossible_sizes_are_refused);
  CPPUNIT_TEST(functions_of_an_array_may_fail);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override {
    for (const char* name :
         {"SUBLET_CHECKPOINT_DIR", "SUBLET_STATUS", "SUBLET_CHECKPOINT_PERIOD"}) {
      unsetenv(name);
    }
  }

  void a_vector_has_the_size_that_it_has_when_saved() {
    TempFolder folder;
    const std::string path = folder / "state";
    std::vector<double> values{1};
    {
      sublet::Checkpoint checkpoint("values", 1);
      checkpoint.variable("value", values);
      checkpoint.start({path.c_str(), SUBLET_CHECKPOINT_NEVER, 0});
      values.assign(100000, 0.5);  // moves
      checkpoint.save();
    }
    std::vector<double> restored(7);
    resume(folder, [&](sublet::Checkpoint& c) { c.variable("value", restored); });
    CPPUNIT_ASSERT(restored == values);
    std::filesystem::remove(path);
    values.clear();
    save(folder, [&](sublet::Checkpoint& c) { c.variable("value", values); });
    resume(folder, [&](sublet::Checkpoint& c) { c.variable("value", restored); });
    CPPUNIT_ASSERT(restored.empty());
  }

  void a_vector_is_a_variable_in_the_file() {
    TempFolder folder;
    std::vector<std::array<std::int16_t, 3>> rows(5);
    save(folder, [&](sublet::Checkpoint& c) { c.variable("value", rows); });
    CPPUNIT_ASSERT_EQUAL(std::uint32_t{SUBLET_INT16}, only_entry(folder).type);
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{15}, only_entry(folder).count);
    std::vector<std::int16_t> numbers;
    resume(folder, [&](sublet::Checkpoint& c) { c.variable("value", numbers); });
    CPPUNIT_ASSERT_EQUAL(std::size_t{15}, numbers.size());
    QuietStderr quiet;
    std::vector<std::array<std::int16_t, 4>> wider;  // 15 is not a multiple of 4
    CPPUNIT_ASSERT_THROW(resume(folder, [&](sublet::Checkpoint& c) { c.variable("value", wider); }),
                         sublet::CheckpointRefused);
    std::vector<std::uint16_t> other;
    CPPUNIT_ASSERT_THROW(resume(folder, [&](sublet::Checkpoint& c) { c.variable("value", other); }),
                         sublet::CheckpointRefused);
  }

  void strings() {
    std::string from("with\0zero", 9), to = "longer than what is restored into it";
    round_trip(from, to);
    CPPUNIT_ASSERT(from == to);
    std::vector<std::string> words{"", "one", std::string(70000, 'x')}, restored{"old"};
    round_trip(words, restored);
    CPPUNIT_ASSERT(words == restored);
  }

  void arrays() {
    double matrix[2][3] = {{1, 2, 3}, {4, 5, 6}}, restored[2][3] = {};
    round_trip(matrix, restored);
    CPPUNIT_ASSERT(std::equal(&matrix[0][0], &matrix[0][0] + 6, &restored[0][0]));
    std::array<std::array<std::uint8_t, 2>, 2> nested{{{1, 2}, {3, 4}}}, other{};
    round_trip(nested, other);
    CPPUNIT_ASSERT(nested == other);
    std::array<std::string, 2> words{"a", "bc"}, read;
    round_trip(words, read);
    CPPUNIT_ASSERT(words == read);
    TempFolder folder;  // a pointer and a number of elements
    std::vector<float> floats{1, 2, 3}, again(3);
    save(folder, [&](sublet::Checkpoint& c) { c.variable("value", floats.data(), 3); });
    resume(folder, [&](sublet::Checkpoint& c) { c.variable("value", again.data(), 3); });
    CPPUNIT_ASSERT(floats == again);
  }

  void structs_by_field() {
    Body from{{1, 2, 3}, "comet", true, {0.5f}}, to{{}, "old", false, {1, 2, 3}};
    round_trip(from, to);
    CPPUNIT_ASSERT(from == to);
    std::vector<Body> many(3, from), restored(9);
    round_trip(many, restored);
    CPPUNIT_ASSERT(many == restored);
    std::array<Body, 2> two{from, {}}, other;
    round_trip(two, other);
    CPPUNIT_ASSERT(two == other);
  }

  // The same bytes on every machine: three doubles, a length and a name, a flag, a length.
  void a_struct_is_written_without_gaps() {
    TempFolder folder;
    Body body{{1, 0, 0}, "ab", true, {}};
    save(folder, [&](sublet::Checkpoint& c) { c.variable("value", body); });
    std::string expected("\0\0\0\0\0\0\xf0\x3f", 8);
    expected += std::string(16, '\0') + std::string("\2\0\0\0\0\0\0\0ab\1", 11);
    expected += std::string(8, '\0');
    const std::string bytes = read_file(folder / "state");
    CPPUNIT_ASSERT(bytes.substr(SUBLET_HEADER_BYTES + SUBLET_ENTRY_BYTES) == expected);
    CPPUNIT_ASSERT_EQUAL(std::uint32_t{SUBLET_STREAM}, only_entry(folder).type);
  }

  void bodies_of_any_kind_round_trip() {
    CPPUNIT_ASSERT(
        rc::check([](const std::vector<std::pair<std::string, std::string>>& names, bool fixed) {
          std::vector<Body> from, to;
          for (const auto& [name, trace] : names) {
            from.push_back({{1.0 * static_cast<double>(name.size()), 0, -1}, name, fixed, {}});
            from.back().trace.assign(trace.begin(), trace.end());
          }
          round_trip(from, to);
          RC_ASSERT(from == to);
        }));
  }

  // A file with correct checksums, whose first eight payload bytes are read as a size.
  void impossible_sizes_are_refused() {
    for (const std::uint64_t size : {std::uint64_t{5}, UINT64_MAX, UINT64_MAX / 4}) {
      TempFolder folder;
      save(folder, [&](sublet::Checkpoint& c) {
        c.callbacks(
            "value", [size](sublet::CheckpointStream& out) { out.write(size); },
            [](sublet::CheckpointStream&) {});
      });
      QuietStderr quiet;
      std::vector<std::string> words;
      std::vector<space::Empty> nothing;
      space::Body body;
      const auto refuses = [&](auto& value) {
        CPPUNIT_ASSERT_THROW(
            resume(folder, [&](sublet::Checkpoint& c) { c.variable("value", value); }),
            sublet::CheckpointRefused);
      };
      refuses(words);
      refuses(nothing);
      refuses(body);
    }
  }

  void functions_of_an_array_may_fail() {
    const auto place = [](std::size_t* count, void* user) -> void* {
      *count = 2;
      return user;
    };
    const auto room = [](std::size_t, void*) -> void* { return nullptr; };
    TempFolder folder;
    const std::string path = folder / "state";
    const sublet_checkpoint_options options{path.c_str(), SUBLET_CHECKPOINT_NEVER, 0};
    QuietStderr quiet;
    double values[2] = {1, 2};
    for (double* array : {values, static_cast<double*>(nullptr)}) {
      sublet_checkpoint* c = sublet_checkpoint_open("values", 1);
      sublet_checkpoint_array(c, "value", SUBLET_FLOAT64, place, room, array);
      // The second finds what the first has saved, and has no room for it.
      const int expected = array == values ? int{SUBLET_NEW} : int{SUBLET_REFUSED};
      CPPUNIT_ASSERT_EQUAL(expected, sublet_checkpoint_start(c, &options));
      if (array == values) CPPUNIT_ASSERT_EQUAL(0, sublet_checkpoint_save(c));
      sublet_checkpoint_close(c);
    }
    std::filesystem::remove(path);
    sublet_checkpoint* c = sublet_checkpoint_open("values", 1);
    CPPUNIT_ASSERT_EQUAL(0,
                         sublet_checkpoint_array(c, "value", SUBLET_FLOAT64, place, room, nullptr));
    CPPUNIT_ASSERT_EQUAL(
        EINVAL, sublet_checkpoint_array(c, "other", SUBLET_FLOAT64, place, nullptr, nullptr));
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_NEW}, sublet_checkpoint_start(c, &options));
    CPPUNIT_ASSERT_EQUAL(ECANCELED, sublet_checkpoint_save(c));
    sublet_checkpoint_close(c);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(ValuesTest);

}  // namespace
