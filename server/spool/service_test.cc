// Access to files, quotas, shared contents and damage.
#include "server/spool/service.h"

#include <cppunit/extensions/HelperMacros.h>

#include <future>
#include <thread>

#include "base/files.h"
#include "server/services_testing.h"
#include "server/store/queries_testing.h"

namespace sublet::server {
namespace {

using testing::code;
using namespace scheduling;

class SpoolServiceTest : public testing::ServicesFixture {
  CPPUNIT_TEST_SUITE(SpoolServiceTest);
  CPPUNIT_TEST(a_damaged_checkpoint_costs_itself_only);
  CPPUNIT_TEST(without_an_intact_checkpoint_from_the_beginning);
  CPPUNIT_TEST(only_the_live_attempt_reaches_its_files);
  CPPUNIT_TEST(a_checkpoint_of_an_attempt_that_ended_is_refused);
  CPPUNIT_TEST(only_the_job_s_own_inputs);
  CPPUNIT_TEST(only_outputs_that_are_its_inputs);
  CPPUNIT_TEST(an_input_costs_the_same_among_many);
  CPPUNIT_TEST(outputs_are_their_user_s);
  CPPUNIT_TEST(names_stay_inside);
  CPPUNIT_TEST(only_described_outputs);
  CPPUNIT_TEST(equal_contents_are_stored_once);
  CPPUNIT_TEST(an_input_needs_no_digest);
  CPPUNIT_TEST(equal_contents_of_one_transaction_are_stored_once);
  CPPUNIT_TEST(a_damaged_content_is_not_shared);
  CPPUNIT_TEST(a_damaged_input_holds_its_job);
  CPPUNIT_TEST(inputs_have_a_quota);
  CPPUNIT_TEST(checkpoints_have_their_own_quota);
  CPPUNIT_TEST(outputs_without_room_hold_their_job);
  CPPUNIT_TEST(outputs_are_kept_for_a_set_time);
  CPPUNIT_TEST(outputs_can_be_discarded);
  CPPUNIT_TEST(outputs_are_discarded_together);
  CPPUNIT_TEST_SUITE_END();

  std::unique_ptr<Spool> spool_;
  std::unique_ptr<SpoolService> service_;
  std::string session_;

 public:
  void setUp() override {
    const testing::CountQueries of_its_connections;
    ServicesFixture::setUp();
    SpoolSettings settings;
    settings.folder = folder_.path() + "/spool";
    spool_ = std::make_unique<Spool>(settings, *archive_, system_clock());
    make_service({});
    session_ = curly_joins();
  }

 private:
  void make_service(const SpoolLimits& limits) {
    service_ = std::make_unique<SpoolService>(
        *spool_, *pipeline_, *archive_, sessions_, access_, [] {}, limits);
  }
  FilePlace place(FileKind kind, AttemptKey key, uint64_t generation = 0) const {
    FilePlace place;
    place.kind = kind;
    place.session = session_;
    place.job = key.job;
    place.attempt = key.attempt;
    place.generation = generation;
    return place;
  }
  uint64_t open(const Caller& caller, const FilePlace& where, const std::string& bytes) {
    const Digest digest = digest_of(bytes);
    const std::string octets(reinterpret_cast<const char*>(digest.data()), digest.size());
    const uint64_t id = service_->open(caller, random_bytes(16), where, bytes.size(), octets).id;
    service_->put(caller, id, 0, bytes);
    return id;
  }
  uint64_t put(const Caller& caller, const FilePlace& where, const std::string& bytes) {
    return service_->close(caller, open(caller, where, bytes));
  }

  std::string get(const Caller& caller, const FilePlace& where, uint64_t offset, size_t count) {
    std::string bytes(count, '\0');
    bytes.resize(service_->get(caller, where, offset, bytes));
    return bytes;
  }
  std::string content_of(uint64_t file) {
    std::string bytes(Spool::kChunk, '\0');
    bytes.resize(spool_->read(*archive_->file(file), 0, bytes));
    return bytes;
  }

  // The place of an input in a new batch of the caller.
  FilePlace input_place(const Caller& caller, const std::string& name = "data") {
    FilePlace where;
    where.batch = open_batch(caller);
    where.name = name;
    return where;
  }
  size_t stored() const { return system_files().list(folder_.path() + "/spool").size(); }
  uint64_t use(const Caller& caller) const { return archive_->spool_use(caller.user).files; }
  std::string refusal(const std::function<void()>& action) const {
    try {
      action();
    } catch (const Refusal& r) {
      return r.code + ": " + r.message;
    }
    return "";
  }
  // Runs a job that is done and has this output.
  FilePlace done_with_output(const std::string& bytes) {
    const AttemptKey key = running();
    FilePlace where = place(FileKind::kOutput, key);
    where.name = "result";
    const uint64_t file = put(root_, where, bytes);
    pipeline_->perform([&](Turn& turn) {
      turn.apply(AttemptEnded{key, machine_, EndReason::kDone, "", 1, -1, 1});
      turn.changes().counted_files.push_back({file, key});
    });
    return where;
  }

  // A job of ann's with these inputs whose first attempt runs on curly.
  AttemptKey running(const std::vector<std::string>& inputs = {}, size_t size = 0,
                     const std::vector<OutputFile>& outputs = {{"*", false}}) {
    const BatchId batch = open_batch(ann_);
    JobDescription spec;
    spec.outputs = outputs;
    for (const std::string& name : inputs) {
      FilePlace where;
      where.batch = batch;
      where.name = name;
      const std::string bytes = "contents of " + name + std::string(size, 'x');
      spec.inputs.push_back({put(ann_, where, bytes), name, false});
    }
    return start({submit(batch, spec), 1});
  }
  AttemptKey evicted_and_again(AttemptKey key) {
    apply(MachineReported{machine_, false, 1ull << 30, 1ull << 30});
    apply(AttemptEnded{key, machine_, EndReason::kOwner, "", 2, 1, 3});
    return start({key.job, key.attempt + 1});
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
    put(root_, place(FileKind::kCheckpoint, key, 1), "small, in its row");
    const uint64_t newest =
        put(root_, place(FileKind::kCheckpoint, key, 2), std::string(Spool::kInRow + 1, 'x'));
    key = evicted_and_again(key);
    const FilePlace wanted = place(FileKind::kCheckpoint, key);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, service_->stat(root_, wanted).generation);
    spoil(newest);
    const FileRow usable = service_->stat(root_, wanted);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, usable.generation);
    CPPUNIT_ASSERT_EQUAL(std::string("small, in its row"),
                         get(root_, place(FileKind::kCheckpoint, key, 1), 0, 100));
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, job(key).generation);
    CPPUNIT_ASSERT_EQUAL(std::string("checkpoint generation 2 was damaged in the spool: resuming "
                                     "from generation 1"),
                         job(key).reason);
    CPPUNIT_ASSERT(!archive_->file(newest));
    // The next checkpoint may have the same generation as the damaged one.
    put(root_, place(FileKind::kCheckpoint, key, 2), "newer");
    CPPUNIT_ASSERT_EQUAL(uint64_t{5}, job(key).checkpoint_bytes);
  }

  void without_an_intact_checkpoint_from_the_beginning() {
    AttemptKey key = running();
    const std::string large(Spool::kInRow + 1, 'x');
    const uint64_t first = put(root_, place(FileKind::kCheckpoint, key, 1), large);
    const uint64_t second = put(root_, place(FileKind::kCheckpoint, key, 2), large);
    key = evicted_and_again(key);
    spool_->remove(first);
    spoil(second);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0},
                         service_->stat(root_, place(FileKind::kCheckpoint, key)).generation);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, job(key).generation);
    CPPUNIT_ASSERT(job(key).state == JobState::kRunning);
  }

  void only_the_live_attempt_reaches_its_files() {
    const AttemptKey key = running();
    put(root_, place(FileKind::kCheckpoint, key, 1), "saved");
    const auto stat = [&](const Caller& caller, const FilePlace& where) {
      return code([&] { service_->stat(caller, where); });
    };
    CPPUNIT_ASSERT_EQUAL(std::string(""), stat(root_, place(FileKind::kCheckpoint, key)));
    CPPUNIT_ASSERT_EQUAL(std::string("session.unknown"),
                         stat(ann_, place(FileKind::kCheckpoint, key)));
    const AttemptKey next{key.job, key.attempt + 1};
    CPPUNIT_ASSERT_EQUAL(std::string("attempt.superseded"),
                         stat(root_, place(FileKind::kCheckpoint, next)));
    // Another machine's session.
    apply(MachineJoined{0, "moe", "linux", "x86_64", 1, 1, 1ull << 30, 1ull << 30});
    FilePlace other = place(FileKind::kCheckpoint, key);
    other.session = sessions_.open(2, root_.uid, "moe", "pid 2").key;
    CPPUNIT_ASSERT_EQUAL(std::string("attempt.superseded"), stat(root_, other));
  }

  void a_checkpoint_of_an_attempt_that_ended_is_refused() {
    const AttemptKey key = running();
    const uint64_t upload = open(root_, place(FileKind::kCheckpoint, key, 1), "late");
    apply(AttemptEnded{key, machine_, EndReason::kOwner, "", 1, 0, 1});
    CPPUNIT_ASSERT_EQUAL(std::string("attempt.superseded"),
                         code([&] { service_->close(root_, upload); }));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, job(key).generation);
  }

  void only_the_job_s_own_inputs() {
    const AttemptKey mine = running({"data"});
    FilePlace where = place(FileKind::kInput, mine);
    where.file = archive_->spec(mine.job)->inputs.at(0).file;
    CPPUNIT_ASSERT_EQUAL(std::string("contents of data"), get(root_, where, 0, 100));
    apply(AttemptEnded{mine, machine_, EndReason::kDone, "", 1, -1, 1});
    where.job = running({"other"}).job;  // with the first job's file
    CPPUNIT_ASSERT_EQUAL(std::string("spool.unknown"), code([&] { get(root_, where, 0, 100); }));
  }

  // A job that is done and has left these outputs, each with its name as its contents.
  JobId done_with(const std::vector<OutputFile>& outputs) {
    const AttemptKey key = running({}, 0, outputs);
    FilePlace where = place(FileKind::kOutput, key);
    std::vector<uint64_t> files;
    for (const OutputFile& output : outputs) {
      where.name = output.name;
      files.push_back(put(root_, where, output.name));
    }
    pipeline_->perform([&](Turn& turn) {
      turn.apply(AttemptEnded{key, machine_, EndReason::kDone, "", 1, -1, 1});
      for (uint64_t file : files) turn.changes().counted_files.push_back({file, key});
    });
    return key.job;
  }
  // The place of the first input of a running job that needs these outputs of the producer.
  FilePlace fed(JobId producer, const std::vector<OutputFile>& outputs) {
    JobDescription spec;
    for (const OutputFile& output : outputs)
      spec.inputs.push_back({0, output.name, false, {false, producer, output.name}});
    const AttemptKey key = start({submit(open_batch(ann_), spec), 1});
    FilePlace where = place(FileKind::kInput, key);
    where.file = archive_->spec_with_files(key.job)->inputs.at(0).file;
    return where;
  }

  void only_outputs_that_are_its_inputs() {
    const JobId producer = done_with({{"grid", true}, {"log", true}});
    FilePlace where = fed(producer, {{"grid", true}});
    CPPUNIT_ASSERT_EQUAL(std::string("grid"), get(root_, where, 0, 100));
    where.file = archive_->output(producer, FileKind::kOutput, "log")->id;
    CPPUNIT_ASSERT_EQUAL(std::string("spool.unknown"), code([&] { get(root_, where, 0, 100); }));
  }

  void an_input_costs_the_same_among_many() {
    std::vector<OutputFile> outputs;
    for (int i = 0; i < 40; ++i) outputs.push_back({"part-" + std::to_string(i), true});
    const JobId producer = done_with(outputs);
    const auto queries = [&](const std::vector<OutputFile>& needed) {
      const FilePlace where = fed(producer, needed);
      const auto read = [&] {
        CPPUNIT_ASSERT_EQUAL(std::string("part-0"), get(root_, where, 0, 9));
      };
      read();  // the description is known from now on
      const uint64_t count = testing::queries_during(read);
      apply(AttemptEnded{{where.job, where.attempt}, machine_, EndReason::kDone, "", 1, -1, 1});
      return count;
    };
    const uint64_t of_one = queries({outputs[0]});
    CPPUNIT_ASSERT_GREATER(uint64_t{0}, of_one);
    CPPUNIT_ASSERT_EQUAL(of_one, queries(outputs));
  }

  void outputs_are_their_user_s() {
    const AttemptKey key = running({}, 0, {{"result", true}});
    FilePlace where = place(FileKind::kOutput, key);
    where.name = "result";
    const uint64_t file = put(root_, where, "42");
    pipeline_->perform([&](Turn& turn) {
      turn.apply(AttemptEnded{key, machine_, EndReason::kDone, "", 1, -1, 1});
      turn.changes().counted_files.push_back({file, key});
    });
    CPPUNIT_ASSERT_EQUAL(std::string("42"), get(ann_, where, 0, 100));
    CPPUNIT_ASSERT_EQUAL(std::string("42"), get(root_, where, 0, 100));
    CPPUNIT_ASSERT(code([&] { get(bob_, where, 0, 100); }) != "");
    where.name = "other";
    CPPUNIT_ASSERT_EQUAL(std::string("spool.unknown"), code([&] { get(ann_, where, 0, 100); }));
  }

  void names_stay_inside() {
    FilePlace where = place(FileKind::kOutput, running());
    for (const char* name : {"../x", "/etc/passwd", "a/../../x", "", "."}) {
      where.name = name;
      CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), code([&] { open(root_, where, "x"); }));
    }
  }

  void only_described_outputs() {
    FilePlace where =
        place(FileKind::kOutput, running({}, 0, {{"a", true}, {"r/", true}, {"*.png", false}}));
    for (const char* name : {"a", "r/x", "r/.deep/y", "x.png"}) {
      where.name = name;
      put(root_, where, "x");
    }
    for (const char* name : {"b", "r", "d/x.png", ".png", "stdout", "a/x"}) {
      where.name = name;
      CPPUNIT_ASSERT_EQUAL_MESSAGE(name, std::string("spool.undescribed"),
                                   code([&] { open(root_, where, "x"); }));
    }
  }

  void equal_contents_are_stored_once() {
    const std::string bytes(Spool::kInRow + 1, 'x');
    const FilePlace of_ann = input_place(ann_), of_bob = input_place(bob_);
    const uint64_t first = put(ann_, of_ann, bytes), second = put(bob_, of_bob, bytes);
    CPPUNIT_ASSERT(first != second);
    CPPUNIT_ASSERT_EQUAL(first, archive_->file(second)->content);
    service_->collect_garbage();
    CPPUNIT_ASSERT_EQUAL(size_t{1}, stored());
    // It counts fully for each user, so that none learns that the other has it too.
    CPPUNIT_ASSERT_EQUAL(uint64_t{bytes.size()}, use(ann_));
    CPPUNIT_ASSERT_EQUAL(uint64_t{bytes.size()}, use(bob_));
    jobs_->discard_batch(ann_, of_ann.batch);
    service_->collect_garbage();
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, use(ann_));
    CPPUNIT_ASSERT(!archive_->file(first));
    CPPUNIT_ASSERT_EQUAL(bytes, content_of(second));
    jobs_->discard_batch(bob_, of_bob.batch);
    service_->collect_garbage();
    CPPUNIT_ASSERT_EQUAL(size_t{0}, stored());
    CPPUNIT_ASSERT(archive_->content_ids().empty());
    // Uploaded again, it is a new content.
    const uint64_t third = put(bob_, input_place(bob_), bytes);
    CPPUNIT_ASSERT_EQUAL(third, archive_->file(third)->content);
  }

  void an_input_needs_no_digest() {
    const std::string bytes(Spool::kInRow + 1, 'x');
    const auto sent = [&](const Caller& caller) {
      const uint64_t id =
          service_->open(caller, random_bytes(16), input_place(caller), bytes.size(), "").id;
      service_->put(caller, id, 0, bytes);
      return service_->close(caller, id);
    };
    const uint64_t one = sent(ann_), two = sent(bob_);
    CPPUNIT_ASSERT_EQUAL(hex(digest_of(bytes)), archive_->file(one)->digest);
    CPPUNIT_ASSERT_EQUAL(one, archive_->file(two)->content);
    const auto open_with = [&](const FilePlace& where, const std::string& digest) {
      return code([&] { service_->open(ann_, random_bytes(16), where, 3, digest); });
    };
    CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), open_with(input_place(ann_), "short"));
    FilePlace output = place(FileKind::kOutput, running());
    output.name = "result";
    for (const FilePlace& where :
         {output, place(FileKind::kCheckpoint, AttemptKey{output.job, output.attempt}, 1)})
      CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"),
                           code([&] { service_->open(root_, random_bytes(16), where, 3, ""); }));
  }

  // Two uploads are closed, and a third file is dropped, while the committer is busy.
  void equal_contents_of_one_transaction_are_stored_once() {
    const std::string bytes(Spool::kInRow + 1, 'x');
    const FilePlace old = input_place(ann_);
    const uint64_t before = put(ann_, old, bytes);
    const uint64_t one = open(ann_, input_place(ann_), bytes);
    const uint64_t two = open(bob_, input_place(bob_), bytes);
    std::promise<void> go;
    auto gone = go.get_future().share();
    pipeline_->post([gone](Turn&) { gone.wait(); });
    std::vector<std::thread> threads;
    threads.emplace_back([&] { jobs_->discard_batch(ann_, old.batch); });
    threads.emplace_back([&] { service_->close(ann_, one); });
    threads.emplace_back([&] { service_->close(bob_, two); });
    threads.emplace_back([&] { service_->collect_garbage(); });
    go.set_value();
    for (auto& thread : threads) thread.join();
    service_->collect_garbage();
    CPPUNIT_ASSERT(!archive_->file(before));
    CPPUNIT_ASSERT_EQUAL(archive_->file(one)->content, archive_->file(two)->content);
    CPPUNIT_ASSERT_EQUAL(bytes, content_of(two));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, stored());
  }

  void a_damaged_content_is_not_shared() {
    const std::string bytes(Spool::kInRow + 1, 'x');
    const AttemptKey key = running();
    FilePlace where = place(FileKind::kOutput, key);
    where.name = "a";
    const uint64_t file = put(root_, where, bytes);
    spoil(file);
    // Detected by its times alone, since it has not been read yet.
    const uint64_t second = put(ann_, input_place(ann_), bytes);
    CPPUNIT_ASSERT_EQUAL(second, archive_->file(second)->content);
    const uint64_t third = put(bob_, input_place(bob_), bytes);
    CPPUNIT_ASSERT_EQUAL(second, archive_->file(third)->content);
  }

  void a_damaged_input_holds_its_job() {
    const AttemptKey key = running({"small", "data"}, Spool::kInRow);
    const auto inputs = archive_->spec(key.job)->inputs;
    FilePlace where = place(FileKind::kInput, key);
    where.file = inputs.at(1).file;
    service_->stat(root_, where);
    spoil(where.file);
    CPPUNIT_ASSERT_EQUAL(std::string("spool.damaged"), code([&] { service_->stat(root_, where); }));
    CPPUNIT_ASSERT(job(key).state == JobState::kHeld);
    CPPUNIT_ASSERT(job(key).reason.find("is damaged in the server's spool: submit the job again") !=
                   std::string::npos);
    CPPUNIT_ASSERT(archive_->file(where.file)->damaged);
    CPPUNIT_ASSERT_EQUAL(std::string("spool.damaged"), code([&] { get(root_, where, 0, 10); }));
    apply(AttemptEnded{key, machine_, EndReason::kStaging, "", 0, -1, 1});
    CPPUNIT_ASSERT(job(key).state == JobState::kHeld);
    CPPUNIT_ASSERT_EQUAL(uint32_t{0}, job(key).retries_left);
  }

  void inputs_have_a_quota() {
    make_service({100'000, {{"bob", 200'000}}, 0});
    const std::string bytes(60'000, 'x');
    put(ann_, input_place(ann_), bytes);
    const std::string said = refusal([&] { put(ann_, input_place(ann_, "more"), bytes); });
    CPPUNIT_ASSERT_EQUAL(std::string("spool.quota: `more` has 58.6 KiB, and files of ann in the "
                                     "spool have 58.6 KiB of the 97.7 KiB allowed"),
                         said);
    CPPUNIT_ASSERT_EQUAL(uint64_t{60'000}, use(ann_));
    // Two uploads that fit individually do not fit together.
    const FilePlace where = input_place(ann_);
    open(ann_, where, std::string(30'000, 'a'));
    CPPUNIT_ASSERT_EQUAL(std::string("spool.quota"),
                         code([&] { open(ann_, where, std::string(30'000, 'b')); }));
    for (int i = 0; i < 3; ++i) put(bob_, input_place(bob_), bytes);
    CPPUNIT_ASSERT_EQUAL(std::string("spool.quota"),
                         code([&] { put(bob_, input_place(bob_), bytes); }));
  }

  void checkpoints_have_their_own_quota() {
    make_service({100'000, {}, 0});
    const AttemptKey key = running();
    put(ann_, input_place(ann_), std::string(100'000, 'x'));
    put(root_, place(FileKind::kCheckpoint, key, 1), std::string(90'000, 'y'));
    CPPUNIT_ASSERT_EQUAL(
        std::string("spool.quota"),
        code([&] { put(root_, place(FileKind::kCheckpoint, key, 2), std::string(20'000, 'z')); }));
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, job(key).generation);
    CPPUNIT_ASSERT(job(key).state == JobState::kRunning);
    CPPUNIT_ASSERT_EQUAL(uint64_t{90'000}, archive_->spool_use("ann").checkpoints);
  }

  void outputs_without_room_hold_their_job() {
    make_service({100'000, {}, 0});
    const AttemptKey key = running();
    put(ann_, input_place(ann_), std::string(100'000, 'x'));
    FilePlace where = place(FileKind::kOutput, key);
    where.name = "fits";
    put(root_, where, std::string(25'000, 'y'));
    where.name = "large";
    CPPUNIT_ASSERT_EQUAL(std::string("spool.quota"),
                         code([&] { put(root_, where, std::string(1'000, 'z')); }));
    CPPUNIT_ASSERT(job(key).state == JobState::kHeld);
    CPPUNIT_ASSERT(
        job(key).reason.starts_with("there is no room for its output: `large` has 1000 B"));
    apply(AttemptEnded{key, machine_, EndReason::kOutput, "", 1, -1, 1});
    CPPUNIT_ASSERT(job(key).state == JobState::kHeld);
  }

  void outputs_are_kept_for_a_set_time() {
    const FilePlace where = done_with_output(std::string(Spool::kInRow + 1, 'x'));
    service_->collect_garbage();
    CPPUNIT_ASSERT_EQUAL(std::string("xx"), get(ann_, where, 0, 2));
    make_service({1 << 20, {}, 3600ll * 1'000'000});
    service_->collect_garbage();
    CPPUNIT_ASSERT_EQUAL(size_t{1}, archive_->outputs(where.job).size());
    make_service({1 << 20, {}, 1});
    service_->collect_garbage();
    CPPUNIT_ASSERT(archive_->outputs(where.job).empty());
    CPPUNIT_ASSERT_EQUAL(size_t{0}, stored());
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, use(ann_));
    CPPUNIT_ASSERT_EQUAL(std::string("spool.removed"), code([&] { get(ann_, where, 0, 2); }));
    CPPUNIT_ASSERT(jobs_->show(ann_, where.job).outputs_removed > 0);
  }

  // Each costs the two statements that drop it, but is not asked for on its own.
  void outputs_are_discarded_together() {
    const auto queries = [&](int count) {
      std::vector<OutputFile> outputs;
      for (int i = 0; i < count; ++i) outputs.push_back({std::to_string(i), true});
      const JobId job = done_with(outputs);
      return testing::queries_during([&] { service_->discard_outputs(ann_, job); });
    };
    const uint64_t of_few = queries(10), of_many = queries(30);
    CPPUNIT_ASSERT_GREATER(of_few, of_many);
    CPPUNIT_ASSERT_LESSEQUAL(uint64_t{2 * (30 - 10)}, of_many - of_few);
  }

  void outputs_can_be_discarded() {
    const AttemptKey live = running();
    CPPUNIT_ASSERT_EQUAL(std::string("job.unfinished"),
                         code([&] { service_->discard_outputs(ann_, live.job); }));
    apply(AttemptEnded{live, machine_, EndReason::kDone, "", 1, -1, 1});
    const FilePlace where = done_with_output("42");
    CPPUNIT_ASSERT_EQUAL(std::string("job.not_yours"),
                         code([&] { service_->discard_outputs(bob_, where.job); }));
    service_->discard_outputs(ann_, where.job);
    service_->discard_outputs(ann_, where.job);
    CPPUNIT_ASSERT_EQUAL(std::string("spool.removed"), code([&] { get(ann_, where, 0, 2); }));
    // For a job without outputs, no removal is recorded.
    service_->discard_outputs(ann_, live.job);
    CPPUNIT_ASSERT_EQUAL(Micros{0}, jobs_->show(ann_, live.job).outputs_removed);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(SpoolServiceTest);

}  // namespace
}  // namespace sublet::server
