#include "protocol/eviction.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "protocol/place.h"

namespace sublet::protocol {
namespace {

constexpr int64_t kLongestUs = 30ll * 24 * 3600 * 1'000'000;

template <typename Number>
bool read_number(std::string_view* line, Number* number) {
  const auto [end, error] = std::from_chars(line->data(), line->data() + line->size(), *number);
  if (error != std::errc()) return false;
  line->remove_prefix(static_cast<size_t>(end - line->data()));
  if (line->empty()) return true;
  if (line->front() != ' ') return false;
  line->remove_prefix(1);
  return true;
}

std::string line_of(const EvictionNote& note) {
  std::string line = std::to_string(note.at_us);
  for (const uint64_t number :
       {note.job, uint64_t{note.attempt}, uint64_t{note.ended}, uint64_t{note.sensed}})
    line += " " + std::to_string(number);
  for (const EvictionStep& step : kEvictionSteps)
    line += " " + std::to_string(note.steps.*step.after_us);
  if (!note.place.empty()) line += " " + note.place;
  return line + "\n";
}

std::optional<EvictionNote> note_in(std::string_view line) {
  EvictionNote note;
  uint32_t ended = 0;
  bool whole = read_number(&line, &note.at_us) && read_number(&line, &note.job) &&
               read_number(&line, &note.attempt) && read_number(&line, &ended) &&
               read_number(&line, &note.sensed);
  for (const EvictionStep& step : kEvictionSteps)
    whole = whole && read_number(&line, &(note.steps.*step.after_us));
  note.ended = static_cast<EndCode>(ended);
  note.place = line;
  if (!whole || Place(line).text() != note.place || !plausible(note.steps)) return std::nullopt;
  return note;
}

}  // namespace

bool plausible(const EvictionSteps& steps) {
  const auto known_in_order = [](int64_t first, int64_t second) {
    return first < 0 || second < 0 || first <= second;
  };
  for (const EvictionStep& step : kEvictionSteps) {
    const int64_t after = steps.*step.after_us;
    if (after < -1 || after > kLongestUs) return false;
    if (!known_in_order(steps.told, after) || !known_in_order(after, steps.gone)) return false;
  }
  return known_in_order(steps.save_asked, steps.saved);
}

std::string printed(const std::vector<EvictionNote>& notes) {
  std::string text(kEvictionsHead);
  text += '\n';
  const size_t past = notes.size() - std::min(notes.size(), kNotedEvictions);
  for (size_t i = past; i < notes.size(); ++i) text += line_of(notes[i]);
  return text;
}

std::optional<std::vector<EvictionNote>> notes_in(std::string_view text) {
  std::vector<EvictionNote> notes;
  std::set<std::pair<uint64_t, uint32_t>> known;
  for (bool head = true; !text.empty(); head = false) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (head && line != kEvictionsHead) return std::nullopt;
    const auto note = head ? std::nullopt : note_in(line);
    if (note && known.insert({note->job, note->attempt}).second) notes.push_back(*note);
  }
  return notes;
}

}  // namespace sublet::protocol
