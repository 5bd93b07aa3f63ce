// Which ends of attempts count: those whose outputs are here.
#include "server/machines/service.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sqlite3.h>

#include "server/services_testing.h"

namespace sublet::server {
namespace {

using namespace scheduling;

class MachineServiceTest : public testing::ServicesFixture {
  CPPUNIT_TEST_SUITE(MachineServiceTest);
  CPPUNIT_TEST(an_end_waits_for_its_outputs);
  CPPUNIT_TEST(others_files_are_not_its_outputs);
  CPPUNIT_TEST(required_outputs_must_be_here);
  CPPUNIT_TEST(an_eviction_needs_no_outputs);
  CPPUNIT_TEST(their_contents_are_not_read);
  CPPUNIT_TEST_SUITE_END();

  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<MachineService> machines_;
  std::string session_;
  uint64_t last_file_ = 0;

 public:
  void setUp() override {
    ServicesFixture::setUp();
    dispatcher_ = std::make_unique<Dispatcher>(Dispatcher::Hooks{}, 1);
    machines_ =
        std::make_unique<MachineService>(*pipeline_, *archive_, sessions_, access_, *dispatcher_);
    session_ = curly_joins(9);
  }

 private:
  // A job of ann's, its first attempt running on curly.
  AttemptKey running(const std::vector<JobSpec::Output>& outputs) {
    JobSpec spec;
    spec.outputs = outputs;
    return start({submit(spec), 1});
  }
  uint64_t sent(AttemptKey key, const std::string& name, FileKind kind = FileKind::kOutput) {
    FileRow row;
    row.id = ++last_file_;
    row.kind = kind;
    row.job = key.job;
    row.attempt = key.attempt;
    row.name = name;
    row.in_row = true;
    row.body = "x";
    row.size = 1;
    pipeline_->perform([&](Turn& turn) { turn.changes().files[row.id] = row; });
    return row.id;
  }
  Verdict end(AttemptKey key, const std::vector<uint64_t>& outputs,
              EndReason ended = EndReason::kDone) {
    ReportedEnd one;
    one.event = {key, 0, ended, "", 1, -1, 1};
    one.row.key = key;
    one.outputs = outputs;
    const Verdicts verdicts = machines_->ended(session_, root_, {one});
    CPPUNIT_ASSERT_EQUAL(size_t{1}, verdicts.size());
    return verdicts[0].second;
  }

  void an_end_waits_for_its_outputs() {
    const AttemptKey key = running({{"result", true}, {"notes", false}});
    const uint64_t result = sent(key, "result"), text = sent(key, "", FileKind::kStdout);
    CPPUNIT_ASSERT(end(key, {result, text, last_file_ + 1}) == Verdict::kLater);
    CPPUNIT_ASSERT(end(key, {result, text}) == Verdict::kKnown);
    const auto outputs = archive_->outputs(key.job);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, outputs.size());
    CPPUNIT_ASSERT_EQUAL(std::string("result"), outputs[0].name);
  }

  void others_files_are_not_its_outputs() {
    const AttemptKey key = running({{"result", true}}), other = running({{"result", true}});
    const uint64_t result = sent(other, "result");
    const uint64_t earlier = sent({key.job, 7}, "result");
    CPPUNIT_ASSERT(end(key, {result}) == Verdict::kLater);
    CPPUNIT_ASSERT(end(key, {earlier}) == Verdict::kLater);
    CPPUNIT_ASSERT(end(other, {result}) == Verdict::kKnown);
  }

  void required_outputs_must_be_here() {
    const AttemptKey key = running({{"a", true}, {"plots/", true}});
    const uint64_t a = sent(key, "a"), text = sent(key, "plots/1", FileKind::kStderr);
    CPPUNIT_ASSERT(end(key, {}) == Verdict::kLater);
    CPPUNIT_ASSERT(end(key, {a, text}) == Verdict::kLater);
    CPPUNIT_ASSERT(end(key, {a, text, sent(key, "plots/1")}) == Verdict::kKnown);
  }

  void an_eviction_needs_no_outputs() {
    CPPUNIT_ASSERT(end(running({{"a", true}}), {}, EndReason::kOwner) == Verdict::kKnown);
  }

  // There may be thousands of them in one call.
  void their_contents_are_not_read() {
    const AttemptKey key = running({{"a", true}});
    const uint64_t a = sent(key, "a");
    sql("pragma writable_schema = on; update sqlite_master set sql = replace(sql, 'body text not "
        "null', 'body text') where name = 'files'");
    sql("update files set body = null");
    CPPUNIT_ASSERT(end(key, {a}) == Verdict::kKnown);
  }
  // Behind the server's back.
  void sql(const std::string& statements) {
    sqlite3* db = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_open((folder_.path() + "/pool.db").c_str(), &db));
    sqlite3_busy_timeout(db, 10'000);
    const int done = sqlite3_exec(db, statements.c_str(), nullptr, nullptr, nullptr);
    const std::string error = sqlite3_errmsg(db);
    sqlite3_close(db);
    CPPUNIT_ASSERT_EQUAL_MESSAGE(error, SQLITE_OK, done);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(MachineServiceTest);

}  // namespace
}  // namespace sublet::server
