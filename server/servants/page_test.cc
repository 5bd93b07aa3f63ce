// Pages are limited in octets, whatever their items contain, but have at least one item.
#include "server/servants/page.h"

#include <cppunit/TestFixture.h>
#include <cppunit/extensions/HelperMacros.h>

#include "job/check.h"
#include "server/refusal_testing.h"
#include "server/servants/translate.h"

namespace sublet::server {
namespace {

namespace v1 = Sublet::v1;

v1::JobSummaries jobs(CORBA::ULong count, size_t name_octets) {
  v1::JobSummaries all;
  all.length(count);
  for (CORBA::ULong i = 0; i < count; ++i) {
    all[i] = v1::JobSummary{};
    all[i].name = CORBA::string_dup(std::string(name_octets, 'n').c_str());
  }
  return all;
}

std::string after(CORBA::ULong last) { return "after " + std::to_string(last); }

class PageTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PageTest);
  CPPUNIT_TEST(what_fits_stays);
  CPPUNIT_TEST(four_long_names);
  CPPUNIT_TEST(one_that_is_too_large);
  CPPUNIT_TEST(names_of_old_books_are_cut);
  CPPUNIT_TEST(the_largest_job_can_be_shown);
  CPPUNIT_TEST(cursors);
  CPPUNIT_TEST_SUITE_END();

 public:
  void what_fits_stays() {
    v1::JobSummaries page = jobs(1000, 100);
    CPPUNIT_ASSERT_EQUAL(std::string("next"), end_page(page, "next", after));
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{1000}, page.length());
    v1::JobSummaries none = jobs(0, 0);
    CPPUNIT_ASSERT_EQUAL(std::string(), end_page(none, "", after));
  }

  void four_long_names() {
    v1::JobSummaries page = jobs(4, 400'000);
    CPPUNIT_ASSERT_EQUAL(std::string("after 1"), end_page(page, "", after));
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{2}, page.length());
  }

  void one_that_is_too_large() {
    v1::JobSummaries page = jobs(4, 2'000'000);
    CPPUNIT_ASSERT_EQUAL(std::string("after 0"), end_page(page, "", after));
    CPPUNIT_ASSERT_EQUAL(CORBA::ULong{1}, page.length());
  }

  void names_of_old_books_are_cut() {
    JobRow row;
    row.name = std::string(900'000, 'n');
    v1::JobSummary summary;
    to_idl(row, "curly", -1, summary);
    CPPUNIT_ASSERT_EQUAL(size_t{v1::NAME_LIMIT}, std::string(summary.name.in()).size());
  }

  // The largest description, with reasons of a hostile workstation and the longest names.
  void the_largest_job_can_be_shown() {
    JobDescription job;
    job.program = "p";
    job.name = std::string(v1::NAME_LIMIT, 'n');
    for (size_t i = 0; i < kStringsPerJob; ++i) {
      job.inputs.push_back({i + 1, "i" + std::to_string(i), false});
      job.outputs.push_back({"o" + std::to_string(i), false});
      job.environment.push_back("E=");
      job.arguments.emplace_back();
    }
    size_t room = v1::JOB_BYTES - job.name.size() - 3 * 5 * kStringsPerJob - 100;
    for (auto& argument : job.arguments) argument = std::string(room / kStringsPerJob, 'a');
    check_description(job, "job 1");
    // With lengths, padding and numbers: an argument or variable, an output, an input.
    size_t octets = sublet::octets_of(job) + kStringsPerJob * (2 * 8 + 16 + 64);
    AttemptRow attempt;
    attempt.machine_name = std::string(255, '\xff');
    attempt.attempt.reason = std::string(2000, '\xff');  // as EndReport's is bounded
    v1::AttemptInfo shown_attempt;
    to_idl(attempt, shown_attempt);
    octets += v1::SHOWN * octets_of(shown_attempt);
    JobOutputs outputs;
    outputs.files.resize(v1::SHOWN);
    for (FileRow& file : outputs.files) {
      file.kind = FileKind::kOutput;
      file.name = std::string(4096, 'o');
    }
    v1::OutputInfos shown_outputs;
    to_idl(outputs, shown_outputs);
    for (CORBA::ULong i = 0; i < v1::SHOWN; ++i) octets += octets_of(shown_outputs[i]);
    JobRow row;
    row.name = job.name;
    row.job.reason = attempt.attempt.reason.text();
    v1::JobSummary summary;
    to_idl(row, attempt.machine_name, -1, summary);
    octets += octets_of(summary);
    CPPUNIT_ASSERT(octets > v1::JOB_BYTES);
    CPPUNIT_ASSERT_MESSAGE(std::to_string(octets), octets + 4096 < v1::MESSAGE_LIMIT);
  }

  void cursors() {
    const auto number = [](const std::string& text) {
      v1::Bytes cursor;
      to_octets(text, cursor);
      return number_from(cursor);
    };
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, number(""));
    CPPUNIT_ASSERT_EQUAL(uint64_t{17}, number("17"));
    for (const char* bad : {"x", "-1", "1 ", "99999999999999999999"})
      CPPUNIT_ASSERT_EQUAL(std::string("cursor.bad"), testing::code([&] { number(bad); }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(PageTest);

}  // namespace
}  // namespace sublet::server
