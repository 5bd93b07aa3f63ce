#include "cli/rehearse/report.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "checkpoint-api/interval.h"

namespace sublet::cli {

namespace {

struct Sums {
  explicit Sums(const RehearsalReport& report) {
    for (const RunReport& run : report.runs) {
      interruptions += run.ended.interruptions;
      handled += run.ended.handled;
      saves += run.ended.saves;
      anew += run.ended.anew;
      cut_saves += run.ended.cut_saves;
      failed += !run.differences.empty();
      bytes = std::max(bytes, run.ended.bytes);
      save_us = std::max(save_us, run.ended.save_us);
      measured += run.repeated_us.has_value();
      repeated_us += run.repeated_us.value_or(0);
      gone_us.insert(gone_us.end(), run.ended.gone_us.begin(), run.ended.gone_us.end());
    }
    std::ranges::sort(gone_us);
  }
  uint64_t interruptions = 0, handled = 0, saves = 0, cut_saves = 0, anew = 0, failed = 0,
           bytes = 0;
  int64_t save_us = 0, repeated_us = 0, measured = 0;
  std::vector<int64_t> gone_us;
};

std::string verdict_sentence(const RehearsalReport& report, const Sums& sums) {
  switch (report.verdict) {
    case Verdict::passed:
      return "passed: " + counted(report.runs.size(), "interrupted run") +
             " ended as the undisturbed one did";
    case Verdict::differs:
      return "failed: " + std::to_string(sums.failed) + " of " +
             counted(report.runs.size(), "interrupted run") + " did not end as the undisturbed one";
    case Verdict::not_deterministic:
      return "failed: two undisturbed runs differ already, so nothing can be said of interrupted "
             "ones; if the difference does not matter, compare with --compare COMMAND";
    case Verdict::never_saved:
      return "failed: it never saved: every interruption starts it anew" +
             std::string(sums.handled == 0 ? "; nothing in it handles the request to save" : "");
    case Verdict::never_interrupted:
      return "failed: it ended before it could be interrupted; give it more to do";
  }
  return "";
}

std::string undisturbed_line(const Undisturbed& whole) {
  std::string line = "undisturbed: " + short_time_us(whole.wall_us) + ", CPU time " +
                     short_time_us(whole.cpu_us) + ", " + whole.outcome.end;
  if (whole.points != 0) line += ", " + counted(whole.points, "safe point");
  return line + "\n";
}

// The time between its saves late in a long run, if it leaves the choice to the checkpoint API and
// machines are idle as long as is taken where nothing is known. nullopt: it does not use that.
std::optional<int64_t> chosen_interval_us(const RehearsalReport& report, const Sums& sums) {
  if (report.undisturbed.points == 0 || sums.save_us == 0) return std::nullopt;
  sublet_save_costs costs = {};
  sublet_add_save(&costs, static_cast<uint64_t>(sums.save_us), 0);
  constexpr uint64_t kLateMs = UINT64_MAX / 2;
  return 1000 *
         static_cast<int64_t>(sublet_next_save_ms(&costs, kLateMs, SUBLET_MEAN_IDLE_DEFAULT_S));
}

std::string interval_line(const RehearsalReport& report, const Sums& sums) {
  const Undisturbed& whole = report.undisturbed;
  std::string line = "saves by itself: ";
  line += whole.saves == 0 ? "none in this time"
                           : std::to_string(whole.saves) + ", every " +
                                 short_time_us(whole.wall_us / static_cast<int64_t>(whole.saves));
  if (const auto us = chosen_interval_us(report, sums))
    line += "; in a long run every " + short_time_us(*us) + " unless it chooses the period";
  else if (whole.saves == 0)
    line += ", only when it is asked";
  return line + "\n";
}

std::string sums_lines(const RehearsalReport& report, const Sums& sums) {
  std::string text = "interrupted: " + counted(sums.interruptions, "time") + ", " +
                     counted(sums.saves, "save") + " carried over";
  if (sums.saves != 0) text += ", the largest " + format_bytes(sums.bytes);
  if (sums.save_us != 0) text += ", the slowest took " + short_time_us(sums.save_us);
  if (sums.cut_saves != 0) text += "; killed in " + counted(sums.cut_saves, "save");
  text += "\n";
  if (!sums.gone_us.empty())
    text += "from the request until it was gone: half within " +
            short_time_us(sums.gone_us[sums.gone_us.size() / 2]) + ", all within " +
            short_time_us(sums.gone_us.back()) + "\n";
  const int64_t all_us = report.undisturbed.cpu_us * sums.measured + sums.repeated_us;
  if (sums.measured != 0)
    text += "work repeated: " + short_time_us(sums.repeated_us) + " of " + short_time_us(all_us) +
            " CPU time\n";
  if (sums.anew != 0)
    text += counted(sums.anew, "attempt") + " began anew although there was a checkpoint\n";
  return text;
}

std::string runs_table(const RehearsalReport& report, const Terminal& terminal) {
  std::vector<Row> rows;
  for (size_t i = 0; i < report.runs.size(); ++i) {
    const RunReport& run = report.runs[i];
    const auto slowest = std::ranges::max_element(run.ended.gone_us);
    rows.push_back({{std::to_string(i + 1), run.what, std::to_string(run.ended.interruptions),
                     std::to_string(run.ended.saves),
                     run.ended.bytes == 0 ? "" : format_bytes(run.ended.bytes),
                     slowest == run.ended.gone_us.end() ? "" : short_time_us(*slowest),
                     run.repeated_us ? short_time_us(*run.repeated_us) : "",
                     run.differences.empty() ? "same" : "differs"},
                    run.differences.empty() ? Colour::none : Colour::red});
  }
  return list_table({{"RUN", true, 3, 9},
                     {"INTERRUPTED", false, 12, 5},
                     {"TIMES", true, 5, 4},
                     {"SAVES", true, 5, 3},
                     {"SIZE", true, 8, 2},
                     {"GONE IN", true, 7, 2},
                     {"REPEATED", true, 8, 1},
                     {"RESULT", false, 7, 8}},
                    rows, terminal.columns, terminal.colour);
}

std::string details(const RehearsalReport& report) {
  std::string text;
  for (const std::string& difference : report.undisturbed_differences)
    text += "undisturbed once more: " + difference + "\n";
  for (size_t i = 0; i < report.runs.size(); ++i)
    for (const std::string& difference : report.runs[i].differences)
      text += "run " + std::to_string(i + 1) + ": " + difference + "\n";
  if (report.parting) text += parting_text(*report.parting, report.undisturbed.points) + "\n";
  return text;
}

void write_texts(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts) {
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_json(JsonWriter& json, const RunReport& run) {
  json.begin_object().field("interrupted", run.what).field("times", run.ended.interruptions);
  json.field("saves", run.ended.saves).field("bytes", run.ended.bytes);
  json.field("save_us", run.ended.save_us).key("gone_us").begin_array();
  for (const int64_t us : run.ended.gone_us) json.value(us);
  json.end_array().field("cpu_us", run.ended.cpu_us);
  if (run.repeated_us) json.field("repeated_us", *run.repeated_us);
  json.field("cut_saves", run.ended.cut_saves).field("anew", run.ended.anew);
  write_texts(json, "differences", run.differences);
  json.end_object();
}

void write_undisturbed(JsonWriter& json, const RehearsalReport& report, const Sums& sums) {
  const Undisturbed& whole = report.undisturbed;
  json.begin_object().field("end", whole.outcome.end).field("wall_us", whole.wall_us);
  json.field("cpu_us", whole.cpu_us).field("points", whole.points).field("saves", whole.saves);
  if (const auto us = chosen_interval_us(report, sums)) json.field("interval_ms", *us / 1000);
  write_texts(json, "differences", report.undisturbed_differences);
  json.end_object();
}

}  // namespace

std::string report_text(const RehearsalReport& report, const Terminal& terminal) {
  const Sums sums(report);
  std::string text = verdict_sentence(report, sums) + "\n" + details(report) + "\n" +
                     undisturbed_line(report.undisturbed);
  if (report.runs.empty()) return text;
  return text + interval_line(report, sums) + sums_lines(report, sums) +
         "seed: " + std::to_string(report.seed) + "\n\n" + runs_table(report, terminal);
}

std::string report_json(const RehearsalReport& report) {
  const Sums sums(report);
  JsonWriter json;
  json.begin_object().field("verdict", verdict_name(report.verdict));
  json.field("says", verdict_sentence(report, sums)).field("seed", report.seed);
  json.key("undisturbed");
  write_undisturbed(json, report, sums);
  json.key("runs").begin_array();
  for (const RunReport& run : report.runs) write_json(json, run);
  json.end_array();
  if (report.parting) {
    json.key("parting").begin_object();
    json.field("interrupted_at", report.parting->interrupted_at);
    json.field("same", report.parting->same).field("other", report.parting->other);
    json.field("what", report.parting->what).end_object();
  }
  json.end_object();
  return json.str() + "\n";
}

}  // namespace sublet::cli
