// Which rows the brain is rebuilt from, and statements that need an index. A restart must
// not take longer with every job that has ever ended, and these lie in the same tables.
#ifndef SUBLET_SERVER_STORE_LIVE_H_
#define SUBLET_SERVER_STORE_LIVE_H_

#include <string>
#include <vector>

namespace sublet::server {

// What follows "select ... from", in one question or several; together they find each row
// once. A final job is of use to its live attempt; of a job that waits, the newest attempt.
std::vector<std::string> live_jobs();
std::vector<std::string> live_attempts();
std::vector<std::string> live_stops();

// The highest id: what records stand for does not overlap.
inline constexpr const char* kLastJob = "select id + count - 1 from jobs order by id desc limit 1";

// `content > 0` lets it use the index files_content.
inline constexpr const char* kDropContent =
    "delete from contents where id = :id and not exists (select 1 from files where files.content > "
    "0 and files.content = contents.id)";

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_LIVE_H_
