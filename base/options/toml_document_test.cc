#include "base/options/toml_document.h"

#include <cppunit/extensions/HelperMacros.h>

namespace sublet {

class TomlDocumentTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(TomlDocumentTest);
  CPPUNIT_TEST(values_know_their_place);
  CPPUNIT_TEST(tables_keep_the_file_order);
  CPPUNIT_TEST(errors_know_their_place);
  CPPUNIT_TEST_SUITE_END();

 public:
  void values_know_their_place() {
    const TomlValue root = parse_toml(
        "name = \"letters\"\n"
        "\n"
        "[[job]]\n"
        "  epochs = [7, 8.5]\n"
        "  save = true\n"
        "  due = 2026-02-03\n",
        "f");
    CPPUNIT_ASSERT_EQUAL(std::string("letters"), root.find("name")->text);
    const TomlValue* jobs = root.find("job");
    CPPUNIT_ASSERT(jobs->kind == TomlKind::array);
    const TomlValue* epochs = jobs->items.at(0).find("epochs");
    CPPUNIT_ASSERT_EQUAL(4u, epochs->line);
    CPPUNIT_ASSERT_EQUAL(12u, epochs->column);
    CPPUNIT_ASSERT_EQUAL(int64_t{7}, epochs->items.at(0).integer);
    CPPUNIT_ASSERT_EQUAL(7.0, epochs->items.at(0).real);
    CPPUNIT_ASSERT(epochs->items.at(1).kind == TomlKind::real);
    CPPUNIT_ASSERT(jobs->items.at(0).find("save")->boolean);
    CPPUNIT_ASSERT(jobs->items.at(0).find("due")->kind == TomlKind::date);
    CPPUNIT_ASSERT_EQUAL(std::string("2026-02-03"), jobs->items.at(0).find("due")->text);
    CPPUNIT_ASSERT(root.find("nothing") == nullptr);
    CPPUNIT_ASSERT_EQUAL(5u, jobs->items.at(0).members.at(1).line);
    CPPUNIT_ASSERT_EQUAL(3u, jobs->items.at(0).members.at(1).column);
  }

  void tables_keep_the_file_order() {
    const TomlValue root = parse_toml("z = 1\na = 2\n[m]\ny = 1\nb = 2\n[c]\n", "f");
    std::string order;
    for (const TomlMember& member : root.members) order += member.key;
    for (const TomlMember& member : root.find("m")->members) order += member.key;
    CPPUNIT_ASSERT_EQUAL(std::string("zamcyb"), order);
  }

  void errors_know_their_place() {
    try {
      parse_toml("a = 1\nb = = 2\n", "jobs.toml");
      CPPUNIT_FAIL("no error");
    } catch (const DocumentError& e) {
      CPPUNIT_ASSERT_EQUAL(2u, e.line());
      CPPUNIT_ASSERT_EQUAL(5u, e.column());
      CPPUNIT_ASSERT(std::string(e.what()).starts_with("jobs.toml:2:5: "));
    }
    CPPUNIT_ASSERT_THROW(parse_toml("a = \"\xff\"", "f"), DocumentError);
    CPPUNIT_ASSERT_THROW(parse_toml("a = 1\na = 2", "f"), DocumentError);
    CPPUNIT_ASSERT_THROW(parse_toml("a = " + std::string(100'000, '['), "f"), DocumentError);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(TomlDocumentTest);

}  // namespace sublet
