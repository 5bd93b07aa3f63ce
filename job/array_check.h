// Checks an array: its axes, and its texts with the axes' values filled in. Each value is
// read a fixed number of times, however many texts there are. Not thread-safe.
#ifndef SUBLET_JOB_ARRAY_CHECK_H_
#define SUBLET_JOB_ARRAY_CHECK_H_

#include <cstdint>
#include <string>
#include <utility>

#include "job/description.h"

namespace sublet {

class ArrayCheck {
 public:
  // The range must outlive this object.
  ArrayCheck(SpecRange& range, std::string subject) : range_(range), subject_(std::move(subject)) {}

  // See check_axes() in job/check.h.
  void run();

  // How many values run() has read to measure or check them.
  uint64_t values_read() const { return values_read_; }

 private:
  void check_axes();
  void check_filled_size();
  void check_outputs();
  void check_rows(const Axis& axis, size_t name, const std::string& output);
  std::string value(const Axis& axis, uint64_t row, size_t name);
  Values greatest(size_t (*measure)(const std::string&));

  SpecRange& range_;
  const std::string subject_;
  uint64_t values_read_ = 0;
};

}  // namespace sublet

#endif  // SUBLET_JOB_ARRAY_CHECK_H_
