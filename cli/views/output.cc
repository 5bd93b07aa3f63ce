#include "cli/views/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"

namespace sublet::cli {

namespace {

std::atomic<bool> progress_shown{false};

size_t columns_from_environment() {
  const char* columns = getenv("COLUMNS");
  if (columns == nullptr) return 0;
  char* end = nullptr;
  unsigned long n = strtoul(columns, &end, 10);
  return *end == '\0' && n >= 1 && n <= 10'000 ? n : 0;
}

size_t columns_of(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

size_t rows_of(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

bool is_set(const char* variable) {
  const char* value = getenv(variable);
  return value != nullptr && *value != '\0';
}

// Returns 0 or an errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

const char* escape(Colour colour) {
  switch (colour) {
    case Colour::green:
      return "\x1b[32m";
    case Colour::yellow:
      return "\x1b[33m";
    case Colour::red:
      return "\x1b[31m";
    case Colour::dim:
      return "\x1b[2m";
    case Colour::none:
      break;
  }
  return "";
}

struct Shown {
  size_t column;
  size_t width;  // of its widest cell, then after cutting
  size_t least;  // never cut below this
};

size_t total_width(const std::vector<Shown>& shown) {
  size_t sum = 2 * (shown.size() - 1);
  for (const Shown& s : shown) sum += s.width;
  return sum;
}

// Chooses the columns and their widths: leaves out empty columns, then the least important
// ones that do not fit; then cuts the widest.
std::vector<Shown> chosen_columns(const std::vector<Column>& columns, const std::vector<Row>& rows,
                                  size_t width) {
  std::vector<Shown> shown;
  for (size_t c = 0; c < columns.size(); ++c) {
    size_t widest = 0;
    for (const Row& row : rows) widest = std::max(widest, display_width(row.cells[c]));
    if (widest == 0 && !rows.empty()) continue;
    widest = std::max(widest, display_width(columns[c].title));
    shown.push_back({c, widest, std::min(columns[c].least, widest)});
  }
  if (width == 0) return shown;
  auto needed = [&] {
    size_t sum = 2 * (shown.size() - 1);
    for (const Shown& s : shown) sum += s.least;
    return sum;
  };
  while (shown.size() > 1 && needed() > width) {
    shown.erase(std::min_element(shown.begin(), shown.end(), [&](const Shown& a, const Shown& b) {
      return columns[a.column].importance < columns[b.column].importance;
    }));
  }
  while (total_width(shown) > width) {
    auto widest = std::max_element(shown.begin(), shown.end(), [](const Shown& a, const Shown& b) {
      return a.width - a.least < b.width - b.least;
    });
    if (widest->width == widest->least) break;
    --widest->width;
  }
  return shown;
}

std::string coloured(const std::string& table, const std::vector<Row>& rows) {
  std::string out;
  size_t line = 0;
  for (size_t at = 0; at < table.size(); ++line) {
    size_t end = table.find('\n', at);
    Colour colour = line == 0 ? Colour::dim : rows[line - 1].colour;
    std::string text = table.substr(at, end - at);
    out += colour == Colour::none ? text : escape(colour) + text + "\x1b[0m";
    out += '\n';
    at = end + 1;
  }
  return out;
}

std::string without_full_stop(std::string text) {
  while (!text.empty() && (text.back() == '.' || text.back() == '\n')) text.pop_back();
  return text;
}

// The server's advice is a separate sentence; here it follows a semicolon.
std::string uncapitalised(std::string text) {
  if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a' && text[1] <= 'z')
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

}  // namespace

Terminal detect_terminal() {
  Terminal t;
  t.out_is_terminal = isatty(STDOUT_FILENO);
  t.err_is_terminal = isatty(STDERR_FILENO);
  t.columns = columns_from_environment();
  t.err_columns = t.columns != 0 ? t.columns : columns_of(STDERR_FILENO);
  if (t.columns == 0 && t.out_is_terminal) t.columns = columns_of(STDOUT_FILENO);
  if (t.out_is_terminal) t.rows = rows_of(STDOUT_FILENO);
  const bool moves_the_cursor = is_set("TERM") && strcmp(getenv("TERM"), "dumb") != 0;
  t.out_is_screen = t.out_is_terminal && moves_the_cursor;
  t.err_is_screen = t.err_is_terminal && moves_the_cursor;
  t.colour = t.out_is_screen && !is_set("NO_COLOR");
  return t;
}

void print(std::string_view text) {
  if (text.empty()) return;
  end_progress();
  int error = write_all(STDOUT_FILENO, text);
  if (error == EPIPE) _exit(kExitClosedPipe);
  if (error != 0)
    throw PoolError(
        error == ENOSPC || error == EDQUOT ? ErrorKind::limit_exceeded : ErrorKind::unavailable,
        "output.write", std::string("cannot write the output: ") + strerror(error));
}

void print_error(std::string_view text) {
  end_progress();
  write_all(STDERR_FILENO, text);
}

void say(const std::string& line) { print_error(line + "\n"); }

void show_progress(const std::string& line, size_t columns) {
  // Leaves the last column free: many terminals wrap when it is written.
  std::string text = columns > 1 ? fit(line, columns - 1) : line;
  progress_shown = true;
  write_all(STDERR_FILENO, "\r" + text + "\x1b[K");
}

void end_progress() {
  if (progress_shown.exchange(false)) write_all(STDERR_FILENO, "\n");
}

std::string list_table(const std::vector<Column>& columns, const std::vector<Row>& rows,
                       size_t width, bool colour) {
  std::vector<Row> safe = rows;
  for (Row& row : safe)
    for (std::string& cell : row.cells) cell = escape_for_terminal(cell);
  std::vector<Shown> shown = chosen_columns(columns, safe, width);
  std::vector<std::vector<std::string>> cells(1);
  std::vector<bool> right;
  auto cut = [](const std::string& cell, size_t room) {
    return display_width(cell) > room ? fit(cell, room) : cell;
  };
  for (const Shown& s : shown) {
    cells[0].push_back(cut(columns[s.column].title, s.width));
    right.push_back(columns[s.column].right);
  }
  for (const Row& row : safe) {
    cells.emplace_back();
    for (const Shown& s : shown) cells.back().push_back(cut(row.cells[s.column], s.width));
  }
  std::string table = format_table(cells, right, width);
  return colour ? coloured(table, rows) : table;
}

void write_amounts(JsonWriter& json, const rules::NamedAmounts& amounts) {
  json.begin_object();
  for (const auto& [name, amount] : amounts) json.field(name, amount);
  json.end_object();
}

std::string age(int64_t then_us, int64_t now_us) {
  if (then_us == 0) return "-";
  int64_t s = std::max<int64_t>(0, (now_us - then_us) / 1'000'000);
  if (s < 120) return std::to_string(s) + " s";
  if (s < 120 * 60) return std::to_string(s / 60) + " min";
  if (s < 48 * 3600) return std::to_string(s / 3600) + " h";
  return std::to_string(s / 86400) + " d";
}

std::string percent(int32_t ppm) { return ppm < 0 ? "" : std::to_string(ppm / 10'000) + " %"; }

std::string short_time_us(int64_t us) {
  if (us < 9'995) return decimal(static_cast<double>(us) / 1e3, 2) + " ms";
  if (us < 999'950) return decimal(static_cast<double>(us) / 1e3, 1) + " ms";
  if (us < 60'000'000) return decimal(static_cast<double>(us) / 1e6, 1) + " s";
  return format_duration_ms(us / 1000);
}

std::string decimal(double value, int places) {
  char text[64];
  snprintf(text, sizeof text, "%.*f", places, value);
  return text;
}

std::string counted(uint64_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

int64_t now_us() { return system_clock().utc_us(); }

std::string error_line(const PoolError& error) {
  std::string line = "sublet: " + without_full_stop(escape_for_terminal(error.message));
  if (!error.advice.empty())
    line += "; " + uncapitalised(without_full_stop(escape_for_terminal(error.advice)));
  return line;
}

std::string error_json(const PoolError& error) {
  JsonWriter json;
  json.begin_object().key("error");
  write_json(json, error);
  json.end_object();
  return json.str() + "\n";
}

void write_json(JsonWriter& json, const PoolError& error) {
  json.begin_object().field("code", error.code).field("message", error.message);
  json.field("advice", error.advice).field("subject", error.subject).end_object();
}

int exit_status(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return 2;
    case ErrorKind::invalid:
      return 3;
    case ErrorKind::not_found:
      return 4;
    case ErrorKind::not_permitted:
      return 5;
    case ErrorKind::conflict:
      return 6;
    case ErrorKind::limit_exceeded:
      return 7;
    case ErrorKind::unavailable:
      return 8;
  }
  return 8;
}

}  // namespace sublet::cli
