#include "cli/checkpoint/difference.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "cli/checkpoint/values.h"
#include "cli/views/output.h"

namespace sublet::cli {

namespace {

// How far apart two numbers are: a type that holds it exactly for integers.
template <typename T>
struct Distance {
  using Type = std::conditional_t<std::floating_point<T>, double, uint64_t>;
  static Type between(T a, T b) {
    if constexpr (std::floating_point<T>)
      return std::fabs(static_cast<double>(a) - static_cast<double>(b));
    else  // also beyond the range of T: unsigned arithmetic is modulo 2^64
      return static_cast<uint64_t>(std::max(a, b)) - static_cast<uint64_t>(std::min(a, b));
  }
};

template <typename T>
bool is_number(T value) {
  if constexpr (std::floating_point<T>) return !std::isnan(value);
  return true;
}

template <typename T>
class Comparison {
 public:
  // Parts of equal length, of which the first element has the index `at`.
  void take(uint64_t at, std::span<const T> before, std::span<const T> after) {
    if (std::memcmp(before.data(), after.data(), before.size_bytes()) == 0) return;
    for (size_t i = 0; i < before.size(); ++i)
      if (std::memcmp(&before[i], &after[i], sizeof(T)) != 0) add(at + i, before[i], after[i]);
  }
  ValueDifference result(bool numbers) {
    if (numbers && any_numbers_) found_.largest = value_text(largest_);
    return found_;
  }

 private:
  void add(uint64_t index, T before, T after) {
    if (found_.differing++ == 0) {
      found_.first = index;
      found_.old_value = value_text(before);
      found_.new_value = value_text(after);
    }
    if (!is_number(before) || !is_number(after)) return;
    any_numbers_ = true;
    // Of equal infinities the difference is no number; they do not come here.
    largest_ = std::max(largest_, Distance<T>::between(before, after));
  }

  ValueDifference found_;
  bool any_numbers_ = false;
  typename Distance<T>::Type largest_ = 0;
};

ValueDifference compare_values(const CheckpointFile& before, const CheckpointSection& of_before,
                               const CheckpointFile& after, const CheckpointSection& of_after) {
  ValueDifference found;
  with_type(of_before.type, [&]<typename T>(T) {
    Comparison<T> comparison;
    std::vector<T> room_before;
    std::vector<T> room_after;
    const uint64_t count = std::min(of_before.count, of_after.count);
    for (uint64_t at = 0; at < count; at += kValuesAtOnce) {
      const size_t n = std::min<uint64_t>(kValuesAtOnce, count - at);
      comparison.take(at, read_values(before, of_before, at, n, room_before),
                      read_values(after, of_after, at, n, room_after));
    }
    found = comparison.result(of_before.type != SUBLET_STREAM);
  });
  return found;
}

std::string of_type(const CheckpointSection& section) {
  return std::to_string(section.count) + " × " + checkpoint_type_name(section.type);
}

std::string values_text(const SectionDifference& one) {
  const ValueDifference& values = *one.values;
  const bool stream = one.before->type == SUBLET_STREAM;
  std::string text = std::to_string(values.differing) + " of " +
                     std::to_string(std::min(one.before->count, one.after->count)) +
                     (values.differing == 1 ? " differs" : " differ") + ", first [" +
                     std::to_string(values.first) + "]";
  // The bytes of a stream by themselves say little.
  if (!stream) text += ": " + values.old_value + " → " + values.new_value;
  if (values.largest) text += ", largest difference " + *values.largest;
  return text;
}

std::string changed_text(const SectionDifference& one) {
  std::vector<std::string> parts;
  if (one.before->type != one.after->type || one.before->count != one.after->count)
    parts.push_back(of_type(*one.before) + " → " + of_type(*one.after));
  if (one.values && one.values->differing != 0) parts.push_back(values_text(one));
  if (!one.old_beginning.empty()) parts.push_back(one.old_beginning + " → " + one.new_beginning);
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

std::string section_line(const SectionDifference& one) {
  switch (one.kind) {
    case SectionDifference::Kind::added:
      return "+ " + one.name + ": " + of_type(*one.after);
    case SectionDifference::Kind::removed:
      return "- " + one.name + ": " + of_type(*one.before);
    case SectionDifference::Kind::changed:
      break;
  }
  return "~ " + one.name + ": " + changed_text(one);
}

void write_head(JsonWriter& json, std::string_view key, const CheckpointFile& file) {
  const sublet_header& h = file.header();
  json.key(key).begin_object().field("file", file.path());
  json.field("program", std::string(h.program)).field("layout", h.layout);
  json.field("generation", h.generation).end_object();
}

void write_side(JsonWriter& json, const std::string& which,
                const std::optional<CheckpointSection>& section) {
  if (!section) return;
  json.field(which + "_type", checkpoint_type_name(section->type));
  json.field(which + "_count", section->count);
}

void write_section(JsonWriter& json, const SectionDifference& one) {
  using Kind = SectionDifference::Kind;
  json.begin_object().field("name", one.name);
  json.field("kind", one.kind == Kind::added     ? "added"
                     : one.kind == Kind::removed ? "removed"
                                                 : "changed");
  write_side(json, "old", one.before);
  write_side(json, "new", one.after);
  if (one.values) json.field("differing", one.values->differing);
  if (one.values && one.values->differing != 0) {
    json.field("first", one.values->first).field("old_value", one.values->old_value);
    json.field("new_value", one.values->new_value);
    if (one.values->largest) json.field("largest_difference", *one.values->largest);
  }
  json.end_object();
}

}  // namespace

CheckpointDifference compare(const CheckpointFile& before, const CheckpointFile& after) {
  using Kind = SectionDifference::Kind;
  CheckpointDifference difference;
  difference.other_program = std::strcmp(before.header().program, after.header().program) != 0;
  difference.other_layout = before.header().layout != after.header().layout;
  for (const CheckpointSection& old : before.sections()) {
    const CheckpointSection* now = after.find(old.name);
    if (now == nullptr) {
      difference.sections.push_back({Kind::removed, old.name, old, {}});
      continue;
    }
    SectionDifference one = {Kind::changed, old.name, old, *now};
    if (old.type == now->type) one.values = compare_values(before, old, after, *now);
    if (one.values && one.values->differing == 0 && old.count == now->count) continue;
    if (old.type == SUBLET_STREAM && now->type == SUBLET_STREAM) {
      one.old_beginning = stream_beginning(before, old);
      one.new_beginning = stream_beginning(after, *now);
    }
    difference.sections.push_back(one);
  }
  for (const CheckpointSection& now : after.sections())
    if (before.find(now.name) == nullptr)
      difference.sections.push_back({Kind::added, now.name, {}, now});
  return difference;
}

std::string difference_text(const CheckpointDifference& difference, const CheckpointFile& before,
                            const CheckpointFile& after) {
  const sublet_header& old = before.header();
  const sublet_header& now = after.header();
  std::string text;
  const auto line = [&](const std::string& one) { text += escape_for_terminal(one) + "\n"; };
  if (difference.other_program)
    line("program: " + std::string(old.program) + " → " + std::string(now.program));
  if (difference.other_layout)
    line("layout: " + std::to_string(old.layout) + " → " + std::to_string(now.layout));
  for (const SectionDifference& one : difference.sections) line(section_line(one));
  return text;
}

void write_json(JsonWriter& json, const CheckpointDifference& difference,
                const CheckpointFile& before, const CheckpointFile& after) {
  json.begin_object().field("equal", difference.none());
  write_head(json, "old", before);
  write_head(json, "new", after);
  json.key("sections").begin_array();
  for (const SectionDifference& one : difference.sections) write_section(json, one);
  json.end_array().end_object();
}

}  // namespace sublet::cli
