#include "examples/back-propagation/training.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace sublet::letters {

constexpr std::uint32_t kLayout = 1;  // increase it when a variable's meaning changes

Training::Training(const Options& options)
    : options_(options),
      random_(options.seed),
      network_(options.hidden, random_),
      seed_(options.seed),
      rate_(options.rate),
      checkpoint_("back-propagation", kLayout) {
  std::copy(std::begin(random_.state()), std::end(random_.state()), epoch_random_);
  // Of this size only: a checkpoint of another network is refused.
  checkpoint_.variable("weights", network_.weights().data(), network_.weights().size());
  checkpoint_.variable("seed", seed_);
  checkpoint_.variable("rate", rate_);
  checkpoint_.variable("letters hash", letters_hash_);
  checkpoint_.variable("epoch", epoch_);
  checkpoint_.variable("position", position_);
  checkpoint_.variable("tested", tested_);
  checkpoint_.variable("training right", training_right_);
  checkpoint_.variable("test right", test_right_);
  checkpoint_.variable("epoch random", epoch_random_, 4);
}

void Training::start() {
  sublet_checkpoint_options where{};
  if (!options_.checkpoint.empty()) where.path = options_.checkpoint.c_str();
  if (!checkpoint_.start(where)) return;
  if (seed_ != options_.seed || rate_ != options_.rate) {
    throw std::runtime_error("the checkpoint was made with another --seed or --rate");
  }
  const bool trained = epoch_ == options_.epochs && position_ == 0;
  if (epoch_ > options_.epochs || (epoch_ == options_.epochs && position_ != 0) ||
      position_ >= kTrainingRows || tested_ > kRows || (tested_ != 0 && !trained)) {
    throw std::runtime_error("the checkpoint is from a run with another number of --epochs");
  }
}

std::uint64_t Training::done() const { return epoch_ * kTrainingRows + position_ + tested_; }

void Training::safe_point() {
  checkpoint_.progress(done(), options_.epochs * kTrainingRows + kRows);
  checkpoint_.point();
}

Result Training::run(const std::vector<Letter>& letters) {
  const std::uint64_t hash = hash_letters(letters);
  if (letters_hash_ != 0 && letters_hash_ != hash) {
    throw std::runtime_error("the checkpoint was made with other --data");
  }
  letters_hash_ = hash;
  while (epoch_ < options_.epochs) train_epoch(letters);
  test(letters);
  Result result{training_right_, test_right_, kHashStart};
  for (const std::uint8_t byte : weights_bytes()) {
    result.weights_hash = hash_byte(result.weights_hash, byte);
  }
  return result;
}

void Training::train_epoch(const std::vector<Letter>& letters) {
  std::copy(std::begin(epoch_random_), std::end(epoch_random_), random_.state());
  std::vector<std::uint16_t> order(kTrainingRows);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
  while (position_ < kTrainingRows) {
    network_.train(letters[order[position_]], rate_);
    if (++position_ == kTrainingRows) break;
    safe_point();
  }
  ++epoch_;
  position_ = 0;
  std::copy(std::begin(random_.state()), std::end(random_.state()), epoch_random_);
  safe_point();
}

void Training::test(const std::vector<Letter>& letters) {
  while (tested_ < kRows) {
    const bool right = network_.classifies(letters[tested_]);
    (tested_ < kTrainingRows ? training_right_ : test_right_) += right;
    ++tested_;
    safe_point();
  }
}

std::vector<std::uint8_t> Training::weights_bytes() {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(network_.weights().size() * 8);
  for (const double weight : network_.weights()) {
    const auto bits = std::bit_cast<std::uint64_t>(weight);
    for (int shift = 0; shift < 64; shift += 8) {
      bytes.push_back(static_cast<std::uint8_t>(bits >> shift));
    }
  }
  return bytes;
}

}  // namespace sublet::letters
