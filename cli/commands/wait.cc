// wait: waits until jobs have ended.
#include "cli/commands/commands.h"
#include "cli/commands/waiting.h"
#include "cli/interrupts.h"
#include "cli/pool/pool_client.h"
#include "cli/transfer/fetching.h"
#include "cli/views/jobs.h"

namespace sublet::cli {

namespace {

int run_wait(const Selection& selection, bool fetch, const FetchOptions& options,
             Context& context) {
  context.timeout_is_mine();
  JobFilter filter = selection.filter();
  std::optional<int64_t> timeout = context.timeout_ms();
  if (std::optional<PoolError> missing = missing_jobs(context.pool(), filter)) throw *missing;
  if (fetch) options.check_folder(true);
  std::optional<WhenInterrupted> interrupted(
      std::in_place,
      tell_how_to_continue(context, filter, fetch ? "--fetch " + options.words() : ""));
  WaitResult result = wait_for_jobs(context, filter, timeout);
  int status = report_wait(context, filter, result);
  FetchResult fetched;
  bool do_fetch = fetch && !result.timed_out;
  if (do_fetch) fetched = fetch_jobs(context, filter, options);
  interrupted.reset();  // with --json one object is printed
  if (context.json) {
    JsonWriter json;
    json.begin_object().field("timed_out", result.timed_out);
    json.field("evictions_seen", result.evictions).field("stopped", result.stopped);
    json.key("counts");
    write_json(json, result.counts);
    if (do_fetch) {
      json.key("fetched");
      write_json(json, fetched, options);
    }
    json.end_object();
    print(json.str() + "\n");
  } else if (do_fetch) {
    report_fetch(fetched, options);
  }
  return status;
}

}  // namespace

Command wait_command(Arguments& top) {
  struct Options {
    Selection selection;
    bool fetch = false;
    FetchOptions into;
  };
  auto o = std::make_shared<Options>();
  Arguments& a = top.command(
      "wait", "Wait until jobs have ended; Ctrl-C leaves them running. Exit status 1: some failed");
  o->selection.declare(a);
  a.flag("--fetch", &o->fetch, "then fetch their outputs");
  o->into.declare(a);
  return {&a, [o](Context& context) { return run_wait(o->selection, o->fetch, o->into, context); }};
}

}  // namespace sublet::cli
