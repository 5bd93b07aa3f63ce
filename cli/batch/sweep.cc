#include "cli/batch/sweep.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <functional>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "cli/batch/file.h"
#include "cli/names.h"
#include "job/output_name.h"

namespace sublet::cli {
namespace {

constexpr size_t kLinesMax = 64u << 20;  // octets of --each's standard input
constexpr const char* kLine = "line";    // name of --each's parameter

std::string wrong_name(const std::string& name) {
  if (name == "index") return "'index' is a built-in parameter; choose another name";
  if (!is_parameter_name(name))
    return "'" + escape_for_terminal(name) + "' is not a parameter name: use letters, digits and _";
  return "";
}

std::string value_text(const TomlReader& r, const TomlValue& v) {
  switch (v.kind) {
    case TomlKind::text:
      return r.text(v, "a value");
    case TomlKind::integer:
      return std::to_string(v.integer);
    case TomlKind::boolean:
      return v.boolean ? "true" : "false";
    case TomlKind::real: {
      char digits[64];  // the shortest form that reads back as the same number
      const auto end = std::to_chars(digits, digits + sizeof digits, v.real);
      return std::string(digits, end.ptr);
    }
    default:
      r.fail(v, std::string("a value must be a string, a number, true or false, not ") +
                    toml_kind_name(v.kind));
  }
}

Axis read_range(const TomlReader& r, const TomlMember& m) {
  constexpr int64_t kMost = int64_t{1} << 61;
  int64_t to = 0;
  bool has_from = false, has_to = false;
  Axis axis{{m.key}, {}, 0, 0, 1};
  r.each_member(
      m.value, "a range",
      {{"from", [&](auto& v) { axis.first = r.integer(v, -kMost, kMost), has_from = true; }},
       {"to", [&](auto& v) { to = r.integer(v, -kMost, kMost), has_to = true; }},
       {"step", [&](auto& v) { axis.step = r.integer(v, -kMost, kMost); }}});
  if (!has_from || !has_to) r.fail(m.value, "a range needs from and to: { from = 1, to = 100 }");
  if (axis.step == 0 || (to != axis.first && (axis.step > 0) != (to > axis.first)))
    r.fail(m.value, "a range from " + std::to_string(axis.first) + " to " + std::to_string(to) +
                        " cannot have step " + std::to_string(axis.step));
  axis.range_count = static_cast<uint64_t>((to - axis.first) / axis.step) + 1;
  return axis;
}

// Calls `visit` with every text that may contain parameters.
void each_text(const PlannedJob& job, const std::function<void(const std::string&)>& visit) {
  for (const std::string& argument : job.what.arguments) visit(argument);
  for (const std::string& variable : job.what.environment) visit(variable);
  for (const OutputFile& output : job.what.outputs) visit(output.name);
  for (const PlannedInput& input : job.inputs) {
    visit(input.path);
    visit(input.name);
  }
  for (const InputFile& input : job.what.inputs) {
    visit(input.name);
    visit(input.source.name);
  }
  for (const PlannedReference& reference : job.references) visit(reference.text);
}

// A "{NAME}" that could be a parameter's.
struct Placeholder {
  std::string name;
  bool is_shell = false;  // "${NAME}": a shell's variable, if there is no such parameter
};
std::vector<Placeholder> placeholders(const std::string& text) {
  std::vector<Placeholder> found;
  for (size_t at = text.find('{'); at != std::string::npos; at = text.find('{', at + 1)) {
    const size_t end = text.find_first_of("{}", at + 1);
    if (end == std::string::npos || text[end] != '}') continue;
    std::string name = text.substr(at + 1, end - at - 1);
    if (name == "index" || wrong_name(name).empty())
      found.push_back({std::move(name), at > 0 && text[at - 1] == '$'});
  }
  return found;
}

std::vector<std::string> parameters_of(const PlannedJob& job) {
  std::vector<std::string> names = {"index"};
  for (const Axis& axis : job.axes) names.insert(names.end(), axis.names.begin(), axis.names.end());
  return names;
}

// For the names of outputs: as on the server, values stand for themselves and are not patterns.
Values quoted_values(const PlannedJob& job, uint64_t index) {
  Values values = values_of(job, index);
  for (auto& [name, value] : values) value = quote_output(value);
  return values;
}

class CsvParser {
 public:
  CsvParser(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  // Returns false at the end of the text.
  bool row(std::vector<std::string>* fields) {
    fields->clear();
    if (rest_.empty()) return false;
    began_ = line_;
    while (field(fields)) continue;
    return true;
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw DocumentError(file_, began_, 1, message);
  }

 private:
  // Returns true if another field follows in this row.
  bool field(std::vector<std::string>* fields) {
    std::string value = !rest_.empty() && rest_[0] == '"' ? quoted() : plain();
    if (value.find('\0') != std::string::npos) fail("a value may not contain a NUL character");
    fields->push_back(std::move(value));
    if (rest_.empty()) return false;
    if (rest_[0] == ',') {
      rest_.remove_prefix(1);
      return true;
    }
    if (rest_[0] == '\r') rest_.remove_prefix(1);
    if (rest_.empty() || rest_[0] != '\n') fail("unexpected text after a quoted value");
    rest_.remove_prefix(1);
    ++line_;
    return false;
  }
  std::string plain() {
    size_t end = std::min(rest_.find_first_of(",\n"), rest_.size());
    if (end < rest_.size() && rest_[end] == '\n' && end > 0 && rest_[end - 1] == '\r') --end;
    std::string value(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return value;
  }
  std::string quoted() {
    std::string value;
    for (size_t at = 1; at < rest_.size(); ++at) {
      if (rest_[at] == '\n') ++line_;
      if (rest_[at] != '"') {
        value += rest_[at];
      } else if (at + 1 < rest_.size() && rest_[at + 1] == '"') {
        value += rest_[++at];
      } else {
        rest_.remove_prefix(at + 1);
        return value;
      }
    }
    fail("a quoted value has no closing quote");
  }

  std::string_view rest_;
  const std::string file_;
  uint32_t line_ = 1;
  uint32_t began_ = 1;
};

}  // namespace

std::string add_axis(Axis axis, std::vector<Axis>* axes) {
  std::set<std::string> names;
  for (const Axis& other : *axes) names.insert(other.names.begin(), other.names.end());
  for (const std::string& name : axis.names) {
    if (std::string wrong = wrong_name(name); !wrong.empty()) return wrong;
    if (!names.insert(name).second) return "two parameters are called '" + name + "'";
  }
  axes->push_back(std::move(axis));
  return "";
}

void add_parameters(const TomlReader& r, const TomlMember& m, std::vector<Axis>* axes) {
  for (const TomlMember& parameter : r.expect(m, TomlKind::table).members) {
    const TomlValue& v = parameter.value;
    if (v.kind == TomlKind::table) {
      r.check(v, add_axis(read_range(r, parameter), axes));
      continue;
    }
    if (v.kind != TomlKind::array || v.items.empty())
      r.fail(v, "the values of '" + escape_for_terminal(parameter.key) +
                    "' must be a list such as [1, 2] or a range { from = 1, to = 100 }");
    Axis axis{{parameter.key}, {}, 0, 0, 1};
    for (const TomlValue& item : v.items) axis.values.push_back(value_text(r, item));
    r.check(v, add_axis(std::move(axis), axes));
  }
}

Axis parse_csv(std::string_view text, const std::string& file) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  CsvParser csv(text, file);
  Axis axis;
  if (!csv.row(&axis.names)) csv.fail("the table is empty; its first line names the columns");
  for (const std::string& name : axis.names)
    if (std::string wrong = wrong_name(name); !wrong.empty()) csv.fail(wrong);
  for (std::vector<std::string> row; csv.row(&row);) {
    if (row.size() == 1 && row[0].empty()) continue;  // an empty line
    if (row.size() != axis.names.size())
      csv.fail("this row has " + std::to_string(row.size()) + " values, the table " +
               std::to_string(axis.names.size()) + " columns");
    std::move(row.begin(), row.end(), std::back_inserter(axis.values));
  }
  if (axis.values.empty()) csv.fail("the table has no rows");
  return axis;
}

Axis read_table(const std::string& path) {
  return parse_csv(system_files().read_file(path, kBatchFileMax), path);
}

void add_table(const TomlReader& r, const TomlMember& m, std::vector<Axis>* axes) {
  try {
    r.check(m.value, add_axis(read_table(located(r.folder(), r.text(m))), axes));
  } catch (const FileError& e) {
    r.fail(m.value, e.what());
  }
}

std::string count_combinations(const std::vector<Axis>& axes, uint64_t* count) {
  *count = 1;
  for (const Axis& axis : axes) {
    if (axis.count() > kJobsPerBatch || *count * axis.count() > kJobsPerBatch)
      return "the parameters have more than " + std::to_string(kJobsPerBatch) + " combinations";
    *count *= axis.count();
  }
  return "";
}

std::string misspelt_placeholder(const PlannedJob& job, const std::string& text) {
  if (job.count == 0) return "";
  const std::vector<std::string> known = parameters_of(job);
  for (const auto& [name, is_shell] : placeholders(text)) {
    if (is_shell || std::ranges::find(known, name) != known.end()) continue;
    const std::string near = nearest_word(name, known);
    if (!near.empty()) return "there is no parameter {" + name + "}; did you mean {" + near + "}?";
  }
  return "";
}

std::string misplaced_placeholder(const PlannedJob& job, const std::string& text,
                                  const std::string& what) {
  if (job.count == 0) return "";
  const std::vector<std::string> known = parameters_of(job);
  for (const auto& [name, is_shell] : placeholders(text))
    if (!is_shell && !nearest_word(name, known).empty())
      return what + " is the same for all jobs of an array: {" + name + "} is not replaced in it";
  return "";
}

std::string unused_parameter(const PlannedJob& job) {
  std::set<std::string> used;
  each_text(job, [&](const std::string& text) {
    for (Placeholder& one : placeholders(text)) used.insert(std::move(one.name));
  });
  for (const Axis& axis : job.axes) {
    const auto is_used = [&](const std::string& name) { return used.contains(name); };
    if (std::ranges::none_of(axis.names, is_used))
      return "the parameter '" + axis.names[0] + "' is not used: write {" + axis.names[0] +
             "} in an argument, a variable or a file's name";
  }
  return "";
}

Values values_of(const PlannedJob& job, uint64_t index) {
  Values values = values_at(job.axes, index);
  values.emplace_back("index", std::to_string(index));
  return values;
}

uint64_t jobs_told_apart(const PlannedJob& job) {
  if (job.count == 0) return 1;
  Values any = values_at(job.axes, 0);
  any.emplace_back("index", "");
  const auto depends = [&](const std::string& text) { return places_of(text, any).count > 0; };
  const bool apart = std::ranges::any_of(job.inputs,
                                         [&](const PlannedInput& input) {
                                           return depends(input.path) || depends(input.name);
                                         }) ||
                     std::ranges::any_of(job.what.inputs,
                                         [&](const InputFile& input) {
                                           return depends(input.name) || depends(input.source.name);
                                         }) ||
                     std::ranges::any_of(job.references, depends, &PlannedReference::text);
  return apart ? job.count : 1;
}

std::vector<PlannedJob> told_apart(const PlannedJob& job) {
  if (jobs_told_apart(job) == 1) return {job};
  std::vector<PlannedJob> jobs;
  for (uint64_t k = 0; k < job.count; ++k) {
    const Values values = values_of(job, k);
    PlannedJob one = job;
    one.count = 0;
    one.axes.clear();
    for (std::string& argument : one.what.arguments) argument = fill(argument, values);
    for (std::string& variable : one.what.environment) variable = fill(variable, values);
    for (PlannedInput& input : one.inputs) {
      input.path = fill(input.path, values);
      input.name = fill(input.name, values);
    }
    for (InputFile& input : one.what.inputs) {
      input.name = fill(input.name, values);
      input.source.name = fill(input.source.name, values);
    }
    for (PlannedReference& reference : one.references)
      reference.text = fill(reference.text, values);
    one.what.standard_input = fill(one.what.standard_input, values);
    for (OutputFile& output : one.what.outputs)
      output.name = fill(output.name, quoted_values(job, k));
    jobs.push_back(std::move(one));
  }
  return jobs;
}

std::vector<std::string> read_lines(int fd) {
  std::string text;
  char buffer[65536];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw PoolError(ErrorKind::invalid, "submit.lines", "standard input cannot be read", "", "");
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > kLinesMax)
      throw PoolError(ErrorKind::limit_exceeded, "submit.lines",
                      "standard input has more than 64 MiB", "submit it in pieces", "");
  }
  std::vector<std::string> lines;
  for (size_t from = 0; from < text.size();) {
    const size_t to = std::min(text.find('\n', from), text.size());
    if (to > from) lines.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  const auto bad = std::ranges::find_if(lines, [](const std::string& line) {
    return line.size() > kTextMax || line.find('\0') != std::string::npos;
  });
  if (bad != lines.end())
    throw PoolError(ErrorKind::invalid, "submit.lines",
                    "line " + std::to_string(bad - lines.begin() + 1) +
                        " of standard input has a NUL character or more than 128 KiB",
                    "write one item per line", "");
  if (lines.empty())
    throw PoolError(ErrorKind::invalid, "submit.lines", "standard input has no lines",
                    "write one item per line: `seq 100 | sublet submit --each -- ./prog {}`", "");
  if (lines.size() > kJobsPerBatch)
    throw PoolError(ErrorKind::limit_exceeded, "submit.lines",
                    "standard input has more than 1,000,000 lines", "submit it in pieces", "");
  return lines;
}

void run_for_each(PlannedJob* job, std::vector<std::string> lines) {
  const std::string place = std::string("{") + kLine + "}";
  bool placed = false;
  for (std::string& argument : job->what.arguments)
    for (size_t at = 0; (at = argument.find("{}", at)) != std::string::npos; at += place.size()) {
      argument.replace(at, 2, place);
      placed = true;
    }
  if (!placed) job->what.arguments.push_back(place);
  job->count = lines.size();
  job->axes = {Axis{{kLine}, std::move(lines), 0, 0, 1}};
}

}  // namespace sublet::cli
