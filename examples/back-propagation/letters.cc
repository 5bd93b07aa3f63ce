#include "examples/back-propagation/letters.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace sublet::letters {
namespace {

bool parse_letter(const std::string& line, Letter& row) {
  const char* at = line.data();
  const char* const end = at + line.size();
  if (at == end || *at < 'A' || *at > 'Z') return false;
  row.letter = static_cast<std::uint8_t>(*at++ - 'A');
  for (std::uint8_t& feature : row.features) {
    if (at == end || *at++ != ',') return false;
    const auto [next, error] = std::from_chars(at, end, feature);
    if (error != std::errc() || feature > 15) return false;
    at = next;
  }
  return at == end;
}

}  // namespace

std::vector<Letter> read_letters(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path + ": " + std::strerror(errno));
  std::vector<Letter> letters;
  letters.reserve(kRows);
  std::string line;
  while (letters.size() < kRows && std::getline(in, line)) {
    Letter row;
    if (!parse_letter(line, row)) {
      throw std::runtime_error(path + " line " + std::to_string(letters.size() + 1) +
                               ": not a letter and 16 numbers from 0 to 15");
    }
    letters.push_back(row);
  }
  if (letters.size() < kRows) {
    throw std::runtime_error(path + " has " + std::to_string(letters.size()) + " rows of " +
                             std::to_string(kRows));
  }
  return letters;
}

std::uint64_t hash_byte(std::uint64_t hash, std::uint8_t byte) {
  return (hash ^ byte) * 0x100000001b3u;
}

std::uint64_t hash_letters(const std::vector<Letter>& letters) {
  std::uint64_t hash = kHashStart;
  for (const Letter& row : letters) {
    hash = hash_byte(hash, row.letter);
    for (const std::uint8_t feature : row.features) hash = hash_byte(hash, feature);
  }
  return hash;
}

}  // namespace sublet::letters
