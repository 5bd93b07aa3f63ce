#include "loadmon/sense_lines.h"

#include <cstdio>

#include "base/text.h"

namespace sublet::loadmon {
namespace {

std::string at(const char* what, const protocol::Place& place) {
  return place.empty() ? what : std::string(what) + ", " + place.text();
}

std::string number(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string media_of(const protocol::PresenceSample& sample) {
  return sample.attends ? at(sample.attends_by, sample.attends_place) : "none";
}

std::string sessions_of(const protocol::PresenceSample& sample) {
  if (!sample.unseen) return "all are seen";
  return at("one whose input nothing shows", sample.unseen_place);
}

std::string input_of(const protocol::PresenceSample& sample) {
  if (sample.input_age_ms < 0) return "none was seen";
  // Whole seconds: nobody reads more.
  const std::string ago = format_duration_ms(sample.input_age_ms / 1000 * 1000) + " ago";
  return *sample.input_by == 0 ? ago : ago + " (" + at(sample.input_by, sample.input_place) + ")";
}

std::string load_of(const protocol::PresenceSample& sample) {
  std::string text;
  for (const double load : sample.load) text += (text.empty() ? "" : " ") + number(load);
  return text;
}

}  // namespace

std::vector<SenseLine> sense_lines(const protocol::PresenceSample& sample,
                                   const protocol::OwnerPresence& presence,
                                   const protocol::PresenceRule& rule) {
  std::vector<SenseLine> lines;
  const auto add = [&](const char* name, const std::string& value, sublet_presence_reason reason) {
    lines.push_back({name, value, presence.speaks_against_jobs(reason, sample)});
  };
  add("owner's word", sample.paused ? "paused" : "no pause", SUBLET_PRESENCE_PAUSED);
  if (sample.scripted != protocol::ScriptedOwner::kNone)
    add("simulated owner", sample.scripted == protocol::ScriptedOwner::kActive ? "here" : "away",
        SUBLET_PRESENCE_SCRIPT);
  const bool simulated = sample.scripted != protocol::ScriptedOwner::kNone;
  if (rule.input && !simulated) {
    add("input", input_of(sample), SUBLET_PRESENCE_INPUT);
    add("media", media_of(sample), SUBLET_PRESENCE_MEDIA);
    add("sessions", sessions_of(sample), SUBLET_PRESENCE_UNSEEN);
  }
  if (sample.cpu >= 0) add("cpu", number(sample.cpu) + " cores", SUBLET_PRESENCE_CPU);
  if (sample.load[0] >= 0) add("load", load_of(sample), SUBLET_PRESENCE_LOAD);
  if (sample.sleeps) add("sleep", "the machine is about to sleep", SUBLET_PRESENCE_SLEEP);
  return lines;
}

}  // namespace sublet::loadmon
