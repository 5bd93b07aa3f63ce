// A network with one hidden layer and sigmoid units, trained row by row on the squared
// error. The source fixes the order of every sum, so results are bit-identical everywhere.
// One thread.
#ifndef SUBLET_EXAMPLES_BACK_PROPAGATION_NETWORK_H_
#define SUBLET_EXAMPLES_BACK_PROPAGATION_NETWORK_H_

#include <array>
#include <cstddef>
#include <vector>

#include "examples/back-propagation/exact_math.h"
#include "examples/back-propagation/letters.h"

namespace sublet::letters {

class Network {
 public:
  // Small random weights from `random`.
  Network(std::size_t hidden, Random& random);

  // One gradient step of `rate` for this row.
  void train(const Letter& row, double rate);
  bool classifies(const Letter& row);

  // (16 + 1) rows of `hidden`, bias first, then (hidden + 1) rows of 26, bias first.
  std::vector<double>& weights() { return weights_; }

 private:
  void forward(const Letter& row);

  const std::size_t hidden_;
  std::vector<double> weights_;
  std::array<double, kInputs> inputs_;
  std::vector<double> hidden_values_;
  std::vector<double> hidden_errors_;
  std::array<double, kClasses> outputs_;
};

}  // namespace sublet::letters

#endif  // SUBLET_EXAMPLES_BACK_PROPAGATION_NETWORK_H_
