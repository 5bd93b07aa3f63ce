// Words that users write: job ids, names of files in a job's folder, states. Pure
// functions; errors are PoolErrors.
#ifndef SUBLET_CLI_NAMES_H_
#define SUBLET_CLI_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/pool/pool.h"

namespace sublet::cli {

// Words of the forms "17", "17-20", "17,19", "17,19-21". The result is sorted, and
// adjacent ranges are merged. Throws PoolError (usage) for anything else, for 0, and for a
// range that runs backwards.
std::vector<IdRange> parse_ids(const std::vector<std::string>& words);
// "17-20,23"
std::string format_ids(const std::vector<IdRange>& ids);
// Saturating.
uint64_t count_ids(const std::vector<IdRange>& ids);
bool contains_id(const std::vector<IdRange>& ids, uint64_t id);
// A number of at least 1; throws PoolError (usage) that names `what`.
uint64_t parse_number(std::string_view text, const std::string& what);

// A name of a file in a job's folder is relative and stays inside: no empty,
// "." or ".." part, no NUL, each part at most 255 bytes, at most 4095 in all.
// A leading "./" is removed. Returns an error text, or "" and the name in *normal.
std::string check_relative_name(std::string_view name, std::string* normal);
// An output's name may also be a folder's or a pattern (job/output_name.h), but not
// "stdout" or "stderr", which are the job's streams.
std::string check_output_name(std::string_view name, std::string* normal);

// A pattern of jobs' names, as the server compares it (JobFilter in idl/job_scheduler.idl). Returns
// an error text for one that nobody means, with an unclosed [ or a backslash at the end, or "".
std::string check_name_pattern(std::string_view pattern);

// "waiting", ...; an unknown state as its number.
std::string job_state_name(uint32_t state);
std::string machine_state_name(uint32_t state);
std::string attempt_state_name(uint32_t state);
// How an attempt ended, in a few words: "owner came back".
bool is_eviction(uint32_t ended);
std::vector<std::string> job_state_names();
// Throws PoolError (usage) that suggests the nearest word.
uint32_t parse_job_state(const std::string& word);

// The last part of a path.
std::string base_name(const std::string& path);
// The path, if relative, below `folder`; "" and "." are the current folder.
std::string located(const std::string& folder, const std::string& path);

// The error (usage) for a word that is not among `known`; its advice suggests the nearest, or
// lists all. `what` precedes the word in the message.
PoolError unknown_word(const std::string& code, const std::string& what, const std::string& word,
                       const std::vector<std::string>& known);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_NAMES_H_
