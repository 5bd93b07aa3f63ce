#include "base/json.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/text.h"

namespace sublet {

class JsonTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(JsonTest);
  CPPUNIT_TEST(writes_nested_values);
  CPPUNIT_TEST(any_bytes_give_valid_json);
  CPPUNIT_TEST(numbers_read_back_the_same);
  CPPUNIT_TEST(refuses_what_is_no_json);
  CPPUNIT_TEST_SUITE_END();

 public:
  void writes_nested_values() {
    JsonWriter json;
    json.begin_object().field("id", uint64_t{18446744073709551615u}).field("name", "a\"b\\\n\x01");
    json.key("list").begin_array().value(1).value(-2.5).value(true).null();
    json.begin_object().end_object().begin_array().end_array().end_array();
    json.field("nan", std::nan("")).end_object();
    CPPUNIT_ASSERT_EQUAL(std::string(R"({"id":18446744073709551615,"name":"a\"b\\\n\u0001",)"
                                     R"("list":[1,-2.5,true,null,{},[]],"nan":null})"),
                         json.str());
  }

  void any_bytes_give_valid_json() {
    CPPUNIT_ASSERT(rc::check("bytes", [](const std::string& key, const std::string& text) {
      JsonWriter json;
      json.begin_object().field(key, text).end_object();
      const auto parsed = nlohmann::json::parse(json.str());
      RC_ASSERT(parsed.at(to_utf8(key)).get<std::string>() == to_utf8(text));
    }));
  }

  void numbers_read_back_the_same() {
    CPPUNIT_ASSERT(rc::check("numbers", [](double number, int64_t integer) {
      JsonWriter json;
      json.begin_array().value(number).value(integer).end_array();
      const auto parsed = nlohmann::json::parse(json.str());
      RC_ASSERT(parsed[0].get<double>() == number);
      RC_ASSERT(parsed[1].get<int64_t>() == integer);
    }));
  }

  void refuses_what_is_no_json() {
    JsonWriter json;
    CPPUNIT_ASSERT_THROW(json.str(), std::logic_error);
    json.begin_object();
    CPPUNIT_ASSERT_THROW(json.value(1), std::logic_error);
    CPPUNIT_ASSERT_THROW(json.end_array(), std::logic_error);
    json.key("a");
    CPPUNIT_ASSERT_THROW(json.key("b"), std::logic_error);
    CPPUNIT_ASSERT_THROW(json.end_object(), std::logic_error);
    json.value(1);
    CPPUNIT_ASSERT_THROW(json.str(), std::logic_error);
    json.end_object();
    CPPUNIT_ASSERT_THROW(json.value(1), std::logic_error);
    CPPUNIT_ASSERT_EQUAL(std::string("{\"a\":1}"), json.str());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(JsonTest);

}  // namespace sublet
