// Converts the types of job/ to those of the brain. Pure functions.
#ifndef SUBLET_SERVER_JOBS_BRAIN_FORM_H_
#define SUBLET_SERVER_JOBS_BRAIN_FORM_H_

#include "job/description.h"
#include "job/stop_when.h"
#include "scheduling/events/events.h"

namespace sublet::server {

// One job of this description.
scheduling::Submitted::Job brain_job(const JobDescription& job);
scheduling::StopWhen brain_form(const StopWhen& when);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOBS_BRAIN_FORM_H_
