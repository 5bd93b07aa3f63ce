// For tests of the services: a real store, pipeline and job service in a temporary
// folder, one workstation named curly, and jobs that run on it.
#ifndef SUBLET_SERVER_SERVICES_TESTING_H_
#define SUBLET_SERVER_SERVICES_TESTING_H_

#include <cppunit/TestFixture.h>

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/testing/temporary_folder.h"
#include "server/access.h"
#include "server/commit/pipeline.h"
#include "server/jobs/service.h"
#include "server/machines/sessions.h"
#include "server/question_gate.h"
#include "server/refusal_testing.h"
#include "server/store/archive/archive.h"
#include "server/store/sql_store.h"

namespace sublet::server::testing {

class ServicesFixture : public CppUnit::TestFixture {
 public:
  explicit ServicesFixture(const PipelineSettings& settings = {}) : settings_(settings) {}

  void setUp() override {
    const std::string path = folder_.path() + "/pool.db";
    store_ = std::make_unique<SqlStore>(path);
    archive_ = std::make_unique<Archive>(path);
    pipeline_ =
        std::make_unique<Pipeline>(settings_, *store_, system_clock(), Pipeline::Listener{});
    pipeline_->start();
    jobs_ =
        std::make_unique<JobService>(*pipeline_, *archive_, sessions_, access_, questions_, [] {});
  }
  void tearDown() override {
    jobs_->stop();
    pipeline_->stop();
  }

 protected:
  void apply(const scheduling::Event& event) {
    pipeline_->perform([&](Turn& turn) { turn.apply(event); });
  }
  // Adds curly as the first machine of the pool; returns its session key.
  std::string curly_joins(uint32_t slots = 1) {
    apply(
        scheduling::MachineJoined{0, "curly", "linux", "x86_64", 1, slots, 1ull << 30, 1ull << 30});
    return sessions_.open(machine_, root_.uid, "curly", "pid 1").key;
  }
  // Submits a batch of ann's with one job.
  JobId submit(BatchId batch, const JobDescription& spec) {
    SpecRange range;
    range.spec = spec;
    range.spec.program = "true";
    jobs_->append(ann_, batch, 0, {range});
    return jobs_->commit_batch(ann_, random_bytes(16), batch).first;
  }
  JobId submit(const JobDescription& spec = {}) { return submit(open_batch(ann_), spec); }
  BatchId open_batch(const Caller& caller) {
    return jobs_->open_batch(caller, random_bytes(16), {"b", "desk"});
  }
  // Starts this attempt on curly.
  scheduling::AttemptKey start(scheduling::AttemptKey key) {
    apply(scheduling::MachineReported{machine_, true, 1ull << 30, 1ull << 30});
    apply(scheduling::OrderAnswered{key, scheduling::OrderAnswered::Answer::kAccepted, ""});
    apply(scheduling::AttemptStarted{key, machine_});
    return key;
  }

  const MachineId machine_ = 1;
  const Caller ann_{1000, "ann", false, true};
  const Caller bob_{1001, "bob", false, true};
  const Caller root_{0, "root", true, true};  // curly's daemon, and an administrator
  TemporaryFolder folder_;
  std::unique_ptr<SqlStore> store_;
  std::unique_ptr<Archive> archive_;
  std::unique_ptr<Pipeline> pipeline_;
  Sessions sessions_;
  Access access_{{}};
  QuestionGate questions_{{}};
  std::unique_ptr<JobService> jobs_;

 private:
  const PipelineSettings settings_;
};

}  // namespace sublet::server::testing

#endif  // SUBLET_SERVER_SERVICES_TESTING_H_
