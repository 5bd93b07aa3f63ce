// An attempt's end counts only when its outputs have been uploaded. Joining and renewing.
#include "server/machines/service.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sqlite3.h>

#include <chrono>
#include <future>
#include <thread>

#include "server/machines/corba_workstation.h"
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
  CPPUNIT_TEST(the_rest_of_an_array_needs_as_much);
  CPPUNIT_TEST(a_first_renewal_of_an_old_registration_loses_nothing);
  CPPUNIT_TEST(a_session_ends_only_itself);
  CPPUNIT_TEST(what_a_machine_says_is_bounded);
  CPPUNIT_TEST(none_ahead_for_a_client_that_does_not_say_which_wait);
  CPPUNIT_TEST(a_machine_without_its_folder_waits_for_its_leases);
  CPPUNIT_TEST(what_a_failed_order_may_have_done);
  CPPUNIT_TEST(an_order_without_an_answer_may_run);
  CPPUNIT_TEST(a_live_client_keeps_its_machine);
  CPPUNIT_TEST(the_last_client_is_not_called_after_the_next_has_joined);
  CPPUNIT_TEST_SUITE_END();

  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<MachineService> machines_;
  std::string session_;
  uint64_t last_file_ = 0;
  const std::string kSecret = std::string(32, 's');

 public:
  void setUp() override {
    ServicesFixture::setUp();
    dispatcher_ = std::make_unique<Dispatcher>(Dispatcher::Hooks{}, 1);
    machines_ =
        std::make_unique<MachineService>(*pipeline_, *archive_, sessions_, access_, *dispatcher_);
    session_ = curly_joins(9);
  }

 private:
  // A job of ann's whose first attempt runs on curly.
  AttemptKey running(const std::vector<OutputFile>& outputs) {
    JobDescription spec;
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

  // One call may list thousands of outputs.
  void their_contents_are_not_read() {
    const AttemptKey key = running({{"a", true}});
    const uint64_t a = sent(key, "a");
    sql("pragma writable_schema = on; update sqlite_master set sql = replace(sql, 'body text not "
        "null', 'body text') where name = 'files'");
    sql("update files set body = null");
    CPPUNIT_ASSERT(end(key, {a}) == Verdict::kKnown);
  }

  // The other command of the batch does not, though for the brain it is one with the array.
  void the_rest_of_an_array_needs_as_much() {
    SpecRange array, other;
    array.spec.program = other.spec.program = "true";
    array.is_array = true;
    array.count = 3;
    const BatchId batch = open_batch(ann_);
    jobs_->append(ann_, batch, 0, {array, other});
    const JobId first = jobs_->commit_batch(ann_, random_bytes(16), batch).first;
    apply(scheduling::JobsHeld{{{first + 1, 3}}});
    constexpr uint64_t kPeak = 300 << 20;
    ReportedEnd one;
    one.event.key = one.row.key = start({first, 1});
    one.event.ended = EndReason::kDrained;
    one.event.memory_peak = kPeak;
    one.memory_short = true;
    apply(MachineReported{machine_, true, kPeak - 1, 1ull << 30});
    machines_->ended(session_, root_, {one});
    std::vector<std::string> damage;
    std::map<JobId, uint64_t> stored;
    for (const scheduling::JobRecord& job : store_->load(&damage).jobs)
      for (uint64_t k = 0; k < job.count; ++k) stored[job.id + k] = job.needs.memory;
    CPPUNIT_ASSERT(
        (stored == std::map<JobId, uint64_t>{
                       {first, kPeak}, {first + 1, kPeak}, {first + 2, kPeak}, {first + 3, 0}}));
    apply(scheduling::JobsReleased{{first + 1}});
    const JobDetails details = jobs_->show(ann_, first + 1);
    CPPUNIT_ASSERT_EQUAL(std::string("another of its array used 300 MiB of memory before; no "
                                     "machine has 300 MiB of memory (largest: 300 MiB on curly)"),
                         details.row.job.reason);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, details.spec.needs.memory);
  }

  std::string state_of(AttemptKey key) {
    std::string state;
    pipeline_->perform([&](Turn& turn) {
      const auto* attempt = turn.pool().attempt(key.job);
      state = attempt == nullptr ? "none" : attempt->key == key ? "live" : "replaced";
    });
    return state;
  }
  static MachineFacts facts(const std::string& name) {
    MachineFacts facts;
    facts.name = name;
    facts.os = "linux";
    facts.architecture = "x86_64";
    facts.slots = 2;
    facts.cores = 2;
    facts.memory = facts.disk = 1ull << 30;
    facts.holder = "pid 2";
    return facts;
  }

  // The renewal waits for its turn while the machine registers again. It does not list the
  // attempt, which was ordered after it was sent.
  void a_first_renewal_of_an_old_registration_loses_nothing() {
    const SessionInfo old = machines_->join(root_, 0, std::string(32, 's'), facts("moe")).session;
    apply(MachineReported{machine_, false, 0, 0});  // curly gets no jobs
    apply(MachineReported{old.machine, true, 1ull << 30, 1ull << 30});
    const AttemptKey key{submit(), 1};
    CPPUNIT_ASSERT_EQUAL(std::string("live"), state_of(key));
    std::promise<void> sent;
    pipeline_->post([&](Turn& turn) {
      sent.get_future().wait();
      turn.apply(MachineJoined{old.machine, "moe", "linux", "x86_64", 2, 2, 1ull << 30});
      sessions_.open(old.machine, root_.uid, "moe", "pid 2");
    });
    std::string refused;
    std::thread renewing(
        [&] { refused = testing::code([&] { machines_->renew(old.key, root_, {}, {}); }); });
    while (!sessions_.report(old.machine)) std::this_thread::yield();
    sent.set_value();
    renewing.join();
    CPPUNIT_ASSERT_EQUAL(std::string("session.unknown"), refused);
    CPPUNIT_ASSERT_EQUAL(std::string("live"), state_of(key));
  }

  // It waited for its turn while the machine registered anew.
  void a_session_ends_only_itself() {
    const SessionInfo old = sessions_.open(7, root_.uid, "moe", "pid 2");
    const SessionInfo next = sessions_.open(7, root_.uid, "moe", "pid 3");
    CPPUNIT_ASSERT(!sessions_.close(old.key));
    CPPUNIT_ASSERT_EQUAL(next.key, sessions_.of_machine(7)->key);
    CPPUNIT_ASSERT(sessions_.close(next.key));
    CPPUNIT_ASSERT(!sessions_.of_machine(7));
  }

  void what_a_machine_says_is_bounded() {
    for (std::string MachineFacts::*text : {&MachineFacts::name, &MachineFacts::os,
                                            &MachineFacts::architecture, &MachineFacts::version}) {
      MachineFacts long_one = facts("moe");
      long_one.*text = std::string(256, 'x');
      CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), testing::code([&] {
                             machines_->join(root_, 0, std::string(32, 's'), long_one);
                           }));
    }
  }

  void none_ahead_for_a_client_that_does_not_say_which_wait() {
    const auto most_ahead = [&](MachineId id) {
      uint32_t most = 0;
      pipeline_->perform([&](Turn& turn) {
        for (const auto& machine : turn.pool().anchor().machines)
          if (machine.machine == id) most = machine.ahead_most;
      });
      return most;
    };
    ReportedState state;
    state.ahead = 3;
    for (const bool serves : {false, true}) {
      MachineFacts some = facts(serves ? "larry" : "moe");
      some.serves_ahead = serves;
      const SessionInfo joined =
          machines_->join(root_, 0, std::string(32, serves ? 'a' : 'b'), some).session;
      machines_->renew(joined.key, root_, state, {});
      CPPUNIT_ASSERT_EQUAL(serves ? 3u : 0u, most_ahead(joined.machine));
      machines_->report(joined.key, root_, state);
      CPPUNIT_ASSERT_EQUAL(serves ? 3u : 0u, most_ahead(joined.machine));
    }
  }

  void a_machine_without_its_folder_waits_for_its_leases() {
    Caller member{Peer::kFirstMember + 7, "the machine moe"};
    member.role = Role::kMachine;
    member.machine = "moe";
    const Joined first = machines_->join(member, 0, std::string(32, 'a'), facts("moe"));
    machines_->renew(first.session.key, member, {}, {});
    apply(MachineReported{machine_, false, 0, 0});
    apply(MachineReported{first.session.machine, true, 1ull << 30, 1ull << 30});
    const AttemptKey key{submit(), 1};
    machines_->withdraw(first.session.key, member);
    const auto join = [&](char secret) {
      return machines_->join(member, 0, std::string(32, secret), facts("moe"));
    };
    CPPUNIT_ASSERT_EQUAL(std::string("machine.live"), testing::code([&] { join('b'); }));
    CPPUNIT_ASSERT_EQUAL(std::string("live"), state_of(key));
    CPPUNIT_ASSERT_EQUAL(first.session.machine, join('a').session.machine);  // the same folder
    apply(AttemptEnded{key, first.session.machine, EndReason::kOwner, "", 0, -1, 0});
    machines_->withdraw(sessions_.of_machine(first.session.machine)->key, member);
    CPPUNIT_ASSERT_EQUAL(first.session.machine, join('b').session.machine);
  }

  void what_a_failed_order_may_have_done() {
    using Answer = OrderAnswered::Answer;
    const auto meaning = [](const CORBA::Exception& e) { return meaning_for_orders(e).first; };
    CPPUNIT_ASSERT(meaning(CORBA::TRANSIENT(0, CORBA::COMPLETED_NO)) == Answer::kNotDelivered);
    CPPUNIT_ASSERT(meaning(CORBA::TRANSIENT(0, CORBA::COMPLETED_MAYBE)) == Answer::kUnknown);
    CPPUNIT_ASSERT(meaning(CORBA::COMM_FAILURE(0, CORBA::COMPLETED_YES)) == Answer::kUnknown);
    CPPUNIT_ASSERT(meaning(Sublet::v1::Unavailable("", "", "", "")) == Answer::kUnknown);
    CPPUNIT_ASSERT(meaning(Sublet::v1::NotPermitted("", "", "", "")) == Answer::kRefused);
  }

  void an_order_without_an_answer_may_run() {
    using Answer = OrderAnswered::Answer;
    Sublet::v1::RunAnswers replies;
    replies.length(2);
    replies[0].key = {7, 1};
    replies[0].answer = Sublet::v1::RUN_ACCEPTED;
    replies[1].key = {8, 1};
    replies[1].answer = Sublet::v1::RUN_REFUSED_FULL;
    CPPUNIT_ASSERT(answer_for({7, 1}, replies).answer == Answer::kAccepted);
    CPPUNIT_ASSERT(answer_for({8, 1}, replies).answer == Answer::kRefused);
    CPPUNIT_ASSERT(answer_for({7, 2}, replies).answer == Answer::kUnknown);
    CPPUNIT_ASSERT(answer_for({9, 1}, {}).answer == Answer::kUnknown);
  }

  struct Station : Workstation {
    std::vector<OrderAnswered> run(const std::vector<RunRequest>&) override { return {}; }
    bool vacate(const std::vector<LeaveRequest>&) override { return true; }
    TextAnswer read_log(const TextRequest&) override { return {TextAnswer::Kind::kText, "here"}; }
    bool alive() override {
      ++asked;
      return lives;
    }
    std::atomic<int> asked{0};
    std::atomic<bool> lives{true};
  };

  // A machine called moe, whose client is `station`.
  Joined moe_joins(const std::shared_ptr<Workstation>& station) {
    const Joined joined = machines_->join(root_, 0, kSecret, facts("moe"));
    machines_->attach(joined.session.key, root_, station);
    return joined;
  }
  std::string join_again(MachineId machine) {
    return testing::code([&] { machines_->join(root_, machine, kSecret, facts("moe")); });
  }
  static bool eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < end)
      if (condition()) return true;
    return false;
  }

  void a_live_client_keeps_its_machine() {
    const auto station = std::make_shared<Station>();
    const MachineId machine = moe_joins(station).session.machine;
    CPPUNIT_ASSERT(eventually([&] {
      CPPUNIT_ASSERT_EQUAL(std::string("machine.live"), join_again(machine));
      return station->asked > 2;
    }));
    station->lives = false;
    CPPUNIT_ASSERT(eventually([&] { return join_again(machine).empty(); }));
  }

  void the_last_client_is_not_called_after_the_next_has_joined() {
    const auto station = std::make_shared<Station>();
    const MachineId machine = moe_joins(station).session.machine;
    const auto text = [&] {
      std::promise<TextAnswer> answer;
      dispatcher_->read_log(machine, {{1, 1}, FileKind::kStdout, 0},
                            [&](const TextAnswer& given) { answer.set_value(given); });
      return answer.get_future().get();
    };
    CPPUNIT_ASSERT_EQUAL(std::string("here"), text().text);
    station->lives = false;
    CPPUNIT_ASSERT(eventually([&] { return join_again(machine).empty(); }));
    CPPUNIT_ASSERT(text().kind == TextAnswer::Kind::kFailed);
  }

  // Changes the database as another process, while the server runs.
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
