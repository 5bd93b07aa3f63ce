// logs.
#include <map>
#include <thread>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/log_reading.h"
#include "cli/names.h"
#include "cli/pool/pool_client.h"
#include "cli/views/job_text.h"

namespace sublet::cli {

namespace {

constexpr int64_t kAll = INT64_MIN;

struct LogsOptions {
  std::string job;
  bool err = false;
  bool both = false;
  bool follow = false;
  bool raw = false;
  int64_t attempt = 0;
  int64_t tail = kAll;
};

const char* stream_name(FileKind kind) { return kind == FileKind::kStdout ? "stdout" : "stderr"; }

// Prints to our own streams: the job's stderr to our stderr if both are requested.
class PlainOutput : public LogOutput {
 public:
  PlainOutput(const LogsOptions& options, const Terminal& terminal)
      : options_(options),
        out_(terminal.out_is_terminal && !options.raw),
        err_((options.both ? terminal.err_is_terminal : terminal.out_is_terminal) && !options.raw) {
  }

  void attempt(uint32_t number, const std::string& machine) override {
    const std::string job = "job " + options_.job;
    if (number == 0)
      note(job + " has ended without running");
    else if (machine.empty())
      note(job + " is waiting for attempt " + std::to_string(number));
    else if (options_.follow)
      note("attempt " + std::to_string(number) + " on " + escape_for_terminal(machine));
  }
  void text(FileKind kind, uint64_t, const std::string& text) override {
    put(kind, of(kind).feed(text));
  }
  void end(FileKind kind, bool cut) override {
    put(kind, of(kind).finish());
    if (cut) note(std::string(stream_name(kind)) + " was cut at the job's limit");
  }
  void note(const std::string& sentence) override { say(sentence); }

 private:
  JobText& of(FileKind kind) { return kind == FileKind::kStdout ? out_ : err_; }
  void put(FileKind kind, const std::string& text) {
    if (kind == FileKind::kStderr && options_.both)
      print_error(text);
    else
      print(text);
  }

  const LogsOptions& options_;
  JobText out_;
  JobText err_;
};

// One object with all text, or, when following, one per line as text arrives.
class JsonOutput : public LogOutput {
 public:
  JsonOutput(const LogRequest& request) : request_(request) {
    for (FileKind kind : request.kinds) streams_[kind];
  }

  void attempt(uint32_t number, const std::string& machine) override {
    attempt_ = number;
    machine_ = machine;
    if (!request_.follow) return;
    JsonWriter json;
    json.begin_object().field("attempt", number).field("machine", machine).end_object();
    print(json.str() + "\n");
  }
  void text(FileKind kind, uint64_t offset, const std::string& text) override {
    Stream& stream = streams_[kind];
    if (!stream.begun) stream.offset = offset;  // later, held-back text comes first
    stream.begun = true;
    stream.text += request_.follow ? stream.characters.feed(text) : text;
    if (request_.follow) print_piece(kind, stream);
  }
  void end(FileKind kind, bool cut) override {
    Stream& stream = streams_[kind];
    stream.ended = true;
    stream.cut = cut;
    if (!request_.follow) return;
    stream.text += stream.characters.finish();
    print_piece(kind, stream);
    stream = {};
  }
  void note(const std::string&) override {}

  void print_all() const {
    JsonWriter json;
    json.begin_object().field("job", request_.job).field("attempt", attempt_);
    json.field("machine", machine_);
    for (const auto& [kind, stream] : streams_) {
      json.key(stream_name(kind)).begin_object();
      json.field("offset", stream.offset).field("text", stream.text);
      json.field("ended", stream.ended).field("cut", stream.cut).end_object();
    }
    json.end_object();
    print(json.str() + "\n");
  }
  void print_end(const JobDetail& job) const {
    JsonWriter json;
    json.begin_object().field("job", request_.job);
    json.field("state", job_state_name(job.summary.state)).end_object();
    print(json.str() + "\n");
  }

 private:
  struct Stream {
    bool begun = false;
    uint64_t offset = 0;  // of the first byte of `text`
    std::string text;     // not yet printed
    WholeCharacters characters;
    bool ended = false;
    bool cut = false;
  };

  void print_piece(FileKind kind, Stream& stream) {
    if (stream.text.empty()) return;
    JsonWriter json;
    json.begin_object().field("attempt", attempt_).field("stream", stream_name(kind));
    json.field("offset", stream.offset).field("text", stream.text).end_object();
    print(json.str() + "\n");
    stream.offset += stream.text.size();
    stream.text.clear();
  }

  const LogRequest& request_;
  uint32_t attempt_ = 0;
  std::string machine_;
  std::map<FileKind, Stream> streams_;
};

LogRequest log_request(const LogsOptions& o) {
  LogRequest request;
  request.job = parse_number(o.job, "job id");
  if (o.err && o.both)
    throw PoolError(ErrorKind::usage, "usage.streams", "give either --stderr or --both, not both");
  if (o.attempt < 0 || o.attempt > UINT32_MAX)
    throw PoolError(ErrorKind::usage, "usage.attempt", "attempts are counted from 1");
  if (o.tail < 0 && o.tail != kAll)
    throw PoolError(ErrorKind::usage, "usage.tail", "--tail takes a number of lines");
  if (!o.err) request.kinds.push_back(FileKind::kStdout);
  if (o.err || o.both) request.kinds.push_back(FileKind::kStderr);
  request.attempt = static_cast<uint32_t>(o.attempt);
  request.follow = o.follow;
  if (o.tail != kAll) request.tail = static_cast<uint64_t>(o.tail);
  return request;
}

int report_end(const JobDetail& job, bool quiet) {
  const JobSummary& s = job.summary;
  if (s.state == kDone) return 0;
  if (!quiet)
    say("job " + std::to_string(s.id) + " " + job_state_name(s.state) +
        (s.reason.empty() ? "" : ": " + escape_for_terminal(s.reason)));
  return kExitJobsFailed;
}

int run_logs(const LogsOptions& o, Context& context) {
  const LogRequest request = log_request(o);
  PlainOutput plain(o, context.terminal);
  JsonOutput json(request);
  LogOutput& output = context.json ? static_cast<LogOutput&>(json) : plain;
  LogReader reader(context.pool(), output, request,
                   [](std::chrono::milliseconds ms) { std::this_thread::sleep_for(ms); });
  const std::optional<JobDetail> ended = reader.run();
  if (context.json && !o.follow) json.print_all();
  if (context.json && ended) json.print_end(*ended);
  return ended ? report_end(*ended, context.json) : 0;
}

}  // namespace

Command logs_command(Arguments& top) {
  auto o = std::make_shared<LogsOptions>();
  Arguments& a = top.command("logs", "Print what a job writes, even while it runs");
  a.positional("JOB", &o->job, "id of the job", true);
  a.flag("--stderr", &o->err, "its standard error instead of its standard output");
  a.flag("--both", &o->both, "both, each to the corresponding stream");
  a.flag("--follow", &o->follow, "continue until the job has ended, from machine to machine");
  a.option("--attempt", &o->attempt, "that attempt only (the newest)", "N");
  a.option("--tail", &o->tail, "only the last N lines of what is already written", "N");
  a.flag("--raw", &o->raw, "even on a terminal, exactly what the job wrote");
  return {&a, [o](Context& context) { return run_logs(*o, context); }};
}

}  // namespace sublet::cli
