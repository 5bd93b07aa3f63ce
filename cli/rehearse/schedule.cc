#include "cli/rehearse/schedule.h"

#include <random>

namespace sublet::cli {

namespace {

using Way = Interruption::Way;

class Draws {
 public:
  Draws(uint64_t seed, bool counts_points) : generator_(seed), counts_points_(counts_points) {}

  // From 0 to 1, both excluded. The library's distributions differ between libraries.
  double share() { return (static_cast<double>(generator_() >> 12) + 0.5) * 0x1p-52; }
  Interruption at_instant() { return {Way::ask, share()}; }
  // Such interruptions never come too late, however fast the machine.
  Interruption at_point() {
    return counts_points_ ? Interruption{Way::ask_at_point, share()} : at_instant();
  }

 private:
  std::mt19937_64 generator_;
  const bool counts_points_;
};

constexpr uint64_t kKinds = 7;
constexpr double kShortly = 0.02;

PlannedRun draw_run(uint64_t kind, Draws& draws) {
  PlannedRun run;
  auto& all = run.interruptions;
  switch (kind) {
    case 0:
      run.what = "at an instant";
      all = {draws.at_instant()};
      break;
    case 1:
      run.what = "twice";
      all = {draws.at_point(), draws.at_point()};
      break;
    case 2:
      run.what = "killed during a save";
      all = {draws.at_point(), {Way::kill_in_save, draws.share()}};
      break;
    case 3:
      run.what = "from the older generation";
      all = {draws.at_point(), draws.at_point()};
      all.back().loses_newest = true;
      break;
    case 4:
      run.what = "again after a resume";
      all = {draws.at_point(), {Way::ask, kShortly * draws.share()}};
      break;
    case 5:
      run.what = "at the start";
      all = {{Way::ask, 0}};
      break;
    default:
      run.what = "three times";
      all = {draws.at_instant(), draws.at_point(), draws.at_instant()};
  }
  return run;
}

}  // namespace

std::vector<PlannedRun> draw_runs(uint64_t seed, uint64_t runs, bool counts_points) {
  Draws draws(seed, counts_points);
  std::vector<PlannedRun> drawn;
  for (uint64_t i = 0; i < runs; ++i) drawn.push_back(draw_run(i % kKinds, draws));
  return drawn;
}

}  // namespace sublet::cli
