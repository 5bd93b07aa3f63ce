#include "cli/pool/idl_translation.h"

#include "base/text.h"

namespace sublet::cli {

static_assert(kMachineIdle == v1::MACHINE_IDLE && kMachineBusy == v1::MACHINE_BUSY &&
              kMachineSilent == v1::MACHINE_SILENT && kMachineGone == v1::MACHINE_GONE);
static_assert(kByUser == v1::BY_USER && kByMachine == v1::BY_MACHINE && kByBatch == v1::BY_BATCH &&
              kByDay == v1::BY_DAY && kByWeek == v1::BY_WEEK && kByJob == v1::BY_JOB);

char* to_string(const std::string& text) { return CORBA::string_dup(to_utf8(text).c_str()); }

v1::JobFilter to_filter(const JobFilter& filter) {
  v1::JobFilter out{};
  out.ids.length(static_cast<CORBA::ULong>(filter.ids.size()));
  for (CORBA::ULong i = 0; i < filter.ids.size(); ++i)
    out.ids[i] = v1::JobRange{filter.ids[i].first, filter.ids[i].count};
  out.batch = filter.batch;
  out.user = to_string(filter.user);
  out.states.length(static_cast<CORBA::ULong>(filter.states.size()));
  for (CORBA::ULong i = 0; i < filter.states.size(); ++i) out.states[i] = filter.states[i];
  out.unfinished_only = filter.unfinished_only;
  if (filter.runs) add_detail(out.more, "runs", "yes");
  if (filter.stopped != JobFilter::Stopped::any)
    add_detail(out.more, "stopped", filter.stopped == JobFilter::Stopped::only ? "yes" : "no");
  if (!filter.name.empty()) add_detail(out.more, "name", to_utf8(filter.name));
  if (filter.since_us > 0) add_detail(out.more, "since", std::to_string(filter.since_us));
  if (filter.newest_first) add_detail(out.more, "newest_first", "yes");
  return out;
}

v1::FilePlace to_place(const FilePlace& place) {
  v1::FilePlace out{};
  to_idl(place, out);
  return out;
}

v1::ReportQuery to_query(const ReportQuery& query) {
  v1::ReportQuery out{};
  out.since = query.since_us;
  out.until = query.until_us;
  out.by.length(static_cast<CORBA::ULong>(query.by.size()));
  for (CORBA::ULong i = 0; i < query.by.size(); ++i) out.by[i] = query.by[i];
  out.user = to_string(query.user);
  if (query.steps) to_idl(Details{{"steps", "all"}}, out.more);
  return out;
}

}  // namespace sublet::cli
