// The search as state that fits a tiny checkpoint: how many keys of the range were tried.
// Keys are tried in order and the first that fits counts, so what is found, and after how
// many keys, depends neither on the machine nor on interruptions.
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

// The known beginning of a message, and the whole message as it was sent.
struct Message {
  Block iv{};
  Bytes plaintext;   // at least a block, whole blocks
  Bytes ciphertext;  // at least as many
};

// The first key from `first` to `last` that makes the message's ciphertext of its known
// plaintext; all of the known blocks are compared.
std::optional<std::uint64_t> find_key(const Message& message, ScanFunction* scan, unsigned length,
                                      std::uint64_t first, std::uint64_t last);

class Search {
 public:
  // `packet`: keys from one safe point to the next.
  Search(const Message& message, const KeyRange& range, std::uint64_t packet);

  // Resumes where a checkpoint stands; `path` is for when there is no pool and may be
  // empty. Throws std::runtime_error when that checkpoint is of another search.
  void start(const std::string& path);
  // The key, or nothing when it is not in the range. Asked to leave, it saves and ends
  // the process.
  std::optional<std::uint64_t> run();
  // The results are written: the checkpoint is no longer needed.
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
