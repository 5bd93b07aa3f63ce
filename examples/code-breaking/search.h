// The search, with state that fits in a tiny checkpoint: the number of keys tried. Keys are
// tried in order and the first match counts, so the result and the number of keys tried
// depend neither on the machine nor on interruptions.
#ifndef SUBLET_EXAMPLES_CODE_BREAKING_SEARCH_H_
#define SUBLET_EXAMPLES_CODE_BREAKING_SEARCH_H_

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint-api/sublet_checkpoint.hpp"
#include "examples/code-breaking/key_range.h"
#include "examples/code-breaking/key_scan.h"
#include "examples/code-breaking/rc5.h"

namespace sublet::code_breaking {

// The known beginning of a message, and the whole message encrypted.
struct Message {
  Block iv{};
  Bytes plaintext;   // whole blocks, at least one
  Bytes ciphertext;  // whole blocks, at least as many
};

// The first key from `first` to `last` that encrypts the known plaintext to the message's
// ciphertext; compares all known blocks.
std::optional<std::uint64_t> find_key(const Message& message, ScanFunction* scan, unsigned length,
                                      std::uint64_t first, std::uint64_t last);

class Search {
 public:
  // `packet`: keys between two safe points.
  Search(const Message& message, const KeyRange& range, std::uint64_t packet);

  // Resumes from a checkpoint, if there is one; `path` is used outside a pool and may be
  // empty. Throws std::runtime_error if the checkpoint is for another search.
  void start(const std::string& path);
  // Returns the key, or nullopt if it is not in the range. When asked to leave, saves and
  // exits.
  std::optional<std::uint64_t> run();
  // To be called when the results have been written: removes the checkpoint.
  void finish() { checkpoint_.finish(); }

  std::uint64_t tried() const { return tried_; }

 private:
  const Message message_;
  const KeyRange range_;
  const std::uint64_t packet_;

  // Saved.
  std::uint64_t identity_;  // a hash of message and range
  std::uint64_t tried_ = 0;

  Checkpoint checkpoint_;
};

}  // namespace sublet::code_breaking

#endif  // SUBLET_EXAMPLES_CODE_BREAKING_SEARCH_H_
