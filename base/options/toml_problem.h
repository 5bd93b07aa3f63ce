// What is wrong with the syntax of a TOML text, in words for its author. Pure functions.
#ifndef SUBLET_BASE_OPTIONS_TOML_PROBLEM_H_
#define SUBLET_BASE_OPTIONS_TOML_PROBLEM_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace sublet {

// One sentence without file and place, safe to show on a terminal, such as
//   'letters' is not a value; a string needs quotes
// `said`: what toml++ says of the text, "Error while parsing SCOPE: REASON"; what is not known
// is called invalid TOML. `line` and `column` (in code points): its place of the error, from 1.
std::string toml_problem(std::string_view text, uint32_t line, uint32_t column,
                         std::string_view said);

}  // namespace sublet

#endif  // SUBLET_BASE_OPTIONS_TOML_PROBLEM_H_
