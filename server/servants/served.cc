#include "server/servants/served.h"

#include <algorithm>
#include <iterator>

#include "server/refusal.h"

namespace sublet::server {
namespace {

namespace v1 = Sublet::v1;

constexpr std::string_view kServed[] = {
    "Administration.drain",
    "Administration.evict",
    "Administration.give_policies_back",
    "Administration.policies_in_force",
    "Administration.quotas",
    "Administration.resume",
    "Administration.set_policies",
    "Administration.set_quota",
    "Administration.set_shares",
    "Administration.shares",
    "AttemptStatus.at_risk_ms",
    "AttemptStatus.disk",
    "AttemptStatus.message",
    "AttemptStatus.waits",
    "BatchDescription.at_most",
    "BatchDescription.never_satisfied",
    "BatchDescription.stop_when.done",
    "BatchDescription.stop_when.failed",
    "BatchDescription.stop_when.output",
    "EndReport.disk_peak",
    "EndReport.memory_short",
    "EndReport.network_bytes",
    "EndReport.processes_peak",
    "EndReport.staging",
    "EndReport.steps",
    "FilePlace.suspect",
    "InputFile.source",
    "JobDescription.even_so",
    "JobDescription.hours",
    "JobDescription.not_before",
    "JobDescription.program@",
    "JobDescription.submit_folder",
    "JobDescription.submit_host",
    "JobDescription.waits_for",
    "JobFilter.name",
    "JobFilter.newest_first",
    "JobFilter.runs",
    "JobFilter.since",
    "JobFilter.stopped",
    "MachineDescription.pid",
    "MachineReport.ahead",
    "MachineReport.load",
    "MachineReport.logins_asked",
    "MachineReport.logins_here",
    "MachineReport.speed",
    "ReportQuery.steps",
    "StartReport.ran_ms",
};

bool is_served(const std::string& name) {
  return std::any_of(std::begin(kServed), std::end(kServed), [&](std::string_view served) {
    return served.ends_with('@') ? name.starts_with(served) : name == served;
  });
}

[[noreturn]] void refuse(const std::string& message, const std::string& subject) {
  throw Refusal(Refusal::Kind::kInvalid, "not.served", message,
                "Omit it; the server's capabilities list what it supports.", subject);
}

}  // namespace

v1::Names capabilities() {
  v1::Names names;
  names.length(std::size(kServed));
  for (CORBA::ULong i = 0; i < std::size(kServed); ++i)
    names[i] = CORBA::string_dup(std::string(kServed[i]).c_str());
  return names;
}

void require_served(std::string_view type, const v1::Details& more) {
  for (CORBA::ULong i = 0; i < more.length(); ++i) {
    const std::string name = more[i].name.in();
    if (!is_served(std::string(type) + "." + name))
      refuse("this server does not know `" + name + "` of a " + std::string(type), name);
  }
}

void require_unset(bool has_value, const char* field) {
  if (has_value) refuse(std::string("this server does not serve ") + field + " yet", field);
}

void refuse_operation(const char* operation) {
  refuse(std::string("this server does not serve ") + operation + " yet", operation);
}

}  // namespace sublet::server
