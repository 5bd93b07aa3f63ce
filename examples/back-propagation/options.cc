#include "examples/back-propagation/options.h"

#include <charconv>
#include <stdexcept>
#include <string_view>

namespace sublet::letters {

const char kUsage[] =
    "usage: back-propagation --data FILE [--epochs N] [--seed N] [--hidden N] [--rate R]\n"
    "                        [--weights FILE] [--checkpoint FILE]\n"
    "Trains a network to recognise letters; prints its correctness and a hash of its weights.\n"
    "  --data FILE        20,000 letters: class, then 16 numbers from 0 to 15\n"
    "  --epochs N         passes over the first 16,000 letters (default 10)\n"
    "  --seed N           seed of the initial weights and of the order (default 1)\n"
    "  --hidden N         hidden units (default 55)\n"
    "  --rate R           learning rate (default 0.1)\n"
    "  --weights FILE     write the final weights, as little-endian doubles\n"
    "  --checkpoint FILE  where to save outside a pool\n";

namespace {

// Parses the whole of `text`, independent of the locale.
template <class T>
T parse_number(std::string_view name, std::string_view text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least) ||
      !(value <= most)) {
    throw std::invalid_argument(std::string(name) + " " + std::string(text) +
                                ": not a number in the allowed range");
  }
  return value;
}

void set_option(Options& options, std::string_view name, std::string_view value) {
  if (name == "--data") {
    options.data = value;
  } else if (name == "--weights") {
    options.weights = value;
  } else if (name == "--checkpoint") {
    options.checkpoint = value;
  } else if (name == "--epochs") {
    options.epochs = parse_number<std::uint64_t>(name, value, 0, 1'000'000);
  } else if (name == "--seed") {
    options.seed = parse_number<std::uint64_t>(name, value, 0, UINT64_MAX);
  } else if (name == "--hidden") {
    options.hidden = parse_number<std::uint64_t>(name, value, 1, 10'000);
  } else if (name == "--rate") {
    options.rate = parse_number<double>(name, value, 1e-9, 10);
  } else {
    throw std::invalid_argument(std::string(name) + ": unknown option");
  }
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    if (std::string_view(argv[i]) == "--help") {
      options.help = true;
      return options;
    }
    if (i + 1 == argc) throw std::invalid_argument(std::string(argv[i]) + ": value missing");
    set_option(options, argv[i], argv[i + 1]);
  }
  if (options.data.empty()) throw std::invalid_argument("--data FILE is required");
  return options;
}

}  // namespace sublet::letters
