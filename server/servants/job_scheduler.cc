#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "server/servants/guard_call.h"
#include "server/servants/page.h"
#include "server/servants/servants.h"
#include "server/servants/served.h"
#include "server/servants/translate.h"

namespace sublet::server {
namespace {

namespace v1 = Sublet::v1;

class JobSchedulerServant : public POA_Sublet::v1::JobScheduler {
 public:
  explicit JobSchedulerServant(const Services& s) : s_(s) {}

  v1::BatchId open_batch(const v1::RequestId& request, const v1::BatchDescription& batch) override {
    return guard_call([&] {
      return s_.jobs.open_batch(s_.access.submitter(), from_octets(request), from_idl(batch));
    });
  }

  void append(v1::BatchId batch, CORBA::ULong number, const v1::JobDescriptions& jobs) override {
    guard_call([&] {
      std::vector<SpecRange> specs(jobs.length());
      for (CORBA::ULong i = 0; i < jobs.length(); ++i)
        specs[i].spec = submitted(jobs[i], JobService::appended(i, number));
      s_.jobs.append(s_.access.submitter(), batch, number, std::move(specs));
    });
  }

  void append_array(v1::BatchId batch, CORBA::ULong number, const v1::JobDescription& job,
                    CORBA::ULongLong first, CORBA::ULongLong count) override {
    guard_call([&] {
      s_.jobs.append(
          s_.access.submitter(), batch, number,
          {SpecRange{submitted(job, JobService::appended(0, number)), true, first, count}});
    });
  }

  void append_sweep(v1::BatchId batch, CORBA::ULong number, const v1::JobDescription& job,
                    const v1::Axes& axes, CORBA::ULongLong first_index) override {
    guard_call([&] {
      if (axes.length() == 0 || first_index > UINT64_MAX / 2)
        throw Refusal(Refusal::Kind::kInvalid, "field.invalid",
                      "a sweep without parameters, or with an index that is too large",
                      "Give at least one axis.", "axes");
      const std::string subject = JobService::appended(0, number);
      s_.jobs.append(
          s_.access.submitter(), batch, number,
          {SpecRange{submitted(job, subject), true, first_index, 1, submitted(axes, subject)}});
    });
  }

  v1::JobRange commit_batch(const v1::RequestId& request, v1::BatchId batch) override {
    return guard_call([&] {
      auto [first, count] =
          s_.jobs.commit_batch(s_.access.submitter(), from_octets(request), batch);
      v1::JobRange range;
      range.first = first;
      range.count = count;
      return range;
    });
  }

  void discard_batch(v1::BatchId batch) override {
    guard_call([&] { s_.jobs.discard_batch(s_.access.submitter(), batch); });
  }

  v1::JobId submit(const v1::RequestId& request, const char* host,
                   const v1::JobDescription& job) override {
    return guard_call([&] {
      return s_.jobs.submit(s_.access.submitter(), from_octets(request), host,
                            submitted(job, "the job"));
    });
  }

  v1::Control* remove(const v1::RequestId& request, const v1::JobFilter& which) override {
    return control(request, which, JobService::Action::kRemove);
  }
  v1::Control* hold(const v1::RequestId& request, const v1::JobFilter& which) override {
    return control(request, which, JobService::Action::kHold);
  }
  v1::Control* release(const v1::RequestId& request, const v1::JobFilter& which) override {
    return control(request, which, JobService::Action::kRelease);
  }
  v1::Control* set_priority(const v1::RequestId& request, const v1::JobFilter& which,
                            CORBA::Long priority) override {
    return control(request, which, {JobService::Action::kSetPriority, priority});
  }

  v1::JobPage* list(const v1::JobFilter& which, const v1::Bytes& cursor,
                    CORBA::ULong limit) override {
    return guard_call([&] {
      const JobQuery query = listed(which);
      const JobPage page = s_.jobs.list(s_.access.submitter(), query, number_from(cursor), limit);
      auto names = machine_names(page.rows);
      v1::JobPage_var out = new v1::JobPage();
      out->jobs.length(page.rows.size());
      for (size_t i = 0; i < page.rows.size(); ++i)
        to_idl(page.rows[i], names[page.rows[i].machine], s_.jobs.progress(page.rows[i].job),
               out->jobs[i]);
      const auto after = [&](size_t last) {
        const auto& job = page.rows[last].job;
        return std::to_string(query.newest_first ? job.id : job.id + job.count - 1);
      };
      const std::string next = page.next ? std::to_string(page.next) : "";
      to_octets(end_page(out->jobs, next, after), out->next);
      return out._retn();
    });
  }

  v1::Counts* count(const v1::JobFilter& which) override {
    return guard_call([&] {
      const auto counts = s_.jobs.count(s_.access.submitter(), from_idl(which));
      v1::Counts_var out = new v1::Counts;
      out->length(counts.size());
      for (size_t i = 0; i < counts.size(); ++i) {
        out[i].value = counts[i].first;
        out[i].number = counts[i].second;
      }
      return out._retn();
    });
  }

  v1::JobDetail* show(v1::JobId job) override {
    return guard_call([&] {
      JobDetails details = s_.jobs.show(s_.access.submitter(), job);
      auto names = machine_names({details.row});
      v1::JobDetail_var out = new v1::JobDetail();
      to_idl(details.row, names[details.row.machine], s_.jobs.progress(details.row.job),
             out->summary);
      to_idl(details.spec, out->description);
      out->attempts.length(details.attempts.size());
      for (size_t i = 0; i < details.attempts.size(); ++i)
        to_idl(details.attempts[i], out->attempts[i]);
      to_idl(details.outputs, out->outputs);
      add_forecast(details.forecast, out->more);
      if (details.live) add_live(*details.live, out->more);
      if (!details.promised.empty()) add_detail(out->more, "promised", details.promised);
      if (details.outputs_removed)
        add_detail(out->more, "outputs_removed_at", std::to_string(details.outputs_removed));
      return out._retn();
    });
  }

  v1::AttemptPage* attempts(v1::JobId job, const v1::Bytes& cursor, CORBA::ULong limit) override {
    return guard_call([&] {
      const auto rows = s_.jobs.attempts(s_.access.submitter(), job, number_from(cursor), limit);
      const auto after = [&](size_t last) {
        return std::to_string(rows[last].attempt.key.attempt);
      };
      v1::AttemptPage_var out = new v1::AttemptPage();
      out->attempts.length(rows.size());
      for (size_t i = 0; i < rows.size(); ++i) to_idl(rows[i], out->attempts[i]);
      const std::string next = rows.size() == limit ? after(limit - 1) : "";
      to_octets(end_page(out->attempts, next, after), out->next);
      return out._retn();
    });
  }

  v1::OutputPage* outputs(v1::JobId job, const v1::Bytes& cursor, CORBA::ULong limit) override {
    return guard_call([&] {
      const JobOutputs outputs =
          s_.jobs.outputs(s_.access.submitter(), job, number_from(cursor), limit);
      const auto after = [&](size_t last) { return std::to_string(outputs.files[last].id); };
      v1::OutputPage_var out = new v1::OutputPage();
      to_idl(outputs, out->outputs);
      const std::string next = outputs.files.size() == limit ? after(limit - 1) : "";
      to_octets(end_page(out->outputs, next, after), out->next);
      return out._retn();
    });
  }

  v1::LogPart* read_log(v1::JobId job, v1::AttemptNumber attempt, CORBA::ULong stream,
                        v1::ByteCount offset, v1::Duration hold) override {
    return guard_call([&] {
      const LogPiece piece = s_.logs.read(
          s_.access.submitter(), {job, attempt, static_cast<FileKind>(stream), offset, hold});
      v1::LogPart_var out = new v1::LogPart();
      out->attempt = piece.attempt;
      out->offset = offset;
      to_octets(piece.text, out->text);
      out->ended = piece.ended;
      if (!piece.machine.empty()) add_detail(out->more, "machine", piece.machine);
      if (piece.cut) add_detail(out->more, "cut", "yes");
      if (piece.busy) add_detail(out->more, "busy", "yes");
      return out._retn();
    });
  }

  v1::ChangePage* changes_since(v1::HistoryNumber since, v1::Duration hold) override {
    return guard_call([&] {
      ChangeList list = s_.jobs.changes_since(s_.access.submitter(), since, hold);
      v1::ChangePage_var out = new v1::ChangePage();
      out->items.length(list.items.size());
      for (size_t i = 0; i < list.items.size(); ++i) to_idl(list.items[i], out->items[i]);
      out->last = list.last;
      const CORBA::ULong count = fitting(out->items);
      if (count < out->items.length()) {
        out->items.length(count);
        out->last = list.items[count - 1].number;
      }
      out->gap = list.gap;
      return out._retn();
    });
  }

  v1::PoolInfo* about() override {
    return guard_call([&] {
      s_.access.caller();
      uint64_t waiting = 0, machines = 0;
      s_.pipeline.perform([&](Turn& turn) {
        waiting = turn.pool().waiting();
        machines = turn.pool().machines().size();
      });
      v1::PoolInfo_var out = new v1::PoolInfo();
      out->name = CORBA::string_dup(to_utf8(s_.pool_name).c_str());
      out->version = CORBA::string_dup(SUBLET_VERSION);
      to_octets(s_.pool_id, out->id);
      out->term = s_.term;
      out->uptime = (system_clock().utc_us() - s_.started) / 1000;
      out->capabilities = capabilities();
      add_detail(out->more, "waiting", std::to_string(waiting));
      add_detail(out->more, "machines", std::to_string(machines));
      add_detail(out->more, "server_pid", std::to_string(getpid()));
      return out._retn();
    });
  }

 private:
  v1::Control* control(const v1::RequestId& request, const v1::JobFilter& which,
                       const JobService::Act& act) {
    return guard_call([&] {
      auto result =
          s_.jobs.control(s_.access.submitter(), from_octets(request), act, from_idl(which));
      v1::Control_var out = new v1::Control();
      out->changed = result.changed;
      out->unchanged = result.unchanged;
      return out._retn();
    });
  }

  std::map<MachineId, std::string> machine_names(const std::vector<JobRow>& rows) {
    std::map<MachineId, std::string> names;
    for (const auto& row : rows) names[row.machine];
    s_.pipeline.perform([&](Turn& turn) {
      for (auto& [id, name] : names)
        if (auto view = turn.pool().machine(id)) name = view->record.name;
    });
    return names;
  }

  static void add_live(const LiveStatus& live, v1::Details& more) {
    if (live.at_risk_ms >= 0) add_detail(more, "at_risk_ms", std::to_string(live.at_risk_ms));
    if (!live.message.empty()) add_detail(more, "message", live.message);
  }

  static void add_forecast(const scheduling::Forecast& forecast, v1::Details& more) {
    if (forecast.sentence.empty()) return;
    add_detail(more, "forecast", forecast.sentence);
    if (forecast.starts_at) add_detail(more, "starts_at", std::to_string(*forecast.starts_at));
  }

  const Services s_;
};

}  // namespace

PortableServer::Servant make_job_scheduler(const Services& services) {
  return new JobSchedulerServant(services);
}

}  // namespace sublet::server
