#include "job/idl/translation.h"

#include <cppunit/extensions/HelperMacros.h>

#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <span>

#include "base/octets.h"
#include "job/check.h"

namespace sublet {
namespace {

namespace v1 = Sublet::v1;
using Job = v1::JobDescription;

JobDescription full() {
  JobDescription job;
  job.name = "letters";
  job.program = "./train";
  job.arguments = {"--epochs", "8", "", "\xff\n"};
  job.environment = {"A=b c"};
  job.inputs = {{5, "train", true},
                {6, "data/letters 1.txt", false},
                {0, "grid", false, {true, 7, "out/grid.bin"}}};
  job.outputs = {{"weights", true}, {"log file", false}};
  job.needs = {"linux", "x86_64",    1,       2,
               3,       "cores > 1", "cores", rules::NamedAmounts::parse("gpu=2 ansys=1")};
  job.bounds = {1, 2, 3, 4, 5, 6};
  job.priority = -1;
  job.retries = 3;
  job.save_deadline_ms = 500;
  job.own_checkpoint = {{"state-*", "out/"}, 5000, 10, {3, 85}};
  job.network = Network::kNone;
  job.programs = {{"linux/x86_64", "./train"}, {"linux/aarch64", "./train.arm"}};
  job.submit_folder = "/home/anna/\xff %";
  job.submit_host = "desk";
  job.standard_input = "data/letters 1.txt";
  job.hours = "sat, sun";
  job.not_before_us = 1'800'000'000'000'000;
  job.waits_for = {{{true, 4, 2}, {false, 1ull << 40, 1}}, {{false, 7, 3}}, {{true, 0, 1}}};
  return job;
}

// A field of a struct in idl/types.idl.
struct Field {
  std::string type;
  std::string name;
  bool reserved = false;
};
using Structs = std::map<std::string, std::vector<Field>>;

// The structs of idl/types.idl; the name of a sequence of structs maps to the struct.
Structs read_contract() {
  std::ifstream file(TYPES_IDL);
  CPPUNIT_ASSERT(file.good());
  Structs structs;
  const std::regex member(R"((?:unsigned )?(?:long )?(\w+) (\w+);)");
  const std::regex sequence(R"(^  typedef sequence<(\w+)> (\w+);)");
  std::string open;
  for (std::string line; std::getline(file, line);) {
    const size_t comment = std::min(line.find("//"), line.size());
    const std::string code = line.substr(0, comment);
    std::smatch found;
    if (std::regex_search(code, found, sequence) && structs.contains(found[1]))
      structs[found[2]] = structs[found[1]];
    if (std::regex_search(code, found, std::regex(R"(struct (\w+))"))) open = found[1];
    if (open.empty()) continue;
    const bool reserved = line.find("(reserved)", comment) != std::string::npos;
    for (std::sregex_iterator it(code.begin(), code.end(), member), end; it != end; ++it)
      structs[open].push_back({(*it)[1], (*it)[2], reserved});
    if (code.find("};") != std::string::npos) open.clear();
  }
  return structs;
}

// The paths of all reserved fields of a struct.
void add_reserved(const Structs& structs, const std::string& type, const std::string& path,
                  bool inside, std::set<std::string>& paths) {
  for (const Field& field : structs.at(type)) {
    const bool reserved = inside || field.reserved;
    const bool is_sequence = field.type.ends_with('s') || field.type.ends_with("List");
    if (structs.contains(field.type) && !(reserved && is_sequence && field.type != "Dependences"))
      add_reserved(structs, field.type, path + field.name + ".", reserved, paths);
    else if (reserved)
      paths.insert(path + field.name);
  }
}

// The paths of its name-value pairs whose names are checked.
void add_pairs(const Structs& structs, const std::string& type, const std::string& path,
               std::set<std::string>& paths) {
  for (const Field& field : structs.at(type)) {
    if (field.reserved) continue;
    if (field.type == "Details")
      paths.insert(path + field.name);
    else if (structs.contains(field.type))
      add_pairs(structs, field.type, path + field.name + ".", paths);
  }
}

// The code and subject of the refusal.
template <typename Request>
std::string refused(const Request& request, std::string* subject) {
  try {
    check_served(request, "job 3");
  } catch (const JobError& error) {
    CPPUNIT_ASSERT(error.kind == JobError::Kind::kInvalid);
    *subject = error.subject;
    return error.code;
  }
  return "";
}

template <typename Sequence>
auto& one(Sequence& sequence) {
  sequence.length(1);
  return sequence[0];
}

struct Row {
  const char* path;
  const char* field;  // the subject
  std::function<void(Job&)> set;
};

// Numbers that no part serves yet.
const Row kNumbers[] = {
    {"leaving", "leaving", [](Job& j) { j.leaving = 99; }},
    {"network", "network", [](Job& j) { j.network = 99; }},
};

void pair(v1::Details& more) { add_detail(more, "colour", "red"); }

const Row kReserved[] = {
    {"needs.resources.instances", "needs.resources.instances",
     [](Job& j) { j.needs.resources[0].instances.length(1); }},
    {"reservation", "reservation", [](Job& j) { j.reservation = 1; }},
    {"group.name", "group", [](Job& j) { j.group.name = "gang"; }},
    {"group.least", "group", [](Job& j) { j.group.least = 2; }},
    {"group.more", "group", [](Job& j) { pair(j.group.more); }},
    {"account", "account", [](Job& j) { j.account = "physics"; }},
};

const Row kPairs[] = {
    {"more", "colour", [](Job& j) { pair(j.more); }},
    {"inputs.more", "inputs.colour", [](Job& j) { pair(j.inputs[1].more); }},
    {"inputs.source.more", "inputs.colour", [](Job& j) { pair(j.inputs[1].source.more); }},
    {"outputs.more", "outputs.colour", [](Job& j) { pair(j.outputs[1].more); }},
    {"needs.resources.more", "needs.resources.colour",
     [](Job& j) { pair(j.needs.resources[1].more); }},
    {"needs.more", "needs.colour", [](Job& j) { pair(j.needs.more); }},
    {"bounds.more", "bounds.colour", [](Job& j) { pair(j.bounds.more); }},
    {"checkpoint.more", "checkpoint.colour", [](Job& j) { pair(j.checkpoint.more); }},
    {"waits_for.more", "waits_for.colour", [](Job& j) { pair(j.waits_for.more); }},
    {"waits_for.after.more", "waits_for.colour", [](Job& j) { pair(j.waits_for.after[0].more); }},
    {"waits_for.after_any.more", "waits_for.colour",
     [](Job& j) { pair(j.waits_for.after_any[0].more); }},
    {"waits_for.after_start.more", "waits_for.colour",
     [](Job& j) { pair(j.waits_for.after_start[0].more); }},
};

class TranslationTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(TranslationTest);
  CPPUNIT_TEST(a_description_comes_back);
  CPPUNIT_TEST(axes_come_back);
  CPPUNIT_TEST(every_reserved_field_is_refused);
  CPPUNIT_TEST(unknown_names_are_refused);
  CPPUNIT_TEST(an_order_may_say_more);
  CPPUNIT_TEST(a_place_comes_back);
  CPPUNIT_TEST(a_folder_is_percent_encoded);
  CPPUNIT_TEST_SUITE_END();

  static Job idl(const JobDescription& job) {
    Job out;
    to_idl(job, out);
    return out;
  }
  static std::set<std::string> paths_of(std::span<const Row> rows) {
    std::set<std::string> paths;
    for (const Row& row : rows) paths.insert(row.path);
    return paths;
  }
  static void expect_refused(std::span<const Row> rows) {
    for (const Row& row : rows) {
      Job job = idl(full());
      row.set(job);
      std::string subject;
      CPPUNIT_ASSERT_EQUAL_MESSAGE(row.path, std::string("not.served"), refused(job, &subject));
      CPPUNIT_ASSERT_EQUAL(std::string("job 3: ") + row.field, subject);
    }
  }

  void a_description_comes_back() {
    CPPUNIT_ASSERT(from_idl(idl(full())) == full());
    CPPUNIT_ASSERT(from_idl(idl({})) == JobDescription{});
    std::string subject;
    CPPUNIT_ASSERT_EQUAL(std::string(), refused(idl(full()), &subject));
  }

  void axes_come_back() {
    const std::vector<Axis> axes = {{{"a", "b"}, {"1", "\xff", "", "4"}, 0, 0, 1},
                                    {{"seed"}, {}, 3, 5, -5}};
    v1::Axes sent;
    to_idl(axes, sent);
    CPPUNIT_ASSERT(from_idl(sent) == axes);
    std::string subject;
    CPPUNIT_ASSERT_EQUAL(std::string(), refused(sent, &subject));
  }

  void every_reserved_field_is_refused() {
    const Structs structs = read_contract();
    std::set<std::string> reserved;
    add_reserved(structs, "JobDescription", "", false, reserved);
    for (const auto& path : reserved)
      CPPUNIT_ASSERT_MESSAGE(path + " is not tried", paths_of(kReserved).contains(path));
    CPPUNIT_ASSERT(reserved == paths_of(kReserved));
    reserved.clear();
    add_reserved(structs, "Axis", "", false, reserved);
    CPPUNIT_ASSERT(reserved.empty());
    expect_refused(kReserved);
    expect_refused(kNumbers);
  }

  void unknown_names_are_refused() {
    std::set<std::string> pairs;
    add_pairs(read_contract(), "JobDescription", "", pairs);
    CPPUNIT_ASSERT(pairs == paths_of(kPairs));
    expect_refused(kPairs);
    v1::Axes axes;
    pair(one(axes).more);
    std::string subject;
    CPPUNIT_ASSERT_EQUAL(std::string("not.served"), refused(axes, &subject));
    CPPUNIT_ASSERT_EQUAL(std::string("job 3: axes.colour"), subject);
  }

  void an_order_may_say_more() {
    Job job = idl(full());
    for (const Row& row : kReserved) row.set(job);
    for (const Row& row : kPairs) row.set(job);
    CPPUNIT_ASSERT(from_idl(job) == full());
  }

  void a_place_comes_back() {
    FilePlace place;
    place.kind = FileKind::kCheckpoint;
    place.batch = 1;
    place.session = std::string("\0key", 4);
    place.job = 2;
    place.attempt = 3;
    place.file = 4;
    place.name = "\xff name";
    place.generation = 5;
    for (bool suspect : {true, false}) {
      place.suspect = suspect;
      v1::FilePlace out{};
      pair(out.more);
      to_idl(place, out);
      CPPUNIT_ASSERT(from_idl(out) == place);
    }
  }

  void a_folder_is_percent_encoded() {
    Job job = idl({});
    add_detail(job.more, "submit_folder", "/100%");
    try {
      check_served(job, "job 3");
      CPPUNIT_FAIL("it was taken");
    } catch (const JobError& error) {
      CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), error.code);
    }
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(TranslationTest);

}  // namespace
}  // namespace sublet
