#include "client/attempts/work.h"

#include "base/log.h"

namespace sublet::client {

void outlive_power(Files& files, AttemptWork& work) {
  if (work.outlives_power) return;
  try {
    write_assignment(files, work.folder, *work.assignment, Files::Outlives::kPower);
    work.outlives_power = true;
  } catch (const std::exception& error) {
    log(Severity::error) << work.label() << ": would not survive a power failure: " << error.what();
  }
}

}  // namespace sublet::client
