// Trains a network to recognize letters and prints its correctness. All output is printed
// at the end, so that the last attempt of an interrupted run prints the same as an
// uninterrupted run. Exit status: 0, 1 (failed), 2 (bad command line), 75 (saved and left
// because asked to).
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>

#include "examples/back-propagation/letters.h"
#include "examples/back-propagation/options.h"
#include "examples/back-propagation/training.h"

namespace sublet::letters {
namespace {

// Three decimals without floating point, rounded half up.
void print_correctness(const char* name, std::uint64_t right, std::uint64_t rows) {
  const std::uint64_t thousandths = (right * 1000 + rows / 2) / rows;
  std::printf("%s correctness %" PRIu64 ".%03" PRIu64 " (%" PRIu64 " of %" PRIu64 ")\n", name,
              thousandths / 1000, thousandths % 1000, right, rows);
}

void write_weights(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path);
}

void run(const Options& options) {
  Training training(options);
  training.start();  // before reading the letters: from here on it can be asked to leave
  const Result result = training.run(read_letters(options.data));
  if (!options.weights.empty()) write_weights(options.weights, training.weights_bytes());
  std::printf("epochs %" PRIu64 "\n", options.epochs);
  print_correctness("training", result.training_right, kTrainingRows);
  print_correctness("test", result.test_right, kTestRows);
  std::printf("weights %016" PRIx64 "\n", result.weights_hash);
  if (std::fflush(stdout) != 0) throw std::runtime_error("cannot write the results");
  training.finish();
}

}  // namespace
}  // namespace sublet::letters

int main(int argc, char** argv) {
  using namespace sublet::letters;
  Options options;
  try {
    options = parse_options(argc, argv);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "back-propagation: %s\n%s", error.what(), kUsage);
    return 2;
  }
  if (options.help) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  try {
    run(options);
  } catch (const sublet::CheckpointRefused&) {
    return 1;  // start() has printed the reason
  } catch (const std::exception& error) {
    std::fprintf(stderr, "back-propagation: %s\n", error.what());
    return 1;
  }
  return 0;
}
