// Translates between the ORB's types and ours. For pool_client.cc and corba_pool.h only. Pure
// functions.
#ifndef SUBLET_CLI_POOL_IDL_TRANSLATION_H_
#define SUBLET_CLI_POOL_IDL_TRANSLATION_H_

#include <string>
#include <vector>

#include "accounting.hh"
#include "administration.hh"
#include "base/octets.h"
#include "cli/pool/pool.h"
#include "job/idl/translation.h"
#include "job_scheduler.hh"
#include "machine_allocator.hh"
#include "membership.hh"
#include "spool.hh"

namespace sublet::cli {

namespace v1 = ::Sublet::v1;

// Arguments of calls.
// Invalid bytes become U+FFFD: the ORB refuses text that is not UTF-8.
char* to_string(const std::string& text);
v1::JobFilter to_filter(const JobFilter& filter);
v1::FilePlace to_place(const FilePlace& place);
v1::ReportQuery to_query(const ReportQuery& query);

// Results of calls.
JobSummary from_summary(const v1::JobSummary& job);
JobPage from_page(const v1::JobPage& page);
JobDetail from_detail(const v1::JobDetail& job);
AttemptPage from_attempts(const v1::AttemptPage& page);
OutputPage from_outputs(const v1::OutputPage& page);
JobCounts from_counts(const v1::JobCounts& counts);
PoolInfo from_info(const v1::PoolInfo& info);
LogPart from_log(const v1::LogPart& part);
ChangePage from_changes(const v1::ChangePage& page);
MachinePage from_machines(const v1::MachinePage& page);
MemberPage from_members(const v1::MemberPage& page);
Policies from_policies(const v1::Policies& policies);
SharesPage from_shares(const v1::SharesPage& page);
QuotaPage from_quotas(const v1::QuotaPage& page);
UsagePage from_usage(const v1::UsagePage& page);
StandingPage from_standings(const v1::StandingPage& page);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_POOL_IDL_TRANSLATION_H_
