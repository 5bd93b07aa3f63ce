#include "job/idl/eviction.h"

namespace sublet {

namespace v1 = Sublet::v1;
using protocol::EvictionStep;
using protocol::EvictionSteps;
using protocol::kEvictionSteps;

EvictionSteps from_idl(const v1::EvictionSteps& steps) {
  EvictionSteps out;
  for (CORBA::ULong i = 0; i < steps.length(); ++i)
    for (const EvictionStep& step : kEvictionSteps)
      if (step.number == steps[i].step) out.*step.after_us = steps[i].after_us;
  return plausible(out) ? out : EvictionSteps();
}

void to_idl(const EvictionSteps& steps, v1::EvictionSteps& out) {
  out.length(0);
  for (const EvictionStep& step : kEvictionSteps) {
    if (steps.*step.after_us < 0) continue;
    const CORBA::ULong n = out.length();
    out.length(n + 1);
    out[n] = v1::EvictionStep{};
    out[n].step = step.number;
    out[n].after_us = steps.*step.after_us;
  }
}

}  // namespace sublet
