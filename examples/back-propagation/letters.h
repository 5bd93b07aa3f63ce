// The data set: 20,000 rows of a class A-Z and 16 features from 0 to 15.
#ifndef SUBLET_EXAMPLES_BACK_PROPAGATION_LETTERS_H_
#define SUBLET_EXAMPLES_BACK_PROPAGATION_LETTERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sublet::letters {

constexpr std::size_t kInputs = 16;
constexpr std::size_t kClasses = 26;
constexpr std::size_t kTrainingRows = 16000;
constexpr std::size_t kTestRows = 4000;
constexpr std::size_t kRows = kTrainingRows + kTestRows;

struct Letter {
  std::uint8_t letter;  // 0 is A
  std::array<std::uint8_t, kInputs> features;
};

// Reads all rows. Throws std::runtime_error naming file, line and what is wrong.
std::vector<Letter> read_letters(const std::string& path);

// FNV-1a, 64 bits, to be continued from `hash`.
constexpr std::uint64_t kHashStart = 0xcbf29ce484222325u;
std::uint64_t hash_byte(std::uint64_t hash, std::uint8_t byte);
std::uint64_t hash_letters(const std::vector<Letter>& letters);

}  // namespace sublet::letters

#endif  // SUBLET_EXAMPLES_BACK_PROPAGATION_LETTERS_H_
