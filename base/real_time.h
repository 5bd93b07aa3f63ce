// Real-time priority for what acts on the owner's return: the owner's busy programs do not delay
// it. Needs only the C library, because the shepherd has no other.
#ifndef SUBLET_BASE_REAL_TIME_H_
#define SUBLET_BASE_REAL_TIME_H_

namespace sublet {

// For the calling thread alone: threads and processes that it starts are normal again. That ends
// for good when 200 ms of CPU time pass without a wait, because one that spins must not be the
// only one that runs; then its nice value is `nice`. False if it is not permitted. To be called
// once.
bool become_real_time(int nice);

// For a child that becomes another's program: the bound above is inherited.
void lift_real_time_bound();

}  // namespace sublet

#endif  // SUBLET_BASE_REAL_TIME_H_
