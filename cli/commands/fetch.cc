// fetch. With --follow it fetches the outputs of the user's jobs as they end. It runs and writes
// as the user. Nothing depends on it: outputs that it has not fetched stay in the spool.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/interrupts.h"
#include "cli/pool/pool_client.h"
#include "cli/transfer/fetching.h"
#include "cli/transfer/follow_state.h"
#include "cli/transfer/submission.h"

namespace sublet::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kHoldMs = 10'000;
constexpr auto kFirstPause = std::chrono::milliseconds(100);
constexpr auto kLongestPause = std::chrono::seconds(10);
constexpr auto kShortestRound = std::chrono::milliseconds(200);
constexpr auto kTryAgain = std::chrono::seconds(30);
constexpr size_t kMostPending = 1'000;

bool has_outputs(uint32_t state) { return state == kDone || state == kFailed; }

// Whether the error will pass: the server is down, or is checking its copy.
bool passing(const PoolError& e) {
  return e.kind == ErrorKind::unavailable &&
         (e.code.starts_with("server.") || e.code == "spool.checking");
}

// Whether the error is on this machine and can be corrected by the user.
bool is_local(const PoolError& e) {
  return e.code.starts_with("output.") && e.code != "output.name" && e.code != "output.twice";
}

PoolError not_kept(const FileError& e) {
  return {
      ErrorKind::unavailable, "fetch.state",
      std::string("cannot record what has been fetched: ") + e.what(),
      "set $XDG_STATE_HOME to a folder that you can write to; `sublet fetch JOB` needs no record",
      e.path()};
}

// Makes the folder and locks it, so that only one `fetch --follow` runs at a time.
FolderLock locked(const std::string& folder) {
  try {
    system_files().make_folders(folder, 0700);
    return FolderLock(folder);
  } catch (const FileError& e) {
    if (e.code() == EBUSY) throw;
    throw not_kept(e);
  }
}

class Follower {
 public:
  Follower(Context& context, FetchOptions options, const std::string& folder)
      : context_(context), options_(std::move(options)), folder_(folder), user_(context.user()) {
    std::string damage;
    state_ = read_follow_state(system_files(), folder_, &damage);
    if (!damage.empty()) say("sublet: " + damage);
  }

  [[noreturn]] void run() {
    begin();
    try_pending();  // includes what was being fetched when the last run ended
    while (true) {
      const auto asked = Clock::now();
      const ChangePage page =
          patiently([&] { return pool().changes_since(state_.since, kHoldMs); });
      // A history that was empty at the start gave no position to continue from.
      const bool unseen = page.gap || (state_.since == 0 && page.last > 0);
      if (unseen) catch_up();
      for (const Change& change : page.items) deal_with(change);
      state_.since = std::max(state_.since, page.last);
      if (unseen || !page.items.empty()) save();
      if (Clock::now() >= next_try_) try_pending();
      if (!page.items.empty()) continue;
      if (!unseen) caught_up_.clear();  // their changes have arrived, or never will
      // Avoids spinning: with an empty history or too many observers the server answers at once.
      std::this_thread::sleep_until(asked + kShortestRound);
    }
  }

 private:
  PoolClient& pool() { return context_.pool(); }
  void save() {
    try {
      write_follow_state(system_files(), folder_, state_);
    } catch (const FileError& e) {
      throw not_kept(e);
    }
  }

  void begin() {
    if (state_.at_us == 0) {
      state_.since = patiently([&] { return pool().changes_since(0, 0).last; });
      state_.at_us = std::chrono::duration_cast<std::chrono::microseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
      save();
    }
    say("sublet: fetching outputs as jobs end; Ctrl-C stops it, nothing is lost");
  }

  // Repeats the call as long as the server is unreachable.
  template <typename F>
  auto patiently(F call) -> decltype(call()) {
    auto pause = std::chrono::milliseconds(kFirstPause);
    for (bool said = false;; said = true) {
      try {
        return call();
      } catch (const PoolError& e) {
        if (!passing(e)) throw;
        if (!said && e.code != "spool.checking") say(error_line(e) + " (still waiting)");
        std::this_thread::sleep_for(pause);
        pause = std::min<std::chrono::milliseconds>(2 * pause, kLongestPause);
      }
    }
  }

  void deal_with(const Change& change) {
    state_.since = change.number;
    state_.at_us = change.at_us;
    if (has_outputs(change.state) && caught_up_.erase(change.job) == 0) take(change.job);
  }

  // Handles all jobs that have ended since the last known change, because the server has no
  // record of the changes. Changes of these jobs that it does have will arrive again.
  void catch_up() {
    JobFilter filter;
    filter.user = user_;
    filter.states = {kDone, kFailed};
    std::string cursor;
    do {
      const JobPage page = patiently([&] { return pool().list(filter, cursor, kPageLimit); });
      for (const JobSummary& job : page.jobs)
        if (job.changed_us > state_.at_us) {
          take(job.id);
          caught_up_.insert(job.id);
        }
      cursor = page.next;
    } while (!cursor.empty());
  }

  void try_pending() {
    const std::map<uint64_t, bool> pending = state_.pending;
    for (const auto& [job, by_job] : pending) take(job);
    if (!pending.empty()) save();
    next_try_ = Clock::now() + kTryAgain;
  }

  // Fetches the outputs of one job and prints the result. This is noted in state_ and saved
  // with the next change: at worst the job is fetched again into the same place.
  void take(uint64_t job) {
    try {
      if (const auto detail = own_job(job)) fetch(*detail);
      state_.pending.erase(job);
      complained_.erase(job);
    } catch (const PoolError& e) {
      const bool again = is_local(e);
      if (complained_.insert(job).second)
        say("sublet: job " + std::to_string(job) + ": " + error_line(e) +
            (again ? " (will retry)" : ""));
      if (!again) state_.pending.erase(job);
    }
    if (state_.pending.size() > kMostPending)
      throw PoolError(ErrorKind::limit_exceeded, "fetch.pending",
                      "the outputs of more than 1,000 jobs cannot be written",
                      "make room, or use --into, and start again");
  }

  std::optional<JobDetail> own_job(uint64_t job) {
    try {
      JobDetail detail = patiently([&] { return pool().show(job); });
      if (detail.summary.user != user_) return {};  // an administrator sees all jobs
      return detail;
    } catch (const PoolError& e) {
      if (e.kind == ErrorKind::not_permitted || e.kind == ErrorKind::not_found) return {};
      throw;
    }
  }

  // The folder for its outputs; empty: not on this machine.
  std::string home_of(const JobDetail& job) const {
    if (!options_.into.empty()) return options_.into;
    return job.description.submit_host == host_name() ? job.description.submit_folder : "";
  }

  // Whether one of its files exists there: nothing is replaced.
  bool taken(const JobDetail& job, const std::string& folder) const {
    for (const PlannedFile& file : plan_fetch({job}, false)) {
      struct stat there {};
      if (lstat((folder + "/" + file.target).c_str(), &there) == 0) return true;
    }
    return false;
  }

  void fetch(const JobDetail& job) {
    const uint64_t id = job.summary.id;
    FetchOptions options = options_;
    options.into = home_of(job);
    if (options.into.empty()) {
      say("sublet: job " + std::to_string(id) +
          " was submitted on another machine; its outputs stay on the server (use --into to fetch "
          "them here)");
      return;
    }
    // Decided once: later the existing files may be its own.
    if (!state_.pending.count(id)) {
      state_.pending[id] = options_.by_job || taken(job, options.into);
      save();
    }
    options.by_job = state_.pending[id];
    JobFilter filter;
    filter.ids = {{id, 1}};
    const FetchResult result = patiently([&] { return fetch_jobs(context_, filter, options); });
    tell(job, result, options);
  }

  void tell(const JobDetail& job, const FetchResult& result, const FetchOptions& options) {
    if (context_.json) {
      JsonWriter json;
      json.begin_object().field("job", job.summary.id).key("fetched");
      write_json(json, result, options);
      json.end_object();
      return print(json.str() + "\n");
    }
    std::string where = options.into;
    if (options.by_job) where += "/" + std::to_string(job.summary.id);
    print("job " + std::to_string(job.summary.id) + " " + escape_for_terminal(job.summary.name) +
          ": " + counted(result.files.size(), "file") + " (" + format_bytes(result.bytes) + ")" +
          (result.files.empty() ? "" : " into " + escape_for_terminal(where)) + "\n");
  }

  Context& context_;
  const FetchOptions options_;  // into: empty for the folder each job was submitted from
  const std::string folder_;    // of the state file
  const std::string user_;
  FollowState state_;
  std::set<uint64_t> caught_up_;   // already handled: their changes are skipped
  std::set<uint64_t> complained_;  // jobs whose failure has been reported
  Clock::time_point next_try_{};
};

int exit_of(const FetchResult& fetched) {
  if (!fetched.unfinished.empty()) return exit_status(ErrorKind::conflict);
  return fetched.removed.empty() ? 0 : exit_status(ErrorKind::not_found);
}

int fetch_once(const Selection& selection, const FetchOptions& options, Context& context) {
  FetchResult fetched = fetch_jobs(context, selection.filter(), options);
  if (context.json) {
    JsonWriter json;
    write_json(json, fetched, options);
    print(json.str() + "\n");
  } else {
    report_fetch(fetched, options);
  }
  return exit_of(fetched);
}

int follow(FetchOptions options, Context& context) {
  if (!options.into.empty()) options.into = std::filesystem::absolute(options.into).string();
  const std::string folder = follow_folder(context.server());
  const FolderLock lock = locked(folder);  // one at a time: nothing is fetched twice
  WhenInterrupted tell(
      [] { say("sublet: stopped; the next `sublet fetch --follow` continues from here"); });
  Follower(context, std::move(options), folder).run();
}

struct Options {
  Selection selection;
  FetchOptions into;
  bool follow = false;
};

int run_fetch(const Options& o, Context& context) {
  if (!o.follow) {
    FetchOptions once = o.into;
    if (once.into.empty()) once.into = ".";
    return fetch_once(o.selection, once, context);
  }
  if (!o.selection.jobs.empty() || !o.selection.batch.empty())
    throw PoolError(ErrorKind::usage, "usage.fetch",
                    "--follow fetches the outputs of all your jobs, and takes no JOB or --batch",
                    "`sublet wait --fetch JOB` waits for these jobs");
  return follow(o.into, context);
}

}  // namespace

Command fetch_command(Arguments& top) {
  auto o = std::make_shared<Options>();
  o->into.into.clear();  // --follow: the folder from which each job was submitted
  Arguments& a = top.command("fetch",
                             "Fetch the outputs of jobs that have ended; with --follow, those of "
                             "each of your jobs as it ends");
  o->selection.declare(a);
  o->into.declare(a);
  a.flag("--follow", &o->follow,
         "until Ctrl-C, fetch the outputs of each of your jobs as it ends, into the folder from "
         "which it was submitted. Existing files are not replaced: if one is in the way, the "
         "outputs go into a folder named after the job's id");
  return {&a, [o](Context& context) { return run_fetch(*o, context); }};
}

}  // namespace sublet::cli
