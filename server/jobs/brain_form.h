// Converts the types of job/ to those of the brain. Pure functions.
#ifndef SUBLET_SERVER_JOBS_BRAIN_FORM_H_
#define SUBLET_SERVER_JOBS_BRAIN_FORM_H_

#include <string>

#include "job/description.h"
#include "job/stop_when.h"
#include "scheduling/events/events.h"

namespace sublet::server {

// One job of this description, whose references are all to ids.
scheduling::Submitted::Job brain_job(const JobDescription& job);
// Submitted::Job::program: the same number whenever the user runs programs of the same names.
uint64_t program_of(const JobDescription& job, const std::string& user);
scheduling::OnNever brain_form(OnNever on_never);
scheduling::StopWhen brain_form(const StopWhen& when);
// Throws Refusal kInvalid "needs.require" or "needs.prefer" if that expression is wrong.
void check_expressions(const JobDescription& job, const std::string& subject);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOBS_BRAIN_FORM_H_
