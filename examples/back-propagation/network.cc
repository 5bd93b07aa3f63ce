#include "examples/back-propagation/network.h"

#include <algorithm>

namespace sublet::letters {
namespace {

// to[i] += factor * from[i]: elementwise, so vector instructions give the same bits.
void add_scaled(double* __restrict to, const double* __restrict from, double factor,
                std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) to[i] += factor * from[i];
}

}  // namespace

Network::Network(std::size_t hidden, Random& random)
    : hidden_(hidden),
      weights_((kInputs + 1) * hidden + (hidden + 1) * kClasses),
      hidden_values_(hidden),
      hidden_errors_(hidden) {
  for (double& weight : weights_) weight = 0.5 * random.symmetric();
}

void Network::forward(const Letter& row) {
  const double* weights = weights_.data();
  std::copy(weights, weights + hidden_, hidden_values_.begin());
  weights += hidden_;
  for (std::size_t i = 0; i < kInputs; ++i, weights += hidden_) {
    inputs_[i] = (row.features[i] - 7.5) * 0.125;  // exact; about -0.94 to 0.94
    add_scaled(hidden_values_.data(), weights, inputs_[i], hidden_);
  }
  for (double& value : hidden_values_) value = sigmoid(value);
  std::copy(weights, weights + kClasses, outputs_.begin());
  weights += kClasses;
  for (std::size_t h = 0; h < hidden_; ++h, weights += kClasses) {
    add_scaled(outputs_.data(), weights, hidden_values_[h], kClasses);
  }
  for (double& value : outputs_) value = sigmoid(value);
}

bool Network::classifies(const Letter& row) {
  forward(row);
  return std::max_element(outputs_.begin(), outputs_.end()) - outputs_.begin() == row.letter;
}

void Network::train(const Letter& row, double rate) {
  forward(row);
  std::array<double, kClasses> steps;
  for (std::size_t k = 0; k < kClasses; ++k) {
    const double value = outputs_[k];
    const double target = k == row.letter ? 1.0 : 0.0;
    steps[k] = rate * ((target - value) * (value * (1.0 - value)));
  }
  double* weights = weights_.data() + (kInputs + 1) * hidden_;
  add_scaled(weights, steps.data(), 1.0, kClasses);
  weights += kClasses;
  for (std::size_t h = 0; h < hidden_; ++h, weights += kClasses) {
    double error = 0;
    for (std::size_t k = 0; k < kClasses; ++k) error += weights[k] * steps[k];
    const double value = hidden_values_[h];
    hidden_errors_[h] = error * (value * (1.0 - value));
    add_scaled(weights, steps.data(), value, kClasses);
  }
  weights = weights_.data();
  add_scaled(weights, hidden_errors_.data(), 1.0, hidden_);
  weights += hidden_;
  for (std::size_t i = 0; i < kInputs; ++i, weights += hidden_) {
    add_scaled(weights, hidden_errors_.data(), inputs_[i], hidden_);
  }
}

}  // namespace sublet::letters
