// Text utilities: encodings, formatting of durations and sizes, suggestions for misspelt
// words, and escaping of untrusted bytes for display. Pure functions.
#ifndef SUBLET_BASE_TEXT_H_
#define SUBLET_BASE_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sublet {

// Two lower-case digits per byte.
std::string hex_encode(std::string_view bytes);
// None unless the text consists of pairs of hexadecimal digits.
std::optional<std::string> hex_decode(std::string_view text);
// Keeps letters, digits and "-_.~"; every other byte becomes %XX. The result is
// therefore a safe file name, except for "", "." and "..".
std::string percent_encode(std::string_view bytes);
// None if a % is not followed by two hexadecimal digits.
std::optional<std::string> percent_decode(std::string_view text);

// "250 ms", "1.5 s", "2 min 3 s", "2 h 3 min", "4 d 1 h".
std::string format_duration_ms(int64_t ms);
// Accepts what format_duration_ms writes and a bare number of seconds:
// "30", "30 s", "1.5h", "2 min 3 s". Units ms, s, min, h, d. None if it is not a
// duration, is negative or too large.
std::optional<int64_t> parse_duration_ms(std::string_view text);
// Binary units: "512 B", "21.3 KiB", "64 MiB".
std::string format_bytes(uint64_t bytes);
// "0.25", "3": the shortest text that is this number.
std::string plain_number(double value);
// "64 MiB", "1.5 GB", "4096"; units B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, PiB.
std::optional<uint64_t> parse_bytes(std::string_view text);
// "2026-02-03T04:05:06Z", and the same with milliseconds.
std::string format_instant(int64_t utc_us);
std::string format_instant_ms(int64_t utc_us);

// The candidate most similar to `word`, or "" if none is similar: "did you mean".
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

// A word of a shell's command line: in quotes unless it needs none.
std::string quote_for_shell(std::string_view word);

bool is_utf8(std::string_view bytes);
// Every invalid byte becomes U+FFFD.
std::string to_utf8(std::string_view bytes);
// One safe line: control characters (C0, DEL, C1, line separators,
// bidirectional overrides) and invalid bytes become \n, \x1b, \u202e; a
// backslash becomes two.
std::string escape_for_terminal(std::string_view bytes);

// Columns on a terminal: one per code point, two for East Asian wide ones and
// emoji, none for combining marks.
size_t display_width(std::string_view utf8);
// Exactly `width` columns: padded with spaces (on the left when right_aligned)
// or cut with "…". Width 0 gives "".
std::string fit(std::string_view utf8, size_t width, bool right_aligned = false);

// Rows in aligned columns, two spaces apart; the first row is treated like the others.
// The widest column is cut until all fit total_width (0: no limit). Each line ends with
// a newline and has no trailing spaces.
std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         const std::vector<bool>& right_aligned, size_t total_width);

}  // namespace sublet

#endif  // SUBLET_BASE_TEXT_H_
