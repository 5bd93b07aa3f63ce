// Converts between the types of the public interface and the server's own. Besides the
// servants, only this file uses both.
#ifndef SUBLET_SERVER_SERVANTS_TRANSLATE_H_
#define SUBLET_SERVER_SERVANTS_TRANSLATE_H_

#include <string>

#include "base/octets.h"
#include "execution_server.hh"
#include "job/idl/translation.h"
#include "job_scheduler.hh"
#include "machine_allocator.hh"
#include "server/jobs/service.h"
#include "server/machines/logins.h"
#include "server/machines/service.h"
#include "server/spool/service.h"
#include "spool.hh"

namespace sublet::server {

using sublet::to_idl;

BatchRequest from_idl(const Sublet::v1::BatchDescription& d);
// For descriptions sent by users; throw Refusal "not.served" whose subject begins with
// `subject`.
JobDescription submitted(const Sublet::v1::JobDescription& job, const std::string& subject);
std::vector<Axis> submitted(const Sublet::v1::Axes& axes, const std::string& subject);
// For `list`.
JobQuery listed(const Sublet::v1::JobFilter& filter);
// For the other operations. Refusal kInvalid "filter.list_only" for what only `list` serves.
JobQuery from_idl(const Sublet::v1::JobFilter& filter);
void to_idl(const JobRow& row, const std::string& machine, int32_t progress,
            Sublet::v1::JobSummary& summary);
void to_idl(const AttemptRow& row, Sublet::v1::AttemptInfo& info);
void to_idl(const JobOutputs& outputs, Sublet::v1::OutputInfos& infos);
void to_idl(const scheduling::ChangeRecord& record, Sublet::v1::Change& change);
MachineFacts from_idl(const Sublet::v1::MachineDescription& d);
ReportedState from_idl(const Sublet::v1::MachineReport& r);
// None: it takes no part in telling who is logged in where. Throws Refusal.
std::optional<LoginsReport> logins_of(const Sublet::v1::MachineReport& r);
void to_idl(const LoginsAnswer& logins, Sublet::v1::Details& more);
ReportedAttempt from_idl(const Sublet::v1::AttemptStatus& s);
ReportedStart from_idl(const Sublet::v1::StartReport& r);
ReportedEnd from_idl(const Sublet::v1::EndReport& r);
void to_idl(const Verdicts& verdicts, Sublet::v1::Verdicts& out);
void to_idl(const scheduling::MachineView& view, const std::optional<ReportedState>& state,
            bool with_attempts, Sublet::v1::MachineInfo& info);
// Throws Refusal kInvalid for an unknown kind and for fields that are not served.
FilePlace served_place(const Sublet::v1::FilePlace& place);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SERVANTS_TRANSLATE_H_
