// The command line of back-propagation.
#ifndef SUBLET_EXAMPLES_BACK_PROPAGATION_OPTIONS_H_
#define SUBLET_EXAMPLES_BACK_PROPAGATION_OPTIONS_H_

#include <cstdint>
#include <string>

namespace sublet::letters {

struct Options {
  std::string data;
  std::string weights;     // empty: not written
  std::string checkpoint;  // empty: save only in a pool
  std::uint64_t epochs = 10;
  std::uint64_t seed = 1;
  std::uint64_t hidden = 55;
  double rate = 0.1;
  bool help = false;
};

extern const char kUsage[];

// Throws std::invalid_argument with one sentence.
Options parse_options(int argc, char** argv);

}  // namespace sublet::letters

#endif  // SUBLET_EXAMPLES_BACK_PROPAGATION_OPTIONS_H_
