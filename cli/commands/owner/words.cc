// owner pause, resume, reclaim, lend, until and status: words to the load monitor of this machine.
// They need no server and no root.
#include <cstring>
#include <ctime>

#include "base/json.h"
#include "base/options/default_places.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/owner/monitor.h"
#include "protocol/leaving.h"
#include "protocol/pause.h"

namespace sublet::cli {

namespace {

std::string sense_of(const sublet_frame& status) {
  switch (status.reason) {
    case SUBLET_PRESENCE_CPU:
      return "you are here: the CPU is in use";
    case SUBLET_PRESENCE_LOAD:
      return "you are here: the load is high";
    case SUBLET_PRESENCE_INPUT:
      return "you are here: keyboard, mouse or terminal";
    case SUBLET_PRESENCE_SETTLING:
      return "not until it has been quiet for another " + format_duration_ms(status.arg[0]);
    case SUBLET_PRESENCE_SCRIPT:
      return "the owner is simulated (--monitor-control)";
    case SUBLET_PRESENCE_BLIND:
      return "something could not be observed, which counts as your presence";
    case SUBLET_PRESENCE_UNSEEN:
      return "nothing shows the input of a graphical session, which counts as your presence: start "
             "sublet-agent there";
    case SUBLET_PRESENCE_MEDIA:
      return "you are here: sound, an open camera, or a program that keeps the screen on or fills "
             "it";
    case SUBLET_PRESENCE_RULE:
    case SUBLET_PRESENCE_WITHHELD:
      return "a rule of this machine keeps jobs away";
    case SUBLET_PRESENCE_SLEEP:
      return "the machine is about to sleep";
    default:
      return "you are away";
  }
}

// After how long of the owner's absence jobs may come.
std::string patience_of(const sublet_frame& status) {
  const bool here = status.state != SUBLET_PRESENCE_AWAY;
  if (!here || status.reason == SUBLET_PRESENCE_SETTLING || status.arg[0] <= 0) return "";
  return "; jobs may run after " + format_duration_ms(status.arg[0]) + " of quiet";
}

std::string jobs_line(const OwnerAnswer& answer) {
  if (answer.status.job == 0) return "no job is here\n";
  std::string line = counted(answer.status.job, "job") + (answer.status.job == 1 ? " is" : " are") +
                     " here or leaving:";
  for (const JobHere& one : answer.attempts) line += " " + std::to_string(one.job);
  if (answer.attempts.size() < answer.status.job) line += " and more";
  return line + "\n";
}

// Nothing if nothing is known.
std::string use_table(const OwnerAnswer& answer, const Context& context) {
  std::vector<Row> rows;
  for (const JobHere& one : answer.attempts)
    if (one.cpu_ms >= 0 || one.memory >= 0 || one.processes >= 0 || one.network >= 0)
      rows.push_back(
          {{std::to_string(one.job), one.cpu_ms < 0 ? "" : format_duration_ms(one.cpu_ms),
            one.memory < 0 ? "" : format_bytes(static_cast<uint64_t>(one.memory)),
            one.processes < 0 ? "" : std::to_string(one.processes),
            one.network < 0 ? "" : format_bytes(static_cast<uint64_t>(one.network))}});
  if (rows.empty()) return "";
  return "\n" + list_table({{"JOB", true, 3, 3},
                            {"CPU", true, 3, 2},
                            {"MEMORY", true, 5, 2},
                            {"PROCS", true, 3, 1},
                            {"NETWORK", true, 5, 1}},
                           rows, context.terminal.columns, context.terminal.colour);
}

std::string senses_table(const OwnerAnswer& answer, const Context& context) {
  if (answer.senses.empty()) return "";
  std::vector<Row> rows;
  for (const SeenBySense& seen : answer.senses)
    rows.push_back({{seen.sense, seen.keeps_jobs_away ? "no jobs" : "-", seen.value},
                    seen.keeps_jobs_away ? Colour::yellow : Colour::none});
  return "\n" + list_table({{"SENSE", false, 8, 3}, {"SAYS", false, 7, 2}, {"SEES", false, 8, 1}},
                           rows, context.terminal.columns, context.terminal.colour);
}

// `folder`: as given on the command line.
std::string text_of(const OwnerAnswer& answer, const std::string& folder) {
  const sublet_frame& status = answer.status;
  const int64_t left = status.arg[1];
  const bool withdrawn = status.attempt == SUBLET_OWNER_WITHDRAWN;
  std::string text;
  if (left != 0) {
    text = "paused by " + user_name(status.arg[2]) +
           (left < 0
                ? " until `sublet owner resume" + (folder.empty() ? "" : " --state " + folder) + "`"
                : " for another " + format_duration_ms((left + 999) / 1000 * 1000)) +
           ": no jobs\n";
  } else if (!withdrawn) {
    const bool may_come = sublet_jobs_may_come(status.state, status.reason);
    text = std::string(may_come ? "jobs may run" : "no jobs now") + ": " + sense_of(status) +
           patience_of(status) + "\n";
  }
  if (withdrawn)
    text += "withdrawn until `sublet owner lend" + (folder.empty() ? "" : " --state " + folder) +
            "`: no jobs\n";
  else if (status.attempt != 0)
    text += "lent for another " + format_duration_ms(int64_t{status.attempt} * 1000) +
            ", and withdrawn then\n";
  return text + jobs_line(answer);
}

std::string json_of(const OwnerAnswer& answer) {
  const sublet_frame& status = answer.status;
  JsonWriter json;
  json.begin_object();
  json.field("jobs_may_run", sublet_jobs_may_come(status.state, status.reason));
  json.field("reason", presence_name(status.reason));
  json.field("paused", status.arg[1] != 0);
  json.field("pause_left_ms", status.arg[1]);
  json.field("paused_by", status.arg[1] != 0 ? user_name(status.arg[2]) : "");
  const bool withdrawn = status.attempt == SUBLET_OWNER_WITHDRAWN;
  json.field("withdrawn", withdrawn);
  json.field("lent_s", withdrawn ? 0 : status.attempt == 0 ? -1 : int64_t{status.attempt});
  json.field("idle_in_ms", status.arg[0]).key("attempts").begin_array();
  for (const JobHere& one : answer.attempts)
    json.begin_object()
        .field("job", one.job)
        .field("attempt", one.attempt)
        .field("cpu_ms", one.cpu_ms)
        .field("memory", one.memory)
        .field("processes", one.processes)
        .field("network", one.network)
        .end_object();
  json.end_array().key("senses").begin_array();
  for (const SeenBySense& seen : answer.senses)
    json.begin_object()
        .field("sense", seen.sense)
        .field("keeps_jobs_away", seen.keeps_jobs_away)
        .field("value", seen.value)
        .end_object();
  json.end_array().end_object();
  return json.str() + "\n";
}

int64_t pause_length(const std::string& text) {
  if (text.empty()) return 0;
  const auto ms = parse_duration_ms(text);
  if (!ms || *ms < 1 || *ms > protocol::kLongestPauseMs)
    throw PoolError(ErrorKind::usage, "usage.pause",
                    "'" + text + "' is not a duration above 0 and up to 366 d",
                    "write it as 2h or \"30 min\", or leave it out to pause until `sublet owner "
                    "resume`",
                    text);
  return *ms;
}

// Milliseconds until the time of day comes next here; std::nullopt: it is none.
std::optional<int64_t> until_time_of_day(const std::string& text) {
  int hour = 0, minute = 0, end = 0;
  const bool whole = sscanf(text.c_str(), "%2d:%2d%n", &hour, &minute, &end) == 2 &&
                     static_cast<size_t>(end) == text.size() && text[0] != '-';
  if (!whole || hour < 0 || hour > 23 || minute < 0 || minute > 59) return std::nullopt;
  const time_t now = time(nullptr);
  tm then = {};
  localtime_r(&now, &then);
  then.tm_hour = hour;
  then.tm_min = minute;
  then.tm_sec = 0;
  then.tm_isdst = -1;
  time_t at = mktime(&then);
  if (at <= now) {
    ++then.tm_mday;
    then.tm_hour = hour;
    then.tm_min = minute;
    then.tm_isdst = -1;
    at = mktime(&then);
  }
  return int64_t{at - now} * 1000;
}

int64_t lent_length(const std::string& text) {
  auto ms = until_time_of_day(text);
  if (!ms) ms = parse_duration_ms(text);
  if (!ms || *ms < 1 || *ms > protocol::kLongestPauseMs)
    throw PoolError(ErrorKind::usage, "usage.until",
                    "'" + text + "' is neither a time of day nor a duration of up to 366 d",
                    "write it as 18:00, 2h or \"30 min\"", text);
  return *ms;
}

int run_owner(const std::string& folder, sublet_owner_word word, int64_t length_ms,
              Context& context) {
  const OwnerAnswer answer = say_to_monitor(client_states(folder), {word, length_ms},
                                            context.timeout_ms().value_or(kOwnerPatienceMs));
  print(context.json
            ? json_of(answer)
            : text_of(answer, folder) + use_table(answer, context) + senses_table(answer, context));
  if (answer.status.arg[3] != 0 && word != SUBLET_OWNER_STATUS)
    say("this could not be stored, so that a restart forgets it: " +
        std::string(std::strerror(static_cast<int>(answer.status.arg[3]))));
  return 0;
}

// How long the word is to hold.
struct TimeArgument {
  const char* help = "";
  bool required = false;
  int64_t (*parse)(const std::string&) = nullptr;
};

Command owner_word(Arguments& owner, const std::string& name, const std::string& help,
                   sublet_owner_word word, const TimeArgument& argument = {}) {
  auto folder = std::make_shared<std::string>();
  auto length = std::make_shared<std::string>();
  Arguments& a = owner.command(name, help);
  if (argument.parse != nullptr)
    a.positional("TIME", length.get(), argument.help, argument.required);
  a.option("--state", folder.get(),
           "state folder of the client (your own client's, or /var/lib/sublet-client)", "FOLDER");
  return {&a, [folder, length, word, parse = argument.parse](Context& context) {
            return run_owner(*folder, word, parse == nullptr ? 0 : parse(*length), context);
          }};
}

}  // namespace

Command owner_pause_command(Arguments& owner) {
  return owner_word(
      owner, "pause", "Not now: no jobs at this machine, at once. They save and leave",
      SUBLET_OWNER_PAUSE, {"for how long, such as 2h (until `resume`)", false, pause_length});
}

Command owner_reclaim_command(Arguments& owner) {
  return owner_word(
      owner, "reclaim",
      "Withdraw this machine: no jobs until `lend`. Those that are here save and leave",
      SUBLET_OWNER_RECLAIM);
}

Command owner_lend_command(Arguments& owner) {
  return owner_word(owner, "lend", "Lend this machine again, without end", SUBLET_OWNER_LEND);
}

Command owner_until_command(Arguments& owner) {
  return owner_word(owner, "until", "Lend this machine until a time, and withdraw it then",
                    SUBLET_OWNER_LEND,
                    {"a time of day here, such as 18:00, or for how long: 2h", true, lent_length});
}

Command owner_resume_command(Arguments& owner) {
  return owner_word(owner, "resume",
                    "End a pause: jobs may come again when you have been away for long enough",
                    SUBLET_OWNER_RESUME);
}

Command owner_status_command(Arguments& owner) {
  return owner_word(owner, "status", "Show whether jobs may run here, why, and which are here",
                    SUBLET_OWNER_STATUS);
}

}  // namespace sublet::cli
