// Which of the idle machines that fit a job gets it: of those that the job prefers most
// (Requirements::prefer), the one to which the policy for the machine gives the largest score.
//
// In a large pool a sample is compared (PolicyChoice::candidates), not all. Each kind of machine
// that suits the job has an equal part of it, as far as it has as many idle machines, and these are
// evenly distributed over its part of IDLE from a point that is drawn anew for each attempt.
// Whoever was not chosen the last time is therefore not a candidate again and again, and an order
// of the scores in IDLE does no harm. If n of a kind are compared, the (n + 1)-th part of all of
// that kind is better than the chosen one on average.
//
// Private to the brain; one caller at a time.
#ifndef SUBLET_SCHEDULING_MATCHING_MACHINE_CHOICE_H_
#define SUBLET_SCHEDULING_MATCHING_MACHINE_CHOICE_H_

#include <string>

#include "scheduling/matching/suitability.h"
#include "scheduling/policies/policies.h"

namespace sublet::scheduling {

struct Job;
struct Machine;

// `first`: the one nearest to the head of IDLE that fits. O(kinds + candidates * log machines);
// O(1) if the policy takes the first and the job prefers none.
Machine& choose_machine(const Policies& policies, const Suitability& suitability, const Job& job,
                        Machine& first, Micros now);
// " (preferred: 16384)", for a sentence after the machine's name; "": the job prefers none.
std::string preference_text(const Suitability& suitability, const Job& job, const Machine& machine);

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_MACHINE_CHOICE_H_
