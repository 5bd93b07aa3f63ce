#include "cli/rehearse/rehearsal.h"

#include <algorithm>

namespace sublet::cli {

namespace {

// A run that takes so much longer than an undisturbed one hangs. The machine may be busy.
constexpr int64_t kLongestTimes = 20;
constexpr int64_t kLongestBeyondUs = 60'000'000;
// How often a run that ended before its first interruption is tried again, each time earlier.
constexpr int kTooLate = 4;

class Rehearsal {
 public:
  Rehearsal(const RehearsalOptions& options, const std::string& folder,
            const std::function<void(uint64_t, const std::string&)>& tell)
      : options_(options), runner_(options.program, folder), folder_(folder), tell_(tell) {
    report_.seed = options.seed;
  }

  RehearsalReport run() {
    run_undisturbed();
    if (report_.undisturbed_differences.empty()) run_interrupted();
    report_.verdict = judge();
    if (report_.verdict == Verdict::differs) find_where();
    return std::move(report_);
  }

 private:
  void run_undisturbed();
  void run_interrupted();
  RunEnded run_planned(PlannedRun plan);
  std::vector<std::string> compare(const Outcome& outcome) const;
  Verdict judge() const;
  void find_where();
  int64_t patience_us() const {
    return kLongestTimes * report_.undisturbed.wall_us + kLongestBeyondUs;
  }

  const RehearsalOptions& options_;
  Runner runner_;
  const std::string folder_;
  const std::function<void(uint64_t, const std::string&)>& tell_;
  RehearsalReport report_;
};

std::vector<std::string> Rehearsal::compare(const Outcome& outcome) const {
  const Outcome& whole = report_.undisturbed.outcome;
  const std::string& command = options_.program.compare;
  return command.empty() ? differences(whole, outcome)
                         : differences_by(command, whole, outcome, folder_);
}

// The second one tells a program that does not resume from one whose results always differ, and
// counts its points.
void Rehearsal::run_undisturbed() {
  tell_(0, "undisturbed");
  const RunEnded first = runner_.run_undisturbed(false);
  if (!first.problems.empty())
    throw PoolError(ErrorKind::invalid, "rehearse.undisturbed",
                    "undisturbed, " + first.problems.front(), "");
  Undisturbed& undisturbed = report_.undisturbed;
  undisturbed.outcome = first.outcome;
  undisturbed.wall_us = first.wall_us;
  undisturbed.cpu_us = first.cpu_us;
  undisturbed.saves = first.reported_saves + first.saves;
  undisturbed.save_us = first.save_us;
  runner_.set_longest_us(patience_us());
  tell_(0, "undisturbed once more");
  const RunEnded second = runner_.run_undisturbed(true);
  undisturbed.points = second.points;
  report_.undisturbed_differences = compare(second.outcome);
}

RunEnded Rehearsal::run_planned(PlannedRun plan) {
  RunEnded ended = runner_.run_interrupted(plan, report_.undisturbed);
  for (int i = 0; i < kTooLate && ended.interruptions == 0; ++i) {
    for (Interruption& interruption : plan.interruptions) interruption.share /= 2;
    ended = runner_.run_interrupted(plan, report_.undisturbed);
  }
  return ended;
}

void Rehearsal::run_interrupted() {
  uint64_t number = 0;
  for (const PlannedRun& plan :
       draw_runs(options_.seed, options_.runs, report_.undisturbed.points > 0)) {
    tell_(++number, plan.what);
    RunReport run;
    run.what = plan.what;
    run.ended = run_planned(plan);
    run.differences = run.ended.problems;
    for (std::string& difference : compare(run.ended.outcome))
      run.differences.push_back(std::move(difference));
    if (!run.differences.empty()) run.differences.front() += run.ended.last_words;
    if (run.ended.passed == 0)
      run.repeated_us = std::max<int64_t>(run.ended.cpu_us - report_.undisturbed.cpu_us, 0);
    if (run.differences.empty()) runner_.forget_run();
    report_.runs.push_back(std::move(run));
  }
}

Verdict Rehearsal::judge() const {
  if (!report_.undisturbed_differences.empty()) return Verdict::not_deterministic;
  uint64_t interruptions = 0, saves = 0;
  for (const RunReport& run : report_.runs) {
    if (!run.differences.empty()) return Verdict::differs;
    interruptions += run.ended.interruptions;
    saves += run.ended.saves;
  }
  if (interruptions == 0) return Verdict::never_interrupted;
  return saves == 0 ? Verdict::never_saved : Verdict::passed;
}

void Rehearsal::find_where() {
  const uint64_t points = report_.undisturbed.points;
  if (points < 2) return;
  uint64_t at = points / 2;
  for (const RunReport& run : report_.runs)
    if (!run.differences.empty() && run.ended.first_point && *run.ended.first_point < points) {
      at = *run.ended.first_point;
      break;
    }
  tell_(report_.runs.size() + 1, "where the runs part");
  report_.parting = find_parting(runner_, points, at, patience_us());
}

}  // namespace

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return "passed";
    case Verdict::differs:
      return "differs";
    case Verdict::not_deterministic:
      return "not-deterministic";
    case Verdict::never_saved:
      return "never-saved";
    case Verdict::never_interrupted:
      return "never-interrupted";
  }
  return "";
}

RehearsalReport rehearse(const RehearsalOptions& options, const std::string& folder,
                         const std::function<void(uint64_t, const std::string&)>& tell) {
  return Rehearsal(options, folder, tell).run();
}

}  // namespace sublet::cli
