#include "cli/names.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>
#include <stdexcept>
#include <string_view>

#include "base/text.h"
#include "job/output_name.h"

namespace sublet::cli {

namespace {

constexpr uint64_t kIdMax = std::numeric_limits<int64_t>::max();  // as in the store
constexpr size_t kPartMax = 255;
constexpr size_t kNameMax = 4095;

bool read_number(std::string_view text, uint64_t* value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value >= 1 &&
         *value <= kIdMax;
}

IdRange parse_range(std::string_view text) {
  size_t dash = text.find('-');
  uint64_t first = 0;
  uint64_t last = 0;
  bool good = dash == std::string_view::npos
                  ? read_number(text, &first) && (last = first, true)
                  : read_number(text.substr(0, dash), &first) &&
                        read_number(text.substr(dash + 1), &last) && first <= last;
  if (!good)
    throw PoolError(ErrorKind::usage, "usage.ids", "'" + std::string(text) + "' is not a job id",
                    "write ids as 17, 17-20 or 17,19", std::string(text));
  return {first, last - first + 1};
}

std::vector<IdRange> merged(std::vector<IdRange> ids) {
  std::sort(ids.begin(), ids.end(),
            [](const IdRange& a, const IdRange& b) { return a.first < b.first; });
  std::vector<IdRange> out;
  for (const IdRange& r : ids) {
    if (!out.empty() && r.first <= out.back().first + out.back().count)
      out.back().count = std::max(out.back().count, r.first + r.count - out.back().first);
    else
      out.push_back(r);
  }
  return out;
}

// Names by number, from 1 on; "" for a number that is not used.
using Names = std::span<const std::string_view>;

std::string name_of(Names names, uint32_t value) {
  const bool known = value >= 1 && value <= names.size() && !names[value - 1].empty();
  return known ? std::string(names[value - 1]) : std::to_string(value);
}

constexpr std::string_view kJobStates[] = {"waiting", "placed",  "running",   "held",      "done",
                                           "failed",  "removed", "suspended", "delivering"};
constexpr std::string_view kMachineStates[] = {"idle", "busy", "silent", "gone"};
constexpr std::string_view kAttemptStates[] = {"ordered", "staging",   "running",   "leaving",
                                               "ended",   "suspended", "delivering"};

}  // namespace

std::vector<IdRange> parse_ids(const std::vector<std::string>& words) {
  std::vector<IdRange> ids;
  for (const std::string& word : words) {
    for (size_t at = 0; at <= word.size();) {
      size_t comma = std::min(word.find(',', at), word.size());
      ids.push_back(parse_range(std::string_view(word).substr(at, comma - at)));
      at = comma + 1;
    }
  }
  return merged(std::move(ids));
}

std::string format_ids(const std::vector<IdRange>& ids) {
  std::string out;
  for (const IdRange& r : ids) {
    if (!out.empty()) out += ',';
    out += std::to_string(r.first);
    if (r.count > 1) out += '-' + std::to_string(r.first + r.count - 1);
  }
  return out;
}

uint64_t count_ids(const std::vector<IdRange>& ids) {
  uint64_t sum = 0;
  for (const IdRange& r : ids)
    sum = r.count > std::numeric_limits<uint64_t>::max() - sum
              ? std::numeric_limits<uint64_t>::max()
              : sum + r.count;
  return sum;
}

bool contains_id(const std::vector<IdRange>& ids, uint64_t id) {
  return std::any_of(ids.begin(), ids.end(),
                     [id](const IdRange& r) { return id >= r.first && id - r.first < r.count; });
}

uint64_t parse_number(std::string_view text, const std::string& what) {
  uint64_t value = 0;
  if (!read_number(text, &value))
    throw PoolError(ErrorKind::usage, "usage.number",
                    "'" + std::string(text) + "' is not a " + what,
                    "write a whole number, 1 or more", std::string(text));
  return value;
}

std::string check_relative_name(std::string_view name, std::string* normal) {
  while (name.starts_with("./")) name.remove_prefix(2);
  if (name.empty()) return "a name is missing";
  if (name.find('\0') != std::string_view::npos) return "a name may not contain a NUL byte";
  if (name.front() == '/') return "an absolute name leaves the job's folder";
  if (name.size() > kNameMax) return "the name is longer than 4095 bytes";
  for (size_t at = 0; at <= name.size();) {
    size_t slash = std::min(name.find('/', at), name.size());
    std::string_view part = name.substr(at, slash - at);
    if (part == "..") return "'..' leaves the job's folder";
    if (part.empty() || part == ".") return "an empty part or '.' in the name";
    if (part.size() > kPartMax) return "a part of the name is longer than 255 bytes";
    at = slash + 1;
  }
  *normal = std::string(name);
  return "";
}

std::string check_output_name(std::string_view name, std::string* normal) {
  while (name.starts_with("./")) name.remove_prefix(2);
  try {
    const OutputName output(name);
    std::string file;
    if (output.is_file())
      if (std::string wrong = check_relative_name(output.file(), &file); !wrong.empty())
        return wrong;
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  *normal = std::string(name);
  return "";
}

std::string check_name_pattern(std::string_view pattern) {
  bool open = false;  // within [...]
  size_t first = 0;   // where a ] is one of the characters
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '\\') {
      if (++at == pattern.size()) return "a backslash at the end";
    } else if (!open && pattern[at] == '[') {
      open = true;
      const bool negated =
          at + 1 < pattern.size() && (pattern[at + 1] == '!' || pattern[at + 1] == '^');
      at += negated;
      first = at + 1;
    } else if (open && pattern[at] == ']' && at > first) {
      open = false;
    }
  }
  return open ? "a [ has no ] after it" : "";
}

std::string job_state_name(uint32_t state) { return name_of(kJobStates, state); }
std::string machine_state_name(uint32_t state) { return name_of(kMachineStates, state); }
std::string attempt_state_name(uint32_t state) { return name_of(kAttemptStates, state); }

// Refused, lost, removed, held and superseded attempts were not evicted.
bool is_eviction(uint32_t ended) { return (ended >= 16 && ended <= 20) || ended == 26; }

std::vector<std::string> job_state_names() {
  std::vector<std::string> names;
  for (const std::string_view name : kJobStates)
    if (!name.empty()) names.emplace_back(name);
  return names;
}

uint32_t parse_job_state(const std::string& word) {
  const auto found = std::find(std::begin(kJobStates), std::end(kJobStates), word);
  if (found != std::end(kJobStates) && !word.empty())
    return static_cast<uint32_t>(found - std::begin(kJobStates)) + 1;
  const std::vector<std::string> all = job_state_names();
  std::string near = nearest_word(word, all);
  throw PoolError(ErrorKind::usage, "usage.state", "'" + word + "' is not a job state",
                  near.empty() ? "one of waiting, placed, running, suspended, delivering, held, "
                                 "done, failed, removed"
                               : "did you mean " + near + "?",
                  word);
}

std::string base_name(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string located(const std::string& folder, const std::string& path) {
  return path.starts_with('/') || folder.empty() || folder == "." ? path : folder + "/" + path;
}

PoolError unknown_word(const std::string& code, const std::string& what, const std::string& word,
                       const std::vector<std::string>& known) {
  std::string advice = "one of ";
  for (const std::string& k : known) advice += (k == known.front() ? "" : ", ") + k;
  const std::string nearest = nearest_word(word, known);
  if (!nearest.empty()) advice = "did you mean " + nearest + "?";
  return {ErrorKind::usage, code, what + "'" + word + "' is unknown", advice, word};
}

}  // namespace sublet::cli
