// Whose files may be put and got, and what a damaged checkpoint costs.
#include "server/spool_service.h"

#include <cppunit/extensions/HelperMacros.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/random.h"
#include "base/temporary_folder.h"
#include "server/job_service.h"
#include "server/refusal.h"
#include "server/sql_store.h"

namespace sublet::server {
namespace {

using namespace scheduling;

class SpoolServiceTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(SpoolServiceTest);
  CPPUNIT_TEST(a_damaged_checkpoint_costs_itself_only);
  CPPUNIT_TEST(without_an_intact_checkpoint_from_the_beginning);
  CPPUNIT_TEST(only_the_live_attempt_reaches_its_files);
  CPPUNIT_TEST(a_checkpoint_of_an_attempt_that_ended_is_refused);
  CPPUNIT_TEST(only_the_job_s_own_inputs);
  CPPUNIT_TEST(outputs_are_their_user_s);
  CPPUNIT_TEST(names_stay_inside);
  CPPUNIT_TEST(only_described_outputs);
  CPPUNIT_TEST_SUITE_END();

  static constexpr uint32_t kDaemon = 0;
  TemporaryFolder folder_;
  std::unique_ptr<SqlStore> store_;
  std::unique_ptr<Archive> archive_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Spool> spool_;
  Sessions sessions_;
  Access access_{{}};
  std::unique_ptr<JobService> jobs_;
  std::unique_ptr<SpoolService> service_;
  const Caller ann_{1000, "ann", false, true};
  const Caller bob_{1001, "bob", false, true};
  const Caller daemon_{kDaemon, "root", true, true};
  MachineId machine_ = 0;
  std::string session_;

 public:
  void setUp() override {
    const std::string path = folder_.path() + "/pool.db";
    store_ = std::make_unique<SqlStore>(path);
    archive_ = std::make_unique<Archive>(path);
    pipeline_ = std::make_unique<Pipeline>(PipelineSettings{}, *store_, system_clock(),
                                           Pipeline::Listener{});
    pipeline_->start();
    SpoolSettings settings;
    settings.folder = folder_.path() + "/spool";
    spool_ = std::make_unique<Spool>(settings, *archive_, system_clock());
    jobs_ = std::make_unique<JobService>(*pipeline_, *archive_, sessions_, access_, [] {});
    service_ = std::make_unique<SpoolService>(*spool_, *pipeline_, *archive_, sessions_, access_,
                                              [] {});
    apply(MachineJoined{0, "curly", "linux", "x86_64", 1, 1, 1ull << 30, 1ull << 30});
    machine_ = 1;
    session_ = sessions_.open(machine_, kDaemon, "curly", "pid 1").key;
  }
  void tearDown() override {
    jobs_->stop();
    pipeline_->stop();
  }

 private:
  void apply(const Event& event) {
    pipeline_->perform([&](Turn& turn) { turn.apply(event); });
  }
  static std::string code(const std::function<void()>& action) {
    try {
      action();
    } catch (const Refusal& r) {
      return r.code;
    }
    return "";
  }

  FilePlace place(FileKind kind, AttemptKey key, uint64_t generation = 0) const {
    FilePlace place;
    place.kind = kind;
    place.session = session_;
    place.key = key;
    place.generation = generation;
    return place;
  }
  uint64_t open(const Caller& caller, const FilePlace& where, const std::string& bytes) {
    const Digest digest = sha256(bytes);
    const std::string octets(reinterpret_cast<const char*>(digest.data()), digest.size());
    const uint64_t id =
        service_->open(caller, random_bytes(16), where, bytes.size(), octets).id;
    service_->put(caller, id, 0, bytes);
    return id;
  }
  uint64_t put(const Caller& caller, const FilePlace& where, const std::string& bytes) {
    return service_->close(caller, open(caller, where, bytes));
  }

  // A job of ann's with these inputs, its first attempt running on curly.
  AttemptKey running(const std::vector<std::string>& inputs = {},
                     const std::vector<JobSpec::Output>& outputs = {}) {
    const BatchId batch = jobs_->open_batch(ann_, random_bytes(16), {"b", "desk"});
    SpecRange range;
    range.spec.program = "true";
    range.spec.outputs = outputs;
    for (const std::string& name : inputs) {
      FilePlace where;
      where.batch = batch;
      where.name = name;
      range.spec.inputs.push_back({put(ann_, where, "contents of " + name), name, false});
    }
    jobs_->append(ann_, batch, 0, {range});
    const JobId job = jobs_->commit_batch(ann_, random_bytes(16), batch).first;
    return start(job, 1);
  }
  AttemptKey start(JobId job, uint32_t attempt) {
    const AttemptKey key{job, attempt};
    apply(MachineReported{machine_, true, 1ull << 30, 1ull << 30});
    apply(OrderAnswered{key, OrderAnswered::Answer::kAccepted, ""});
    apply(AttemptStarted{key, machine_});
    return key;
  }
  AttemptKey evicted_and_again(AttemptKey key) {
    apply(MachineReported{machine_, false, 1ull << 30, 1ull << 30});
    apply(AttemptEnded{key, machine_, EndReason::kOwner, "", 2, 1, 3});
    return start(key.job, key.attempt + 1);
  }
  void spoil(uint64_t file) {
    const std::string path = folder_.path() + "/spool/" + std::to_string(file);
    std::string bytes = system_files().read_file(path, 1 << 20);
    bytes[bytes.size() / 2] ^= 1;
    system_files().write_atomic(path, bytes);
  }
  JobRecord job(AttemptKey key) { return archive_->job(key.job)->job; }

  void a_damaged_checkpoint_costs_itself_only() {
    AttemptKey key = running();
    put(daemon_, place(FileKind::kCheckpoint, key, 1), "small, in its row");
    const uint64_t newest = put(daemon_, place(FileKind::kCheckpoint, key, 2),
                                std::string(Spool::kInRow + 1, 'x'));
    key = evicted_and_again(key);
    const FilePlace wanted = place(FileKind::kCheckpoint, key);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, service_->stat(daemon_, wanted).generation);
    spoil(newest);
    const FileRow usable = service_->stat(daemon_, wanted);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, usable.generation);
    CPPUNIT_ASSERT_EQUAL(std::string("small, in its row"),
                         service_->get(daemon_, place(FileKind::kCheckpoint, key, 1), 0, 100));
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, job(key).generation);
    CPPUNIT_ASSERT_EQUAL(std::string("checkpoint generation 2 was damaged in the spool: going on "
                                     "from generation 1"),
                         job(key).reason);
    CPPUNIT_ASSERT(!archive_->file(newest));
    // The next one may have the damaged one's number.
    put(daemon_, place(FileKind::kCheckpoint, key, 2), "newer");
    CPPUNIT_ASSERT_EQUAL(uint64_t{5}, job(key).checkpoint_bytes);
  }

  void without_an_intact_checkpoint_from_the_beginning() {
    AttemptKey key = running();
    const std::string large(Spool::kInRow + 1, 'x');
    const uint64_t first = put(daemon_, place(FileKind::kCheckpoint, key, 1), large);
    const uint64_t second = put(daemon_, place(FileKind::kCheckpoint, key, 2), large);
    key = evicted_and_again(key);
    spool_->remove(first);
    spoil(second);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0},
                         service_->stat(daemon_, place(FileKind::kCheckpoint, key)).generation);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, job(key).generation);
    CPPUNIT_ASSERT(job(key).state == JobState::kRunning);
  }

  void only_the_live_attempt_reaches_its_files() {
    const AttemptKey key = running();
    put(daemon_, place(FileKind::kCheckpoint, key, 1), "saved");
    const auto stat = [&](const Caller& caller, const FilePlace& where) {
      return code([&] { service_->stat(caller, where); });
    };
    CPPUNIT_ASSERT_EQUAL(std::string(""), stat(daemon_, place(FileKind::kCheckpoint, key)));
    CPPUNIT_ASSERT_EQUAL(std::string("session.unknown"),
                         stat(ann_, place(FileKind::kCheckpoint, key)));
    const AttemptKey next{key.job, key.attempt + 1};
    CPPUNIT_ASSERT_EQUAL(std::string("attempt.superseded"),
                         stat(daemon_, place(FileKind::kCheckpoint, next)));
    // Another machine's session.
    apply(MachineJoined{0, "moe", "linux", "x86_64", 1, 1, 1ull << 30, 1ull << 30});
    FilePlace other = place(FileKind::kCheckpoint, key);
    other.session = sessions_.open(2, kDaemon, "moe", "pid 2").key;
    CPPUNIT_ASSERT_EQUAL(std::string("attempt.superseded"), stat(daemon_, other));
  }

  void a_checkpoint_of_an_attempt_that_ended_is_refused() {
    const AttemptKey key = running();
    const uint64_t upload = open(daemon_, place(FileKind::kCheckpoint, key, 1), "late");
    apply(AttemptEnded{key, machine_, EndReason::kOwner, "", 1, 0, 1});
    CPPUNIT_ASSERT_EQUAL(std::string("attempt.superseded"),
                         code([&] { service_->close(daemon_, upload); }));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, job(key).generation);
  }

  void only_the_job_s_own_inputs() {
    const AttemptKey mine = running({"data"});
    FilePlace where = place(FileKind::kInput, mine);
    where.file = archive_->spec(mine.job)->inputs.at(0).file;
    CPPUNIT_ASSERT_EQUAL(std::string("contents of data"), service_->get(daemon_, where, 0, 100));
    apply(AttemptEnded{mine, machine_, EndReason::kDone, "", 1, -1, 1});
    where.key = running({"other"});  // asks for the first one's file
    CPPUNIT_ASSERT_EQUAL(std::string("spool.unknown"),
                         code([&] { service_->get(daemon_, where, 0, 100); }));
  }

  void outputs_are_their_user_s() {
    const AttemptKey key = running({}, {{"result", true}});
    FilePlace where = place(FileKind::kOutput, key);
    where.name = "result";
    const uint64_t file = put(daemon_, where, "42");
    pipeline_->perform([&](Turn& turn) {
      turn.apply(AttemptEnded{key, machine_, EndReason::kDone, "", 1, -1, 1});
      turn.changes().counted_files.push_back({file, key});
    });
    CPPUNIT_ASSERT_EQUAL(std::string("42"), service_->get(ann_, where, 0, 100));
    CPPUNIT_ASSERT_EQUAL(std::string("42"), service_->get(daemon_, where, 0, 100));
    CPPUNIT_ASSERT(code([&] { service_->get(bob_, where, 0, 100); }) != "");
    where.name = "other";
    CPPUNIT_ASSERT_EQUAL(std::string("spool.unknown"),
                         code([&] { service_->get(ann_, where, 0, 100); }));
  }

  void names_stay_inside() {
    FilePlace where = place(FileKind::kOutput, running());
    for (const char* name : {"../x", "/etc/passwd", "a/../../x", "", "."}) {
      where.name = name;
      CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"),
                           code([&] { open(daemon_, where, "x"); }));
    }
  }

  void only_described_outputs() {
    FilePlace where =
        place(FileKind::kOutput, running({}, {{"a", true}, {"r/", true}, {"*.png", false}}));
    for (const char* name : {"a", "r/x", "r/.deep/y", "x.png"}) {
      where.name = name;
      put(daemon_, where, "x");
    }
    for (const char* name : {"b", "r", "d/x.png", ".png", "stdout", "a/x"}) {
      where.name = name;
      CPPUNIT_ASSERT_EQUAL_MESSAGE(name, std::string("spool.undescribed"),
                                   code([&] { open(daemon_, where, "x"); }));
    }
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(SpoolServiceTest);

}  // namespace
}  // namespace sublet::server
