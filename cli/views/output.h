// The command's output: the terminal's width and colours, tables that fit it, a progress
// line, readable ages. A closed pipe (`sublet ls | head -1`) ends the process quietly. One
// thread, except for print(), say() and end_progress(), which the thread that waits for
// signals may also call.
#ifndef SUBLET_CLI_VIEWS_OUTPUT_H_
#define SUBLET_CLI_VIEWS_OUTPUT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "cli/pool/pool.h"

namespace sublet::cli {

// 128 + SIGPIPE: what a shell reports of a program that a closed pipe ended.
inline constexpr int kExitClosedPipe = 141;

struct Terminal {
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  size_t columns = 0;  // of stdout; 0: no limit (not a terminal and COLUMNS not set)
  size_t rows = 0;     // of stdout; 0: no terminal
  size_t err_columns = 80;
  bool colour = false;
  // Lines can be overwritten: it is a terminal, and $TERM is set and not "dumb".
  bool out_is_screen = false;
  bool err_is_screen = false;
};
// Width from $COLUMNS, else from the terminal; colour only on a screen and without
// $NO_COLOR.
Terminal detect_terminal();

// Writes all of it to stdout. A closed pipe ends the process (kExitClosedPipe); any other
// failure throws PoolError.
void print(std::string_view text);
// Writes all of it to stderr; failures are ignored.
void print_error(std::string_view text);
// Writes one line to stderr; failures are ignored.
void say(const std::string& line);
// Replaces the progress line on a terminal's stderr.
void show_progress(const std::string& line, size_t columns);
// Ends the progress line, if any, so that the next output starts on a new line.
void end_progress();

enum class Colour { none, green, yellow, red, dim };

struct Column {
  std::string title;
  bool right = false;
  size_t least = 4;    // least width; a narrower column is left out
  int importance = 0;  // the least important are left out first
};
struct Row {
  std::vector<std::string> cells;
  Colour colour = Colour::none;
};
// A heading and a line for each row, each at most `width` columns (0: no limit). Cells are
// made safe to show. Columns that do not fit or are empty in every row are left out.
std::string list_table(const std::vector<Column>& columns, const std::vector<Row>& rows,
                       size_t width, bool colour);

// An object of names and amounts, as the value of a key.
void write_amounts(JsonWriter& json, const rules::NamedAmounts& amounts);
// "5 s", "3 min", "2 h", "4 d": the time between two instants; "-" if `then` is 0.
std::string age(int64_t then_us, int64_t now_us);
// "37 %"; "" if not known.
std::string percent(int32_t ppm);
// "0.25", with this number of decimal places.
std::string decimal(double value, int places);
// Of a duration that is usually below a second: "0.35 ms", "30.7 ms", "2.4 s".
std::string short_time_us(int64_t us);
// "1 job", "2 jobs"
std::string counted(uint64_t n, const std::string& noun);
int64_t now_us();

// "sublet: there is no job 99; see `sublet ls --all`", made safe to show.
std::string error_line(const PoolError& error);
// {"error":{"code":…,"message":…,"advice":…,"subject":…}} and a newline.
std::string error_json(const PoolError& error);
// {"code":…,"message":…,"advice":…,"subject":…}
void write_json(JsonWriter& json, const PoolError& error);
// The documented exit status of each kind.
int exit_status(ErrorKind kind);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_OUTPUT_H_
