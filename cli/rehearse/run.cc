#include "cli/rehearse/run.h"

#include <algorithm>

#include "base/files.h"
#include "base/text.h"
#include "cli/views/output.h"

namespace sublet::cli {

namespace {

using Way = Interruption::Way;

// A program that asks to be run again must get somewhere.
constexpr uint64_t kMostInVain = 5;
constexpr uint64_t kMostToCut = 4;
constexpr int64_t kDefaultWriteUs = 2'000;
constexpr uint64_t kLastLineBytes = 64 * 1024;

// The last line that it wrote to stderr, as a reason: ": ..." or "".
std::string last_words(const AttemptFolder& folder) {
  std::string text;
  try {
    text = system_files().read_file(folder.err(), kLastLineBytes);
  } catch (const FileError&) {
    return "";
  }
  while (text.ends_with('\n')) text.pop_back();
  const size_t begin = text.rfind('\n');
  text.erase(0, begin == std::string::npos ? 0 : begin + 1);
  return text.empty() ? "" : ", its stderr ends with \"" + escape_for_terminal(text) + "\"";
}

}  // namespace

AttemptFolder Runner::next_folder() {
  return make_attempt_folder(program_, run_folder() + "/" + std::to_string(++attempts_));
}

std::string Runner::run_folder() const { return folder_ + "/" + std::to_string(runs_); }

void Runner::begin_run() {
  ++runs_;
  attempts_ = 0;
}

void Runner::forget_run() { system_files().remove_tree(run_folder()); }

// The attempts of one run.
class Runner::Chain {
 public:
  explicit Chain(Runner& runner) : runner_(runner) {}

  // False: the run has ended with it.
  bool attempt(AttemptOrder order) {
    order.number = ++number_;
    order.longest_us = runner_.longest_us_;
    folder_ = runner_.next_folder();
    carried_.put_into(folder_);
    ended_ = run_attempt(runner_.program_, folder_, order);
    count();
    if (order.stop_at && ended_.asked) {
      if (run_.interruptions == 1) run_.first_point = *order.stop_at;
      run_.passed += *order.stop_at;
    }
    run_.cut_saves += ended_.cut_save;
    if (ended_.hung) {
      run_.problems.push_back("attempt " + std::to_string(number_) + " did not end: killed after " +
                              short_time_us(runner_.longest_us_));
      return finish();
    }
    if (!protocol::is_eviction(ended_.end)) return finish();
    return take();
  }

  Carried& carried() { return carried_; }
  const AttemptEnded& last() const { return ended_; }
  RunEnded& run() { return run_; }

 private:
  void count() {
    run_.wall_us += ended_.wall_us;
    run_.cpu_us += ended_.cpu_us;
    run_.interruptions += ended_.asked;
    run_.handled += ended_.asked && ended_.handled;
    run_.save_us = std::max(run_.save_us, ended_.save_us);
    if (ended_.gone_us >= 0) run_.gone_us.push_back(ended_.gone_us);
    if (ended_.aware && carried_.generation() != 0 && ended_.resumed_generation == 0) ++run_.anew;
    run_.points = ended_.points;
    run_.reported_saves =
        ended_.generation - std::min(ended_.generation, ended_.resumed_generation);
  }

  bool take() {
    const bool saved = carried_.take_from(folder_, ended_);
    run_.saves += saved;
    run_.bytes = std::max(run_.bytes, carried_.bytes());
    in_vain_ = saved || ended_.asked ? 0 : in_vain_ + 1;
    if (in_vain_ < kMostInVain) return true;
    run_.problems.push_back("it asked " + std::to_string(kMostInVain) +
                            " times to be run again and saved nothing new");
    return finish();
  }

  bool finish() {
    run_.outcome.end = ended_.how;
    if (ended_.how != "exit status 0") run_.last_words = last_words(folder_);
    run_.outcome.files = find_outputs(folder_.work(), runner_.program_.job.what.outputs);
    run_.outcome.files["stdout"] = folder_.out();
    return false;
  }

  Runner& runner_;
  uint64_t number_ = 0;
  uint64_t in_vain_ = 0;
  AttemptFolder folder_;
  Carried carried_;
  AttemptEnded ended_;
  RunEnded run_;
};

RunEnded Runner::run_undisturbed(bool count_points) {
  begin_run();
  Chain chain(*this);
  AttemptOrder order;
  if (count_points) order.stop_at = 0;
  while (chain.attempt(order)) {
  }
  return std::move(chain.run());
}

// Of the attempt that this interruption ends.
AttemptOrder Runner::order_for(const Interruption& interruption, const Undisturbed& undisturbed,
                               const RunEnded& so_far) {
  const auto of = [&](int64_t whole) {
    return static_cast<int64_t>(interruption.share * static_cast<double>(whole));
  };
  AttemptOrder order;
  const uint64_t points_left = undisturbed.points - std::min(undisturbed.points, so_far.passed);
  if (interruption.way == Way::ask_at_point && points_left > 0)
    order.stop_at = 1 + static_cast<uint64_t>(of(static_cast<int64_t>(points_left)));
  else
    order.ask_after_us = of(std::max<int64_t>(undisturbed.wall_us - so_far.wall_us, 0));
  if (interruption.way == Way::kill_in_save)
    order.kill_after_write_us = of(so_far.save_us > 0 ? so_far.save_us : kDefaultWriteUs);
  return order;
}

RunEnded Runner::run_interrupted(const PlannedRun& plan, const Undisturbed& undisturbed) {
  begin_run();
  Chain chain(*this);
  for (Interruption interruption : plan.interruptions) {
    uint64_t tries = interruption.way == Way::kill_in_save ? kMostToCut : 1;
    do {
      const AttemptOrder order = order_for(interruption, undisturbed, chain.run());
      if (!chain.attempt(order)) return std::move(chain.run());
      interruption.share /= 2;  // it may have saved all before it could be killed
    } while (!chain.last().cut_save && --tries > 0);
    if (interruption.loses_newest) chain.carried().lose_newest();
  }
  while (chain.attempt({})) {
  }
  return std::move(chain.run());
}

Runner::Reached Runner::run_to_point(const Carried& from, uint64_t point) {
  begin_run();
  const AttemptFolder folder = next_folder();
  from.put_into(folder);
  AttemptOrder order;
  order.stop_at = point;
  order.longest_us = longest_us_;
  const AttemptEnded ended = run_attempt(program_, folder, order);
  Reached reached{std::nullopt, ended.points};
  Carried state = from;
  if (ended.asked && state.take_from(folder, ended)) reached.state = std::move(state);
  return reached;
}

}  // namespace sublet::cli
