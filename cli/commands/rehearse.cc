// rehearse: does a program end the same when it is interrupted? Needs no server.
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/files.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_options.h"
#include "cli/interrupts.h"
#include "cli/rehearse/report.h"

namespace sublet::cli {

namespace {

constexpr int64_t kDefaultDeadlineMs = 2000;
constexpr int64_t kMostRuns = 10'000;

struct RehearseOptions {
  std::vector<std::string> command;
  JobOptions job;
  int64_t runs = 10;
  int64_t seed = 1;
  std::string compare;
  bool keep = false;
};

// For all files of the rehearsal; removed with it.
class RehearsalFolder {
 public:
  explicit RehearsalFolder(bool keep) : keep_(keep) {
    path_ = (std::filesystem::temp_directory_path() / "sublet-rehearse-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) throw FileError(errno, "make", path_);
  }
  RehearsalFolder(const RehearsalFolder&) = delete;
  ~RehearsalFolder() { remove(); }

  void remove() {
    if (keep_) return;
    try {
      system_files().remove_tree(path_);
    } catch (const FileError& error) {
      say(std::string("sublet: ") + error.what());
    }
  }
  const std::string& path() const { return path_; }

 private:
  const bool keep_;
  std::string path_;
};

RehearsalOptions options_of(const RehearseOptions& o) {
  if (o.command.empty()) usage_error("nothing to run", "write `sublet rehearse -- PROGRAM ARGS`");
  if (o.runs < 1 || o.runs > kMostRuns)
    usage_error("--runs must be between 1 and " + std::to_string(kMostRuns), "");
  RehearsalOptions options;
  options.program.job = plan_of_command(o.job, o.command).jobs.front();
  const int64_t deadline_ms = options.program.job.what.save_deadline_ms;
  options.program.deadline_ms = deadline_ms == 0 ? kDefaultDeadlineMs : deadline_ms;
  options.program.compare = o.compare;
  options.runs = static_cast<uint64_t>(o.runs);
  options.seed = static_cast<uint64_t>(o.seed);
  return options;
}

int run_rehearse(const RehearseOptions& o, const Context& context) {
  const RehearsalOptions options = options_of(o);
  RehearsalFolder folder(o.keep);
  const WhenInterrupted interrupted([&] {
    stop_all();
    folder.remove();
  });
  const auto tell = [&](uint64_t number, const std::string& what) {
    if (!context.terminal.err_is_screen) return;
    const std::string run = number == 0 || number > options.runs
                                ? what
                                : "run " + std::to_string(number) + " of " +
                                      std::to_string(options.runs) + ": interrupted " + what;
    show_progress(run, context.terminal.err_columns);
  };
  const RehearsalReport report = rehearse(options, folder.path(), tell);
  end_progress();
  print(context.json ? report_json(report) : report_text(report, context.terminal));
  if (o.keep) say("the runs' files are in " + folder.path());
  return report.verdict == Verdict::passed ? 0 : kExitRehearsalFailed;
}

}  // namespace

Command rehearse_command(Arguments& top) {
  auto o = std::make_shared<RehearseOptions>();
  Arguments& a = top.command(
      "rehearse",
      "Run a program undisturbed and then interrupted, as a pool would interrupt it, and say "
      "whether it ends the same. Needs no pool.");
  a.passthrough("PROGRAM", &o->command, "program and its arguments");
  declare_program_options(a, &o->job);
  a.option("--runs", &o->runs, "how many interrupted runs (10)", "N");
  a.option("--seed", &o->seed, "draws other instants and points (1)", "N");
  a.option("--compare", &o->compare,
           "a shell command that compares the results instead: it gets two folders with stdout and "
           "the outputs, of an undisturbed and an interrupted run, and ends with 0 if they agree",
           "COMMAND");
  a.not_empty("--compare");
  a.flag("--keep", &o->keep, "do not remove the folders in which the program ran");
  return {&a, [o](Context& context) { return run_rehearse(*o, context); }};
}

}  // namespace sublet::cli
