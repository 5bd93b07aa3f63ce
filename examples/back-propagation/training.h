// The whole run, with state that fits in a small checkpoint: weights, epoch, position, the
// state of the random generator before this epoch's shuffle, and the counts so far. The
// order of rows is regenerated from that state, so it need not be saved.
#ifndef SUBLET_EXAMPLES_BACK_PROPAGATION_TRAINING_H_
#define SUBLET_EXAMPLES_BACK_PROPAGATION_TRAINING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "checkpoint-api/sublet_checkpoint.hpp"
#include "examples/back-propagation/letters.h"
#include "examples/back-propagation/network.h"
#include "examples/back-propagation/options.h"

namespace sublet::letters {

struct Result {
  std::uint64_t training_right = 0;  // of kTrainingRows
  std::uint64_t test_right = 0;      // of kTestRows
  std::uint64_t weights_hash = 0;
};

class Training {
 public:
  explicit Training(const Options& options);

  // Resumes from a checkpoint, if there is one. Throws std::runtime_error if it was made
  // with another seed or rate, or a number of epochs that this run cannot continue.
  void start();
  // Trains and tests; when asked to leave, saves and exits. Throws std::runtime_error if
  // the checkpoint was made with other letters.
  Result run(const std::vector<Letter>& letters);
  // To be called when the results have been written: removes the checkpoint.
  void finish() { checkpoint_.finish(); }

  // The weights in the format of the output file: little-endian doubles.
  std::vector<std::uint8_t> weights_bytes();

 private:
  void train_epoch(const std::vector<Letter>& letters);
  void test(const std::vector<Letter>& letters);
  void safe_point();
  std::uint64_t done() const;

  const Options options_;
  Random random_;
  Network network_;

  // Saved with the weights and the generator's state.
  std::uint64_t seed_;
  double rate_;
  std::uint64_t letters_hash_ = 0;
  std::uint64_t epoch_ = 0;     // complete epochs
  std::uint64_t position_ = 0;  // rows trained in this one
  std::uint64_t tested_ = 0;    // rows tested, of kRows, once training is complete
  std::uint64_t training_right_ = 0;
  std::uint64_t test_right_ = 0;
  std::uint64_t epoch_random_[4];  // the generator before this epoch's shuffle

  Checkpoint checkpoint_;
};

}  // namespace sublet::letters

#endif  // SUBLET_EXAMPLES_BACK_PROPAGATION_TRAINING_H_
